"""What is taken for a number, out of JSON that anybody may have written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.core.plain_values import number, positive


@given(st.floats(0, 1e15) | st.integers(0, 10**15))
def test_a_figure_is_its_own_number(value: float) -> None:
    assert number(json.loads(json.dumps(value))) == value


@given(
    st.one_of(
        st.none(),
        st.booleans(),
        st.text(),
        st.lists(st.integers()),
        st.dictionaries(st.text(), st.floats()),
        st.integers(max_value=-1),
        st.floats(max_value=0, exclude_max=True),
        st.integers(min_value=10**15 + 1),
        st.sampled_from([float("nan"), float("inf"), float("-inf"), 10**400, -(10**400), 1e16]),
    )
)
def test_nothing_else_is(value: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the value is all it says
        number(value)


@pytest.mark.parametrize("value", [0, 0.0, -0.0, 1e-300])
def test_nothing_at_all_is_not_positive(value: float) -> None:
    assert number(value) == value
    with pytest.raises(ValueError):  # noqa: PT011
        positive(value)


def test_bounds_are_part_of_it() -> None:
    assert number(3.0, least=3, most=3) == 3
    for value in (2.9, 3.1):
        with pytest.raises(ValueError):  # noqa: PT011
            number(value, least=3, most=3)
