"""What an image with less in it is estimated to be is about what real generators make of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from initadvisor.advise.content_estimates import estimated_variants
from initadvisor.core.codecs import Codec
from initadvisor.core.estimates import Estimate
from initadvisor.generators import InstalledImage, initramfs_tools, mkinitcpio
from initadvisor.host import Host
from initadvisor.target.source import open_source
from tests.fixtures.cache import made_once
from tests.fixtures.debian import Kernel, Suite, debian
from tests.fixtures.generated import initramfs_tools_image
from tests.fixtures.mkinitcpio import mkinitcpio_system
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from initadvisor.advise.contents import ContentsPricing
    from initadvisor.generators import Generator
    from tests.fixtures.namespace import Tree

pytestmark = pytest.mark.tools

NVME = "devices/pci0000:00/0000:00:1c.0/0000:02:00.0"
SERIO = "devices/platform/i8042/serio0"
MODALIASES = {
    NVME: "pci:v0000144Dd0000A808sv0000144Dsd0000A801bc01sc08i02",
    "devices/pci0000:00/0000:00:1c.0": "pci:v00008086d00009DB0sv000017AAsd00002292bc06sc04i00",
    "devices/pci0000:00/0000:00:14.0": "pci:v00008086d00009DEDsv000017AAsd00002292bc0Csc03i30",
    "devices/pci0000:00/0000:00:02.0": "pci:v00008086d00003EA0sv000017AAsd00002292bc03sc00i00",
    "devices/pci0000:00/0000:00:1f.6": "pci:v00008086d000015BEsv000017AAsd00002292bc02sc00i00",
    "devices/platform/i8042": "platform:i8042",
    SERIO: "serio:ty06pr00id00ex00",
}
"""Of a laptop."""

IN_SYS = "mount --rbind /mnt/sys /sys\n"
DEP = f"""set -e
{IN_SYS}
mknod /run/root b 8 2
sed 's,/proc/mounts,/mnt/mounts,; s,^\teval "$(/usr/lib/klibc/bin/fstype.*,\tFSTYPE=ext4,' \
  /usr/share/initramfs-tools/hook-functions >/mnt/functions
mount --bind /mnt/functions /usr/share/initramfs-tools/hook-functions
mkinitramfs -d /mnt/conf -c zstd -o /mnt/image RELEASE
"""
"""The disk is none that could be read: it is told what is on it."""
HOOKS = "HOOKS=(base udev kms block filesystems keyboard fsck)\n"
AUTODETECT = HOOKS.replace("udev", "udev autodetect")
MKINITCPIO = (
    f"set -e\n{IN_SYS}mkinitcpio -c /mnt/conf -k RELEASE -z zstd -g /mnt/image --nopost ||:\n"
)
"""Debian's mawk does not split at NULs: directories that have become empty stay, which it tells."""


def write_sys(sys: Path) -> None:
    """Write what the kernel says of the laptop, whose root file system is on NVMe."""
    disk = sys / NVME / "nvme/nvme0/nvme0n1"
    for name, modalias in MODALIASES.items():
        write(sys, f"/{name}/modalias", f"{modalias}\n")
        write(sys, f"/{name}/uevent", f"MODALIAS={modalias}\n")
        link(sys / "bus/all/devices" / name.replace("/", "-"), sys / name)
    write(sys, f"/{SERIO}/input/input0/uevent", "KEY=402000000 3803078f800d001 fffffffffffffffe\n")
    link(sys / "class/input/input0", sys / SERIO / "input/input0")
    write(disk, "/uevent", "DEVTYPE=disk\n")
    write(disk, "/p2/uevent", "DEVTYPE=partition\n")
    (disk / "slaves").mkdir()
    link(sys / "dev/block/8:2", disk / "p2")


def link(path: Path, target: Path) -> None:
    """Make a symbolic link as those in /sys."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(os.path.relpath(target, path.parent))


def made(tree: Tree, script: str, files: dict[str, str]) -> Path:
    """Return the image that a script makes of files in /mnt, on the laptop."""

    def make(target: Path) -> None:
        with tempfile.TemporaryDirectory(dir=target.parent) as directory:
            work = Path(directory)
            write_sys(work / "sys")
            for name, text in files.items():
                write(work, f"/{name}", text)
            for name in ("conf.d", "hooks", "scripts"):
                if (work / "conf").is_dir():
                    (work / "conf" / name).mkdir()
            tree.run(["sh", "-c", script.replace("RELEASE", tree.release)], work=work)
            (work / "image").chmod(0o644)
            (work / "image").rename(target)

    return made_once("less", (tree.root.name, script, str(sorted(files.items()))), make)


def estimated_bytes(generator: Generator, machine: Path, tree: Tree, image: Path) -> int:
    """Return what it is estimated to be with this machine's modules only."""
    (machine / "usr").mkdir()
    for name in ("usr/lib", "lib"):
        (machine / name).symlink_to(tree.root / name)
    write_sys(machine / "sys")
    write(machine, "/proc/self/mountinfo", "22 1 8:2 / / rw - ext4 /dev/nvme0n1p2 rw\n")
    write(machine, "/proc/modules", "ext4 1 0 - Live 0x0\n")
    cost = Estimate(mean=1, low=1, high=1, source="a test")
    pricing = SimpleNamespace(cost=lambda *_sizes: cost, wholes=(image.stat().st_size, 1, 1))
    installed = InstalledImage(path=image, kernel_release=tree.release)
    host = Host(root=machine)
    with open_source(image, installed=installed, with_modules=True) as source:
        found = estimated_variants(
            host, generator, source, tree.release, cast("ContentsPricing", pricing), unused=()
        )
    return next(one.size_bytes for one in found if one.variant.name == "this-machine")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Its root directory."""
    root = tmp_path / "machine"
    root.mkdir()
    return root


def test_of_initramfs_tools(machine: Path) -> None:
    tree = debian(Suite.TRIXIE, Kernel.FULL)
    files = {
        "mounts": "/run/root / ext4 rw 0 0\n",
        "conf/initramfs.conf": "MODULES=dep\nBUSYBOX=auto\nCOMPRESS=gzip\n",
        "conf/modules": "",
    }
    built = made(tree, DEP, files)
    write(machine, "/etc/initramfs-tools/initramfs.conf", "MODULES=most\n")
    full = initramfs_tools_image(tree, Codec.ZSTD, small=False)
    found = estimated_bytes(initramfs_tools, machine, tree, full)
    assert built.stat().st_size < full.stat().st_size / 2
    assert found == pytest.approx(built.stat().st_size, rel=0.05)


def test_of_mkinitcpio(machine: Path) -> None:
    tree = mkinitcpio_system()
    full, built = (made(tree, MKINITCPIO, {"conf": hooks}) for hooks in (HOOKS, AUTODETECT))
    write(machine, "/etc/mkinitcpio.conf", HOOKS)
    found = estimated_bytes(mkinitcpio, machine, tree, full)
    assert built.stat().st_size < full.stat().st_size * 0.7
    assert found == pytest.approx(built.stat().st_size, rel=0.05)
