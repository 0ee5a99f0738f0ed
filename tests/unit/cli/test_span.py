"""Numbers as options: what is none is refused in one line, whatever Python would take it for."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from initadvisor.cli.candidates import candidates
from initadvisor.cli.history import history
from initadvisor.cli.lab import lab
from initadvisor.cli.options import Number, Single, Whole
from initadvisor.cli.recommend import recommend

NO_NUMBERS = ("abc", "", "5MB", "nan", "inf", "1_000", "\u0663", " 5", "--5", "1e", "0x10")


@pytest.mark.parametrize("option", ["--read-speed", "--overlap"])
@pytest.mark.parametrize("text", NO_NUMBERS)
def test_recommend_refuses_what_is_no_number(option: str, text: str) -> None:
    done = CliRunner().invoke(recommend, [option, text], catch_exceptions=False)
    assert done.exit_code == 2
    assert f"{text!r} is not a number" in done.stderr


@pytest.mark.parametrize("option", ["--read-speed", "--overlap"])
def test_recommend_says_of_a_range_who_takes_it(option: str) -> None:
    done = CliRunner().invoke(recommend, [option, "20..2000"], catch_exceptions=False)
    assert done.exit_code == 2
    assert "'20..2000' is a range, which only whatif takes" in done.stderr


@pytest.mark.parametrize("text", ["0", "-1", "1e7", "1e999"])
def test_a_number_out_of_range_is_called_that(text: str) -> None:
    done = CliRunner().invoke(recommend, ["--read-speed", text], catch_exceptions=False)
    assert done.exit_code == 2
    assert "is not in the range 0.01<=x<=1000000.0" in done.stderr


@pytest.mark.parametrize("kind", [Number(min=0, max=9), Single(min=0, max=9)])
def test_a_number_is_what_it_says(kind: Number) -> None:
    assert [kind.convert(text, None, None) for text in ("2", "0.5", "2e0", "20E-1")] == [
        2,
        0.5,
        2,
        2,
    ]
    assert str(kind.convert("-0", None, None)) == "0.0"


@pytest.mark.parametrize("text", [*NO_NUMBERS, "1.0", "1e1"])
def test_a_whole_number_is_digits(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a whole number"):
        Whole(0, 9).convert(text, None, None)


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        (history, ["--limit", "\u0663"]),
        (lab, ["--rounds", "1_000"]),
        (candidates, ["build", "--jobs", "\u0663"]),
    ],
)
def test_every_command_reads_whole_numbers_alike(
    command: click.Command, arguments: list[str]
) -> None:
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 2
    assert "is not a whole number" in done.stderr


def test_a_number_too_long_to_be_read_is_refused() -> None:
    with pytest.raises(click.BadParameter, match="too many digits"):
        Whole(0, 9).convert("9" * 9999, None, None)
