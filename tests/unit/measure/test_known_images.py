"""Which images a boot may have used, and what is known of the one that it did."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.candidates.cache import Cache, CachedCandidate
from initadvisor.core.estimates import Certainty
from initadvisor.core.settings import Setting
from initadvisor.host.storage.cold_read import drop_from_memory, resident_fraction
from initadvisor.measure.known_images import KnownImages
from initadvisor.records.attribution import Attribution, ImageEvidence, KnownImage
from initadvisor.records.built_image import BuiltImage
from initadvisor.transaction.plan import Replacement
from initadvisor.transaction.transaction import FileRole, SettingChange
from initadvisor.transaction.transactions import transactions
from initadvisor.trial.images import TrialImages
from tests.fixtures.booted import RELEASE, Booted
from tests.fixtures.journals import MACHINE_ID
from tests.fixtures.owners import OWNER
from tests.fixtures.small_images import uki

if TYPE_CHECKING:
    from collections.abc import Iterable

NOW = datetime(2026, 3, 1, tzinfo=UTC)
BEFORE, AFTER = NOW - timedelta(days=1), NOW + timedelta(days=1)
SIZE = 50_000
GZIP = b"\x1f\x8b"
LZ4 = Setting.parse("lz4 -9")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Booted:
    """A machine with Debian's generator, configured for zstd -19."""
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    machine = Booted(root=tmp_path / "machine")
    machine.initramfs_tools()
    return machine


def attributed(
    machine: Booted,
    traces: ImageEvidence,
    *,
    others: Iterable[tuple[KnownImage, datetime]] = (),
) -> Attribution:
    return KnownImages(machine.host(), others=others).attribute(traces, booted_at=NOW)


def loaded(size_bytes: int = SIZE) -> ImageEvidence:
    return ImageEvidence(loaded_bytes=size_bytes, from_uki=False)


def candidate(machine: Booted, content: bytes, setting: Setting, *, built: datetime) -> None:
    """Put a candidate into the cache."""
    cache = Cache(machine.host())
    cache.directory.mkdir(parents=True, exist_ok=True)
    path = cache.image_path(hashlib.sha256(content).hexdigest())
    path.write_bytes(content)
    os.utime(path, (built.timestamp(), built.timestamp()))
    cache.keep(
        CachedCandidate(
            candidate=BuiltImage(
                setting=setting,
                path=str(path),
                size_bytes=len(content),
                sha256=hashlib.sha256(content).hexdigest(),
                main_offset=0,
                build_s=1.0,
                build_cpu_s=1.0,
                build_peak_bytes=1,
                command=("lz4",),
            ),
            image="/boot/initrd.img",
            image_sha256="0" * 64,
            kernel=RELEASE,
            built_at_ns=path.stat().st_mtime_ns,
        )
    )


def timed(sha256: str, setting: Setting, since: datetime = BEFORE) -> tuple[KnownImage, datetime]:
    """Return an image that the lab has timed."""
    image = KnownImage(
        path="/tmp/lab.img",  # noqa: S108
        size_bytes=SIZE,
        sha256=sha256,
        setting=setting,
        candidate=True,
    )
    return image, since


def test_an_installed_image_was_made_as_configured_if_it_is_of_that_codec(machine: Booted) -> None:
    path = machine.image(size_bytes=SIZE)
    found = attributed(machine, loaded())
    assert found.certainty is Certainty.CERTAIN
    assert found.image is not None
    assert (found.image.path, found.image.setting) == (str(path), Setting.parse("zstd -19"))


