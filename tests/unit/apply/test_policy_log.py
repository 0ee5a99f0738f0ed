"""What the policy may do, and what it has to watch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from initadvisor.apply.policy import objection
from initadvisor.apply.policy_log import PolicyChange, watched
from initadvisor.records.trial_outcome import TrialOutcome
from initadvisor.transaction.transaction import SettingChange, Transaction, TransactionState

IMAGE = "0" * 64
CHANGE = PolicyChange(
    after="lz4 -9", kernel_release="6.1", image_sha256=IMAGE, decided_at_s=100, number=2
)


def transaction(
    number: int,
    state: TransactionState,
    *,
    after: str = "lz4 -9",
    began_at_s: int = 0,
    by_policy: bool = True,
) -> Transaction:
    return Transaction(
        number=number,
        state=state,
        purpose="a test",
        began_at_s=began_at_s or 100 * number,
        files=(),
        reason="it was slow",
        by_policy=by_policy,
        setting=SettingChange(generator="dracut", kernel_release="6.1", before="gzip", after=after),
    )


COMMITTED, UNDONE = TransactionState.COMMITTED, TransactionState.UNDONE


@pytest.mark.parametrize("state", TransactionState)
def test_what_was_undone_is_not_done_again(state: TransactionState) -> None:
    found = objection("lz4 -9", "6.2", IMAGE, [CHANGE], [transaction(2, state)])
    if state in {TransactionState.UNDONE, TransactionState.FAILED}:
        assert found == "transaction 2 was undone (it was slow)"
    else:
        assert found is None
    assert objection("zstd", "6.2", IMAGE, [CHANGE], [transaction(2, state)]) is None


@pytest.mark.parametrize("outcome", TrialOutcome)
def test_what_tells_nothing_of_a_setting_is_not_held_against_it(outcome: TrialOutcome) -> None:
    def undone(times: int) -> str | None:
        numbers = range(1, times + 1)
        return objection(
            "lz4 -9",
            "6.1",
            IMAGE,
            [replace(CHANGE, number=number) for number in numbers],
            [replace(transaction(number, UNDONE), outcome=outcome) for number in numbers],
        )

    held = outcome in {TrialOutcome.FAILED, TrialOutcome.STUCK}
    assert [bool(undone(times)) for times in (1, 2, 3)] == [held, held, True]


def test_another_s_transaction_that_was_undone_is_no_objection() -> None:
    assert objection("lz4 -9", "6.1", IMAGE, [], [transaction(2, UNDONE)]) is None
    assert objection("lz4 -9", "6.1", IMAGE, [CHANGE], [transaction(3, UNDONE)]) is None


def test_what_gave_no_fit_image_is_tried_again_once_the_installed_one_is_another() -> None:
    failed = replace(CHANGE, number=None, failed="made with cat")
    assert objection("lz4 -9", "6.1", IMAGE, [failed], []) == (
        "it could not be applied for Linux 6.1 (made with cat)"
    )
    assert objection("lz4 -9", "6.1", "1" * 64, [failed], []) is None


def test_runs_that_were_cut_short_are_not_counted_as_boots_in_vain() -> None:
    """All but the last were put off, on battery say, before there was a transaction."""
    undone = replace(transaction(2, UNDONE), outcome=TrialOutcome.UNEXPLAINED)
    changes = [replace(CHANGE, decided_at_s=at_s, number=2) for at_s in range(100, 104)]
    assert objection("lz4 -9", "6.1", IMAGE, changes, [undone]) is None


def test_the_latest_change_is_watched_if_it_is_the_policy_s() -> None:
    ours = transaction(2, COMMITTED)
    assert watched([CHANGE], [ours]) == ours
    assert watched([], [ours]) is None
    assert watched([CHANGE], []) is None
    assert watched([CHANGE], [ours, transaction(3, COMMITTED, after="zstd")]) is None
    assert watched([CHANGE], [ours, transaction(3, UNDONE, after="zstd")]) == ours


@pytest.mark.parametrize("state", [state for state in TransactionState if state is not COMMITTED])
def test_what_does_not_stand_is_not_watched(state: TransactionState) -> None:
    assert watched([CHANGE], [transaction(2, state)]) is None


def test_a_decision_finds_its_transaction_after_a_power_cut() -> None:
    decided = PolicyChange(after="lz4 -9", kernel_release="6.1", decided_at_s=150)
    recorded = [
        transaction(1, UNDONE),
        transaction(2, COMMITTED, after="zstd"),
        transaction(3, COMMITTED, by_policy=False),
        transaction(4, COMMITTED),
        transaction(5, COMMITTED),
    ]
    assert decided.found_in(recorded).number == 4
    assert decided.found_in(recorded[:3]) == decided, "a person has applied it since"
    assert decided.found_in(recorded[:2]) == decided
    assert CHANGE.found_in(recorded) == CHANGE
