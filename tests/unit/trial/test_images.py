"""Which image a trial's boot used, while it is waited for and later."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from initadvisor.apply.proving import settle
from initadvisor.core.estimates import Certainty
from initadvisor.core.settings import Setting
from initadvisor.measure.known_images import KnownImages
from initadvisor.records.attribution import ImageEvidence
from initadvisor.records.boot import RecordSource
from initadvisor.records.boot_start import TRIAL_TAG
from initadvisor.transaction.log import write_transaction
from initadvisor.trial.images import TrialImages
from initadvisor.trial.markers import note_rehearsed
from tests.fixtures.measured_boots import measured
from tests.fixtures.provable_machine import IMAGE, LINE, NEW, OLD, Provable, make_provable
from tests.fixtures.small_images import uki

if TYPE_CHECKING:
    from initadvisor.records.attribution import Attribution
    from initadvisor.transaction.transaction import ArmedBoot
    from tests.fixtures.booted import Booted

SHA256 = hashlib.sha256(NEW).hexdigest()


@pytest.fixture
def armed(machine: Booted, monkeypatch: pytest.MonkeyPatch) -> Provable:
    """A machine on which a new image waits for its boot."""
    provable = make_provable(machine, monkeypatch)
    note_rehearsed(provable.host, provable.loader.NAME)
    provable.arm()
    return provable


def proof(provable: Provable) -> ArmedBoot:
    """Return what waits."""
    found = provable.latest().armed_boot
    assert found is not None
    return found


def attributed(provable: Provable, traces: ImageEvidence) -> Attribution:
    """Return the verdict on a boot of now."""
    started = measured(provable.machine, dry_run=True).records[0].started_at
    return KnownImages(provable.host).attribute(traces, booted_at=started)


def loaded(provable: Provable, size_bytes: int = len(NEW)) -> ImageEvidence:
    """Return what a boot of the trial leaves."""
    return ImageEvidence(loaded_bytes=size_bytes, from_uki=False, trial=proof(provable).trial)


def test_a_trial_s_boot_used_what_is_staged(armed: Provable) -> None:
    found = attributed(armed, loaded(armed))
    assert (found.certainty, found.image) == (Certainty.CERTAIN, found.images[0])
    assert found.image is not None
    assert found.image.path == str(armed.host.path(proof(armed).image))
    assert (found.image.sha256, found.image.setting) == (SHA256, Setting.parse("lz4 -9"))
    assert found.image.entries == ("trial",)


def test_another_entry_s_boot_did_not(armed: Provable) -> None:
    traces = replace(loaded(armed), trial=None)
    assert attributed(armed, traces).images == ()
    of_today = replace(traces, loaded_bytes=len(OLD))
    assert attributed(armed, of_today).images[0].path == str(armed.host.path(IMAGE))


def test_a_boot_of_another_size_used_nothing_that_is_known(armed: Provable) -> None:
    assert attributed(armed, loaded(armed, len(OLD))).certainty is Certainty.UNKNOWN


def test_microcode_beside_it_counts(armed: Provable) -> None:
    armed.machine.write("/boot/amd-ucode.img", b"u" * 3000)
    assert attributed(armed, loaded(armed, len(NEW) + 3000)).certainty is Certainty.CERTAIN


def test_bytes_that_were_not_armed_are_not_taken_for_those_that_were(armed: Provable) -> None:
    armed.host.path(proof(armed).image).write_bytes(bytes(len(NEW)))
    found = attributed(armed, loaded(armed)).image
    assert found is not None
    assert found.sha256 != SHA256
    assert found.setting is None


def test_an_image_that_is_gone_while_it_is_waited_for_is_not_known(armed: Provable) -> None:
    armed.host.path(proof(armed).image).unlink()
    assert attributed(armed, loaded(armed)).certainty is Certainty.UNKNOWN


def test_once_committed_it_is_the_installed_one_whatever_becomes_of_that(armed: Provable) -> None:
    armed.reboot()
    armed.measure()
    settle(armed.host)
    for rebuilt in (NEW, b"rebuilt"):
        armed.host.path(IMAGE).write_bytes(rebuilt)
        found = attributed(armed, loaded(armed)).image
        assert found is not None
        assert found.path == str(armed.host.path(IMAGE))
        assert (found.sha256, found.setting) == (SHA256, Setting.parse("lz4 -9"))


def test_once_dropped_it_is_known_by_its_record(armed: Provable) -> None:
    armed.reboot(line=LINE, image=OLD)
    armed.loader.is_armed = False
    armed.machine.write("/proc/cmdline", f"{LINE}\n")
    settle(armed.host)
    found = attributed(armed, loaded(armed)).image
    assert found is not None
    assert (found.sha256, found.setting) == (SHA256, Setting.parse("lz4 -9"))


def test_a_trial_that_is_not_recorded_is_not_known(armed: Provable) -> None:
    images = TrialImages(armed.host)
    assert images.images("another") == ()
    assert images.extra_cmdline("another") == images.extra_cmdline(None) == ()
    assert f"{TRIAL_TAG}={proof(armed).trial}" in images.extra_cmdline(proof(armed).trial)


def test_records_that_cannot_be_read_are_no_hindrance(
    armed: Provable, caplog: pytest.LogCaptureFixture
) -> None:
    traces = loaded(armed)
    (armed.host.state_dir() / "transactions/000001.json").write_text("{")
    assert attributed(armed, traces).certainty is Certainty.UNKNOWN
    assert "the image of a trial is not known: " in caplog.text


def test_of_a_unified_image_the_initramfs_in_it_counts(armed: Provable) -> None:
    armed.host.path(proof(armed).image).write_bytes(uki(NEW, ucode=b"u" * 3000))
    waiting = armed.latest()
    write_transaction(armed.host, replace(waiting, armed_boot=replace(proof(armed), is_uki=True)))
    [image] = TrialImages(armed.host).images(proof(armed).trial)
    assert (image.sha256, image.size_bytes, image.beside_bytes) == (SHA256, len(NEW), (3000,))
    traces = replace(loaded(armed, len(NEW) + 3000 + 512), from_uki=True)
    assert attributed(armed, traces).certainty is Certainty.CERTAIN


def test_a_trial_s_boot_is_known_from_the_journal_as_well(armed: Provable) -> None:
    """Its tag tells the entry, and what was freed that the entry's image was loaded."""
    words = " ".join((LINE, *proof(armed).extra_cmdline))
    armed.reboot()
    boot = armed.machine.boot
    message = {**boot.entries[1].fields, "MESSAGE": f"Kernel command line: {words}"}
    boot.entries[1] = replace(boot.entries[1], fields=message)
    plain = {**message, "MESSAGE": f"Kernel command line: {LINE}"}
    armed.reboot()
    now = armed.machine.boot
    now.entries[1] = replace(now.entries[1], fields=plain)
    armed.write_journal()
    records = {r.boot_id: r for r in measured(armed.machine, backfill=True).records}
    trial, today = records[boot.boot_id], records[now.boot_id]
    assert trial.source is RecordSource.BACKFILL
    assert trial.evidence.trial == proof(armed).trial
    assert trial.image is not None
    assert trial.image.sha256 == SHA256
    assert trial.setting == Setting.parse("lz4 -9")
    assert trial.boot_class.command_line_sha256 == today.boot_class.command_line_sha256
