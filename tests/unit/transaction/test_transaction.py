"""What each event makes of a transaction, and what is left to do wherever it is cut short."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.transaction.transaction import Duty, Transaction, next_state
from initadvisor.transaction.transaction import TransactionEvent as E
from initadvisor.transaction.transaction import TransactionState as S

ROWS = {
    S.PLANNED: {E.STAGE: S.STAGED, E.UNDO: S.ROLLING_BACK, E.INTERRUPT: S.ROLLING_BACK},
    S.STAGED: {E.VERIFY: S.VERIFIED, E.UNDO: S.ROLLING_BACK, E.INTERRUPT: S.ROLLING_BACK},
    S.VERIFIED: {
        E.PROVE: S.PROVING,
        E.COMMIT: S.COMMITTING,
        E.UNDO: S.ROLLING_BACK,
        E.INTERRUPT: S.ROLLING_BACK,
    },
    S.PROVING: {
        E.PROVE: S.PROVING,
        E.COMMIT: S.COMMITTING,
        E.UNDO: S.ROLLING_BACK,
        E.INTERRUPT: S.PROVING,
    },
    S.COMMITTING: {E.FINISH: S.COMMITTED, E.UNDO: S.ROLLING_BACK, E.INTERRUPT: S.COMMITTING},
    S.COMMITTED: {E.UNDO: S.ROLLING_BACK, E.INTERRUPT: S.COMMITTED},
    S.ROLLING_BACK: {
        E.RESTORE: S.UNDONE,
        E.LOSE: S.FAILED,
        E.UNDO: S.ROLLING_BACK,
        E.INTERRUPT: S.ROLLING_BACK,
    },
    S.UNDONE: {E.INTERRUPT: S.UNDONE},
    S.FAILED: {E.UNDO: S.ROLLING_BACK, E.INTERRUPT: S.FAILED},
}

DONE = {Duty.REPLACE: E.FINISH, Duty.RESTORE: E.RESTORE}


@pytest.mark.parametrize("state", S)
@pytest.mark.parametrize("event", E)
def test_every_event_in_every_state(state: S, event: E) -> None:
    assert next_state(state, event) is ROWS[state].get(event)


@given(events=st.lists(st.sampled_from(E), max_size=30))
def test_after_any_events_a_power_cut_leaves_one_thing_to_do(events: list[E]) -> None:
    transaction = Transaction(number=1, state=S.PLANNED, purpose="test", began_at_s=0, files=())
    may_be_new = False
    for event in events:
        if next_state(transaction.state, event) is None:
            with pytest.raises(ValueError, match="cannot happen"):
                transaction.after(event)
            continue
        transaction = transaction.after(event)
        may_be_new |= transaction.state is S.COMMITTING
        if transaction.state is S.UNDONE:
            may_be_new = False
    found = transaction.after(E.INTERRUPT)
    assert found.after(E.INTERRUPT) == found
    if may_be_new:
        assert found.state in {S.COMMITTING, S.COMMITTED, S.ROLLING_BACK, S.FAILED}
    else:
        assert found.state.duty is not Duty.REPLACE
    if found.state.duty in DONE:
        ended = found.after(DONE[found.state.duty])
        assert ended.state.duty is Duty.NOTHING
