"""What pyudev tells of a device becomes a node; what it cannot tell becomes an error."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pyudev

from initadvisor.core.errors import InitadvisorError
from initadvisor.host import Host
from initadvisor.host.storage.mounts import block_node, device_of
from initadvisor.records.storage import DeviceKind


@dataclass
class FakeDevice:
    """As much of ``pyudev.Device`` as is used."""

    sys_name: str
    sys_path: str = "/sys/devices/pci0000:00/0000:00:02.0/x"
    device_type: str = "disk"
    subsystem: str | None = "block"
    parent: FakeDevice | None = None
    properties: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, bytes] = field(default_factory=dict)

    @property
    def ancestors(self) -> list[FakeDevice]:
        """The devices it hangs on, nearest first."""
        return [self.parent, *self.parent.ancestors] if self.parent else []


@pytest.fixture
def udev(monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeDevice]:
    """Devices by name; those asked for by number are called ``asked``."""
    devices: dict[str, FakeDevice] = {}

    def by_number(_context: object, kind: str, number: int) -> FakeDevice:
        if "asked" not in devices:
            raise pyudev.DeviceNotFoundByNumberError(kind, number)
        return devices["asked"]

    def by_name(_context: object, _kind: str, name: str) -> FakeDevice:
        return devices[name]

    monkeypatch.setattr(pyudev, "Context", lambda: None)
    monkeypatch.setattr(pyudev.Devices, "from_device_number", by_number)
    monkeypatch.setattr(pyudev.Devices, "from_name", by_name)
    return devices


def test_a_partition_has_its_disk_and_type(udev: dict[str, FakeDevice]) -> None:
    pci = FakeDevice("0000:00:02.0", subsystem="pci")
    bus = FakeDevice("0:0:0:0", subsystem="scsi", parent=pci)
    disk = FakeDevice(
        "sda",
        sys_path="/sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda",
        parent=bus,
        properties={"ID_MODEL": "Samsung_SSD_870_EVO_500GB"},
        attributes={"queue/rotational": b"0\n", "device/model": b"Samsung SSD 870 \n"},
    )
    udev["asked"] = FakeDevice(
        "sda1",
        sys_path=disk.sys_path + "/sda1",
        device_type="partition",
        parent=disk,
        properties={"ID_PART_ENTRY_TYPE": "c12a7328-f81f-11d2-ba4b-00a0c93ec93b"},
    )
    node = block_node(8, 1)
    assert node.name == "sda1"
    assert node.partition_type == "c12a7328-f81f-11d2-ba4b-00a0c93ec93b"
    assert node.disk is not None
    assert node.disk.model == "Samsung SSD 870 EVO 500GB"
    assert node.disk.subsystems == ("scsi", "pci", "ata")
    assert not node.disk.rotational


def test_without_udevs_data_base_the_kernel_tells_the_model(udev: dict[str, FakeDevice]) -> None:
    attributes = {"queue/rotational": b"1\n", "device/model": b"WDC WD10EZEX-08W \n"}
    udev["asked"] = FakeDevice("sda", attributes=attributes)
    node = block_node(8, 0)
    assert node.model == "WDC WD10EZEX-08W"
    assert node.rotational
    assert node.partition_type is None


@pytest.mark.parametrize(
    ("attributes", "path", "layer"),
    [
        ({"dm/uuid": b"CRYPT-LUKS2-0123-root\n"}, "/sys/devices/virtual/block/dm-0", "crypt"),
        ({"dm/uuid": b"LVM-abcdef\n"}, "/sys/devices/virtual/block/dm-0", "lvm"),
        ({"dm/uuid": b"mpath-3600\n"}, "/sys/devices/virtual/block/dm-0", "multipath"),
        ({"dm/uuid": b"DMRAID-x\n"}, "/sys/devices/virtual/block/dm-0", "dmraid"),
        ({"md/level": b"raid1\n"}, "/sys/devices/virtual/block/md0", "raid1"),
        ({}, "/sys/devices/virtual/block/zram0", "zram"),
        ({}, "/sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda", None),
    ],
)
def test_virtual_devices_say_what_they_are(
    udev: dict[str, FakeDevice], attributes: dict[str, bytes], path: str, layer: str | None
) -> None:
    udev["asked"] = FakeDevice(path.rpartition("/")[2], sys_path=path, attributes=attributes)
    assert block_node(253, 0).layer == layer


def test_a_mapping_lists_what_it_lies_on(udev: dict[str, FakeDevice], tmp_path: Path) -> None:
    (tmp_path / "dm-0" / "slaves" / "sda2").mkdir(parents=True)
    udev["sda2"] = FakeDevice("sda2", attributes={"queue/rotational": b"1"})
    udev["asked"] = FakeDevice("dm-0", sys_path=str(tmp_path / "dm-0"))
    assert [part.name for part in block_node(253, 0).parts] == ["sda2"]


def test_a_mapping_on_itself_ends(udev: dict[str, FakeDevice], tmp_path: Path) -> None:
    (tmp_path / "dm-0" / "slaves" / "asked").mkdir(parents=True)
    udev["asked"] = FakeDevice("dm-0", sys_path=str(tmp_path / "dm-0"))
    assert block_node(253, 0).name == "dm-0"


def test_a_device_that_sys_does_not_know_is_an_error(udev: dict[str, FakeDevice]) -> None:
    assert not udev
    with pytest.raises(InitadvisorError, match="does not know the block device 8:1"):
        block_node(8, 1)


def test_a_missing_libudev_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        msg = "No library named udev"
        raise ImportError(msg)

    monkeypatch.setattr(pyudev, "Context", missing)
    with pytest.raises(InitadvisorError, match="No library named udev"):
        block_node(8, 1)


def test_the_real_root_has_a_kind_or_a_reason() -> None:
    device = device_of(Host(), Path("/"))
    if device.kind in (DeviceKind.NONE, DeviceKind.UNKNOWN, DeviceKind.OTHER):
        assert device.reason
    else:
        assert device.name
