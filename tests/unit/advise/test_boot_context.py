"""How a kernel unpacks, and how long a boot takes, from what the machine tells."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from initadvisor.advise.boots import boot_context
from initadvisor.core.errors import ProgramError
from initadvisor.host import Host
from tests.fakes.runner import FakeRunner

if TYPE_CHECKING:
    from pathlib import Path

RUNNING = os.uname().release
NEW, OLD = "6.12.1-amd64", "5.10.0-30-amd64"


def host_with(root: Path, *, cmdline: str = "quiet", systemd: bool = False) -> Host:
    (root / "proc").mkdir()
    (root / "proc/cmdline").write_text(cmdline)
    if systemd:
        (root / "run/systemd/system").mkdir(parents=True)
    return Host(root=root, runner=FakeRunner())


@pytest.mark.parametrize(
    ("release", "cmdline", "expected"),
    [
        (NEW, "quiet", True),
        (OLD, "quiet", False),
        ("5.12.19-arch1", "", False),
        ("5.13.0-1", "", True),
        (None, "", None),
        ("linux", "", None),
        (NEW, "initramfs_async=0", True),  # another kernel's command line does not count
        (RUNNING, "quiet initramfs_async=0", False),
        (RUNNING, "initramfs_async=off", False),
        (RUNNING, "initramfs_async=0 initramfs_async=1", True),
        (RUNNING, "initramfs_async=yes", True),
    ],
)
def test_unpacking_is_asynchronous_since_5_13_unless_turned_off(
    tmp_path: Path, release: str | None, cmdline: str, expected: bool | None
) -> None:
    context = boot_context(host_with(tmp_path, cmdline=cmdline), release)
    assert context.asynchronous is expected


@pytest.mark.parametrize(("present", "expected"), [("0", True), ("0-3", False), (None, False)])
def test_one_processor_is_known_by_what_the_kernel_says(
    tmp_path: Path, present: str | None, expected: bool
) -> None:
    host = host_with(tmp_path)
    if present:
        (tmp_path / "sys/devices/system/cpu").mkdir(parents=True)
        (tmp_path / "sys/devices/system/cpu/present").write_text(f"{present}\n")
    assert boot_context(host, NEW).one_processor is expected


def test_the_whole_boot_is_the_time_before_the_kernel_and_after(tmp_path: Path) -> None:
    host = host_with(tmp_path, systemd=True)
    assert isinstance(host.runner, FakeRunner)
    host.runner.answer(
        "systemctl show",
        "FirmwareTimestampMonotonic=4500000\nLoaderTimestampMonotonic=1500000\n"
        "FinishTimestampMonotonic=9000000\n",
    )
    assert boot_context(host, NEW).whole_boot_ms == 13_500


@pytest.mark.parametrize("answer", ["", "FinishTimestampMonotonic=0\n", "nonsense"])
def test_a_boot_that_systemd_does_not_tell_of_is_unknown(tmp_path: Path, answer: str) -> None:
    host = host_with(tmp_path, systemd=True)
    assert isinstance(host.runner, FakeRunner)
    host.runner.answer("systemctl show", answer)
    assert boot_context(host, NEW).whole_boot_ms is None


def test_without_systemd_nobody_is_asked(tmp_path: Path) -> None:
    assert boot_context(host_with(tmp_path), NEW).whole_boot_ms is None


def test_a_systemctl_that_fails_is_no_failure(tmp_path: Path) -> None:
    host = host_with(tmp_path, systemd=True)
    assert isinstance(host.runner, FakeRunner)
    host.runner.answer("systemctl show", error=ProgramError("it hangs"))
    assert boot_context(host, NEW).whole_boot_ms is None


def test_the_kernel_s_size_is_that_of_its_file_or_a_stated_assumption(tmp_path: Path) -> None:
    host = host_with(tmp_path)
    assumed = boot_context(host, NEW)
    assert "assumed" in assumed.kernel_mb_source
    (tmp_path / "boot").mkdir()
    (tmp_path / f"boot/vmlinuz-{NEW}").write_bytes(bytes(3_000_000))
    found = boot_context(host, NEW)
    assert (found.kernel_mb, found.kernel_mb_source) == (3.0, f"/boot/vmlinuz-{NEW}")
