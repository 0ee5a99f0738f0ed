"""EFI variables: absent, right, and everything that firmware and loaders get wrong."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.firmware.efi_variables import (
    DEFAULT_LOADER,
    boot_option,
    efi_times,
    loader_variables,
)
from initadvisor.records.boot_start import EfiTimes, LoaderVariables
from tests.fixtures.trees import (
    GLOBAL,
    LOADER,
    VOLATILE,
    host_at,
    write,
    write_texts,
    write_variable,
)

VARIABLES = "/sys/firmware/efi/efivars"
INIT, EXEC = "LoaderTimeInitUSec", "LoaderTimeExecUSec"


def test_the_times_are_decimal_text_in_utf_16(tmp_path: Path) -> None:
    write_texts(tmp_path, {INIT: "9102345", "LoaderTimeMenuUSec": "9200000", EXEC: "9912345"})
    times, wrong = efi_times(host_at(tmp_path))
    assert times == EfiTimes(init_us=9_102_345, menu_us=9_200_000, exec_us=9_912_345)
    assert wrong == ()


def test_no_variables_are_no_times_and_nothing_wrong(tmp_path: Path) -> None:
    assert efi_times(host_at(tmp_path)) == (EfiTimes(), ())
    assert loader_variables(host_at(tmp_path)) == LoaderVariables()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (VOLATILE[:2], "is empty"),
        (VOLATILE, "is empty"),
        (VOLATILE + b"\0\0", "is empty"),
        (VOLATILE + b"1", "is no text in UTF-16"),
        (VOLATILE + b"\0\xd8", "is no text in UTF-16"),
        (VOLATILE + "12\x1b[31m".encode("utf-16-le"), "cannot be printed"),
        (VOLATILE + "soon".encode("utf-16-le"), "no time in microseconds: 'soon'"),
        (VOLATILE + "-5".encode("utf-16-le"), "no time in microseconds: '-5'"),
        (VOLATILE + "1_000".encode("utf-16-le"), "no time in microseconds: '1_000'"),
        (VOLATILE + "١٢".encode("utf-16-le"), "no time in microseconds"),
        (VOLATILE + "0".encode("utf-16-le"), "no time in microseconds: '0'"),
        (VOLATILE + ("9" * 30).encode("utf-16-le"), "no time in microseconds"),
        (VOLATILE + b"1\0" * 4000, "longer than 4096 bytes"),
    ],
)
def test_a_time_that_cannot_be_used_says_why(tmp_path: Path, content: bytes, reason: str) -> None:
    write(tmp_path, f"{VARIABLES}/{INIT}-{LOADER}", content)
    times, wrong = efi_times(host_at(tmp_path))
    assert times == EfiTimes()
    assert [each.source for each in wrong] == [INIT]
    assert reason in wrong[0].reason


def test_what_is_no_file_says_why(tmp_path: Path) -> None:
    (tmp_path / f"{VARIABLES.lstrip('/')}/{INIT}-{LOADER}").mkdir(parents=True)
    _, wrong = efi_times(host_at(tmp_path))
    assert wrong[0].reason == "cannot be read: Is a directory"


def test_one_bad_time_leaves_the_others(tmp_path: Path) -> None:
    write_texts(tmp_path, {INIT: "1000", EXEC: "x"})
    times, wrong = efi_times(host_at(tmp_path))
    assert times == EfiTimes(init_us=1000)
    assert [each.source for each in wrong] == [EXEC]


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        ({INIT: "2000", EXEC: "1000"}, "not in order: 2000, 1000"),
        ({INIT: "1000", "LoaderTimeMenuUSec": "3000", EXEC: "2000"}, "not in order"),
        ({INIT: "1000", EXEC: "3600001001"}, "more than an hour"),
    ],
)
def test_times_that_contradict_each_other_are_all_left_out(
    tmp_path: Path, texts: dict[str, str], reason: str
) -> None:
    write_texts(tmp_path, texts)
    times, wrong = efi_times(host_at(tmp_path))
    assert times == EfiTimes()
    assert reason in wrong[0].reason


def test_a_counter_that_went_on_through_a_reset_still_gives_differences(tmp_path: Path) -> None:
    write_texts(tmp_path, {INIT: "7200000000", EXEC: "7200500000"})
    times, wrong = efi_times(host_at(tmp_path))
    assert (times.init_us, times.exec_us, wrong) == (7_200_000_000, 7_200_500_000, ())


def option(*nodes: bytes, description: str = "Linux Boot Manager") -> bytes:
    path = b"".join((*nodes, b"\x7f\xff\x04\0"))
    head = struct.pack("<IH", 1, len(path))
    return head + f"{description}\0".encode("utf-16-le") + path


def file_node(name: str) -> bytes:
    raw = f"{name}\0".encode("utf-16-le")
    return struct.pack("<BBH", 4, 4, 4 + len(raw)) + raw


DISK_NODE = struct.pack("<BBH", 4, 1, 42) + bytes(38)
SHELL_NODE = struct.pack("<BBH", 4, 6, 20) + bytes(16)
NETWORK_NODE = struct.pack("<BBH", 3, 11, 37) + bytes(33)


def test_the_names_that_loader_and_stub_leave_are_all_read(tmp_path: Path) -> None:
    write_texts(
        tmp_path,
        {
            "LoaderInfo": "systemd-boot 257.5-2",
            "LoaderImageIdentifier": r"\EFI\systemd\systemd-bootx64.efi",
            "LoaderDevicePartUUID": "00000001-0000-4000-8000-000000000001",
            "LoaderEntrySelected": "arch.conf",
            "LoaderEntryOneShot": "trial.conf",
            "StubInfo": "systemd-stub 257.5-2",
            "StubImageIdentifier": r"\EFI\Linux\arch.efi",
        },
    )
    write_variable(tmp_path, "BootCurrent", b"\x1a\0", GLOBAL)
    boot = option(DISK_NODE, file_node(r"\EFI\systemd\systemd-bootx64.efi"))
    write_variable(tmp_path, "Boot001A", boot, GLOBAL)
    assert loader_variables(host_at(tmp_path)) == LoaderVariables(
        readable=True,
        loader="systemd-boot 257.5-2",
        loader_file=r"\EFI\systemd\systemd-bootx64.efi",
        partition_uuid="00000001-0000-4000-8000-000000000001",
        entry="arch.conf",
        oneshot_entry="trial.conf",
        stub="systemd-stub 257.5-2",
        stub_file=r"\EFI\Linux\arch.efi",
        boot_option_file=r"\EFI\systemd\systemd-bootx64.efi",
    )


def test_efi_without_its_variables_is_not_a_loader_that_keeps_silent(tmp_path: Path) -> None:
    (tmp_path / VARIABLES.lstrip("/")).mkdir(parents=True)
    assert not loader_variables(host_at(tmp_path)).readable
    write_variable(tmp_path, "BootOrder", b"\0\0", GLOBAL)
    assert loader_variables(host_at(tmp_path)) == LoaderVariables(readable=True)


@pytest.mark.parametrize("number", [b"", b"\1", b"\1\0\0"])
def test_a_number_of_the_wrong_size_says_so(tmp_path: Path, number: bytes) -> None:
    write_variable(tmp_path, "BootCurrent", number, GLOBAL)
    found = loader_variables(host_at(tmp_path))
    assert found.boot_option_file is None
    assert found.unreadable[0].reason == f"has {len(number)} bytes instead of 2"


@pytest.mark.parametrize(
    ("value", "file"),
    [
        (option(file_node(r"\EFI\debian\shimx64.efi")), r"\EFI\debian\shimx64.efi"),
        (option(file_node("\\EFI"), file_node("\\a.efi")), r"\EFI\a.efi"),
        (option(DISK_NODE), DEFAULT_LOADER),
        (option(), DEFAULT_LOADER),
        (option(SHELL_NODE), None),
        (option(NETWORK_NODE), None),
        (option(file_node("\\\x07.efi")), None),
        (option(file_node("\\a.efi"))[:-9], None),  # cut off inside the file's name
        (option(DISK_NODE)[:-9], None),
        (option(DISK_NODE)[:-4], None),  # without its end
        (b"", None),
        (b"\1\0\0\0\xff\xff", None),
        (b"\1\0\0\0\xff\xff" + b"A\0" * 9, None),  # a description without an end
    ],
)
def test_a_boot_option_names_its_file_or_nothing(value: bytes, file: str | None) -> None:
    found = boot_option(value)
    assert (found.file if found else None) == file


@given(st.binary(max_size=200))
def test_no_boot_option_is_too_strange(value: bytes) -> None:
    found = boot_option(option(value))
    assert found is None or found.file is None or found.file.isprintable()


@given(content=st.binary(max_size=64))
def test_no_variable_is_too_strange(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        for name in (INIT, "LoaderInfo", "StubInfo"):
            write(root, f"{VARIABLES}/{name}-{LOADER}", content)
        write(root, f"{VARIABLES}/BootCurrent-{GLOBAL}", content)
        found = loader_variables(host_at(root))
        times, _ = efi_times(host_at(root))
    assert found.loader is None or found.loader.isprintable()
    assert found.loader is not None or found.unreadable
    assert times.init_us is None or times.init_us > 0
