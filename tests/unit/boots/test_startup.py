"""systemd's own account of a boot, and all sources together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from initadvisor.boots.loader_times import critical_chain, loader_times, manager_times
from initadvisor.core.errors import ProgramError
from initadvisor.host import Host
from initadvisor.records.boot_start import EfiTimes, FpdtTimes, LoaderTimes, ManagerTimes
from initadvisor.records.marks import BootStep
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


CHAIN = """\
The time when unit became active or started is printed after the "@" character.
The time the unit took to start is printed after the "+" character.

graphical.target @29.500s
`-multi-user.target @29.499s
  |-pmie.service @1min 2.968s +548ms
  | `-pmcd.service @3.715s +2.247s
  |   `-...
  `-pmcd.service @3.715s +2.247s
    `-systemd-tmpfiles-setup.service @2.1s +0
      `--.mount @2ms +6ms
        `-system.slice
"""


def analysed(answer: str | ProgramError) -> Host:
    """Return a machine whose systemd-analyze says this."""
    error = answer if isinstance(answer, ProgramError) else None
    runner = FakeRunner(programs=["systemd-analyze"])
    runner.answer("systemd-analyze", "" if error else str(answer), error=error)
    return Host(runner=runner)


def test_the_critical_chain_is_on_the_kernel_s_clock() -> None:
    """As analyze-critical-chain.c prints it: what took no time, or less than 1 ms, is no step."""
    user_us = 32_212_607
    assert critical_chain(analysed(CHAIN), TIMES) == (
        BootStep(name="-.mount", start_us=user_us + 2_000, duration_us=6_000),
        BootStep(name="pmcd.service", start_us=user_us + 3_715_000, duration_us=2_247_000),
        BootStep(name="pmie.service", start_us=user_us + 62_968_000, duration_us=548_000),
    )


@pytest.mark.parametrize(
    "answer",
    [
        *(
            "",
            "x @y +z",
            "a.service @1s",
            "a.service @1s +2s @3s +4s",
            "\0" * 9,
            "é.service @1s +2s",
        ),
        ProgramError("systemd-analyze failed"),
    ],
)
def test_what_is_no_chain_is_none(answer: str | ProgramError) -> None:
    assert critical_chain(analysed(answer), TIMES) == ()


@pytest.mark.parametrize(
    "times", [ManagerTimes(), replace(TIMES, finish_us=None), replace(TIMES, userspace_us=None)]
)
def test_before_user_space_is_up_nothing_is_asked(times: ManagerTimes) -> None:
    host = analysed(CHAIN)
    assert critical_chain(host, times) == ()
    assert isinstance(host.runner, FakeRunner)
    assert host.runner.calls == []
    host.runner.programs = ()
    assert critical_chain(host, TIMES) == ()
