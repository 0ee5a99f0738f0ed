"""A boot gives what the kernel said, or it is lost; never something in between."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError, LostVMError
from initadvisor.host import Host
from initadvisor.image.scan import scan
from initadvisor.records.lab import BootKind, Engine
from initadvisor.vm.boot import boot
from initadvisor.vm.machine import memory_mb, time_limit_s
from tests.fakes.machines import REFUSED, UNPACKED, UNTIL_INIT, Machines, machine
from tests.fixtures.images import archive

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an image; temporary files go beside it."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    path = tmp_path / "initrd.img"
    path.write_bytes(archive({"init": b"#!/bin/sh\n"}))
    return path


def host(says: Callable[[bytes, str], str | None]) -> Host:
    """Return a machine whose virtual machines say that."""
    return Host(runner=Machines(says=says))


def test_a_boot_returns_the_kernels_own_figure(image: Path) -> None:
    found = boot(host(lambda *_: UNPACKED.format(us=600_000)), machine(), image, unpacked_bytes=9)
    assert (found.release, found.refusal, found.unpack_us) == ("6.1.0-50-amd64", None, 600_000)


def test_a_refusal_is_an_answer_in_the_kernels_words(image: Path) -> None:
    said = REFUSED.format(why="XZ-compressed data is corrupt")
    found = boot(host(lambda *_: said), machine(), image, unpacked_bytes=9)
    assert found.refusal == "XZ-compressed data is corrupt"
    assert found.unpack_us == 0


def test_a_kernel_that_crashes_on_an_image_has_refused_it(image: Path) -> None:
    """As Linux 6.12 does on some lz4 streams with junk behind them."""
    said = (
        "[    1.314817] Trying to unpack rootfs image as initramfs...\n"
        "[    1.400000] Kernel panic - not syncing: Fatal exception\n"
    )
    found = boot(host(lambda *_: said), machine(), image, unpacked_bytes=9)
    assert found.refusal == "the kernel crashed on it: Fatal exception"


def test_a_kernel_without_memory_has_not_refused_anything(image: Path) -> None:
    said = (
        "[    1.314817] Trying to unpack rootfs image as initramfs...\n"
        "[    1.400000] Kernel panic - not syncing: System is deadlocked on memory\n"
    )
    with pytest.raises(LostVMError, match="too little memory"):
        boot(host(lambda *_: said), machine(), image, unpacked_bytes=9)


def test_a_root_file_system_that_was_full_says_nothing_of_the_image(image: Path) -> None:
    with pytest.raises(LostVMError, match="too little memory"):
        boot(host(lambda *_: REFUSED.format(why="write error")), machine(), image, unpacked_bytes=9)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (None, "no word within"),
        ("", "ended without a word"),
        ("Linux version 6.1.0\n", "ended before it had unpacked the image, last words: Linux v"),
        ("Kernel panic - not syncing: System is deadlocked on memory\n", "panicked: System is"),
        ("qemu: could not load kernel '\x1b[2J'\n", r"last words: .*\\x1b\[2J"),
    ],
)
def test_a_machine_that_does_not_tell_is_lost(image: Path, said: str | None, why: str) -> None:
    with pytest.raises(LostVMError, match=why):
        boot(host(lambda *_: said), machine(), image, unpacked_bytes=9)


def test_until_init_the_image_stands_behind_a_program_that_ends_the_boot(image: Path) -> None:
    whole = image.read_bytes()
    loaded = []

    def says(given: bytes, command: str) -> str:
        loaded.append(given)
        assert "rdinit=/initadvisor-end init=/initadvisor-end" in command
        assert "initramfs_async=0" not in command
        return UNTIL_INIT

    found = boot(host(says), machine(), image, unpacked_bytes=9, kind=BootKind.INIT)
    assert found.init_us == 1_185_183
    assert found.waiter == "crypto_kdf108_init"
    assert loaded[0].endswith(whole)
    behind = image.with_name("behind.img")
    behind.write_bytes(loaded[0])
    with behind.open("rb") as file:
        contents = scan(file)
    assert [segment.entries for segment in contents.segments] == [1, 1]
    assert contents.junk is None


def test_nothing_is_left_behind(image: Path) -> None:
    for kind in BootKind:
        with pytest.raises(LostVMError):
            boot(host(lambda *_: None), machine(), image, unpacked_bytes=9, kind=kind)
    assert list((image.parent / "scratch").iterdir()) == []


def test_without_room_for_a_copy_there_is_no_boot(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("initadvisor.vm.kernel.free_bytes", lambda _path: 10)
    with pytest.raises(InitadvisorError, match="no room"):
        boot(host(lambda *_: UNTIL_INIT), machine(), image, unpacked_bytes=9, kind=BootKind.INIT)
    assert list((image.parent / "scratch").iterdir()) == []


def test_kvm_finds_its_memory_in_place_and_has_no_devices(tmp_path: Path) -> None:
    command = machine(Engine.KVM).command(
        Path("/i"), BootKind.UNPACK, memory_mb=700, scratch=tmp_path
    )
    text = " ".join(command)
    assert "memory-backend-ram,id=ram,size=700M,prealloc=on" in text
    assert "-accel kvm -cpu host -smp 2" in text
    assert "-nic none" in text
    assert "-drive" not in text
    assert "-no-reboot" in command


def test_only_user_mode_linux_is_told_on_its_command_line(tmp_path: Path) -> None:
    command = machine(Engine.UML).command(
        Path("/i"), BootKind.UNPACK, memory_mb=700, scratch=tmp_path
    )
    assert "initrd=/i" in command
    assert f"uml_dir={tmp_path}" in command
    assert "panic=-1" in command


def test_half_of_the_memory_holds_what_is_unpacked() -> None:
    size_mb = memory_mb(image_bytes=30 << 20, unpacked_bytes=500 << 20)
    assert size_mb / 2 > 500 + 30
    assert size_mb < 2000


def test_an_emulated_processor_gets_more_time() -> None:
    limits = {engine: time_limit_s(engine, unpacked_bytes=500 << 20) for engine in Engine}
    assert limits[Engine.TCG] > limits[Engine.KVM] == limits[Engine.UML] > 60
