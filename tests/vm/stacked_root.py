"""A guest whose root file system is on LVM or LUKS, or is btrfs: made of one that has ext4."""

from __future__ import annotations

import os
import subprocess
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fixtures.images import archive, padded
from tests.vm import tools
from tests.vm.disk import MIB, cut_out
from tests.vm.entries import default_entry
from tests.vm.filesystems import read, write
from tests.vm.guest import Recipe
from tests.vm.logical_volume import DATA_BYTES, GROUP, VOLUME, volume_bytes, write_volume

if TYPE_CHECKING:
    from tests.vm.guest import Guest

RECIPE = Recipe(stock=True, also=("busybox", "cryptsetup-initramfs", "lvm2", "btrfs-progs"))
"""What can become any of them."""

_MAPPED = "cryptroot"
_KEY = "a key that is no secret"
_KEY_PATH = "/etc/keys/root.key"
_KEY_IN_IMAGE = f"cryptroot/keyfiles/{_MAPPED}.key"
_ENCRYPTED_BYTES = 1024 * MIB
"""No more than that, since what is free is encrypted as well."""


class Root(StrEnum):
    """What the root file system is, or what it is on."""

    EXT4 = "ext4"
    LVM = "lvm"
    LUKS = "luks"
    BTRFS = "btrfs"


def move_root(guest: Guest, root: Root) -> None:
    """Have the root file system of a guest with systemd-boot be this; it is ext4 so far.

    What is to be written into it has to be there before.
    """
    place = guest.disk.partition("/")
    match root:
        case Root.EXT4:
            return
        case Root.LVM:
            _name_root(guest, f"root=/dev/mapper/{GROUP}-{VOLUME}")
        case Root.LUKS:
            _name_root(guest, f"root=/dev/mapper/{_MAPPED}")
            _write_key(guest)
        case Root.BTRFS:
            _name_root(guest, guest.recipe.root_argument, file_system="btrfs")
    with tempfile.TemporaryDirectory(dir=guest.directory) as scratch:
        path = Path(scratch) / "root"
        cut_out(guest.disk.path, place.offset_bytes, place.size_bytes, path)
        # debugfs leaves an inode behind where it makes a directory that is there: no case for -p.
        tools.run("e2fsck", "-fy", path, good=(0, 1))
        match root:
            case Root.LVM:
                _shrink(path, volume_bytes(place.size_bytes))
                _put_back(guest, path, DATA_BYTES)
                write_volume(guest.disk.path, place.offset_bytes, place.size_bytes)
            case Root.LUKS:
                _shrink(path, _ENCRYPTED_BYTES)
                _put_back(guest, _encrypted(path), 0)
            case Root.BTRFS:
                tools.run("btrfs-convert", "--no-progress", path)
                _put_back(guest, path, 0)


def _name_root(guest: Guest, argument: str, *, file_system: str = "ext4") -> None:
    """Write where the root file system will be to the command line and to fstab."""
    old = guest.recipe.root_argument
    entry = f"/loader/entries/{default_entry(guest)}"
    for files, path in ((guest.disk.files("/boot"), entry), (guest.disk.root, _COMMAND_LINE)):
        write(files, path, read(files, path).decode().replace(old, argument))
    lines = read(guest.disk.root, "/etc/fstab").decode().splitlines()
    others = [line for line in lines if line.split()[1] != "/"]
    where = argument.removeprefix("root=")
    fstab = [f"{where} / {file_system} defaults 0 0", *others, ""]
    write(guest.disk.root, "/etc/fstab", "\n".join(fstab))


_COMMAND_LINE = "/etc/kernel/cmdline"


def _write_key(guest: Guest) -> None:
    """Write the key, and what has it in images: those to come, and the one that is there.

    The image that is there was not made on a machine with LUKS. It gets what hooks/cryptroot of
    cryptsetup-initramfs writes, as one more archive.
    """
    root, source = guest.disk.root, f"PARTUUID={guest.disk.partition('/').guid}"
    write(root, _KEY_PATH, _KEY, mode=0o600)
    write(root, "/etc/crypttab", f"{_MAPPED} {source} {_KEY_PATH} luks,initramfs\n")
    write(root, "/etc/cryptsetup-initramfs/conf-hook", f'KEYFILE_PATTERN="{_KEY_PATH}"\n')
    write(root, "/etc/initramfs-tools/conf.d/umask", "UMASK=0077\n")
    files = {
        "cryptroot/crypttab": f"{_MAPPED} {source} /{_KEY_IN_IMAGE} luks,initramfs\n".encode(),
        _KEY_IN_IMAGE: _KEY.encode(),
    }
    image = padded(guest.initrd.read_bytes(), 4) + archive(files)
    guest.initrd.write_bytes(image)
    boot = guest.disk.files("/boot")
    boot.put(dict.fromkeys(image_paths(guest), guest.initrd))


def image_paths(guest: Guest) -> tuple[str, str]:
    """Return where the ESP has the generator's image, and the copy of it that is booted."""
    name = guest.recipe.image_name.format(release=guest.release)
    return f"/{name}", f"/debian/{guest.release}/{name}"


def _shrink(path: Path, size_bytes: int) -> None:
    tools.run("resize2fs", "-f", path, f"{size_bytes // 1024}k")
    os.truncate(path, size_bytes)


def _encrypted(path: Path) -> Path:
    """Return a file with LUKS 1 and, encrypted, what is in another.

    Hardly any iterations: without KVM each takes its time, and nobody attacks it.
    """
    key, made = path.with_name("key"), path.with_name("encrypted")
    key.write_text(_KEY)
    secret = f"secret,id=key,file={key}"
    options = ("-f", "raw", "-O", "luks", "--object", secret, "-o", "key-secret=key,iter-time=1")
    tools.run("qemu-img", "convert", *options, path, made)
    return made


def _put_back(guest: Guest, path: Path, offset_bytes: int) -> None:
    """Fill the root partition with zeros and, from an offset on, with a file."""
    place = guest.disk.partition("/")
    end = place.offset_bytes + place.size_bytes
    assert path.stat().st_size + offset_bytes <= place.size_bytes
    with guest.disk.path.open("r+b") as disk:
        disk.seek(end)
        table = disk.read()  # the second one, which ends the disk
        disk.truncate(place.offset_bytes)
        disk.seek(end)
        disk.write(table)
    seek = f"seek={(place.offset_bytes + offset_bytes) // MIB}"
    options = (f"if={path}", f"of={guest.disk.path}", "bs=1M", seek, "conv=notrunc,sparse")
    subprocess.run(["/bin/dd", *options, "status=none"], check=True, timeout=300)
