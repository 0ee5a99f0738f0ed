"""The whole loop on machines that boot: a kernel is upgraded, and a hook has the daemon build what
may be better; a campaign boots it, the best is applied, and taken back.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.codecs import Codec
from tests.vm import secure_boot
from tests.vm.applying import UKIFY, boot_copy, boot_unified
from tests.vm.blscfg import put_blscfg
from tests.vm.boot import End
from tests.vm.entries import default_entry
from tests.vm.guest import Loader
from tests.vm.loop_boots import Applied, Campaigned, Loop, Plan, applied, campaigned
from tests.vm.loop_faults import FREEZES, damage, have_it_hang
from tests.vm.loop_guest import (
    OTHER_KERNEL_PACKAGE,
    other_kernel_package,
    prepared,
    prepared_with_dracut,
)
from tests.vm.loop_scripts import begin
from tests.vm.witness import freed_kib, kib_in_pages, witnessed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vm.boot import Boot
    from tests.vm.loop_boots import Told, Tried

pytestmark = [pytest.mark.vm, pytest.mark.xdist_group("whole-loop")]

GOOD, LARGE, PANICS, HANGS = "lz4 -1", "cat", "gzip -2", "gzip -1"
"""The first is what would be advised, whatever the host has to do besides: initramfs-tools makes no
images of the second, and the others unpack too slowly.
"""
WHOLE = Plan(
    settings=(GOOD, LARGE, PANICS, HANGS),
    faults=((PANICS, damage), (PANICS, damage), (HANGS, have_it_hang)),
)
SHORT = Plan(settings=(GOOD, PANICS), faults=((PANICS, damage),))
GOOD_IN_UKI = "zstd -1"
"""systemd's stub loads something behind the initramfs, which is the end of lz4."""
STUB_BYTES = 4096
"""What that takes at most here: one small archive."""

_TAG = re.compile(r"Command line: .*\binitadvisor\.trial=(\S+)")


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
    failed = _of(outcome, PANICS)
    assert len(failed) == 2
    for tried in failed:
        assert tried.boot.end is End.PANIC
        assert tried.boot.find("Rebooting in 30 seconds")
        assert _tags(tried.boot) == [tried.arming["armed_boot"]["trial"]]
        assert _tags(tried.after.boot) == [None]
        assert tried.after.boot.entry == default_entry(outcome.guest)


def test_the_watchdog_restarts_what_hangs_and_the_default_entry_boots(outcome: Campaigned) -> None:
    """All in one run of QEMU: nobody has done anything but the watchdog."""
    (tried,) = _of(outcome, HANGS)
    said = [line.text for line in tried.boot.lines]
    (frozen,) = (number for number, text in enumerate(said) if FREEZES in text)
    assert not [text for text in said[:frozen] if "guest: ready" in text]
    assert [text for text in said[frozen:] if "guest: ready" in text]
    assert _tags(tried.boot) == [tried.arming["armed_boot"]["trial"], None]
    assert tried.boot.entry == default_entry(outcome.guest)


def test_every_boot_is_recorded_for_what_the_console_says_it_was(all_of_it: Applied) -> None:
    _assert_attributed(all_of_it.campaigned, all_of_it.used, all_of_it.back)


def test_nothing_of_the_campaign_is_left(all_of_it: Applied) -> None:
    _assert_nothing_left(all_of_it.campaigned.last)
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
    assert _tags(used.boot) == _tags(back.boot) == [None]
    for look in used.look, back.look:
        assert look["failed"] == []
        for what in ("configuration", "image", "image_bytes"):
            assert look[what] == before[what] != then[what]


@pytest.mark.shows("kernel upgrade, campaign", "GRUB on UEFI")
@pytest.mark.xdist_group("grub")
def test_grub_goes_on_after_a_panic_too(tmp_path: Path) -> None:
    outcome = campaigned(Loader.GRUB, tmp_path, SHORT)
    _assert_tried(outcome)
    _assert_attributed(outcome)


