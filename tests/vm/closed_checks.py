"""What has to be so when the loop has closed by itself, whoever makes the image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.vm.closed_loop import BEFORE, armed, closed
from tests.vm.guest import Generator

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vm.closed_loop import Closed
    from tests.vm.unified import Unified

MOST_BOOTS = 6
_LINES = {
    Generator.MKINITCPIO: "COMPRESSION={}",
    Generator.INITRAMFS_TOOLS: "COMPRESS={}",
    Generator.DRACUT: 'compress="{}',
}
"""How a setting begins in the generator's configuration."""


def assert_unified_closes(unified: Unified, directory: Path) -> None:
    """lz4 is not tried: what systemd's stub loads behind it would be lost.

    Where a loader has an entry for it, the first candidate panics, once.
    """
    faulty = not unified.by_firmware
    outcome = closed(
        unified.generator,
        directory,
        None,
        most_boots=MOST_BOOTS,
        settings=("zstd", "lz4"),
        again=True,
        faulty=faulty,
        unified=unified,
    )
    assert configured(outcome, unified.generator) == "zstd"
    upgraded_again, after = outcome.again
    for told in outcome.again:
        assert armed(told) is None
        assert told.look["configuration"] == outcome.boots[-1].look["configuration"]
    assert upgraded_again.look["image"] == after.look["image"]
    assert_failed(outcome, faulty=faulty)
    assert_back(outcome)
    assert_nothing_failed(outcome)


def assert_failed(outcome: Closed, *, faulty: bool) -> None:
    """After the candidate that panicked nothing is other than before."""
    assert bool(outcome.failed) is faulty
    for told in outcome.failed:
        assert told.look["configuration"] == outcome.upgraded.look["configuration"]
        assert told.look["image"] == outcome.upgraded.look["image"]


def assert_back(outcome: Closed) -> None:
    """What was taken back stays so: no policy undoes what a person does."""
    assert outcome.back
    look, before = outcome.back.look, outcome.upgraded.look
    assert armed(outcome.back) is None
    assert look["configuration"] == before["configuration"]
    assert look["image"] != outcome.again[-1].look["image"]
    assert look["slot"] == []


def configured(outcome: Closed, generator: Generator) -> str:
    """Return what the last boot's transaction has configured, which the configuration says, too."""
    last = outcome.boots[-1].look
    transaction = last["transactions"][-1]
    assert transaction["state"] == "committed", outcome.boots[-1].look["said"]
    setting = transaction["setting"]
    assert setting["before"] == BEFORE
    after: str = setting["after"]
    assert f"\n{_LINES[generator].format(after)}" in f"\n{last['configuration']}"
    return after


def assert_nothing_failed(outcome: Closed) -> None:
    assert outcome.back or not outcome.again
    more = (outcome.back,) if outcome.back else ()
    for told in outcome.upgraded, *outcome.failed, *outcome.boots, *outcome.again, *more:
        assert told.look["failed"] == []
