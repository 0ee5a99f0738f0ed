"""Dataclasses as plain values and back; what is none is refused with its place."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.core.serialisation import (
    NewerSchemaError,
    OlderSchemaError,
    ReadLimits,
    from_document,
    from_plain,
    to_document,
    to_plain,
)
from initadvisor.core.settings import Setting


class Colour(StrEnum):
    """A closed set."""

    RED = "red"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    """A part."""

    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """Another part."""

    size_bytes: int
    ratio: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    """A whole."""

    name: str = ""
    is_there: bool = False
    colour: Colour | None = None
    inner: Inner | Other | None = None
    parts: tuple[Inner, ...] = ()
    chains: tuple[tuple[int, ...], ...] = ()
    names: tuple[str, ...] = ()
    setting: Setting | None = None
    at: datetime | None = None


AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
FULL = Outer(
    name="a",
    is_there=True,
    colour=Colour.RED,
    inner=Other(size_bytes=0, ratio=2.5),
    parts=(Inner(size_bytes=1), Inner(size_bytes=2)),
    chains=((1, 2), ()),
    names=("a", "\udcff"),
    setting=Setting.parse("zstd -19"),
    at=AT,
)
VALUES = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    *(st.lists(st.integers(), max_size=3), st.dictionaries(st.text(), st.integers(), max_size=3)),
)
BAD: tuple[tuple[dict[str, Any], str], ...] = (
    ({"name": None}, "record.name cannot be None"),
    ({"name": 1}, "record.name cannot be 1"),
    ({"name": ["a"] * 10_000}, "record.name cannot be list"),
    ({"name": "a" * 101}, "record.name cannot be 'aaa.*"),
    ({"is_there": 1}, "record.is_there cannot be 1"),
    ({"colour": "green"}, "record.colour cannot be 'green'"),
    ({"inner": []}, "record.inner cannot be list"),
    ({"inner": {}}, "record.inner lacks size_bytes"),
    ({"inner": {"size_bytes": 1, "depth": 2}}, "record.inner has no 'depth'"),
    ({"inner": {"size_bytes": 1, "ratio": -0.5}}, "record.inner.ratio cannot be float"),
    ({"inner": {"size_bytes": 1, "ratio": float("nan")}}, "record.inner.ratio cannot be float"),
    ({"inner": {"size_bytes": -1}}, "record.inner.size_bytes cannot be -1"),
    ({"inner": {"size_bytes": True}}, "record.inner.size_bytes cannot be True"),
    ({"inner": {"size_bytes": 1 << 63}}, "record.inner.size_bytes cannot be 9223372036854775808"),
    ({"parts": {"size_bytes": 1}}, "record.parts cannot be dict"),
    ({"parts": [{"size_bytes": 1}, None]}, r"record.parts\[1\] cannot be None"),
    ({"chains": [[1], [1.0]]}, r"record.chains\[1\]\[0\] cannot be float"),
    ({"names": ["a", 1]}, r"record.names\[1\] cannot be 1"),
    ({"names": ["a"] * 11}, "record.names cannot be list"),
    ({"setting": "zip -9"}, "record.setting cannot be 'zip -9'"),
    ({"at": "2026-03-01T12:00:00"}, "record.at cannot be '2026-03-01T12:00:00'"),
    ({"colours": 1}, "record has no 'colours'"),
)
LIMITS = ReadLimits(characters=100, items=10)


@pytest.mark.parametrize("value", [Outer(), FULL], ids=["empty", "full"])
@pytest.mark.parametrize("defaults", [True, False])
def test_a_value_comes_back_as_it_was(value: Outer, *, defaults: bool) -> None:
    text = json.dumps(to_plain(value, defaults=defaults))
    assert from_plain(Outer, json.loads(text)) == value


def test_fields_with_their_defaults_can_be_left_out() -> None:
    assert to_plain(Outer(inner=Other(size_bytes=1)), defaults=False) == {
        "inner": {"size_bytes": 1}
    }
    assert list(to_plain(Outer())) == list(Outer.__slots__)


def test_one_of_several_types_is_known_by_its_fields() -> None:
    for inner in (Inner(size_bytes=1), Other(size_bytes=1)):
        assert from_plain(Outer, to_plain(Outer(inner=inner))).inner == inner


def test_names_of_a_later_version_are_passed_over_where_that_is_asked_for() -> None:
    later = {**to_plain(FULL), "colours": 1}
    assert from_plain(Outer, later, limits=ReadLimits(unknown_names=True)) == FULL


def test_numbers_may_have_other_bounds() -> None:
    below = Other(size_bytes=-1, ratio=-0.5)
    assert from_plain(Other, to_plain(below), limits=ReadLimits(least=-2)) == below
    limits = ReadLimits(least=-5, most=5)
    assert from_plain(Inner, {"size_bytes": -5}, limits=limits) == Inner(size_bytes=-5)
    with pytest.raises(ValueError, match="size_bytes cannot be 6"):
        from_plain(Inner, {"size_bytes": 6}, limits=limits)


@pytest.mark.parametrize(("plain", "words"), BAD)
def test_what_cannot_be_is_refused_with_its_place(plain: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=f"^{words}$"):
        from_plain(Outer, plain, limits=LIMITS)


@given(st.data())
def test_anything_in_any_place_is_read_or_refused(data: st.DataObject) -> None:
    changed: dict[str, Any] = json.loads(json.dumps(to_plain(FULL)))
    changed[data.draw(st.sampled_from(sorted(changed)))] = data.draw(VALUES)
    try:
        found = from_plain(Outer, changed)
    except ValueError:
        return
    assert from_plain(Outer, to_plain(found)) == found


def test_what_cannot_be_kept_is_a_type_error() -> None:
    for part in ({1, 2}, {"a": 1}, [1], b"a", Inner):
        with pytest.raises(TypeError):
            to_plain(Outer(name=part))  # type: ignore[arg-type]


def test_a_document_has_the_number_of_its_layout() -> None:
    text = to_document(FULL, schema=2)
    assert text.startswith(b'{\n  "schema": 2,\n')
    assert from_document(Outer, text, schema=2) == FULL
    for schema, error in ((1, NewerSchemaError), (3, OlderSchemaError)):
        with pytest.raises(error, match=f"it has schema 2, not {schema}"):
            from_document(Outer, text, schema=schema)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"null", b"[]", b"{}", b'{"schema": "2"}', b'{"schema": true}', b"\xff"]
)
def test_what_is_no_document_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"record|Expecting|decode") as raised:
        from_document(Outer, text, schema=2)
    assert not isinstance(raised.value, NewerSchemaError | OlderSchemaError)
