"""The loop closes by itself although something goes wrong on the way.

Four guests go on from where one that was upgraded has rehearsed and armed a candidate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.vm.boot import End
from tests.vm.closed_loop import SETTINGS, SLOW_BYTES_PER_S, ClosedLoop
from tests.vm.entries import default_entry
from tests.vm.guest import Generator
from tests.vm.loop_faults import change_armed_image, damage, have_it_hang

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vm.loop_boots import Told

pytestmark = [pytest.mark.vm, pytest.mark.xdist_group("closed-loop-faults")]

_SETTINGS = (*SETTINGS, "zstd -3")
"""With one more that beats what is there where one has failed: lz4 is too large for this disk."""

_MOST_BOOTS = 8
"""Two more than without a fault: what fails, and the default entry's boot after it."""


class _Armed:
    """A guest whose next boot is a candidate's."""

    def __init__(self, directory: Path) -> None:
        self._loop = ClosedLoop.begun(
            Generator.INITRAMFS_TOOLS, directory, SLOW_BYTES_PER_S, _SETTINGS
        )
        upgraded = self._loop.upgrade()
        boots = self._loop.until_armed(upgraded, most_boots=_MOST_BOOTS)
        self.told = (upgraded, *boots)[-1]
        self.boots = len(boots)

    def copied_to(self, directory: Path) -> ClosedLoop:
        """Return another guest that goes on from there."""
        return self._loop.copied_to(directory / "loop")

    def left(self, boots: int) -> int:
        """Return how many boots are left when so many were made since."""
        return _MOST_BOOTS - self.boots - boots


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> _Armed:
    """Go there once for all tests."""
    return _Armed(tmp_path_factory.mktemp("closed-loop"))


def test_a_candidate_that_panics_does_not_keep_the_winner_from_being_configured(
    once: _Armed, tmp_path: Path
) -> None:
    loop = once.copied_to(tmp_path)
    change_armed_image(loop.guest, damage)
    assert loop.fail().end is End.PANIC
    back = loop.reboot()
    assert back.boot.entry == default_entry(loop.guest)
    assert back.look["image"] == once.told.look["image"]
    _assert_configured(loop.until_configured(back, most_boots=once.left(2)))


def test_a_candidate_that_hangs_is_not_configured_but_another_is(
    once: _Armed, tmp_path: Path
) -> None:
    """The watchdog restarts it, in the same run of QEMU, and says so: it is not tried again."""
    loop = once.copied_to(tmp_path)
    change_armed_image(loop.guest, have_it_hang)
    back = loop.reboot(hangs=True)
    assert back.boot.entry == default_entry(loop.guest)
    assert back.look["image"] == once.told.look["image"]
    (failed,) = (one for one in back.look["transactions"] if one["state"] == "undone")
    assert "it hung, and the watchdog restarted the machine" in failed["reason"]
    boots = loop.until_configured(back, most_boots=once.left(2))
    _assert_configured(boots)
    assert boots[-1].look["transactions"][-1]["setting"]["after"] != failed["setting"]["after"]


def test_a_power_cut_in_a_candidate_s_boot_does_not_keep_it_from_being_configured(
    once: _Armed, tmp_path: Path
) -> None:
    loop = once.copied_to(tmp_path)
    assert loop.cut("Run /bin/sh as init process").end is End.KILLED
    back = loop.reboot()
    assert back.boot.entry == default_entry(loop.guest)
    assert back.look["image"] == once.told.look["image"]
    _assert_configured(loop.until_configured(back, most_boots=once.left(2)))


def test_an_upgrade_in_a_candidate_s_boot_does_not_keep_it_from_being_configured(
    once: _Armed, tmp_path: Path
) -> None:
    """Whether it is judged before or after, its image and its kernel are not today's any more."""
    loop = once.copied_to(tmp_path)
    upgraded = loop.upgrade_at_once()
    done = upgraded.look["configuration"] != once.told.look["configuration"]
    more = () if done else loop.until_configured(upgraded, most_boots=once.left(1))
    _assert_configured((upgraded, *more))


def _assert_configured(boots: tuple[Told, ...]) -> None:
    last = boots[-1].look
    transaction = last["transactions"][-1]
    assert transaction["state"] == "committed", last["said"]
    after = transaction["setting"]["after"]
    assert after in _SETTINGS
    codec, _, level = after.partition(" -")
    lines = f"COMPRESS={codec}\n" + (f"COMPRESSLEVEL={level}\n" if level else "")
    assert f"\n{lines}" in last["configuration"]
    assert last["slot"] == []
    for told in boots:
        assert told.look["failed"] == []
