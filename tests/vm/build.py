"""Makes guests: file systems out of archives, without mounts or loop devices."""

from __future__ import annotations

import json
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.vm import tools
from tests.vm.arch import install_arch, kernel_release
from tests.vm.bootstrap import bootstrapped
from tests.vm.disk import FileSystem, format_ext4, format_vfat, make_disk
from tests.vm.filesystems import put_tree, read, write
from tests.vm.guest import Generator, Guest, Loader

if TYPE_CHECKING:
    from tests.vm.disk import Disk
    from tests.vm.guest import Recipe

_MACHINE_ID = "0123456789abcdef0123456789abcdef"
_DIRECTORY = "debian"
_OVERLAY = Path(__file__).parent / "overlay"
_ENTRY = """\
title      Debian GNU/Linux
version    {release}
machine-id {machine_id}
sort-key   debian
options    {command_line}
linux      /{linux}
initrd     /{initrd}
"""
_INSTALL_GRUB = {
    Loader.GRUB: "--target=x86_64-efi --efi-directory=/boot/efi --removable --no-nvram",
    Loader.GRUB_BIOS: "--target=i386-pc /dev/vda",
}
_GRUB_DEFAULTS = """\
GRUB_DEFAULT=0
GRUB_TIMEOUT=0
GRUB_DISTRIBUTOR=Debian
GRUB_CMDLINE_LINUX="{command_line}"
GRUB_TERMINAL=serial
GRUB_DISABLE_OS_PROBER=true
"""


def build(recipe: Recipe, target: Path) -> None:
    """Make the directory of a guest."""
    target.mkdir()
    archives = bootstrapped(recipe.suite, recipe.packages, at_last(recipe), stock=recipe.stock)
    with tempfile.TemporaryDirectory(prefix="guest-") as scratch:
        with tarfile.open(archives / "boot.tar") as archive:
            archive.extractall(scratch, filter="data")
        kernel = next(Path(scratch).rglob("vmlinuz-*"))
        boot, name = kernel.parent, kernel.name
        is_ours = recipe.generator is Generator.MKINITCPIO
        release = kernel_release(recipe.suite) if is_ours else name.removeprefix("vmlinuz-")
        guest = Guest(recipe=recipe, directory=target, release=release)
        shutil.copyfile(kernel, guest.kernel)
        shutil.copyfile(boot / recipe.image_name.format(release=release), guest.initrd)
        shutil.copyfile(tools.tree() / "usr/share/OVMF/OVMF_VARS_4M.fd", guest.variables)
        is_bios = recipe.loader is Loader.GRUB_BIOS
        disk = make_disk(guest.disk.path, recipe.loader.partitions, bios_boot=is_bios)
        _format(disk, archives / "root.tar", boot)
    (target / "facts.json").write_text(json.dumps({"release": release}))
    _configure(guest)
    if recipe.loader.is_grub:
        _install_grub(guest)
    else:
        _install_systemd_boot(guest)


def at_last(recipe: Recipe) -> tuple[str, ...]:
    """Return hooks of mmdebstrap's for what no package of Debian's brings."""
    return install_arch(recipe.suite) if recipe.generator is Generator.MKINITCPIO else ()


def _format(disk: Disk, root_archive: Path, boot: Path) -> None:
    for partition in disk.partitions:
        place = (disk.path, partition.offset_bytes, partition.size_bytes)
        match partition.file_system:
            case FileSystem.VFAT:
                format_vfat(*place)
            case FileSystem.EXT4:
                is_root = partition.mount_point == "/"
                format_ext4(*place, content=root_archive if is_root else None)
    put_tree(disk.files("/boot"), boot, "")


def _configure(guest: Guest) -> None:
    root = guest.disk.root
    put_tree(root, _OVERLAY, "")
    write(root, "/etc/machine-id", f"{_MACHINE_ID}\n")
    write(root, "/etc/kernel/entry-token", f"{_DIRECTORY}\n")
    write(root, "/etc/kernel/cmdline", f"{guest.recipe.command_line}\n")
    options = {FileSystem.VFAT: "umask=0077", FileSystem.EXT4: "noatime,errors=remount-ro"}
    lines = [
        f"PARTUUID={p.guid} {p.mount_point} {p.file_system} {options[p.file_system]} 0 0\n"
        for p in sorted(guest.recipe.loader.partitions, key=lambda p: p.mount_point)
    ]
    write(root, "/etc/fstab", "".join(lines))


def _install_systemd_boot(guest: Guest) -> None:
    """Put the loader where ``bootctl install`` puts it, the entry where kernel-install(8) does."""
    loader = read(guest.disk.root, "/usr/lib/systemd/boot/efi/systemd-bootx64.efi")
    assert guest.recipe.loader.esp
    esp = guest.disk.files(guest.recipe.loader.esp)
    write(esp, "/EFI/BOOT/BOOTX64.EFI", loader)
    write(esp, "/EFI/systemd/systemd-bootx64.efi", loader)
    name = f"{_DIRECTORY}-{guest.release}.conf"
    write(esp, "/loader/loader.conf", f"timeout 0\ndefault {name}\n")
    image = guest.recipe.image_name.format(release=guest.release)
    directory = f"{_DIRECTORY}/{guest.release}"
    linux, initrd = f"{directory}/linux", f"{directory}/{image}"
    if guest.recipe.generator is Generator.MKINITCPIO:  # which has them where they are booted
        linux, initrd = "vmlinuz-linux", image
    entry = _ENTRY.format(
        release=guest.release,
        machine_id=_MACHINE_ID,
        command_line=guest.recipe.command_line,
        linux=linux,
        initrd=initrd,
    )
    boot = guest.disk.files("/boot")
    boot.put({f"/{linux}": guest.kernel, f"/{initrd}": guest.initrd})
    write(boot, f"/loader/entries/{name}", entry)
    write(boot, "/loader/entries.srel", "type1\n")


def _install_grub(guest: Guest) -> None:
    """Have Debian's own programs install GRUB, inside the guest."""
    from tests.vm.boot import Then, boot

    defaults = _GRUB_DEFAULTS.format(command_line=guest.recipe.command_line)
    write(guest.disk.root, "/etc/default/grub", defaults)
    install = f"grub-install {_INSTALL_GRUB[guest.recipe.loader]}"
    script = f"{install}\nupdate-grub\nsync\n"
    boot(guest, direct=True, script=script, then=Then.POWER_OFF)
