"""Fields that hold what they should not."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pytest

from initadvisor.core.plain_values import require_types


class Colour(StrEnum):
    """A closed set."""

    RED = "red"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    """A part."""

    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    """A whole."""

    name: str = ""
    is_there: bool = False
    colour: Colour | None = None
    inner: Inner | None = None
    parts: tuple[Inner, ...] = ()
    names: tuple[str, ...] = ()


GOOD: tuple[dict[str, Any], ...] = (
    {},
    {"name": "a", "is_there": True, "colour": Colour.RED, "inner": Inner(size_bytes=0)},
    {"parts": (Inner(size_bytes=1), Inner(size_bytes=2)), "names": ("a", "b")},
)
BAD: tuple[tuple[dict[str, Any], str], ...] = (
    ({"name": None}, "name cannot be None"),
    ({"name": 1}, "name cannot be 1"),
    ({"is_there": 1}, "is_there cannot be 1"),
    ({"colour": "red"}, "colour cannot be 'red'"),
    ({"inner": {}}, "inner cannot be dict"),
    ({"inner": Inner(size_bytes=-1)}, "size_bytes cannot be -1"),
    ({"inner": Inner(size_bytes=True)}, "size_bytes cannot be True"),
    ({"parts": [Inner(size_bytes=1)]}, "parts cannot be list"),
    ({"parts": (Inner(size_bytes=1), None)}, "parts cannot be tuple"),
    ({"names": ("a", 1)}, "names cannot be tuple"),
    ({"name": ["a"] * 10_000}, "name cannot be list"),
)


@pytest.mark.parametrize("values", GOOD)
def test_what_is_as_annotated_passes(values: dict[str, Any]) -> None:
    require_types(Outer(**values))


@pytest.mark.parametrize(("values", "words"), BAD)
def test_the_first_field_that_is_not_is_named(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=f"^{words}$"):
        require_types(Outer(**values))
