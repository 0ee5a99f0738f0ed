"""Whatever is shown cannot command a terminal."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.core.text import shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain zstd -19", "plain zstd -19"),
        ("größer", "größer"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("two\nlines\t", "two\\nlines\\t"),
        ("turned\u202eround", "turned\\u202eround"),
        (os.fsdecode(b"not \xff UTF-8"), "not \\xff UTF-8"),
        ("\ud800", "\\ud800"),
        ("", ""),
    ],
)
def test_what_is_not_printable_is_escaped(text: str, expected: str) -> None:
    assert shown(text) == expected


@given(st.text(st.characters()) | st.binary().map(os.fsdecode))
def test_what_is_shown_can_be_printed(text: str) -> None:
    assert shown(text).isprintable()
    shown(text).encode()
