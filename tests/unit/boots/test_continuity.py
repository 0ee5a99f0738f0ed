"""Readings that belong to another boot: after a kexec, and after sleep."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from initadvisor.boots.loader_times import same_loader_run, slept
from initadvisor.host import Host
from initadvisor.records.boot_start import EfiTimes, FpdtTimes, LoaderTimes, ManagerTimes
from tests.fakes.runner import FakeRunner
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from pathlib import Path

EFI = EfiTimes(init_us=4_403_574, exec_us=5_046_558)
FPDT = FpdtTimes(bootloader_launch_ns=4_403_000_123, exitbootservice_end_ns=6_000_000_456)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (LoaderTimes(efi=EFI), LoaderTimes(efi=EFI), True),
        (LoaderTimes(fpdt=FPDT), LoaderTimes(fpdt=FPDT), True),
        (LoaderTimes(efi=EFI, fpdt=FPDT), LoaderTimes(efi=EFI, fpdt=FPDT), True),
        (LoaderTimes(efi=EFI), LoaderTimes(efi=replace(EFI, exec_us=5_046_559)), False),
        (LoaderTimes(efi=EFI), LoaderTimes(efi=replace(EFI, menu_us=4_500_000)), False),
        (LoaderTimes(efi=EFI), LoaderTimes(), False),
        (LoaderTimes(), LoaderTimes(), None),
        # one reading may agree by chance, zero readings always do
        (
            LoaderTimes(fpdt=FpdtTimes(firmware_start_ns=41_000_000)),
            LoaderTimes(fpdt=FpdtTimes(firmware_start_ns=41_000_000)),
            None,
        ),
        # systemd's are computed from the others, and user space is another one after all
        (
            LoaderTimes(efi=EFI, manager=ManagerTimes(finish_us=5)),
            LoaderTimes(efi=EFI, manager=ManagerTimes(finish_us=6)),
            True,
        ),
    ],
)
def test_the_same_readings_twice_are_one_run_of_the_loader(
    before: LoaderTimes, now: LoaderTimes, *, expected: bool | None
) -> None:
    assert same_loader_run(before, now) is expected


@dataclass(frozen=True, slots=True)
class Stopped:
    """A clock at which no time passes."""

    now_ns: int

    def monotonic_ns(self) -> int:
        """Return the moment it stands at."""
        return self.now_ns

    def thread_cpu_ns(self) -> int:
        """Return no time."""
        return 0


@pytest.mark.parametrize(
    ("uptime", "expected"),
    [
        ("100.00 350.12\n", False),
        ("100.90 350.12\n", False),  # read a moment later
        ("102.00 350.12\n", True),
        ("86500.00 350.12\n", True),
        ("", None),
        ("soon\n", None),
    ],
)
def test_time_asleep_counts_in_one_clock_only(
    tmp_path: Path, uptime: str, *, expected: bool | None
) -> None:
    write(tmp_path, "/proc/uptime", uptime)
    host = Host(root=tmp_path, runner=FakeRunner(), clock=Stopped(100_000_000_000))
    assert slept(host) is expected
