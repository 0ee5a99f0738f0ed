"""What did not boot in a trial is known by its bytes, until it has booted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from initadvisor.campaign.campaign import CampaignState, Quarantined
from initadvisor.campaign.record import (
    failed_in_trials,
    failed_settings,
    failures,
    trial_boots_of,
    write_campaign,
)
from initadvisor.host import Host
from initadvisor.records.trial_outcome import TrialOutcome
from initadvisor.transaction.transaction import (
    ProofStage,
    SettingChange,
    Transaction,
    TransactionState,
)
from tests.fixtures.campaigns import GZIP, LZ4, XZ, arming, campaign

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.campaign.campaign import Campaign, TrialCandidate


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine on which nothing is recorded."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    return Host(root=tmp_path)


def over(
    *fates: tuple[TrialCandidate, TrialOutcome], out: tuple[TrialCandidate, ...] = ()
) -> Campaign:
    """Return a campaign whose boots have ended so, with what it had no more to do with."""
    return replace(
        campaign(CampaignState.DONE),
        trial_boots=tuple(replace(arming(candidate), outcome=fate) for candidate, fate in fates),
        quarantined=tuple(
            Quarantined(setting=found.setting, reason="it hung", sha256=found.sha256)
            for found in out
        ),
    )


@pytest.mark.parametrize("fate", [TrialOutcome.FAILED, TrialOutcome.UNEXPLAINED])
def test_what_was_quarantined_after_a_boot_has_failed(fate: TrialOutcome) -> None:
    ended = over((LZ4, TrialOutcome.PASSED), (GZIP, fate), out=(GZIP,))
    assert failures([ended]) == {GZIP.sha256: "it hung"}


def test_what_is_unexplained_once_has_not_failed() -> None:
    assert failures([over((GZIP, TrialOutcome.UNEXPLAINED))]) == {}


def test_what_was_not_booted_at_all_has_not_failed() -> None:
    assert failures([over((GZIP, TrialOutcome.NOT_TRIED), out=(GZIP, XZ))]) == {}


def test_what_a_later_campaign_has_booted_has_not_failed_any_more() -> None:
    failed, passed = (
        over((GZIP, TrialOutcome.FAILED), out=(GZIP,)),
        over((GZIP, TrialOutcome.PASSED)),
    )
    assert failures([failed, passed]) == {}
    assert failures([passed, failed]) == {GZIP.sha256: "it hung"}


def test_all_that_is_recorded_counts(host: Host) -> None:
    assert failed_in_trials(host) == {}
    for number, candidate in enumerate((GZIP, XZ), 1):
        write_campaign(
            host, replace(over((candidate, TrialOutcome.FAILED), out=(candidate,)), number=number)
        )
    assert failed_in_trials(host).keys() == {GZIP.sha256, XZ.sha256, "gzip", "xz"}


def test_what_cannot_be_read_is_said_and_hides_nothing_else(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    for number, candidate in enumerate((GZIP, XZ), 1):
        ended = over((candidate, TrialOutcome.FAILED), out=(candidate,))
        write_campaign(host, replace(ended, number=number))
    first, _ = sorted((host.state_dir() / "campaigns").iterdir())
    first.write_text("{")
    assert failed_in_trials(host).keys() == {XZ.sha256, "xz"}
    assert "it is not known what did not boot in trials" in caplog.text


def test_where_records_cannot_be_looked_for_nothing_is_known(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    host.state_dir().mkdir()
    (host.state_dir() / "campaigns").touch()
    assert failed_in_trials(host) == {}
    assert "it is not known what did not boot in trials" in caplog.text


def test_a_setting_that_failed_stays_out_until_it_boots() -> None:
    """Known failures count at once, silent ones from the second on, over all campaigns."""
    fates = TrialOutcome
    panicked = over((GZIP, fates.FAILED), (LZ4, fates.UNEXPLAINED))
    assert failed_settings([panicked], []).keys() == {"gzip"}
    assert failed_settings([panicked, panicked], []).keys() == {"gzip", "lz4 -9"}
    passed = over((GZIP, fates.PASSED), (LZ4, fates.PASSED), (LZ4, fates.UNEXPLAINED))
    assert failed_settings([panicked, passed], []) == {}


def test_the_boots_of_a_kernel_are_those_that_took_place_or_may() -> None:
    done = over(
        (GZIP, TrialOutcome.PASSED), (LZ4, TrialOutcome.NOT_TRIED), (XZ, TrialOutcome.FAILED)
    )
    boots = [
        replace(boot, release=release, rebooted=rebooted)
        for boot, release, rebooted in zip(
            done.trial_boots, ("6.1", "6.1", "6.2"), (True, False, True), strict=True
        )
    ]
    armed = replace(arming(GZIP), release="6.1")
    campaigns = [replace(done, trial_boots=(*boots, armed)), replace(done, trial_boots=(boots[0],))]
    assert [trial_boots_of(campaigns, release) for release in ("6.1", "6.2", "6.3")] == [3, 1, 0]


def test_proving_boots_count_with_trials() -> None:
    silent = over((LZ4, TrialOutcome.UNEXPLAINED))
    armed = replace(arming(GZIP).armed_boot)
    proof = Transaction(
        number=1,
        state=TransactionState.UNDONE,
        purpose="a test",
        began_at_s=2,
        files=(),
        reason="it left nothing",
        setting=SettingChange(
            generator="dracut", kernel_release="6.1", before="zstd", after="lz4 -9"
        ),
        armed_boot=armed,
        outcome=TrialOutcome.UNEXPLAINED,
    )
    assert failed_settings([], [proof]) == {}
    assert failed_settings([silent], [proof]).keys() == {"lz4 -9"}
    assert failed_settings([], [replace(proof, outcome=TrialOutcome.FAILED)]).keys() == {"lz4 -9"}
    rehearsal = replace(armed, stage=ProofStage.REHEARSAL)
    assert failed_settings([silent], [replace(proof, armed_boot=rehearsal)]) == {}
    done = replace(proof, number=2, began_at_s=3, state=TransactionState.COMMITTED, outcome=None)
    assert failed_settings([silent], [proof, done]) == {}
