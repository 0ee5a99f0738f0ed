"""systemd's account of a boot, in its own notation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.boots.loader_times import StartupTimes, startup_times, timespan_us


@pytest.mark.parametrize(
    ("text", "expected_us"),
    [
        ("5.123s", 5_123_000),
        ("980ms", 980_000),
        ("1.500ms", 1500),
        ("37us", 37),
        ("9s", 9_000_000),
        ("1min 33.440s", 93_440_000),
        ("1min", 60_000_000),
        ("1h 2min 3s", 3_723_000_000),
        ("2d 4min", 173_040_000_000),
        ("", None),
        ("5", None),
        ("5.s", None),
        ("s", None),
        ("5s  6ms", None),
        ("-5s", None),
    ],
)
def test_a_span_is_read_as_systemd_writes_it(text: str, expected_us: int | None) -> None:
    assert timespan_us(text) == expected_us


@pytest.mark.parametrize(
    ("text", "firmware_us", "loader_us"),
    [
        (
            "Startup finished in 5.123s (firmware) + 1min 3.1s (loader) + 1.5s (kernel)"
            " + 3s (initrd) + 9s (userspace) = 1min 21.723s.",
            5_123_000,
            63_100_000,
        ),
        ("Startup finished in 16.413s (kernel) + 21.580s (userspace) = 38s.", None, None),
        ("Startup finished in 2.1s (loader) + 1s (kernel) = 3.1s.", None, 2_100_000),
        ("Startup finished in 4.000s.", None, None),
    ],
)
def test_firmware_and_loader_stand_in_the_text(
    text: str, firmware_us: int | None, loader_us: int | None
) -> None:
    assert startup_times(text, {}) == StartupTimes(firmware_us=firmware_us, loader_us=loader_us)


def test_the_other_phases_stand_in_fields() -> None:
    fields = {"KERNEL_USEC": "1500123", "INITRD_USEC": "", "USERSPACE_USEC": "x"}
    assert startup_times("Startup finished in 4.000s.", fields) == StartupTimes(kernel_us=1_500_123)


@given(st.one_of(st.text(), st.from_regex(r"(\d+(\.\d+)?(s|ms|min) )*\((firmware|loader)\)")))
def test_no_text_whatever_makes_an_exception(text: str) -> None:
    times = startup_times(text, {"KERNEL_USEC": text})
    assert times.firmware_us is None or times.firmware_us >= 0


def test_more_than_a_year_is_no_time_of_a_boot() -> None:
    assert timespan_us("1y") is not None
    assert timespan_us("1y 1us") is None
    assert timespan_us("999999999y") is None
