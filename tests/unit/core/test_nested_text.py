"""JSON and TOML that are none."""

from __future__ import annotations

import pytest

from initadvisor.core.plain_values import from_json, from_toml


@pytest.mark.parametrize("text", [b'{"a": [1, null]}', '{"a": [1, null]}'])
def test_a_value_is_read(text: bytes | str) -> None:
    assert from_json(text) == {"a": [1, None]}


@pytest.mark.parametrize("text", [b"", b"{", b"\xff\xfe\xfd", "9" * 10_000, "[" * 100_000])
def test_what_is_none_is_one_kind_of_error(text: bytes | str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        from_json(text)


@pytest.mark.parametrize("depth", [101, 900, 100_000])
def test_what_is_nested_too_deeply_is_called_so(depth: int) -> None:
    for text in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
        with pytest.raises(ValueError, match="nested too deeply"):
            from_json(text)


@pytest.mark.parametrize("text", ["a", f"a = {'[' * 200}{']' * 200}", f"a = {'[' * 100_000}"])
def test_tables_that_are_none_are_the_same_kind_of_error(text: str) -> None:
    assert from_toml("a = [1]") == {"a": [1]}
    with pytest.raises(ValueError, match=r"\w"):
        from_toml(text)


def test_what_is_nested_as_records_are_is_read() -> None:
    assert from_json("[" * 90 + "]" * 90)
