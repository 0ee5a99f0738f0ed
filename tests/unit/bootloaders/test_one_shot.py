"""What became of a selection, from what stands there now and whether there was a boot."""

from __future__ import annotations

import pytest

from initadvisor.bootloaders.one_shot import OneShot, OneShotState, Outcome, outcome


@pytest.mark.parametrize(
    ("state", "boot", "expected"),
    [
        (OneShotState.OURS, "a", Outcome.PENDING),
        (OneShotState.OURS, "b", Outcome.STUCK),
        (OneShotState.NONE, "a", Outcome.WITHDRAWN),
        (OneShotState.NONE, "b", Outcome.CONSUMED),
        (OneShotState.OTHERS, "a", Outcome.REPLACED),
        (OneShotState.OTHERS, "b", Outcome.REPLACED),
        (OneShotState.UNREADABLE, "a", Outcome.UNKNOWN),
        (OneShotState.UNREADABLE, "b", Outcome.UNKNOWN),
    ],
)
def test_what_became_of_it(state: OneShotState, boot: str, expected: Outcome) -> None:
    assert outcome(OneShot(state=state), armed_in_boot="a", boot=boot) is expected
