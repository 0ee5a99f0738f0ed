"""What has to be so after the boots of the whole loop, whichever loader and generator there are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from initadvisor.core.codecs import Codec
from tests.vm.boot import End
from tests.vm.loop_boots import Plan
from tests.vm.loop_faults import damage
from tests.vm.witness import freed_kib, kib_in_pages, witnessed

if TYPE_CHECKING:
    from tests.vm.boot import Boot
    from tests.vm.loop_boots import Applied, Campaigned, Told, Tried

GOOD, PANICS = "lz4 -1", "gzip -2"
"""The first is what would be advised, whatever the host has to do besides; the other unpacks too
slowly.
"""
SHORT = Plan(settings=(GOOD, PANICS), faults=((PANICS, damage),))
GOOD_IN_UKI = "zstd -1"
"""systemd's stub loads something behind the initramfs, which is the end of lz4."""
STUB_BYTES = 4096
"""What that takes at most here: one small archive."""

_TAG = re.compile(r"Command line: .*\binitadvisor\.trial=(\S+)")


def assert_all_of_it(
    done: Applied, *, is_uki: bool = False, configuration: str | None = None
) -> None:
    good = GOOD_IN_UKI if is_uki else GOOD
    assert_tried(done.campaigned, good)
    later = (done.used, *((done.other,) if done.other else ()), done.back)
    assert_attributed(done.campaigned, *later, is_uki=is_uki)
    before, then = done.campaigned.tried[0].after.look, done.campaigned.last.look
    codec, level = good.split(" -")
    configuration = configuration or f"COMPRESS={codec}\nCOMPRESSLEVEL={level}\n"
    assert configuration in then["configuration"]
    assert then["image"] != before["image"]
    assert {tag for told in later for tag in tags(told.boot)} == {None}
    assert_freed(done.used.boot, then["image_bytes"], is_uki=is_uki)
    assert [told.look["failed"] for told in later] == [[]] * len(later)
    release = before["release"]
    for look in later[-2].look, done.back.look:
        assert look["images"][release] == before["images"][release]
        assert look["configuration"] == before["configuration"]


def assert_next_kernel(done: Applied) -> None:
    """Its image has the setting of then, and the one from before when that has come back."""
    assert done.other
    assert done.kept
    used, kept, back = done.used.look, done.kept, done.back.look
    release = kept["release"]
    assert release == back["release"] != used["release"]
    assert kept["configuration"] == used["configuration"] != back["configuration"]
    assert kept["images"] == used["images"]
    assert done.codecs == ([Codec.LZ4] * 2, [Codec.XZ] * 2)


def assert_freed(boot: Boot, size_bytes: int, *, is_uki: bool) -> None:
    added_kib = (freed_kib(boot) or 0) - kib_in_pages(size_bytes)
    assert 0 <= added_kib * 1024 <= (STUB_BYTES if is_uki else 0)


def assert_tried(outcome: Campaigned, good: str = GOOD) -> None:
    """What boots was tried, what panics too, and the default entry's boot came after that."""
    assert {good, PANICS} <= outcome.upgraded.look["candidates"].keys()
    campaign = outcome.last.campaign
    assert [(arming["setting"], arming["outcome"]) for arming in campaign["trial_boots"][1:]] == [
        (good, "passed"),
        (PANICS, "unexplained"),
    ]
    assert campaign["state"] == "done"
    (failed,) = trials_of(outcome, PANICS)
    assert failed.boot.end is End.PANIC
    assert tags(failed.boot) == [failed.arming["armed_boot"]["trial"]]
    assert tags(failed.after.boot) == [None]
    assert_nothing_left(outcome.last)


def assert_attributed(outcome: Campaigned, *later: Told, is_uki: bool = False) -> None:
    """By the trial's name and by the image's size, both in the kernel's own words."""
    records = {record["boot_id"]: record for record in outcome.history["boots"]}
    trials = {tried.arming["armed_boot"]["trial"]: tried.arming for tried in outcome.tried[1:]}
    before = outcome.upgraded.look
    for told in (*(tried.after for tried in outcome.tried), *later):
        record = records.pop(str(witnessed(told.boot)[-1].boot_id))
        trial = trials.get(tags(told.boot)[-1] or "")
        image = before["images"][told.look["release"]]
        size_bytes = before["candidates"][trial["setting"]] if trial else image["bytes"]
        assert_freed(told.boot, size_bytes, is_uki=is_uki)
        assert 0 <= record["figures"]["loaded_bytes"] - size_bytes <= (STUB_BYTES if is_uki else 0)
        # A size that a stub has added to is no proof, and this machine has no TPM that kept one.
        expected = "likely" if is_uki and tags(told.boot)[-1] is None else "certain"
        assert record["figures"]["certainty"] == expected
        (found,) = record["attribution"]["images"]
        assert found["sha256"] == (trial["sha256"] if trial else image["sha256"])
        if trial:
            assert record["figures"]["setting"] == trial["setting"]
        before = told.look
    # The boot in which the kernel was upgraded is recorded by whoever asks for an answer later.
    first = records.pop(str(witnessed(outcome.upgraded.boot)[-1].boot_id), {"source": "backfill"})
    assert first["source"] == "backfill"
    # What hung may have left a journal; its image was changed after it was built, so is unknown.
    for record in records.values():
        assert record["source"] == "backfill"
        assert record["attribution"]["certainty"] == "unknown"


def assert_nothing_left(told: Told) -> None:
    assert told.look["slot"] == []
    assert not {"campaign-active", "trial-entry"} & {*told.look["notes"]}


def trials_of(outcome: Campaigned, setting: str) -> list[Tried]:
    return [tried for tried in outcome.tried if tried.arming["setting"] == setting]


def tags(boot: Boot) -> list[str | None]:
    """Return the name of the trial of each kernel that has run, None where it was none's."""
    lines = [line.text for line in boot.lines if "Command line: " in line.text]
    return [match[1] if (match := _TAG.search(line)) else None for line in lines]
