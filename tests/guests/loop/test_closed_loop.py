"""The loop closes by itself: after a kernel's upgrade a guest is rebooted, nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.vm.closed_loop import BEFORE, SLOW_BYTES_PER_S, armed, closed
from tests.vm.guest import Generator
from tests.vm.unified import (
    BY_DRACUT,
    BY_MKINITCPIO,
    BY_UKIFY,
    BY_UKIFY_FOR_FIRMWARE,
    BY_UKIFY_SIGNED,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vm.closed_loop import Closed
    from tests.vm.unified import Unified

pytestmark = pytest.mark.vm

_MOST_BOOTS = 6
_LINES = {
    Generator.MKINITCPIO: "COMPRESSION={}",
    Generator.INITRAMFS_TOOLS: "COMPRESS={}",
    Generator.DRACUT: 'compress="{}',
}
"""How a setting begins in the generator's configuration."""


@pytest.mark.shows("kernel upgrade, trial boot, apply, next kernel, rollback", "systemd-boot")
@pytest.mark.shows(
    "kernel upgrade, trial boot, trial that panics, apply, next kernel, rollback",
    "systemd-boot with kernel-install",
    generator="dracut 106",
)
@pytest.mark.shows(
    "kernel upgrade, trial boot, apply, next kernel, rollback",
    "systemd-boot",
    generator="mkinitcpio 41",
    system="Debian 13, packages by pacman",
)
@pytest.mark.parametrize("generator", _LINES)
def test_a_slow_disk_s_winner_is_configured_by_nothing_but_reboots(
    generator: Generator, tmp_path: Path
) -> None:
    """Of dracut's candidates one panics, which is none of its own doing."""
    faulty = generator is Generator.DRACUT
    outcome = closed(
        *(generator, tmp_path, SLOW_BYTES_PER_S),
        most_boots=_MOST_BOOTS,
        again=True,
        faulty=faulty,
    )
    sizes = outcome.upgraded.look["candidates"]
    # What is read of lz4's image beyond zstd's takes longer than to unpack all of either.
    assert (sizes["lz4"] - sizes["zstd"]) / SLOW_BYTES_PER_S > 1
    assert [line for line in outcome.upgraded.boot.output if "initadvisor: noted Linux" in line]
    found = armed(outcome.upgraded)
    assert found
    assert found["stage"] == "rehearsal"
    assert _configured(outcome, generator) == "zstd"
    upgraded_again, after = outcome.again
    for told in outcome.again:
        assert armed(told) is None
        assert told.look["configuration"] == outcome.boots[-1].look["configuration"]
        assert len(told.look["transactions"]) == len(outcome.boots[-1].look["transactions"])
    assert upgraded_again.look["image"] == after.look["image"]
    _assert_failed(outcome, faulty=faulty)
    _assert_back(outcome)
    _assert_nothing_failed(outcome)


def test_a_fast_disk_s_winner_is_what_unpacks_soonest(tmp_path: Path) -> None:
    """bzip2's image is the smallest, and takes longer to unpack than all of lz4's boot."""
    settings = ("lz4", "bzip2")
    outcome = closed(
        Generator.MKINITCPIO, tmp_path, None, most_boots=_MOST_BOOTS, settings=settings
    )
    sizes = outcome.upgraded.look["candidates"]
    assert sizes["bzip2"] < sizes["lz4"]
    assert _configured(outcome, Generator.MKINITCPIO) == "lz4"
    _assert_nothing_failed(outcome)


@pytest.mark.shows(
    "kernel upgrade, trial boot, trial that panics, apply, next kernel, rollback",
    "systemd-boot, unified kernel image",
    generator="mkinitcpio 41",
    system="Debian 13, packages by pacman",
)
@pytest.mark.shows(
    "kernel upgrade, trial boot, trial that panics, apply, next kernel, rollback",
    "systemd-boot, unified kernel image",
    "systemd-boot, unified kernel image by ukify",
    "systemd-boot, signed unified kernel image by ukify, Secure Boot",
    generator="dracut 106",
)
@pytest.mark.shows(
    "kernel upgrade, trial boot, apply, next kernel, rollback",
    "firmware, unified kernel image by ukify",
    generator="dracut 106",
)
@pytest.mark.parametrize(
    "unified",
    [BY_MKINITCPIO, BY_DRACUT, BY_UKIFY, BY_UKIFY_SIGNED, BY_UKIFY_FOR_FIRMWARE],
    ids=lambda found: found.maker,
)
def test_a_unified_kernel_image_s_winner_is_configured_too(
    unified: Unified, tmp_path: Path
) -> None:
    """lz4 is not tried: what systemd's stub loads behind it would be lost.

    Where a loader has an entry for it, the first candidate panics, once.
    """
    faulty = not unified.by_firmware
    outcome = closed(
        unified.generator,
        tmp_path,
        None,
        most_boots=_MOST_BOOTS,
        settings=("zstd", "lz4"),
        again=True,
        faulty=faulty,
        unified=unified,
    )
    assert _configured(outcome, unified.generator) == "zstd"
    upgraded_again, after = outcome.again
    for told in outcome.again:
        assert armed(told) is None
        assert told.look["configuration"] == outcome.boots[-1].look["configuration"]
    assert upgraded_again.look["image"] == after.look["image"]
    _assert_failed(outcome, faulty=faulty)
    _assert_back(outcome)
    _assert_nothing_failed(outcome)


def _assert_failed(outcome: Closed, *, faulty: bool) -> None:
    """After the candidate that panicked nothing is other than before."""
    assert bool(outcome.failed) is faulty
    for told in outcome.failed:
        assert told.look["configuration"] == outcome.upgraded.look["configuration"]
        assert told.look["image"] == outcome.upgraded.look["image"]


def _assert_back(outcome: Closed) -> None:
    """What was taken back stays so: no policy undoes what a person does."""
    assert outcome.back
    look, before = outcome.back.look, outcome.upgraded.look
    assert armed(outcome.back) is None
    assert look["configuration"] == before["configuration"]
    assert look["image"] != outcome.again[-1].look["image"]
    assert look["slot"] == []


def _configured(outcome: Closed, generator: Generator) -> str:
    """Return what the last boot's transaction has configured, which the configuration says, too."""
    last = outcome.boots[-1].look
    transaction = last["transactions"][-1]
    assert transaction["state"] == "committed", outcome.boots[-1].look["said"]
    setting = transaction["setting"]
    assert setting["before"] == BEFORE
    after: str = setting["after"]
    assert f"\n{_LINES[generator].format(after)}" in f"\n{last['configuration']}"
    return after


def _assert_nothing_failed(outcome: Closed) -> None:
    assert outcome.back or not outcome.again
    more = (outcome.back,) if outcome.back else ()
    for told in outcome.upgraded, *outcome.failed, *outcome.boots, *outcome.again, *more:
        assert told.look["failed"] == []
