"""What a boot tells is a time or a size that a boot can have, or it is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from initadvisor.decide.boot_evidence import BootEvidence, Relation

BOOT = BootEvidence(
    relation=Relation.SAME,
    class_key="today's",
    age_days=0,
    loaded_mb=40.0,
    unpack_us=200_000,
    begin_to_init_us=300_000,
    shadow_us=0,
    rest_us=0,
    read_us=900_000,
)
FIGURES = (
    *("age_days", "loaded_mb", "unpack_us", "begin_to_init_us", "shadow_us", "rest_us", "read_us"),
)
NEVER_NOTHING = ("loaded_mb", "unpack_us", "begin_to_init_us", "read_us")


def changed(name: str, value: float | None) -> BootEvidence:
    """Return a boot with one figure changed."""
    change: dict[str, Any] = {name: value}
    return replace(BOOT, **change)


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), -1, 1e30, 10**30])
def test_what_no_boot_can_have_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        changed(name, value)


@pytest.mark.parametrize("name", NEVER_NOTHING)
def test_nothing_is_refused_where_something_must_have_passed(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        changed(name, 0)


@pytest.mark.parametrize("name", FIGURES)
def test_what_a_boot_does_not_tell_is_left_out(name: str) -> None:
    assert getattr(changed(name, None), name) is None
