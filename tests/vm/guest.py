"""Guests: what they are made of, and where the cached ones are."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tests.fixtures.cache import made_once
from tests.fixtures.debian import Kernel, Suite
from tests.vm.disk import FAT32_BYTES, MIB, Disk, FileSystem, Partition, sparse_copy

ESP_TYPE = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"
XBOOTLDR_TYPE = "BC13C2FF-59E6-4262-A352-B275FD6F7172"
ROOT_TYPE = "4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709"
"""Types of the Discoverable Partitions Specification."""

_LINUX_TYPE = "0FC63DAF-8483-4772-8E79-3D69D8477DE4"
_ROOT_BYTES = 2048 * MIB
_PACKAGES = (
    *("systemd", "systemd-sysv", "udev", "dbus", "kmod"),
    *("zstd", "lz4", "lzop", "xz-utils", "bzip2", "cpio", "efibootmgr", "dosfstools"),
    # What initadvisor runs with.
    *("python3", "python3-click", "python3-jinja2", "python3-lz4", "python3-lzo"),
    *("python3-numpy", "python3-psutil", "python3-pyudev", "python3-rich", "python3-systemd"),
    "python3-zstandard",
)


_MADE_BY = ("bootstrap", "build", "debian", "disk", "guest")


_WORDS = " ".join(
    (
        "panic=1 loglevel=7",
        # On a busy host the kernel may find that emulated timers do not tick, and panic.
        "no_timer_check",
        # These protect and check machines that exist; emulated, they are a third of every boot.
        "mitigations=off hardened_usercopy=off randomize_kstack_offset=off init_on_alloc=0",
        "lsm=capability audit=0 cryptomgr.notests fsck.mode=skip",
        # Nor have they a use for tracing, or for more randomness than they are given.
        "initcall_blacklist=trace_eval_init,bpf_tcp_ca_kfunc_init,jent_mod_init",
    )
)


class Generator(StrEnum):
    """Which package makes the initramfs."""

    INITRAMFS_TOOLS = "initramfs-tools"
    DRACUT = "dracut"
    MKINITCPIO = "mkinitcpio"
    """Of the checkout that INITADVISOR_MKINITCPIO names; pacman has it make images of the kernels
    that it installs (``tests.vm.arch``), and dpkg knows of none.
    """


class Loader(StrEnum):
    """Which boot loader there is, and on which partitions it and the kernels are."""

    SYSTEMD_BOOT = "systemd-boot"
    """The ESP at /boot."""
    SYSTEMD_BOOT_XBOOTLDR = "systemd-boot-xbootldr"
    """The ESP at /efi, kernels on a vfat XBOOTLDR partition at /boot."""
    GRUB = "grub"
    """GRUB on EFI: the ESP at /boot/efi, an ext4 partition at /boot."""
    GRUB_BIOS = "grub-bios"
    """GRUB on BIOS: a partition for its core image, an ext4 partition at /boot."""

    @property
    def is_grub(self) -> bool:
        """Whether it is GRUB, which reads its own configuration and no entries of files."""
        return self in {Loader.GRUB, Loader.GRUB_BIOS}

    @property
    def packages(self) -> tuple[str, ...]:
        """What is installed for it."""
        if self.is_grub:  # the same for both, so that they are installed from the same archive
            return ("grub-efi-amd64-bin", "grub-pc-bin", "grub2-common")
        return ("systemd-boot", "systemd-boot-efi")

    @property
    def esp(self) -> str | None:
        """Where the EFI system partition is mounted, None where there is no EFI."""
        match self:
            case Loader.SYSTEMD_BOOT:
                return "/boot"
            case Loader.SYSTEMD_BOOT_XBOOTLDR:
                return "/efi"
            case Loader.GRUB:
                return "/boot/efi"
            case Loader.GRUB_BIOS:
                return None

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """The layout of the disk."""
        small, large = FAT32_BYTES, 512 * MIB
        plan = {
            Loader.SYSTEMD_BOOT: [("/boot", FileSystem.VFAT, ESP_TYPE, large)],
            Loader.SYSTEMD_BOOT_XBOOTLDR: [
                ("/efi", FileSystem.VFAT, ESP_TYPE, small),
                ("/boot", FileSystem.VFAT, XBOOTLDR_TYPE, large),
            ],
            Loader.GRUB: [
                ("/boot/efi", FileSystem.VFAT, ESP_TYPE, small),
                ("/boot", FileSystem.EXT4, _LINUX_TYPE, large),
            ],
            Loader.GRUB_BIOS: [("/boot", FileSystem.EXT4, _LINUX_TYPE, large)],
        }[self]
        plan.append(("/", FileSystem.EXT4, ROOT_TYPE, _ROOT_BYTES))
        made: list[Partition] = []
        offset_bytes = MIB
        for number, (mount_point, file_system, type_guid, size_bytes) in enumerate(plan, 1):
            made.append(
                Partition(
                    mount_point=mount_point,
                    file_system=file_system,
                    type_guid=type_guid,
                    guid=f"{number:08x}-0000-4000-8000-{number:012x}",
                    offset_bytes=offset_bytes,
                    size_bytes=size_bytes,
                )
            )
            offset_bytes += size_bytes
        return tuple(made)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a guest is made of; ``also`` names packages that few guests need.

    ``stock``: with Debian's kernel for every machine, and its image with all of the generator's
    modules and hooks, which starts on any disk.
    """

    suite: Suite = Suite.TRIXIE
    generator: Generator = Generator.INITRAMFS_TOOLS
    loader: Loader = Loader.SYSTEMD_BOOT
    also: tuple[str, ...] = ()
    stock: bool = False

    @property
    def packages(self) -> tuple[str, ...]:
        """What is installed."""
        kernel = Kernel.FULL if self.stock else Kernel.CLOUD
        made_with: tuple[str, ...] = (kernel.value, self.generator.value)
        if self.generator is Generator.MKINITCPIO:
            made_with = ("pacman-package-manager", "libarchive-tools", "busybox")
        return (*_PACKAGES, *made_with, *self.loader.packages, *self.also)

    @property
    def image_name(self) -> str:
        """What the generator calls the image of a kernel, ``{release}``, in /boot."""
        if self.generator is Generator.MKINITCPIO:
            return "initramfs-linux.img"
        return "initrd.img-{release}"

    @property
    def root_argument(self) -> str:
        """How the kernel's command line names the root file system."""
        return f"root=PARTUUID={self.loader.partitions[-1].guid}"

    @property
    def command_line(self) -> str:
        """The kernel's command line, as the default entry has it."""
        return f"{self.root_argument} ro console=ttyS0 {_WORDS}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """A directory with a disk, the firmware's variables, and a kernel to start without a loader.

    ``secure_boot``: its firmware starts nothing but what ``tests.vm.secure_boot`` has signed.
    """

    recipe: Recipe
    directory: Path
    release: str
    secure_boot: bool = False

    @property
    def disk(self) -> Disk:
        """The guest's disk."""
        return Disk(path=self.directory / "disk", partitions=self.recipe.loader.partitions)

    @property
    def variables(self) -> Path:
        """What the firmware remembers: its store of EFI variables."""
        return self.directory / "variables"

    @property
    def kernel(self) -> Path:
        """The kernel, as the disk has it."""
        return self.directory / "kernel"

    @property
    def initrd(self) -> Path:
        """The initramfs that the generator made for it."""
        return self.directory / "initrd"

    def copied_to(self, directory: Path) -> Guest:
        """Return a copy that a test may boot and change; ``directory`` does not exist yet."""
        return dataclasses.replace(self, directory=sparse_copy(self.directory, directory))


def guest(recipe: Recipe) -> Guest:
    """Return the guest made of this; nobody but its copies may be booted.

    Made anew when the packages' names, the harness's files or the recipe changed; delete it from
    the cache to have what the mirror has now.
    """
    from tests.vm.build import at_last, build

    directory = made_once(
        f"guest-{recipe.suite}-{recipe.generator}-{recipe.loader}",
        (
            *(*recipe.packages, *at_last(recipe), str(recipe.stock)),
            *(recipe.command_line, _digest_of_sources()),
        ),
        lambda target: build(recipe, target),
    )
    facts = json.loads((directory / "facts.json").read_text())
    return Guest(recipe=recipe, directory=directory, release=facts["release"])


def _digest_of_sources() -> str:
    """Hash what decides how a guest is made: the modules that do, and what is put into it."""
    here = Path(__file__).parent
    made_by = [here / f"{name}.py" for name in _MADE_BY]
    overlay = sorted(path for path in (here / "overlay").rglob("*") if path.is_file())
    digest = hashlib.sha256()
    for path in (*made_by, *overlay):
        digest.update(str(path.relative_to(here)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
