"""The firmware's boot record in every shape that firmware gives it."""

from __future__ import annotations

import tempfile
from dataclasses import astuple
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.firmware.fpdt import fpdt_times
from initadvisor.records.boot_start import FpdtTimes
from tests.fixtures.trees import host_at, write, write_fpdt

S = 1_000_000_000
GOOD = {
    "firmware_start": 41_000_000,
    "bootloader_load": 7 * S,
    "bootloader_launch": 7 * S + 20_000_000,
    "exitbootservice_start": 11 * S,
    "exitbootservice_end": 11 * S + 3_000_000,
}


def test_a_good_record_is_read_as_it_stands(tmp_path: Path) -> None:
    write_fpdt(tmp_path, **GOOD)
    expected = FpdtTimes(**{f"{name}_ns": value for name, value in GOOD.items()})
    assert fpdt_times(host_at(tmp_path)) == (expected, ())


def test_a_machine_without_a_record_has_no_times(tmp_path: Path) -> None:
    assert fpdt_times(host_at(tmp_path)) == (FpdtTimes(), ())


@pytest.mark.parametrize("name", GOOD)
def test_a_field_that_is_zero_or_missing_was_not_recorded(tmp_path: Path, name: str) -> None:
    write_fpdt(tmp_path / "zero", **(GOOD | {name: 0}))
    write_fpdt(tmp_path / "missing", **{key: GOOD[key] for key in GOOD if key != name})
    for shape in ("zero", "missing"):
        times, wrong = fpdt_times(host_at(tmp_path / shape))
        assert getattr(times, f"{name}_ns") is None
        assert sum(time is not None for time in astuple(times)) == len(GOOD) - 1
        assert wrong == ()


def test_a_record_of_zeros_is_none(tmp_path: Path) -> None:
    write_fpdt(tmp_path, **dict.fromkeys(GOOD, 0))
    assert fpdt_times(host_at(tmp_path)) == (FpdtTimes(), ())


def test_a_record_of_the_reset_alone_is_no_matter_of_units(tmp_path: Path) -> None:
    write_fpdt(tmp_path, firmware_start=41_000_000)
    assert fpdt_times(host_at(tmp_path)) == (FpdtTimes(firmware_start_ns=41_000_000), ())


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"bootloader_load": 8 * S}, "not in order"),
        ({"exitbootservice_start": 7 * S}, "not in order"),
        ({"exitbootservice_end": 10 * S}, "not in order"),
        ({"firmware_start": 8 * S}, "not in order"),
        ({"exitbootservice_end": 3601 * S}, "over an hour after reset"),
        ({name: value * 1000 for name, value in GOOD.items()}, "over an hour after reset"),
        ({name: value // 1000 for name, value in GOOD.items()}, "probably microseconds"),
        ({name: value // 1_000_000 for name, value in GOOD.items()}, "probably milliseconds"),
        ({"exitbootservice_end": 2**64 - 1}, "over an hour after reset"),
    ],
)
def test_a_record_that_cannot_be_right_is_refused_whole_and_says_why(
    tmp_path: Path, changes: dict[str, int], reason: str
) -> None:
    write_fpdt(tmp_path, **(GOOD | changes))
    times, wrong = fpdt_times(host_at(tmp_path))
    assert times == FpdtTimes()
    assert [reason in each.reason for each in wrong] == [True]


@pytest.mark.parametrize("text", ["", "\n", "-1\n", "7e9\n", "0x7\n", "1 2\n", "9" * 90, "²\n"])
def test_a_field_that_is_no_number_says_so(tmp_path: Path, text: str) -> None:
    write_fpdt(tmp_path, **GOOD)
    write(tmp_path, "/sys/firmware/acpi/fpdt/boot/bootloader_load_ns", text)
    times, wrong = fpdt_times(host_at(tmp_path))
    assert times.bootloader_load_ns is None
    assert times.bootloader_launch_ns == GOOD["bootloader_launch"]
    assert [each.source for each in wrong] == ["bootloader_load_ns"]


def test_what_is_no_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "sys/firmware/acpi/fpdt/boot/firmware_start_ns").mkdir(parents=True)
    _, wrong = fpdt_times(host_at(tmp_path))
    assert wrong[0].reason == "cannot be read: Is a directory"


@given(fields=st.lists(st.binary(max_size=30), min_size=len(GOOD), max_size=len(GOOD)))
def test_no_bytes_are_too_strange(fields: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        for name, content in zip(GOOD, fields, strict=True):
            write(root, f"/sys/firmware/acpi/fpdt/boot/{name}_ns", content)
        times, _ = fpdt_times(host_at(root))
    known = [time for time in astuple(times) if time is not None]
    assert known == sorted(known)
    assert all(0 < time <= 3600 * S for time in known)
