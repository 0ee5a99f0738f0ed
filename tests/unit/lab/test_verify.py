"""Verification: the kernel's word, the bytes on the disk, and what comes out of them."""

from __future__ import annotations

import hashlib
import os
import tempfile
from typing import TYPE_CHECKING

import pytest

from initadvisor.candidates.cache import Cache, CachedCandidate
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, LostVMError, UnsafeError
from initadvisor.core.settings import Setting
from initadvisor.host import Host
from initadvisor.lab.verify import Verified, verify
from initadvisor.records.built_image import BuiltImage
from initadvisor.records.lab import Engine, Unpacked
from initadvisor.store.store import open_store
from initadvisor.vm.engines import NoEngineError
from tests.fakes.machines import REFUSED, UNPACKED, Machines
from tests.fixtures.images import archive, compress, pe
from tests.fixtures.kernels import bzimage
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CONTENT = archive({"init": b"#!/bin/sh\n", "lib/modules/6.9.1/kernel/a.ko": bytes(range(256)) * 40})


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Return a machine with a kernel and QEMU, without KVM."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    monkeypatch.setattr(Host, "machine", lambda _self: "x86_64")
    write(tmp_path, "/boot/vmlinuz-6.9.1", bzimage("6.9.1"))
    runner = Machines(programs=["qemu-system-x86_64"])
    runner.answer("/usr/bin/qemu-system-x86_64 --version", "QEMU emulator version 9.0")
    return Host(root=tmp_path, runner=runner)


def says(host: Host, answer: Callable[[bytes, str], str | None]) -> None:
    """Let the kernel say that."""
    assert isinstance(host.runner, Machines)
    host.runner.says = answer


def written(tmp_path: Path, data: bytes) -> Path:
    """Return an image file."""
    path = tmp_path / "initrd.img"
    path.write_bytes(data)
    return path


def test_an_image_that_the_kernel_unpacks_is_verified_and_remembered(
    tmp_path: Path, host: Host
) -> None:
    path = written(tmp_path, compress(Codec.ZSTD, CONTENT))
    found = verify(host, path)
    assert found.problems == ()
    assert found.verification.engine is Engine.TCG
    assert found.verification.kernel.release == "6.9.1"
    assert found.verification.image_sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found.verification.content_sha256 == hashlib.sha256(CONTENT).hexdigest()
    with open_store(host, readonly=True) as store:
        assert store.verifications(found.verification.image_sha256) == (found.verification,)


def test_the_same_content_has_the_same_digest_whatever_compressed_it(
    tmp_path: Path, host: Host
) -> None:
    found = {
        verify(host, written(tmp_path, compress(codec, CONTENT))).verification.content_sha256
        for codec in Codec
    }
    assert len(found) == 1


def test_a_refusal_is_given_in_the_kernels_own_words(tmp_path: Path, host: Host) -> None:
    says(host, lambda *_: REFUSED.format(why="ZSTD-compressed data is corrupt"))
    found = verify(host, written(tmp_path, compress(Codec.ZSTD, CONTENT)))
    assert found.problems == ("Linux 6.9.1 does not unpack it: ZSTD-compressed data is corrupt",)
    assert found.verification.unpacked is Unpacked.REFUSED