def test_an_image_that_was_looked_at_is_not_left_in_memory() -> None:
    """There it would be charged to the service, which is short of it."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:  # /tmp may be memory
        machine = Booted(root=Path(directory))
        machine.initramfs_tools()
        with machine.image(size_bytes=8 << 20).open("rb") as file:
            drop_from_memory(file.fileno())
            assert attributed(machine, loaded(8 << 20)).certainty is Certainty.CERTAIN
            assert resident_fraction(file) < 0.1


def test_an_image_of_another_codec_was_made_nobody_knows_how(machine: Booted) -> None:
    machine.image(size_bytes=SIZE, head=GZIP)
    found = attributed(machine, loaded())
    assert found.image is not None
    assert found.image.setting is None


def test_a_configuration_that_cannot_be_read_leaves_the_setting_open(machine: Booted) -> None:
    machine.image(size_bytes=SIZE)
    machine.initramfs_tools("exit 7\n")
    found = attributed(machine, loaded())
    assert found.image is not None
    assert found.image.setting is None


@pytest.mark.parametrize("known_by", ["candidate", "lab"])
def test_the_same_bytes_were_made_by_the_same_setting(machine: Booted, known_by: str) -> None:
    path = machine.image(size_bytes=SIZE, head=GZIP)
    content = path.read_bytes()
    others = []
    if known_by == "candidate":
        candidate(machine, content, LZ4, built=AFTER)
    else:
        others = [timed(hashlib.sha256(content).hexdigest(), LZ4, AFTER)]
    found = attributed(machine, loaded(), others=others)
    assert found.image is not None
    assert (found.image.path, found.image.setting) == (str(path), LZ4)
    assert not found.image.candidate


def test_only_where_nothing_installed_fits_a_candidate_may_have_been(machine: Booted) -> None:
    machine.image(size_bytes=SIZE)
    candidate(machine, b"c" * SIZE, LZ4, built=BEFORE)
    found = attributed(machine, loaded())
    assert found.image is not None
    assert not found.image.candidate
    machine.image(size_bytes=SIZE + 4000)
    found = attributed(machine, loaded())
    assert found.image is not None
    assert (found.image.candidate, found.image.setting) == (True, LZ4)


def test_the_image_that_was_replaced_and_kept_may_be_booted_again(
    machine: Booted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(machine.root.parent / "state"))
    path = machine.image(size_bytes=SIZE)
    os.utime(path, (BEFORE.timestamp(),) * 2)
    new = Replacement(path=f"/boot/{path.name}", role=FileRole.IMAGE, new=b"n" * (SIZE + 4000))
    about = SettingChange(
        generator="initramfs-tools", kernel_release=RELEASE, before="lz4 -9", after="zstd -19"
    )
    with transactions(machine.host()) as engine:
        begun = engine.begin([new], purpose="test", setting=about)
        engine.commit(engine.verify(begun))
    found = attributed(machine, loaded())
    assert found.certainty is Certainty.CERTAIN
    assert found.image is not None
    assert (Path(found.image.path).name, found.image.setting) == (
        f".initadvisor-{OWNER}-1-0.old",
        LZ4,
    )


def test_what_was_built_or_timed_since_is_none_of_the_boot_s(machine: Booted) -> None:
    candidate(machine, b"c" * SIZE, LZ4, built=AFTER)
    found = attributed(machine, loaded(), others=[timed("1" * 64, LZ4, AFTER)])
    assert found.certainty is Certainty.UNKNOWN
    found = attributed(machine, loaded(), others=[timed("1" * 64, LZ4, BEFORE)])
    assert found.certainty is Certainty.CERTAIN


def test_microcode_that_grub_may_load_beside_is_counted(machine: Booted) -> None:
    machine.image(size_bytes=SIZE)
    machine.write("/boot/amd-ucode.img", b"u" * 3000)
    machine.write("/boot/intel-ucode.img", b"u" * 5000)
    for beside in (0, 3000, 5000, 8000):
        assert attributed(machine, loaded(SIZE + beside)).certainty is Certainty.CERTAIN, beside
    assert attributed(machine, loaded(SIZE + 4000)).certainty is Certainty.UNKNOWN


@pytest.mark.parametrize("rehearsed", [False, True])
def test_a_copy_that_was_loaded_is_the_image(
    machine: Booted, monkeypatch: pytest.MonkeyPatch, rehearsed: bool
) -> None:
    """A rehearsal's entry loads it, too, and names it as what was armed."""
    path = machine.image(size_bytes=SIZE)
    machine.write("/etc/machine-id", f"{MACHINE_ID}\n")
    directory = f"{MACHINE_ID}/{RELEASE}"
    copy = machine.write(f"/efi/{directory}/{path.name}", path.read_bytes())
    machine.write(f"/efi/{directory}/microcode.cpio", bytes(8192))
    names = " ".join(f"initrd=/{directory}/{name}" for name in ("microcode.cpio", path.name))
    machine.write("/proc/cmdline", names.replace("/", "\\"))
    evidence = loaded(SIZE + 8192)
    if rehearsed:
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        armed = KnownImage(
            path=str(copy), size_bytes=SIZE, sha256=sha256, trial="t1", beside_bytes=(8192,)
        )
        monkeypatch.setattr(TrialImages, "images", lambda _self, _trial: (armed,))
        evidence = replace(evidence, trial="t1")
    found = attributed(machine, evidence)
    assert found.certainty is Certainty.CERTAIN
    assert found.image is not None
    assert found.image.path == str(copy if rehearsed else path)
    assert found.image.setting == Setting.parse("zstd -19")


