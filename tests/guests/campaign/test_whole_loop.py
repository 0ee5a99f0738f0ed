"""The whole loop on machines that boot: a kernel is upgraded, and a hook has the daemon build what
may be better; a campaign boots it, the best is applied, and taken back.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from tests.vm.applying import boot_copy
from tests.vm.boot import End
from tests.vm.entries import default_entry
from tests.vm.guest import Loader
from tests.vm.loop_boots import Applied, Campaigned, Plan, applied, campaigned
from tests.vm.loop_checks import (
    GOOD,
    PANICS,
    SHORT,
    assert_all_of_it,
    assert_attributed,
    assert_nothing_left,
    assert_tried,
    tags,
    trials_of,
)
from tests.vm.loop_faults import FREEZES, damage, have_it_hang
from tests.vm.loop_guest import prepared
from tests.vm.witness import freed_kib, kib_in_pages

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = [pytest.mark.vm, pytest.mark.xdist_group("whole-loop")]

LARGE, HANGS = "cat", "gzip -1"
"""initramfs-tools makes no images of the first, and the other unpacks too slowly to be advised."""
WHOLE = Plan(
    settings=(GOOD, LARGE, PANICS, HANGS),
    faults=((PANICS, damage), (PANICS, damage), (HANGS, have_it_hang)),
)


@pytest.fixture(scope="module")
def all_of_it(tmp_path_factory: pytest.TempPathFactory) -> Applied:
    """Go through all of it once for all tests."""
    directory = tmp_path_factory.mktemp("whole-loop")
    guest = prepared(Loader.SYSTEMD_BOOT, directory / "guest", WHOLE.settings)
    return applied(guest, directory, WHOLE)


@pytest.fixture
def outcome(all_of_it: Applied) -> Campaigned:
    return all_of_it.campaigned


@pytest.mark.shows("kernel upgrade", "systemd-boot")
def test_the_hook_has_the_daemon_build_what_is_to_be_tried(outcome: Campaigned) -> None:
    look, release = outcome.upgraded.look, outcome.guest.release
    said = look["said"]["initadvisord"]
    assert {f"noted: {what}@{release}" for what in ("kernel-added", "image-rebuilt")} <= {*said}
    assert look["failed"] == []
    assert {*WHOLE.settings} <= look["candidates"].keys()
    assert said[-1] == "nothing is left to do"


def test_nothing_was_armed_that_no_kernel_had_unpacked(outcome: Campaigned) -> None:
    unpacked = {
        (found["image_sha256"], datetime.fromisoformat(found["at"]).timestamp())
        for found in outcome.history["verifications"]
        if (found["engine"], found["unpacked"]) == ("tcg", "yes")
    }
    for arming in (tried.arming for tried in outcome.tried[1:]):
        assert any(sha == arming["sha256"] and at_s <= arming["at_s"] for sha, at_s in unpacked)


@pytest.mark.shows("campaign", "systemd-boot")
def test_every_candidate_is_tried_and_those_that_fail_are_told_apart(outcome: Campaigned) -> None:
    campaign = outcome.last.campaign
    rehearsal, *trials = campaign["trial_boots"]
    assert (rehearsal["armed_boot"]["stage"], rehearsal["outcome"]) == ("rehearsal", "passed")
    assert [(trial["setting"], trial["outcome"]) for trial in trials] == [
        (GOOD, "passed"),
        (LARGE, "passed"),
        (PANICS, "unexplained"),
        (PANICS, "unexplained"),
        (HANGS, "failed"),
    ]
    out = {found["setting"]: found["reason"] for found in campaign["quarantined"]}
    assert out.keys() == {PANICS, HANGS}
    assert out[PANICS].startswith("it did not come back, twice; its boot left nothing")
    assert out[HANGS] == "it hung, and the watchdog restarted the machine"
    assert campaign["state"] == "done"


def test_what_panics_restarts_and_the_default_entry_boots(outcome: Campaigned) -> None:
    failed = trials_of(outcome, PANICS)
    assert len(failed) == 2
    for tried in failed:
        assert tried.boot.end is End.PANIC
        assert tried.boot.find("Rebooting in 30 seconds")
        assert tags(tried.boot) == [tried.arming["armed_boot"]["trial"]]
        assert tags(tried.after.boot) == [None]
        assert tried.after.boot.entry == default_entry(outcome.guest)


def test_the_watchdog_restarts_what_hangs_and_the_default_entry_boots(outcome: Campaigned) -> None:
    """All in one run of QEMU: nobody has done anything but the watchdog."""
    (tried,) = trials_of(outcome, HANGS)
    said = [line.text for line in tried.boot.lines]
    (frozen,) = (number for number, text in enumerate(said) if FREEZES in text)
    assert not [text for text in said[:frozen] if "guest: ready" in text]
    assert [text for text in said[frozen:] if "guest: ready" in text]
    assert tags(tried.boot) == [tried.arming["armed_boot"]["trial"], None]
    assert tried.boot.entry == default_entry(outcome.guest)


def test_every_boot_is_recorded_for_what_the_console_says_it_was(all_of_it: Applied) -> None:
    assert_attributed(all_of_it.campaigned, all_of_it.used, all_of_it.back)


def test_nothing_of_the_campaign_is_left(all_of_it: Applied) -> None:
    assert_nothing_left(all_of_it.campaigned.last)
    assert all_of_it.used.boot.entry == default_entry(all_of_it.campaigned.guest)


def test_what_is_advised_is_applied_at_once_since_it_has_booted(all_of_it: Applied) -> None:
    advice = all_of_it.recommendation["recommendation"]
    assert (advice["outcome"], advice["evidence"]) == ("switch", "boots")
    assert advice["setting"] == GOOD
    notes = {row["setting"]: row["notes"] for row in all_of_it.recommendation["candidates"]}
    for setting in PANICS, HANGS:
        assert [note for note in notes[setting] if note.startswith("it failed in a trial: ")]
    look = all_of_it.campaigned.last.look
    (transaction,) = look["transactions"]
    assert transaction["state"] == "committed"
    assert transaction["setting"]["after"] == advice["setting"]
    assert "COMPRESS=lz4\nCOMPRESSLEVEL=1\n" in look["configuration"]


@pytest.mark.shows("apply, rollback", "systemd-boot")
def test_what_is_applied_boots_and_going_back_leaves_all_as_it_was(all_of_it: Applied) -> None:
    before, then = all_of_it.campaigned.tried[0].after.look, all_of_it.campaigned.last.look
    used, back = all_of_it.used, all_of_it.back
    assert freed_kib(used.boot) == kib_in_pages(then["image_bytes"])
    assert freed_kib(back.boot) == kib_in_pages(before["image_bytes"])
    assert tags(used.boot) == tags(back.boot) == [None]
    for look in used.look, back.look:
        assert look["failed"] == []
        for what in ("configuration", "image", "image_bytes"):
            assert look[what] == before[what] != then[what]


@pytest.mark.shows("kernel upgrade, campaign", "GRUB on UEFI")
@pytest.mark.xdist_group("grub")
def test_grub_goes_on_after_a_panic_too(tmp_path: Path) -> None:
    outcome = campaigned(Loader.GRUB, tmp_path, SHORT)
    assert_tried(outcome)
    assert_attributed(outcome)


@pytest.mark.shows(
    "kernel upgrade, trial that panics, campaign, apply, rollback",
    "systemd-boot with kernel-install",
)
@pytest.mark.xdist_group("copies")
def test_what_kernel_install_copies_goes_through_all_of_it(tmp_path: Path) -> None:
    guest = prepared(Loader.SYSTEMD_BOOT, tmp_path / "guest", SHORT.settings)
    boot_copy(guest)
    done = applied(guest, tmp_path, SHORT)
    assert_all_of_it(done)
    for told in done.campaigned.last, done.used, done.back:
        assert told.look["copies"] == [told.look["image"]]
