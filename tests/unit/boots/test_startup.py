"""systemd's own account of a boot, and all sources together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.boots.loader_times import loader_times, manager_times
from initadvisor.core.errors import ProgramError
from initadvisor.host import Host
from initadvisor.records.boot_start import EfiTimes, FpdtTimes, LoaderTimes, ManagerTimes
from tests.fakes.runner import FakeRunner
from tests.fixtures.trees import host_at, write_fpdt, write_texts

if TYPE_CHECKING:
    from pathlib import Path

COMPLETE = """\
FirmwareTimestampMonotonic=5046558
LoaderTimestampMonotonic=642984
InitRDTimestampMonotonic=1500000
UserspaceTimestampMonotonic=32212607
FinishTimestampMonotonic=61921427
SoftRebootsCount=0
"""
TIMES = ManagerTimes(
    firmware_us=5_046_558,
    loader_us=642_984,
    initrd_us=1_500_000,
    userspace_us=32_212_607,
    finish_us=61_921_427,
    soft_reboots=0,
)


def running_systemd(root: Path, answer: str | ProgramError) -> Host:
    (root / "run/systemd/system").mkdir(parents=True)
    runner = FakeRunner()
    if isinstance(answer, str):
        runner.answer("systemctl show", answer)
    else:
        runner.answer("systemctl show", error=answer)
    return Host(root=root, runner=runner)


def test_what_systemd_knows_is_read_as_it_stands(tmp_path: Path) -> None:
    assert manager_times(running_systemd(tmp_path, COMPLETE)) == TIMES


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("", ManagerTimes()),
        ("FirmwareTimestampMonotonic=0\nFinishTimestampMonotonic=0\n", ManagerTimes()),
        ("FinishTimestampMonotonic=18446744073709551615\n", ManagerTimes()),
        ("FinishTimestampMonotonic=\nSoftRebootsCount\n", ManagerTimes()),
        ("FinishTimestampMonotonic=soon\nSoftRebootsCount=-1\n", ManagerTimes()),
        ("UserspaceTimestampMonotonic=5\n", ManagerTimes(userspace_us=5)),  # before systemd 256
        ("SoftRebootsCount=2\n", ManagerTimes(soft_reboots=2)),
    ],
)
def test_what_systemd_does_not_know_is_not_known(
    tmp_path: Path, answer: str, expected: ManagerTimes
) -> None:
    assert manager_times(running_systemd(tmp_path, answer)) == expected


def test_where_systemd_does_not_run_nothing_is_asked(tmp_path: Path) -> None:
    host = host_at(tmp_path)
    assert manager_times(host) == ManagerTimes()
    assert isinstance(host.runner, FakeRunner)
    assert host.runner.calls == []


def test_a_systemd_that_does_not_answer_is_not_known(tmp_path: Path) -> None:
    host = running_systemd(tmp_path, ProgramError("systemctl did not end within 5 s"))
    assert manager_times(host) == ManagerTimes()


def test_each_source_is_read_for_itself(tmp_path: Path) -> None:
    host = running_systemd(tmp_path, COMPLETE)
    write_texts(tmp_path, {"LoaderTimeInitUSec": "1000", "LoaderTimeExecUSec": "never"})
    write_fpdt(tmp_path, bootloader_load=5, bootloader_launch=7)
    times = loader_times(host)
    assert times == LoaderTimes(
        efi=EfiTimes(init_us=1000),
        fpdt=FpdtTimes(),
        manager=TIMES,
        unreadable=times.unreadable,
    )
    assert [each.source for each in times.unreadable] == [
        "LoaderTimeExecUSec",
        "/sys/firmware/acpi/fpdt/boot",
    ]