def test_damage_that_the_kernel_does_not_see_is_a_problem(tmp_path: Path, host: Host) -> None:
    """What is cut off behind a whole lz4 block ends the image for a kernel without a word."""
    image = compress(Codec.GZIP, CONTENT)
    damaged = bytearray(image)
    damaged[-8] ^= 1  # the checksum, which the kernel does not look at
    for data in (image[: len(image) // 2], bytes(damaged[:-1])):
        found = verify(host, written(tmp_path, data), kernel=tmp_path / "boot/vmlinuz-6.9.1")
        assert found.verification.unpacked is Unpacked.YES
        assert len(found.problems) == 1
        assert "cannot be read as an initramfs" in found.problems[0]


def test_an_image_that_only_the_kernel_refuses_is_not_verified_by_us(
    tmp_path: Path, host: Host
) -> None:
    says(host, lambda *_: REFUSED.format(why="invalid magic at start of compressed archive"))
    found = verify(host, written(tmp_path, b"garbage" * 9), kernel=tmp_path / "boot/vmlinuz-6.9.1")
    assert len(found.problems) == 2
    assert found.verification.content_sha256 == ""


def test_a_uki_is_verified_with_the_kernel_in_it(tmp_path: Path, host: Host) -> None:
    loaded = []

    def listen(image: bytes, command: str) -> str:
        loaded.append(image)
        assert "boot/vmlinuz-6.9.1" not in command
        return UNPACKED.format(us=1)

    says(host, listen)
    initrd = compress(Codec.XZ, CONTENT)
    uki = written(tmp_path, pe([(".linux", bzimage("6.9.2")), (".initrd", initrd)]))
    found = verify(host, uki)
    assert found.verification.kernel.release == "6.9.2"
    assert found.verification.image_sha256 == hashlib.sha256(initrd).hexdigest()
    assert loaded == [initrd]
    assert found.notes == ("the modules in it are for Linux 6.9.1, not for 6.9.2",)


def candidate(host: Host, data: bytes) -> Path:
    """Put a candidate into the cache, as a build does."""
    cache = Cache(host)
    cache.directory.mkdir(parents=True)
    path = cache.image_path("key")
    path.write_bytes(data)
    cache.keep(
        CachedCandidate(
            candidate=BuiltImage(
                setting=Setting(Codec.LZ4),
                path=str(path),
                size_bytes=len(data),
                sha256=hashlib.sha256(data).hexdigest(),
                main_offset=0,
                build_s=1.0,
                build_cpu_s=1.0,
                build_peak_bytes=1,
                command=("lz4",),
            ),
            image="/boot/initrd.img",
            image_sha256="0" * 64,
            kernel="6.9.1",
            built_at_ns=path.stat().st_mtime_ns,
        )
    )
    return path


def test_a_candidate_whose_bytes_rotted_is_found_out(host: Host) -> None:
    """A bit that flips on the disk changes no time stamp, and lz4 has no checksum."""
    path = candidate(host, compress(Codec.LZ4, CONTENT))
    assert verify(host, path).problems == ()
    stamp = path.stat()
    data = bytearray(path.read_bytes())
    data[-3] ^= 0x10
    path.write_bytes(data)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    problems = verify(host, path).problems
    assert "its bytes are not those that were built as lz4" in problems


def test_a_candidate_that_was_written_to_is_found_out(host: Host) -> None:
    path = candidate(host, compress(Codec.LZ4, CONTENT))
    path.write_bytes(compress(Codec.ZSTD, CONTENT) + bytes(4))
    assert verify(host, path).problems == ("it was changed since it was built",)


def test_an_image_that_changes_meanwhile_is_no_verified_one(tmp_path: Path, host: Host) -> None:
    path = written(tmp_path, compress(Codec.ZSTD, CONTENT))

    def rewrite(_image: bytes, _command: str) -> str:
        path.with_suffix(".new").write_bytes(compress(Codec.ZSTD, CONTENT))
        path.with_suffix(".new").rename(path)
        return UNPACKED.format(us=1)

    says(host, rewrite)
    with pytest.raises(InitadvisorError, match="was changed while it was verified"):
        verify(host, path)


def test_a_lost_machine_verifies_nothing(tmp_path: Path, host: Host) -> None:
    says(host, lambda *_: None)
    with pytest.raises(LostVMError):
        verify(host, written(tmp_path, compress(Codec.ZSTD, CONTENT)))
    with open_store(host, readonly=True) as store:
        assert store.verifications() == ()


def test_without_an_engine_it_is_refused(tmp_path: Path, host: Host) -> None:
    assert isinstance(host.runner, Machines)
    host.runner.programs = []
    with pytest.raises(NoEngineError) as error:
        verify(host, written(tmp_path, compress(Codec.ZSTD, CONTENT)))
    assert error.value.exit_code == 3


def test_user_mode_linux_never_verifies(tmp_path: Path, host: Host) -> None:
    with pytest.raises(NoEngineError, match="another kernel"):
        verify(host, written(tmp_path, compress(Codec.ZSTD, CONTENT)), engine=Engine.UML)


def test_what_lint_refuses_is_a_problem_even_if_this_kernel_unpacks_it(
    tmp_path: Path, host: Host
) -> None:
    write(tmp_path, "/boot/config-6.9.1", b"CONFIG_BLK_DEV_INITRD=y\n# CONFIG_RD_ZSTD is not set\n")
    found: Verified = verify(host, written(tmp_path, compress(Codec.ZSTD, CONTENT)))
    assert [problem.startswith("lint refuses it: ") for problem in found.problems] == [True]


def test_a_checksum_that_kernels_do_not_look_at_must_hold(tmp_path: Path, host: Host) -> None:
    damaged = bytearray(compress(Codec.GZIP, CONTENT))
    damaged[-8] ^= 1
    found = verify(host, written(tmp_path, bytes(damaged)))
    assert found.verification.unpacked is Unpacked.YES
    assert found.problems == (
        "it is damaged: a checksum in it is wrong, at which kernels do not look",
    )


def test_what_has_no_checksum_is_said_to_have_none(tmp_path: Path, host: Host) -> None:
    found = verify(host, written(tmp_path, compress(Codec.LZ4, CONTENT)))
    assert any("lz4 has no checksum" in note for note in found.notes)
    found = verify(host, written(tmp_path, compress(Codec.ZSTD, CONTENT)))
    assert not any("no checksum" in note for note in found.notes)


def test_many_small_files_get_memory_for_each(tmp_path: Path, host: Host) -> None:
    many = archive({f"{number}": b"" for number in range(20_000)})
    verify(host, written(tmp_path, many), kernel=tmp_path / "boot/vmlinuz-6.9.1")
    assert isinstance(host.runner, Machines)
    words = host.runner.booted[-1].split()
    assert int(words[words.index("-m") + 1].rstrip("M")) >= 384 + 2 * 20_000 * 4096 >> 20


@pytest.mark.parametrize(("size_bytes", "why"), [(0, "it is empty"), (5 << 30, "5 GB are more")])
def test_what_cannot_be_an_image_is_refused_at_once(
    tmp_path: Path, host: Host, size_bytes: int, why: str
) -> None:
    path = written(tmp_path, b"")
    os.truncate(path, size_bytes)
    with pytest.raises(UnsafeError, match=why):
        verify(host, path)


def test_where_kvm_loses_the_machine_emulation_is_asked(tmp_path: Path, host: Host) -> None:
    """A KVM may boot a kernel and hang only then."""
    write(tmp_path, "/dev/kvm", b"")
    first_word = "Linux version 6.9.1\n"
    says(
        host,
        lambda _, command: first_word if "-accel kvm" in command else UNPACKED.format(us=1),
    )
    image = written(tmp_path, compress(Codec.ZSTD, CONTENT))
    assert verify(host, image).verification.engine is Engine.TCG
    with pytest.raises(LostVMError):
        verify(host, image, engine=Engine.KVM)
