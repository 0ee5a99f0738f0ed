"""Boots that are not slower hardly ever raise an alarm."""

from __future__ import annotations

import random

import pytest

from tests.fixtures.slower_boots import BOOTS, boots, first_alarm


@pytest.mark.parametrize("disturbed", [0.0, 0.1])
@pytest.mark.parametrize("before", [2, 5, 20])
def test_who_looks_after_every_boot_is_still_rarely_wrong(before: int, disturbed: float) -> None:
    """Of 200 machines on which nothing has changed, 10 may be wrong, and 8 are chance."""
    source = random.Random(before)
    wrong = sum(
        first_alarm(
            boots(source, 1000, before, disturbed=disturbed),
            boots(source, 1000, BOOTS, disturbed=disturbed),
        )
        is not None
        for _ in range(200)
    )
    assert wrong <= 18
