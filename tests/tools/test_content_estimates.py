"""What an image with less in it is estimated to be is about what real generators make of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from initadvisor.advise.content_estimates import estimated_variants
from initadvisor.core.codecs import Codec
from initadvisor.core.estimates import Estimate
from initadvisor.generators import InstalledImage, initramfs_tools, mkinitcpio
from initadvisor.host import Host
from initadvisor.target.source import open_source
from tests.fixtures.debian import Kernel, Suite, debian
from tests.fixtures.generated import initramfs_tools_image
from tests.fixtures.laptop import IN_SYS, dep_image, laptop_image, write_sys
from tests.fixtures.mkinitcpio import mkinitcpio_system
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.advise.contents import ContentsPricing
    from initadvisor.generators import Generator
    from tests.fixtures.namespace import Tree

pytestmark = pytest.mark.tools

HOOKS = "HOOKS=(base udev kms block filesystems keyboard fsck)\n"
AUTODETECT = HOOKS.replace("udev", "udev autodetect")
MKINITCPIO = (
    f"set -e\n{IN_SYS}mkinitcpio -c /mnt/conf -k RELEASE -z zstd -g /mnt/image --nopost ||:\n"
)
"""Debian's mawk does not split at NULs: directories that have become empty stay, which it tells."""


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
    built = dep_image(tree)
    write(machine, "/etc/initramfs-tools/initramfs.conf", "MODULES=most\n")
    full = initramfs_tools_image(tree, Codec.ZSTD, small=False)
    found = estimated_bytes(initramfs_tools, machine, tree, full)
    assert built.stat().st_size < full.stat().st_size / 2
    assert found == pytest.approx(built.stat().st_size, rel=0.05)


def test_of_mkinitcpio(machine: Path) -> None:
    tree = mkinitcpio_system()
    full, built = (laptop_image(tree, MKINITCPIO, {"conf": hooks}) for hooks in (HOOKS, AUTODETECT))
    write(machine, "/etc/mkinitcpio.conf", HOOKS)
    found = estimated_bytes(mkinitcpio, machine, tree, full)
    assert built.stat().st_size < full.stat().st_size * 0.7
    assert found == pytest.approx(built.stat().st_size, rel=0.05)
