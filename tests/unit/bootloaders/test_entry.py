"""What became of a selection, from what stands there now and whether there was a boot."""

from __future__ import annotations

import pytest

from initadvisor.bootloaders.entry import OneShot, OneShotOutcome, OneShotState, one_shot_outcome


@pytest.mark.parametrize(
    ("state", "boot", "expected"),
    [
        (OneShotState.OURS, "a", OneShotOutcome.PENDING),
        (OneShotState.OURS, "b", OneShotOutcome.STUCK),
        (OneShotState.NONE, "a", OneShotOutcome.WITHDRAWN),
        (OneShotState.NONE, "b", OneShotOutcome.CONSUMED),
        (OneShotState.OTHERS, "a", OneShotOutcome.REPLACED),
        (OneShotState.OTHERS, "b", OneShotOutcome.REPLACED),
        (OneShotState.UNREADABLE, "a", OneShotOutcome.UNKNOWN),
        (OneShotState.UNREADABLE, "b", OneShotOutcome.UNKNOWN),
    ],
)
def test_what_became_of_it(state: OneShotState, boot: str, expected: OneShotOutcome) -> None:
    assert one_shot_outcome(OneShot(state=state), armed_in_boot="a", boot=boot) is expected