@pytest.mark.shows(
    "kernel upgrade, campaign, apply, next kernel, rollback",
    "GRUB with blscfg",
    system="Debian 13, GRUB 2.14 of sid",
)
@pytest.mark.xdist_group("blscfg")
def test_grub_that_reads_its_entries_from_files_does_all_of_it(tmp_path: Path) -> None:
    guest = prepared(Loader.GRUB, tmp_path / "guest", SHORT.settings)
    put_blscfg(guest)
    guest.disk.root.put({OTHER_KERNEL_PACKAGE: other_kernel_package(guest)})
    done = applied(guest, tmp_path, SHORT, other_kernel=True)
    _assert_all_of_it(done)
    _assert_next_kernel(done)


@pytest.mark.shows(
    "kernel upgrade, campaign, apply, next kernel, rollback",
    "GRUB with blscfg",
    generator="dracut 106",
    system="Debian 13, GRUB 2.14 of sid",
)
@pytest.mark.xdist_group("fedora")
def test_what_fedora_has_does_all_of_it(tmp_path: Path) -> None:
    """GRUB with blscfg, kernel-install(8), which has dracut make an image in /boot."""
    guest = prepared_with_dracut(Loader.GRUB, tmp_path / "guest", SHORT.settings)
    put_blscfg(guest)
    guest.disk.root.put({OTHER_KERNEL_PACKAGE: other_kernel_package(guest)})
    done = applied(guest, tmp_path, SHORT, other_kernel=True)
    _assert_all_of_it(done, configuration='compress="lz4 -l -1"\n')
    _assert_next_kernel(done)


@pytest.mark.shows("kernel upgrade, campaign, apply, rollback", "systemd-boot with kernel-install")
@pytest.mark.xdist_group("copies")
def test_what_kernel_install_copies_goes_through_all_of_it(tmp_path: Path) -> None:
    guest = prepared(Loader.SYSTEMD_BOOT, tmp_path / "guest", SHORT.settings)
    boot_copy(guest)
    done = applied(guest, tmp_path, SHORT)
    _assert_all_of_it(done)
    for told in done.campaigned.last, done.used, done.back:
        assert told.look["copies"] == [told.look["image"]]


@pytest.mark.shows(
    "kernel upgrade, campaign, apply, rollback", "systemd-boot, unified kernel image by ukify"
)
@pytest.mark.xdist_group("ukify")
def test_what_ukify_makes_unified_goes_through_all_of_it(tmp_path: Path) -> None:
    plan = replace(SHORT, settings=(GOOD_IN_UKI, PANICS))
    guest = prepared(Loader.SYSTEMD_BOOT, tmp_path / "guest", plan.settings, also=UKIFY)
    boot_unified(guest)
    done = applied(guest, tmp_path, plan)
    _assert_all_of_it(done, is_uki=True)
    for told in done.campaigned.last, done.used, done.back:
        assert told.look["copies"] == [told.look["image"]]


@pytest.mark.shows(
    "kernel upgrade, campaign, apply, rollback",
    "systemd-boot, signed unified kernel image by ukify, Secure Boot",
)
@pytest.mark.xdist_group("secure-boot")
def test_what_is_signed_goes_through_all_of_it_with_secure_boot_on(tmp_path: Path) -> None:
    plan = replace(SHORT, settings=(GOOD_IN_UKI, PANICS))
    also = (*UKIFY, *secure_boot.PACKAGES)
    made = prepared(Loader.SYSTEMD_BOOT, tmp_path / "guest", plan.settings, also=also)
    secure_boot.put_keys(made)
    boot_unified(made)
    guest = secure_boot.turn_on(made, "/boot/efi")
    done = applied(guest, tmp_path, plan)
    _assert_all_of_it(done, is_uki=True)
    for told in done.campaigned.last, done.used, done.back:
        assert told.look["copies"] == [told.look["image"]]
        assert told.boot.find("secureboot: Secure boot enabled")
    (tmp_path / "unsigned").mkdir()
    unsigned = Loop(guest, tmp_path / "unsigned", "").boot(
        f"{secure_boot.ANOTHER_KEY}\n! {begin((GOOD_IN_UKI,), 1)}ls /sys/firmware/efi/efivars\n"
    )
    said = "\n".join(unsigned.boot.output)
    assert "is signed, and what was built is not signed with the same key" in said
    assert "LoaderEntryOneShot" not in said
    _assert_nothing_left(unsigned)


