"""What goes with less in an image is told before anything is built."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from initadvisor.advise.content_estimates import estimated_variants
from initadvisor.core.estimates import Estimate
from initadvisor.generators import (
    ContentVariant,
    InstalledImage,
    KeptModules,
    Leaving,
    VariantName,
)
from initadvisor.host import Host
from initadvisor.host.storage.root_devices import names_for_root
from initadvisor.image.contents import FileKind
from initadvisor.target.source import open_source
from tests.fakes.compressors import fake_compressors
from tests.fixtures.booted import RELEASE
from tests.fixtures.content import mixed_content
from tests.fixtures.trees import write
from tests.fixtures.used_modules import (
    FIRMWARE,
    PLACES,
    SATA,
    answer_modinfo,
    write_image_of_modules,
    write_modules,
)

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.advise.contents import ContentsPricing
    from initadvisor.generators import Generator
    from tests.fakes.runner import FakeRunner

DISK = "devices/pci0000:00/0000:00:1f.2/ata1/block/sda"
FIRMWARE_BYTES = {"amdgpu": 300_000, "radeon": 40_000}
MODULE_BYTES = 20_000
HWDB_BYTES = 50_000


@pytest.fixture
def machine(tmp_path: Path) -> Host:
    """One whose root is on a SATA disk, with a keyboard, and with a module loaded besides."""
    made = Host(root=tmp_path / "machine", runner=fake_compressors())
    write_modules(made)
    answer_modinfo(cast("FakeRunner", made.runner), FIRMWARE)
    sys = made.root / "sys"
    texts = {
        "proc/self/mountinfo": "22 1 8:1 / / rw - btrfs /dev/sda1 rw\n",
        "proc/modules": "igb 16384 0 - Live 0x0\n",
        "sys/devices/pci0000:00/0000:00:1f.2/modalias": f"{SATA}\n",
        f"sys/{DISK}/sda1/uevent": "DEVTYPE=partition\n",
        f"sys/{DISK}/uevent": "DEVTYPE=disk\n",
        f"sys/{DISK}/../../modalias": "scsi:t-0x00\n",
        "sys/devices/usb1/input1/uevent": "KEY=10000 7 ff9f207ac14057ff febeffdfffefffff fffe\n"
        "KEY=fffffffffffffffe\n",
        "sys/devices/usb1/modalias": "usb:v1p2d3dc0dsc0dp0ic03isc01ip01in00\n",
    }
    for name, text in texts.items():
        write(made.root, f"/{name}", text)
    for link, target in {
        "dev/block/8:1": f"{DISK}/sda1",
        "class/input/input1": "devices/usb1/input1",
        "bus/pci/devices/one": "devices/pci0000:00/0000:00:1f.2",
    }.items():
        path = sys / link
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(sys / target)
    return made


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image with all modules."""
    more = {"usr/lib/udev/hwdb.bin": mixed_content(HWDB_BYTES)}
    return write_image_of_modules(tmp_path_factory.mktemp("modules") / "image", more=more)


def goes(machine: Host, image: Path, leaving: Leaving | None) -> float | None:
    """Return how many bytes go, unpacked; None where nothing is estimated."""
    variant = ContentVariant(
        name=VariantName.THIS_MACHINE, path=image, text="", line="", loses="", leaving=leaving
    )
    generator = cast(
        "Generator", SimpleNamespace(content_variants=lambda _host, _image, _unused: (variant,))
    )
    taken: list[float] = []

    def cost(_stored: float, unpacked: float, _decompressed: float) -> Estimate:
        taken.append(unpacked)
        return Estimate(mean=1, low=1, high=1, source="a test")

    pricing = cast(
        "ContentsPricing", SimpleNamespace(cost=cost, wholes=(image.stat().st_size, 1, 1))
    )
    installed = InstalledImage(path=image, kernel_release=RELEASE)
    with open_source(image, installed=installed, with_modules=True) as source:
        found = estimated_variants(machine, generator, source, RELEASE, pricing, unused=())
    if not found:
        return None
    assert 0 < found[0].size_bytes < image.stat().st_size
    return taken[0]


def test_of_the_root_file_system_stay_its_disk_its_buses_and_the_keyboard(
    machine: Host, image: Path
) -> None:
    assert {SATA, "btrfs"} <= names_for_root(machine)
    stay = {"ahci", "libahci", "sd_mod", "btrfs", "bigfs_helper", "usbhid"}
    found = goes(machine, image, Leaving(kept=KeptModules.ROOT))
    assert found == _of(len(PLACES) - len(stay))


def test_in_use_is_what_is_loaded_or_asked_for_and_what_stays_besides(
    machine: Host, image: Path
) -> None:
    stay = {"igb", "i2c_algo_bit", "ahci", "libahci"}
    besides = {"drivers/scsi": {"sd_mod", "sr_mod"}, "by_name": {"by_name"}}
    leaving = Leaving(kept=KeptModules.IN_USE, besides=frozenset(besides))
    found = goes(machine, image, leaving)
    kept = len(stay) + sum(map(len, besides.values()))
    assert found == _of(len(PLACES) - kept)


def test_what_only_they_need_goes_with_them_and_their_firmware_too(
    machine: Host, image: Path
) -> None:
    found = goes(machine, image, Leaving(gone=frozenset({"drivers/gpu"})))
    # radeon, amdgpu, ttm and drm; igb needs i2c_algo_bit, too
    assert found == _of(4)


def _of(modules: int) -> object:
    """Return about what so many modules take, with headers, and the firmware of graphics."""
    return pytest.approx(modules * MODULE_BYTES + sum(FIRMWARE_BYTES.values()), rel=0.02)


def test_kinds_go_whole(machine: Host, image: Path) -> None:
    found = goes(machine, image, Leaving(kinds=frozenset({FileKind.HWDB})))
    assert found == pytest.approx(HWDB_BYTES, rel=0.02)


def test_what_cannot_be_told_or_takes_nothing_is_not_estimated(machine: Host, image: Path) -> None:
    assert goes(machine, image, None) is None
    assert goes(machine, image, Leaving(kinds=frozenset({FileKind.SPLASH}))) is None
