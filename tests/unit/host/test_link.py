"""What the link to a disk carries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.host import Host
from initadvisor.host.storage.link import link_mb_s

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("rate", "lanes", "mb_s"),
    [
        ("8.0 GT/s PCIe", "4", 3938),
        ("16.0 GT/s PCIe", "4", 7877),
        ("5.0 GT/s PCIe", "2", 1000),
        ("Unknown", "4", None),
        ("8.0 GT/s PCIe", None, None),
    ],
)
def test_of_nvme_it_is_lanes_times_rate(
    tmp_path: Path, rate: str, lanes: str | None, mb_s: float | None
) -> None:
    pci = tmp_path / "sys/block/nvme0n1/device/device"
    pci.mkdir(parents=True)
    (pci / "current_link_speed").write_text(f"{rate}\n")
    if lanes:
        (pci / "current_link_width").write_text(f"{lanes}\n")
    found = link_mb_s(Host(root=tmp_path), "nvme0n1")
    assert found == (None if mb_s is None else pytest.approx(mb_s, rel=0.001))


@pytest.mark.parametrize(
    ("spd", "mb_s"), [("6.0 Gbps", 600), ("1.5 Gbps", 150), ("<unknown>", None), (None, None)]
)
def test_of_sata_it_is_what_was_negotiated(
    tmp_path: Path, spd: str | None, mb_s: float | None
) -> None:
    disk = tmp_path / "sys/devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/block/sda"
    disk.mkdir(parents=True)
    (tmp_path / "sys/block").mkdir()
    (tmp_path / "sys/block/sda").symlink_to(disk)
    link = tmp_path / "sys/class/ata_link/link3"
    link.mkdir(parents=True)
    if spd:
        (link / "sata_spd").write_text(f"{spd}\n")
    assert link_mb_s(Host(root=tmp_path), "sda") == mb_s


def test_of_other_disks_it_is_not_known(tmp_path: Path) -> None:
    assert link_mb_s(Host(root=tmp_path), "mmcblk0") is None
