"""Mappings and arrays are followed down to a disk, whose kind is known."""

from __future__ import annotations

import pytest

from initadvisor.host.storage.mounts import BlockNode, device_behind
from initadvisor.records.storage import DeviceKind

NVME = BlockNode(name="nvme0n1", subsystems=("nvme", "pci"), model="Samsung SSD 980")
NVME_PART = BlockNode(name="nvme0n1p3", subsystems=("block", "nvme", "pci"), disk=NVME)
SATA = BlockNode(name="sda", subsystems=("scsi", "pci", "ata"), model="Crucial MX500")
DISK = BlockNode(name="sdb", subsystems=("scsi", "pci", "ata"), rotational=True)


@pytest.mark.parametrize(
    ("node", "kind"),
    [
        (NVME, DeviceKind.NVME),
        (BlockNode(name="nvme0n1", subsystems=("nvme-subsystem",)), DeviceKind.NVME),
        (SATA, DeviceKind.SATA),
        (DISK, DeviceKind.ROTATIONAL),
        (BlockNode(name="mmcblk0", subsystems=("mmc", "mmc_host", "pci")), DeviceKind.SD_EMMC),
        (
            BlockNode(name="sdc", subsystems=("scsi", "usb", "pci"), rotational=True),
            DeviceKind.USB,
        ),
        (
            BlockNode(name="vda", subsystems=("virtio", "pci"), rotational=True),
            DeviceKind.VIRTIO,
        ),
        (BlockNode(name="sda", subsystems=("scsi", "virtio", "pci")), DeviceKind.VIRTIO),
        (BlockNode(name="xvda", subsystems=("xen",)), DeviceKind.OTHER),
        (BlockNode(name="loop0", layer="loop", rotational=True), DeviceKind.OTHER),
        (BlockNode(name="sda", subsystems=("scsi", "pci")), DeviceKind.OTHER),
    ],
)
def test_the_bus_tells_the_kind_before_rotation_does(node: BlockNode, kind: DeviceKind) -> None:
    device = device_behind(node)
    assert device.kind is kind
    assert (device.reason is not None) == (kind is DeviceKind.OTHER)


def test_a_partition_leads_to_its_disk() -> None:
    device = device_behind(NVME_PART)
    assert (device.name, device.partition) == ("nvme0n1", "nvme0n1p3")
    assert device.describe() == "Samsung SSD 980 (nvme)"


def test_crypt_and_lvm_are_followed() -> None:
    crypt = BlockNode(name="dm-0", layer="crypt", parts=(NVME_PART,))
    volume = BlockNode(name="dm-1", layer="lvm", parts=(crypt,))
    device = device_behind(volume)
    assert device.kind is DeviceKind.NVME
    assert device.layers == ("lvm", "crypt")
    assert device.partition == "nvme0n1p3"
    assert device.describe() == "Samsung SSD 980 (nvme, through lvm and crypt)"


def test_an_array_of_several_disks_says_so() -> None:
    device = device_behind(BlockNode(name="md0", layer="raid1", parts=(SATA, DISK)))
    assert device.name == "sda"
    assert device.reason == "one of several disks: sda, sdb"


def test_two_partitions_of_one_disk_are_one_disk() -> None:
    other = BlockNode(name="nvme0n1p4", disk=NVME)
    device = device_behind(BlockNode(name="dm-0", layer="lvm", parts=(NVME_PART, other)))
    assert device.reason is None


def test_a_tower_of_mappings_ends() -> None:
    node = SATA
    for number in range(50):
        node = BlockNode(name=f"dm-{number}", layer="linear", parts=(node,))
    assert len(device_behind(node).layers) <= 8
