"""What a machine can be told to be, seen on boots that panic before anything is started."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.vm.boot import End, LostGuestError, boot, running
from tests.vm.guest import Recipe, guest
from tests.vm.machine import Machine

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vm.boot import Boot
    from tests.vm.guest import Guest

pytestmark = pytest.mark.vm

_NO_INIT = "rdinit=/does-not-exist root=none"


@pytest.fixture
def copy(tmp_path: Path) -> Guest:
    return guest(Recipe()).copied_to(tmp_path / "guest")


def test_deterministic_boots_unpack_in_the_same_time(copy: Guest) -> None:
    machine = Machine(deterministic=True, extra_command_line=_NO_INIT)
    first, second = (_unpack_us(boot(copy, machine, direct=True)) for _ in range(2))
    assert first > 0
    assert second == pytest.approx(first, rel=0.001)


def test_a_throttled_disk_makes_the_loader_take_as_long_as_the_image_is_large(copy: Guest) -> None:
    bytes_per_s = 8_000_000
    loaded_bytes = copy.kernel.stat().st_size + copy.initrd.stat().st_size
    machine = Machine(read_bytes_per_s=bytes_per_s, extra_command_line=_NO_INIT)
    booted = boot(copy, machine)
    assert booted.end is End.PANIC
    assert _second_of(booted, "Linux version") > 0.9 * loaded_bytes / bytes_per_s


def test_a_guest_that_panics_is_lost_to_those_who_wait_for_more(copy: Guest) -> None:
    machine = Machine(extra_command_line=_NO_INIT)
    with (
        running(copy, machine, direct=True) as started,
        pytest.raises(LostGuestError, match=r"never said 'guest: ready'(.|\n)*Kernel panic"),
    ):
        started.wait_for("guest: ready")


def test_a_guest_that_hangs_is_lost_and_leaves_no_process_behind(copy: Guest) -> None:
    before = set(psutil.Process().children(recursive=True))
    with running(copy, direct=True) as started:
        started.wait_for("Linux version")
        with pytest.raises(LostGuestError, match="did not stop"):
            started.wait_for_end(within_s=0.1)
    assert not set(psutil.Process().children(recursive=True)) - before


def _unpack_us(booted: Boot) -> int:
    """Return how long the kernel unpacked, by its own clock."""
    stamps = [
        match
        for pattern in ("Trying to unpack rootfs image", "Freeing initrd memory")
        if (match := booted.find(rf"^\[ *(\d+)\.(\d{{6}})\] {pattern}"))
    ]
    begin, end = (int(stamp[1]) * 1_000_000 + int(stamp[2]) for stamp in stamps)
    return end - begin


def _second_of(booted: Boot, words: str) -> float:
    return next(line.at_s for line in booted.lines if re.search(words, line.text))
