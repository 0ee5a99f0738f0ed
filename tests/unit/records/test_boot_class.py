"""The kernel's command line in words, and what of it is compared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.records.boot_class import (
    command_line_sha256,
    command_line_words,
    comparable_command_line,
    parameters,
)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", ()),
        (" \t\n", ()),
        ("a  b=c\n", ("a", "b=c")),
        ('a="b c" d', ('a="b c"', "d")),
        ('"a=b c" d', ('"a=b c"', "d")),
        ('a="b c', ('a="b c',)),  # the kernel, too, takes the rest of the line
        (r"initrd=\a\b.img x", (r"initrd=\a\b.img", "x")),  # nothing escapes
        ("it's fine", ("it's", "fine")),
    ],
)
def test_words_are_split_as_the_kernel_does(line: str, words: tuple[str, ...]) -> None:
    assert command_line_words(line) == words


def test_every_value_of_a_parameter_is_found_and_none_of_another() -> None:
    line = 'initrd=a xinitrd=b initrd initrd= initrd.x=c "initrd=d" initrd=e=f'
    assert parameters(line, "initrd") == ("a", "", "e=f")


def test_what_names_files_and_trials_is_left_out() -> None:
    line = "BOOT_IMAGE=/v initrd=/a ro initadvisor.trial=7 initrd=/b panic=30 quiet"
    assert comparable_command_line(line) == "ro panic=30 quiet"
    assert comparable_command_line(line, extra_cmdline=("panic=30",)) == "ro quiet"
    assert comparable_command_line("ro panic=30", extra_cmdline=("panic=30",)) == "ro panic=30"


@given(st.text(max_size=200))
def test_comparing_changes_nothing_that_was_already_compared(line: str) -> None:
    once = comparable_command_line(line)
    assert comparable_command_line(once) == once
    assert command_line_sha256(once, key=b"1") == command_line_sha256(line, key=b"1")
    assert command_line_sha256(line, key=b"1") != command_line_sha256(line, key=b"2")
