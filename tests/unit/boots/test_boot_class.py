"""What sets boots apart: the machine, its power, its kernel and the command line."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.boots.boot_class import boot_class
from initadvisor.core.errors import ProgramError
from initadvisor.host import Host
from initadvisor.host.power import on_battery
from initadvisor.records.boot_class import Hardware
from tests.fakes.runner import FakeRunner
from tests.fixtures.trees import host_at, write

VERSION = "#1 SMP PREEMPT_DYNAMIC Debian 6.12.107-1 (2026-10-01)"
CPU = "processor\t: 0\nmodel name\t: AMD Ryzen 7\nmicrocode\t: 0xa20120a\n\nprocessor\t: 1\n"


def machine(root: Path, *, virtualisation: str | ProgramError = "none\n") -> Host:
    for path, content in {
        "/proc/cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/sda2 quiet\n",
        "/proc/cpuinfo": CPU,
        "/proc/sys/kernel/osrelease": "6.12.107+deb13-amd64\n",
        "/proc/sys/kernel/version": f"{VERSION}\n",
        "/sys/class/dmi/id/product_name": "20XW0026GE\n",
        "/sys/class/dmi/id/bios_version": "N32ET75W (1.51 )\n",
    }.items():
        write(root, path, content)
    runner = FakeRunner()
    if isinstance(virtualisation, str):
        status = int(virtualisation == "none\n")
        runner.answer("systemd-detect-virt --vm", virtualisation, returncode=status)
    else:
        runner.answer("systemd-detect-virt", error=virtualisation)
    return Host(root=root, runner=runner)


def test_a_machine_is_described_by_what_its_times_depend_on(tmp_path: Path) -> None:
    found = boot_class(machine(tmp_path), boot_disk="Samsung SSD 980")
    assert found.virtualisation == "none"
    assert found.kernel == f"6.12.107+deb13-amd64 {VERSION}"
    assert found.on_battery is None
    assert found.hardware == Hardware(
        product="20XW0026GE",
        firmware_version="N32ET75W (1.51 )",
        cpu_model="AMD Ryzen 7",
        microcode="0xa20120a",
        boot_disk="Samsung SSD 980",
    )


@pytest.mark.parametrize(
    ("said", "expected"),
    [("kvm\n", "kvm"), ("none\n", "none"), ("", None), (ProgramError("not installed"), None)],
)
def test_a_virtual_machine_is_a_class_of_its_own(
    tmp_path: Path, said: str | ProgramError, expected: str | None
) -> None:
    found = boot_class(machine(tmp_path, virtualisation=said), boot_disk=None)
    assert found.virtualisation == expected


def test_machines_without_dmi_are_named_by_their_device_tree(tmp_path: Path) -> None:
    host = machine(tmp_path)
    (tmp_path / "sys/class/dmi/id/product_name").unlink()
    write(tmp_path, "/sys/firmware/devicetree/base/model", b"Raspberry Pi 4 Model B Rev 1.4\0")
    assert boot_class(host, boot_disk=None).hardware.product == "Raspberry Pi 4 Model B Rev 1.4"


@pytest.mark.parametrize(
    ("line", "is_same"),
    [
        ("BOOT_IMAGE=/other root=/dev/sda2 quiet", True),
        (r"initrd=\a.img initrd=\b.img root=/dev/sda2 quiet", True),
        ("root=/dev/sda2   quiet initadvisor.trial=7", True),
        ("root=/dev/sda2 quiet initadvisor.trial=7 panic=30", True),  # the trial's own word
        ("root=/dev/sda2 quiet panic=30", False),  # the user's
        ("root=/dev/sda2", False),
        ("quiet root=/dev/sda2", False),  # the last of two that contradict each other counts
        ('root=/dev/sda2 quiet dyndbg="initrd=x"', False),
    ],
)
def test_command_lines_are_compared_without_what_differs_from_boot_to_boot(
    tmp_path: Path, line: str, *, is_same: bool
) -> None:
    host = machine(tmp_path)
    before = boot_class(host, boot_disk=None, extra_cmdline=("panic=30",))
    write(tmp_path, "/proc/cmdline", line)
    after = boot_class(host, boot_disk=None, extra_cmdline=("panic=30",))
    assert (before == after) is is_same


def test_nothing_to_read_is_nothing_known(tmp_path: Path) -> None:
    runner = FakeRunner()
    runner.answer("systemd-detect-virt", error=ProgramError("not installed"))
    found = boot_class(Host(root=tmp_path, runner=runner), boot_disk=None)
    assert (found.kernel, found.command_line_sha256, found.on_battery) == (None, None, None)
    assert (found.hardware.product, found.hardware.microcode) == (None, None)


MAINS_ON, MAINS_OFF = {"type": "Mains", "online": "1"}, {"type": "Mains", "online": "0"}
PROGRAMMABLE = {"type": "USB", "online": "2"}
PORT = {"type": "USB", "online": "0", "scope": "System"}
DRAINING = {"type": "Battery", "status": "Discharging"}
FULL = {"type": "Battery", "status": "Full"}
MOUSE = {"type": "Battery", "status": "Discharging", "scope": "Device"}


@pytest.mark.parametrize(
    ("supplies", "expected"),
    [
        ([], False),
        ([MAINS_ON], False),
        ([MAINS_OFF], False),  # no battery that could feed it instead
        ([MAINS_OFF, DRAINING], True),
        ([DRAINING], True),
        ([MAINS_ON, DRAINING], False),  # a weak adapter
        ([PORT, PROGRAMMABLE, FULL], False),
        ([PORT, DRAINING, FULL], True),
        ([PORT, FULL], False),
        ([MOUSE], False),
        ([MAINS_OFF, MOUSE, FULL], False),
        ([{}, {"type": "UPS"}], False),
    ],
)
def test_a_battery_feeds_the_machine_where_nothing_else_does(
    tmp_path: Path, supplies: list[dict[str, str]], *, expected: bool
) -> None:
    (tmp_path / "sys/class/power_supply").mkdir(parents=True)
    for number, attributes in enumerate(supplies):
        (tmp_path / f"sys/class/power_supply/P{number}").mkdir()
        for name, value in attributes.items():
            write(tmp_path, f"/sys/class/power_supply/P{number}/{name}", f"{value}\n")
    assert on_battery(host_at(tmp_path)) is expected


@given(st.binary(max_size=100))
def test_no_bytes_are_too_strange(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        host = machine(root)
        for path in ("/proc/cmdline", "/proc/cpuinfo", "/sys/class/dmi/id/product_name"):
            write(root, path, content)
        write(root, "/sys/class/power_supply/BAT0/type", content)
        found = boot_class(host, boot_disk=None)
    assert found.on_battery is False
    assert (found.command_line_sha256 is None) == (content == b"")
