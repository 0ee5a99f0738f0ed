"""Which modules and devices of a running machine are recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.boots.module_use import module_use
from initadvisor.host import Host
from initadvisor.records.modules import MOST_CHARACTERS, ModuleUse
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PCI = "pci:v00008086d00002922sv00001AF4sd00001100bc01sc06i01"


def write_all(root: Path, texts: Mapping[str, str]) -> None:
    for path, text in texts.items():
        write(root, path, text)


def test_modules_and_kinds_of_devices_are_recorded_in_order_and_once(tmp_path: Path) -> None:
    device = "sys/devices/0000:00:1f.2"
    write_all(
        tmp_path,
        {
            "proc/modules": "sd_mod 65536 2 - Live 0x0000000000000000\nahci 49152 1 - Live 0x0\n",
            f"{device}/modalias": f"{PCI}\n",
            "sys/bus/pci/devices/0000:00:1f.3/modalias": f"{PCI}\n",
            "sys/class/dmi/id/modalias": "dmi:bvnX:bvr1:\n",
            "sys/bus/acpi/devices/PNP0501:00/modalias": "acpi:PNP0501:\n",
            "sys/bus/usb/devices/usb1/modalias": "\n",
            "sys/class/input/input3/modalias": "input:b0011v0001p0001eAB41-e0,1\n",
        },
    )
    link = tmp_path / "sys/bus/pci/devices/0000:00:1f.2"
    link.symlink_to(tmp_path / device)
    found = module_use(Host(root=tmp_path))
    devices = ("acpi:PNP0501:", "dmi:bvnX:bvr1:", PCI)
    assert found == ModuleUse(loaded="ahci sd_mod", devices=devices)


def test_a_kernel_without_modules_has_none(tmp_path: Path) -> None:
    assert module_use(Host(root=tmp_path)) is None


def test_more_than_a_record_holds_is_left_out_and_said(tmp_path: Path) -> None:
    names = [f"m{number:04}" for number in range(MOST_CHARACTERS // 6 + 1)]
    place = "sys/bus/x/devices"
    write_all(
        tmp_path,
        {
            "proc/modules": "".join(f"{name} 1 0 - Live 0x0\n" for name in names),
            **{f"{place}/{n}/modalias": "x:" + f"{n}" * 2500 for n in range(10, 20)},
        },
    )
    found = module_use(Host(root=tmp_path))
    assert found
    assert not found.complete
    assert found.loaded == " ".join(names[:-1])
    assert 0 < len(found.devices) < 10


def test_names_that_no_device_has_are_passed_over(tmp_path: Path) -> None:
    write_all(tmp_path, {"proc/modules": "", "sys/bus/x/devices/a/modalias": "x:\x1b[31m\n"})
    (tmp_path / "sys/bus/x/devices/b").mkdir()
    (tmp_path / "sys/bus/x/devices/b/modalias").mkdir()
    assert module_use(Host(root=tmp_path)) == ModuleUse(loaded="", devices=())
