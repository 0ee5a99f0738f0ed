"""Which modules are kept, whatever boots say."""

from __future__ import annotations

import pytest

from initadvisor.target.pluggable import Pluggable, why_kept

PCI = {"pci"}


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("drivers/usb/storage/uas", Pluggable.USB),
        ("drivers/usb/host/xhci_pci", Pluggable.USB),
        ("drivers/net/usb/r8152", Pluggable.USB),
        ("drivers/scsi/sd_mod", Pluggable.USB),
        ("drivers/scsi/sr_mod", Pluggable.USB),
        ("drivers/hid/usbhid/usbhid", Pluggable.KEYBOARD),
        ("drivers/input/serio/i8042", Pluggable.KEYBOARD),
        ("drivers/thunderbolt/thunderbolt", Pluggable.DOCK),
        ("drivers/nvme/host/nvme", Pluggable.DOCK),
        ("drivers/ata/ahci", Pluggable.DOCK),
        ("drivers/pci/controller/vmd", Pluggable.DOCK),
        ("drivers/mmc/host/sdhci_pci", Pluggable.CARD),
        ("drivers/md/dm_crypt", Pluggable.VOLUME),
        ("arch/x86/crypto/aesni_intel", Pluggable.VOLUME),
        ("drivers/crypto/ccp/ccp", Pluggable.VOLUME),
        ("fs/xfs/xfs", Pluggable.FILE_SYSTEM),
        ("drivers/ata/pata_via", None),
        ("drivers/net/ethernet/intel/e1000/e1000", None),
        ("drivers/gpu/drm/nouveau/nouveau", None),
        ("drivers/usbx/storage", None),
        ("usb", None),
    ],
)
def test_what_is_plugged_in_now_and_then_is_kept(place: str, why: Pluggable | None) -> None:
    directory, _, name = place.rpartition("/")
    assert why_kept(name, directory, PCI, thunderbolt=False) is why


@pytest.mark.parametrize(
    "buses",
    [{"usb"}, {"pci", "usb"}, {"scsi"}, {""}, {"pci", ""}, {"virtio"}, {"platform", "of"}, {"i2c"}],
)
def test_what_anything_else_asks_for_is_kept(buses: set[str]) -> None:
    assert why_kept("any", "drivers/misc", buses, thunderbolt=False) is Pluggable.OTHER


@pytest.mark.parametrize("buses", [{"pci"}, {"of"}, {"acpi", "pci"}, set()])
def test_what_a_fixed_bus_asks_for_is_judged(buses: set[str]) -> None:
    assert why_kept("any", "drivers/misc", buses, thunderbolt=True) is None


@pytest.mark.parametrize(
    ("directory", "why"),
    [
        ("drivers/scsi", Pluggable.DOCK),
        ("drivers/ata", Pluggable.DOCK),
        ("drivers/net/ethernet/intel", Pluggable.DOCK),
        ("drivers/usb/host", Pluggable.USB),
        ("drivers/gpu/drm", None),
    ],
)
def test_disks_and_networks_may_be_behind_thunderbolt(
    directory: str, why: Pluggable | None
) -> None:
    assert why_kept("any", directory, PCI, thunderbolt=True) is why


def test_a_module_that_is_not_installed_is_kept() -> None:
    assert why_kept("any", None, PCI, thunderbolt=False) is Pluggable.OTHER
