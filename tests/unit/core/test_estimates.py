"""Evidence is as strong as its weakest part."""

from __future__ import annotations

import pytest

from initadvisor.core.estimates import Evidence

BENCH, LAB, BOOTS = Evidence


@pytest.mark.parametrize(
    ("parts", "expected"),
    [([LAB], LAB), ([LAB, BENCH], BENCH), ([BOOTS, LAB], LAB), ([BOOTS, BOOTS], BOOTS)],
)
def test_the_weakest_counts(parts: list[Evidence], expected: Evidence) -> None:
    assert Evidence.weakest(parts) is expected