def _assert_all_of_it(
    done: Applied, *, is_uki: bool = False, configuration: str | None = None
) -> None:
    good = GOOD_IN_UKI if is_uki else GOOD
    _assert_tried(done.campaigned, good)
    later = (done.used, *((done.other,) if done.other else ()), done.back)
    _assert_attributed(done.campaigned, *later, is_uki=is_uki)
    before, then = done.campaigned.tried[0].after.look, done.campaigned.last.look
    codec, level = good.split(" -")
    configuration = configuration or f"COMPRESS={codec}\nCOMPRESSLEVEL={level}\n"
    assert configuration in then["configuration"]
    assert then["image"] != before["image"]
    assert {tag for told in later for tag in _tags(told.boot)} == {None}
    _assert_freed(done.used.boot, then["image_bytes"], is_uki=is_uki)
    assert [told.look["failed"] for told in later] == [[]] * len(later)
    release = before["release"]
    for look in later[-2].look, done.back.look:
        assert look["images"][release] == before["images"][release]
        assert look["configuration"] == before["configuration"]


def _assert_next_kernel(done: Applied) -> None:
    """Its image has the setting of then, and the one from before when that has come back."""
    assert done.other
    assert done.kept
    used, kept, back = done.used.look, done.kept, done.back.look
    release = kept["release"]
    assert release == back["release"] != used["release"]
    assert kept["configuration"] == used["configuration"] != back["configuration"]
    assert kept["images"] == used["images"]
    assert done.codecs == ([Codec.LZ4] * 2, [Codec.XZ] * 2)


def _assert_freed(boot: Boot, size_bytes: int, *, is_uki: bool) -> None:
    added_kib = (freed_kib(boot) or 0) - kib_in_pages(size_bytes)
    assert 0 <= added_kib * 1024 <= (STUB_BYTES if is_uki else 0)


def _assert_tried(outcome: Campaigned, good: str = GOOD) -> None:
    """What boots was tried, what panics too, and the default entry's boot came after that."""
    assert {good, PANICS} <= outcome.upgraded.look["candidates"].keys()
    campaign = outcome.last.campaign
    assert [(arming["setting"], arming["outcome"]) for arming in campaign["trial_boots"][1:]] == [
        (good, "passed"),
        (PANICS, "unexplained"),
    ]
    assert campaign["state"] == "done"
    (failed,) = _of(outcome, PANICS)
    assert failed.boot.end is End.PANIC
    assert _tags(failed.boot) == [failed.arming["armed_boot"]["trial"]]
    assert _tags(failed.after.boot) == [None]
    _assert_nothing_left(outcome.last)


def _assert_attributed(outcome: Campaigned, *later: Told, is_uki: bool = False) -> None:
    """By the trial's name and by the image's size, both in the kernel's own words."""
    records = {record["boot_id"]: record for record in outcome.history["boots"]}
    trials = {tried.arming["armed_boot"]["trial"]: tried.arming for tried in outcome.tried[1:]}
    before = outcome.upgraded.look
    for told in (*(tried.after for tried in outcome.tried), *later):
        record = records.pop(str(witnessed(told.boot)[-1].boot_id))
        trial = trials.get(_tags(told.boot)[-1] or "")
        image = before["images"][told.look["release"]]
        size_bytes = before["candidates"][trial["setting"]] if trial else image["bytes"]
        _assert_freed(told.boot, size_bytes, is_uki=is_uki)
        assert 0 <= record["figures"]["loaded_bytes"] - size_bytes <= (STUB_BYTES if is_uki else 0)
        # A size that a stub has added to is no proof, and this machine has no TPM that kept one.
        expected = "likely" if is_uki and _tags(told.boot)[-1] is None else "certain"
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


def _assert_nothing_left(told: Told) -> None:
    assert told.look["slot"] == []
    assert not {"campaign-active", "trial-entry"} & {*told.look["notes"]}


def _of(outcome: Campaigned, setting: str) -> list[Tried]:
    return [tried for tried in outcome.tried if tried.arming["setting"] == setting]


def _tags(boot: Boot) -> list[str | None]:
    """Return the name of the trial of each kernel that has run, None where it was none's."""
    lines = [line.text for line in boot.lines if "Command line: " in line.text]
    return [match[1] if (match := _TAG.search(line)) else None for line in lines]
