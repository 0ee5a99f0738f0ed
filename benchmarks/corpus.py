"""Twenty initramfs images like those of real machines, and every candidate of them, fully built.

    python -m benchmarks.corpus [--build] [IMAGE...]

Lists the images: name, layout, codec, MB packed and unpacked, and MB of what is in them. Debian's
own dracut and initramfs-tools made them, or for Arch's layout bsdtar from Debian's files. What is
not there yet is made first, from packages of a Debian mirror. ``--build`` then builds all
candidates of each (``initadvisor candidates build --all``, at idle priority; what is there is not
built again). That takes about 250 s of processor time and 750 MB of room for 100 MB unpacked.
IMAGE, the name of one, leaves the others out.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.core.codecs import Codec
from initadvisor.core.settings import Setting
from initadvisor.host import Host
from initadvisor.image.scan import scan
from tests.fixtures.arch import ArchContents, arch_image
from tests.fixtures.debian import Kernel, Suite, debian
from tests.fixtures.generated import dracut_image, initramfs_tools_image, large_image

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.fixtures.namespace import Tree


class Layout(StrEnum):
    """Who lays out an image like that; what is ``ARCH`` has mkinitcpio's layout."""

    DRACUT = "dracut"
    INITRAMFS_TOOLS = "initramfs-tools"
    ARCH = "arch"


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusImage:
    """An image of the corpus; its name says what it is made of."""

    name: str
    layout: Layout
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCacheHost(Host):
    """This machine, with directories of its own for what is known of one image."""

    name: str
    kind: str

    def cache_dir(self) -> Path:
        return _directory() / self.kind / self.name

    def state_dir(self) -> Path:
        return _directory() / "state" / self.kind / self.name


def built_host(image: CorpusImage) -> Host:
    """Return a host whose cache is the one that ``--build`` fills for this image."""
    return OwnCacheHost(name=image.name, kind="built")


def sampled_host(image: CorpusImage) -> Host:
    """Return a host that knows of this image what samples tell, and nothing else."""
    return OwnCacheHost(name=image.name, kind="sampled")


def corpus() -> tuple[CorpusImage, ...]:
    """Return all images; those that are not there are made, which may take minutes."""
    return tuple(images())


def images(names: frozenset[str] = frozenset()) -> Iterator[CorpusImage]:
    """Yield the images with these names (none: all), each made when its turn comes."""
    for layout, recipes in _RECIPES.items():
        for name, make in recipes.items():
            if not names or name in names:
                yield CorpusImage(name=name, layout=layout, path=make())


def build(image: CorpusImage) -> None:
    """Build all candidates of an image; raises ``CalledProcessError`` where none can be built."""
    host = built_host(image)
    environment = {
        **os.environ,
        "CACHE_DIRECTORY": str(host.cache_dir()),
        "STATE_DIRECTORY": str(host.state_dir()),
    }
    command = ("-m", "initadvisor", "candidates", "build", "--all", "--image", str(image.path))
    subprocess.run([sys.executable, *command], env=environment, check=True)


def _directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "initadvisor-benchmarks"


_LAPTOP = (
    *("nvme", "ahci", "sd_mod", "usb_storage", "uas", "ext4", "vfat", "nls_ascii", "dm_crypt"),
    *("xhci_pci", "usbhid", "hid_generic", "i2c_hid_acpi", "intel_lpss_pci", "thunderbolt"),
    *("nls_cp437", "aesni_intel"),
)
_VIRTUAL = ("virtio_pci", "virtio_blk", "virtio_net", "virtio_scsi", "sd_mod", "sr_mod")
_DISPLAYS = frozenset({"amdgpu", "i915", "nouveau", "radeon", "xe"})
_SYSTEMD = (
    *("systemctl", "journalctl", "systemd-tmpfiles", "cryptsetup", "lvm", "e2fsck", "plymouthd"),
    *("/usr/lib/systemd/systemd", "/usr/lib/systemd/systemd-journald"),
    "/usr/lib/systemd/systemd-modules-load",
)
_RESCUE = (
    *("cryptsetup", "lvm", "e2fsck", "btrfs", "dmsetup", "loadkeys", "lsblk", "mkfs.ext4", "dmesg"),
    *("bsdtar", "cpio", "gzip", "lz4", "xz", "zstd", "find", "grep", "sed", "mawk", "diff"),
)

_WHOLE_SYSTEM = (
    *("systemd", "systemd-sysv", "cryptsetup-initramfs", "cryptsetup", "lvm2", "plymouth"),
    *("plymouth-themes", "console-setup", "kbd", "btrfs-progs", "intel-microcode"),
    "amd64-microcode",
)
"""Where MODULES=list, initramfs-tools takes Intel's microcode for the processor at hand only."""

_FIRMWARE = {
    Suite.BOOKWORM: ("firmware-amd-graphics", "firmware-misc-nonfree", "firmware-iwlwifi"),
    Suite.TRIXIE: (
        *("firmware-amd-graphics", "firmware-intel-graphics", "firmware-misc-nonfree"),
        "firmware-realtek",
    ),
}


def _whole(suite: Suite) -> Tree:
    """Return a Debian as it is installed on a machine with a screen and an encrypted disk."""
    return debian(suite, Kernel.FULL, (*_WHOLE_SYSTEM, *_FIRMWARE[suite]))


def _dracut(suite: Suite, compress: str, *options: str) -> Path:
    return dracut_image(_whole(suite), compress, small=False, options=options)


def _without_displays(*wanted: str) -> tuple[str, str]:
    return ("--omit-drivers", " ".join(sorted(_DISPLAYS - {*wanted})))