def test_what_the_command_line_names_is_loaded_and_nothing_else(machine: Booted) -> None:
    machine.image(size_bytes=SIZE)
    machine.write("/boot/amd-ucode.img", b"u" * 3000)
    names = f"initrd=\\amd-ucode.img initrd=\\initrd.img-{RELEASE} quiet"
    machine.write("/proc/cmdline", names)
    assert attributed(machine, loaded(SIZE + 3000)).certainty is Certainty.CERTAIN
    assert attributed(machine, loaded(SIZE)).certainty is Certainty.UNKNOWN


def test_of_a_unified_image_the_initramfs_in_it_counts(machine: Booted) -> None:
    """Debian's generator makes none, dracut does."""
    content = b"\x28\xb5\x2f\xfd" + bytes(SIZE - 4)
    for program in ("/usr/sbin/update-initramfs", "/usr/sbin/mkinitramfs"):
        (machine.root / program.lstrip("/")).unlink()
    machine.write("/usr/bin/dracut", "#!/bin/sh\n").chmod(0o755)
    machine.write("/usr/lib/dracut/dracut-version.sh", "DRACUT_VERSION=111\n")
    machine.write("/etc/dracut.conf", "compress=zstd\n")
    machine.write("/etc/kernel/entry-token", "debian\n")
    path = machine.write(f"/efi/EFI/Linux/debian-{RELEASE}.efi", uki(content, ucode=b"u" * 3000))
    os.utime(path, (BEFORE.timestamp(), BEFORE.timestamp()))
    traces = replace(loaded(SIZE + 3000 + 512), from_uki=True)
    found = attributed(machine, traces)
    assert (found.certainty, len(found.images)) == (Certainty.LIKELY, 1)
    assert found.images[0].sha256 == hashlib.sha256(content).hexdigest()
    assert found.images[0].size_bytes == SIZE
    proven = attributed(machine, replace(traces, section_sha256=found.images[0].sha256))
    assert proven.certainty is Certainty.CERTAIN


def test_a_digest_finds_the_image_whatever_its_size_seems_to_be(machine: Booted) -> None:
    path = machine.image(size_bytes=SIZE)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    found = attributed(machine, replace(loaded(SIZE + 9000), loaded_sha256=digest))
    assert found.certainty is Certainty.CERTAIN


def test_on_a_system_that_is_not_supported_nothing_is_known_and_that_is_said(
    machine: Booted, caplog: pytest.LogCaptureFixture
) -> None:
    machine.image(size_bytes=SIZE)
    machine.write("/run/ostree-booted", "")
    assert attributed(machine, loaded()).certainty is Certainty.UNKNOWN
    assert "this machine's images are not known" in caplog.text


def test_an_image_that_cannot_be_read_is_left_out(machine: Booted) -> None:
    path = machine.image(size_bytes=SIZE)
    path.unlink()
    path.mkdir()
    assert attributed(machine, loaded()).certainty is Certainty.UNKNOWN
