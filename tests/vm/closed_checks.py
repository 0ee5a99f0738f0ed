"""What has to be so when the loop has closed by itself, whoever makes the image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.vm.closed_loop import BEFORE, Closed, ClosedLoop, armed, closed
from tests.vm.guest import Generator

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vm.unified import Unified

MOST_BOOTS = 6
_LINES = {
    Generator.MKINITCPIO: "COMPRESSION={}",
    Generator.INITRAMFS_TOOLS: "COMPRESS={}",
    Generator.DRACUT: 'compress="{}',
}
"""How a setting begins in the generator's configuration."""


def assert_unified_closes(unified: Unified, directory: Path, *, to_the_end: bool = True) -> None:
    """lz4 is not tried: what systemd's stub loads behind it would be lost.

    The first candidate panics, once. ``to_the_end``: the next kernel is installed, and the change
    is taken back.
    """
    outcome = closed(
        unified.generator,
        directory,
        None,
        most_boots=MOST_BOOTS,
        settings=("zstd", "lz4"),
        again=to_the_end,
        faulty=True,
        unified=unified,
    )
    assert configured(outcome, unified.generator) == "zstd"
    assert_failed(outcome, faulty=True)
    if to_the_end:
        assert_kept(outcome)
        assert_back(outcome)
    assert_nothing_failed(outcome)


def assert_applied_lasts(unified: Unified, directory: Path) -> None:
    """What a person applies is rehearsed and proven, and the rest is as where the loop closes."""
    loop = ClosedLoop.begun(unified.generator, directory, None, unified=unified)
    before = loop.apply("zstd")
    outcome = Closed(
        upgraded=before,
        boots=loop.until_configured(before, most_boots=2),
        again=(loop.upgrade_again(), loop.go_back()),
        back=loop.reboot(),
    )
    assert configured(outcome, unified.generator) == "zstd"
    assert_kept(outcome)
    assert_back(outcome)
    assert_nothing_failed(outcome)


def assert_kept(outcome: Closed) -> None:
    """The next kernel's image has the setting, and nothing more is armed or changed."""
    upgraded_again, after = outcome.again
    last = outcome.boots[-1].look
    for told in outcome.again:
        assert armed(told) is None
        assert told.look["configuration"] == last["configuration"]
        assert len(told.look["transactions"]) == len(last["transactions"])
    assert upgraded_again.look["image"] == after.look["image"]


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