def _arch(tree: Tree, modules: tuple[str, ...], programs: tuple[str, ...] = ()) -> Path:
    contents = ArchContents(tree=tree, modules=modules, programs=programs)
    return arch_image(Setting(Codec.ZSTD), contents)


def _dracut_cloud(suite: Suite) -> Path:
    return dracut_image(debian(suite), "zstd", small=False)


def _tools_cloud(suite: Suite) -> Path:
    return initramfs_tools_image(debian(suite), Codec.ZSTD, small=False)


_RECIPES: Mapping[Layout, Mapping[str, Callable[[], Path]]] = {
    Layout.DRACUT: {
        "dracut-bookworm-minimal": lambda: _dracut(
            Suite.BOOKWORM,
            "gzip",
            "--no-early-microcode",
            *("--modules", "bash", "--add-drivers", "ext4 virtio_blk virtio_pci nvme"),
        ),
        "dracut-bookworm-virtual": lambda: _dracut(
            Suite.BOOKWORM,
            "xz",
            "--no-early-microcode",
            *("--modules", "base udev-rules kernel-modules rootfs-block fs-lib busybox"),
            *("--drivers", " ".join((*_VIRTUAL, "ext4", "xfs", "vfat", "9p", "9pnet_virtio"))),
        ),
        "dracut-trixie-cloud": lambda: _dracut_cloud(Suite.TRIXIE),
        "dracut-bookworm-cloud": lambda: _dracut_cloud(Suite.BOOKWORM),
        "dracut-trixie-server": lambda: _dracut(
            Suite.TRIXIE, "zstd", "--no-early-microcode", "--omit", "plymouth drm i18n"
        ),
        "dracut-trixie-laptop": lambda: _dracut(
            Suite.TRIXIE,
            "zstd",
            *("--drivers", " ".join((*_LAPTOP, "i915", "xe"))),
            *_without_displays("i915", "xe"),
        ),
        "dracut-bookworm-laptop": lambda: _dracut(
            Suite.BOOKWORM,
            "lz4",
            *("--drivers", " ".join((*_LAPTOP, "btrfs", "i915"))),
            *_without_displays("i915"),
        ),
        "dracut-bookworm-full": large_image,
    },
    Layout.INITRAMFS_TOOLS: {
        "tools-trixie-cloud": lambda: _tools_cloud(Suite.TRIXIE),
        "tools-bookworm-virtual": lambda: initramfs_tools_image(
            _whole(Suite.BOOKWORM), Codec.GZIP, modules=("virtio_pci", "virtio_blk", "ext4")
        ),
        "tools-bookworm-cloud": lambda: _tools_cloud(Suite.BOOKWORM),
        "tools-bookworm-laptop": lambda: initramfs_tools_image(
            _whole(Suite.BOOKWORM), Codec.ZSTD, modules=(*_LAPTOP, "i915")
        ),
        "tools-trixie-laptop": lambda: initramfs_tools_image(
            _whole(Suite.TRIXIE), Codec.ZSTD, modules=(*_LAPTOP, "amdgpu")
        ),
        "tools-bookworm-full": lambda: initramfs_tools_image(
            debian(Suite.BOOKWORM, Kernel.FULL), Codec.ZSTD, small=False
        ),
    },
    Layout.ARCH: {
        "arch-cloud": lambda: arch_image(Setting(Codec.ZSTD)),
        "arch-bookworm-virtual": lambda: _arch(
            debian(Suite.BOOKWORM, Kernel.CLOUD, ("mount",)),
            (*_VIRTUAL, "ext4", "xfs", "btrfs", "vfat", "kernel/drivers/md"),
        ),
        "arch-trixie-laptop": lambda: _arch(
            _whole(Suite.TRIXIE), (*_LAPTOP, "i915", "xe"), _SYSTEMD
        ),
        "arch-bookworm-laptop": lambda: _arch(
            _whole(Suite.BOOKWORM), (*_LAPTOP, "i915", "btrfs", "kernel/drivers/md"), _SYSTEMD
        ),
        "arch-trixie-fallback": lambda: _arch(
            _whole(Suite.TRIXIE),
            (
                *("kernel/drivers/ata", "kernel/drivers/scsi", "kernel/drivers/block"),
                *("kernel/fs", "kernel/drivers/md", "kernel/drivers/usb", "kernel/drivers/nvme"),
            ),
            _RESCUE,
        ),
        "arch-trixie-amdgpu": lambda: _arch(
            _whole(Suite.TRIXIE), (*_LAPTOP, "amdgpu", "btrfs"), ("cryptsetup", "btrfs", "e2fsck")
        ),
    },
}


def _line(image: CorpusImage) -> str:
    with image.path.open("rb") as file:
        contents = scan(file)
    kinds = ", ".join(
        f"{kind.kind} {kind.size_bytes / 1e6:.1f}"
        + (f" ({kind.compressed_bytes / 1e6:.1f} compressed)" if kind.compressed_bytes else "")
        for kind in contents.kinds
        if kind.files
    )
    return (
        f"{image.name:28} {image.layout:16} {contents.main.codec:5}"
        f" {image.path.stat().st_size / 1e6:6.1f} {contents.unpacked_bytes / 1e6:7.1f}  {kinds}"
    )


def main() -> None:
    """List the images, or build their candidates."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--build", action="store_true")
    parser.add_argument("names", nargs="*", metavar="IMAGE")
    arguments = parser.parse_args()
    known = {name for recipes in _RECIPES.values() for name in recipes}
    if unknown := {*arguments.names} - known:
        parser.error(f"no such image: {', '.join(sorted(unknown))}")
    for image in images(frozenset(arguments.names)):
        print(_line(image), flush=True)
        if arguments.build:
            build(image)


if __name__ == "__main__":
    main()
