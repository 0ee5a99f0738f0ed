"""A guest that GRUB 2.14 of Debian sid starts, with its entries in files: blscfg, as on Fedora.

The rest of the guest stays as it is: GRUB's programs, which only write its environment, are those
of its own Debian.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fakes.boot_programs import block
from tests.fixtures.cache import made_once
from tests.fixtures.debian import Suite
from tests.vm import tools
from tests.vm.debian import mmdebstrap
from tests.vm.filesystems import Ext4, put_tree, read, write
from tests.vm.guest import Generator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.vm.guest import Guest

_BUILT_IN = (
    *("part_gpt", "part_msdos", "fat", "ext2", "normal", "configfile", "search", "serial"),
    *("terminal", "echo", "test", "loadenv", "minicmd", "linux", "search_fs_file"),
)
_EARLY = """\
search --no-floppy --set=root --file /grub/grub.cfg
set prefix=($root)/grub
configfile $prefix/grub.cfg
"""
_SECTION = """\
### BEGIN /etc/grub.d/10_linux ###
search --no-floppy --set=root --file /grub/grub.cfg
if [ -z "${{kernelopts}}" ]; then
  set kernelopts="{command_line}"
fi

insmod blsuki
blscfg
### END /etc/grub.d/10_linux ###
"""
"""As Fedora's 10_linux has it, with the name of upstream's module."""
_ENTRY = """\
title Debian ({name})
version {name}
linux /vmlinuz-{release}
initrd /{image}
options {options}
grub_users $grub_users
grub_arg --unrestricted
grub_class debian
"""
_HOOK = """\
#!/bin/sh
exec kernel-install add "$1" "$2"
"""
_ADDS_ENTRY = """\
#!/bin/sh
# As Fedora's plugin of this name does where kernel and image are in /boot: 20-grub.install.
[ "$1" = add ] || exit 0
cat >"/boot/loader/entries/$KERNEL_INSTALL_ENTRY_TOKEN-$2.conf" <<END
{entry}END
{then}"""
_SAVES = 'grub-editenv - set "saved_entry=$KERNEL_INSTALL_ENTRY_TOKEN-$2"\n'
_MAKES_IMAGE = """\
#!/bin/sh
# As dracut's own plugin of this name does in Fedora, where kernel-install(8) places nothing itself.
[ "$1" = add ] || exit 0
dracut -f --no-uefi --kver "$2" "/boot/initramfs-$2.img"
"""
_DIST = 'hostonly="yes"\nhostonly_cmdline="no"\nreproducible="yes"\n'
"""Of what Fedora has in 01-dist.conf."""
_DEFAULT, _SAVED = 'set default="0"\n', 'set default="${saved_entry}"\n'


def unpacked(*packages: str) -> Path:
    """Return GRUB's packages of sid, unpacked; with ``grub-common`` its programs."""
    return made_once(
        "grub-sid",
        ("1", *packages),
        lambda target: mmdebstrap(Suite.SID, target, packages, variant="extract"),
    )


def core_image(packages: Path, platform: str, early: str, modules: Sequence[str]) -> bytes:
    """Return GRUB with these modules, which begins with ``early``."""
    libraries = packages / "usr/lib/x86_64-linux-gnu"
    with tempfile.TemporaryDirectory() as scratch:
        script, made = Path(scratch) / "early.cfg", Path(scratch) / "core.img"
        script.write_text(early)
        tools.started(
            (
                *(str(libraries / "ld-linux-x86-64.so.2"), "--library-path", str(libraries)),
                *(str(packages / "usr/bin/grub-mkimage"), "-O", platform),
                *("-d", str(packages / "usr/lib/grub" / platform), "-p", "/grub"),
                *("-c", str(script), "-o", str(made), *modules),
            )
        )
        return made.read_bytes()


def put_blscfg(copy: Guest) -> None:
    """Have that GRUB start a guest whose loader is ``Loader.GRUB``.

    Its menu is not made anew for a kernel, as on Fedora: kernel-install(8) adds an entry, without
    a directory of its own on a boot partition. Where dracut makes the images, all of it is as on
    Fedora: it is a plugin that has dracut make them, in /boot and by dracut's own name; the latest
    kernel's entry is saved as the default; and an entry has the whole command line in it.
    """
    packages = unpacked("grub-efi-amd64-bin", "grub-common")
    loader = core_image(packages, "x86_64-efi", _EARLY, _BUILT_IN)
    write(copy.disk.files("/boot/efi"), "/EFI/BOOT/BOOTX64.EFI", loader)
    root, boot = copy.disk.root, copy.disk.files("/boot")
    write(root, "/etc/kernel/postinst.d/zz-update-grub", "")
    write(root, "/etc/kernel/postinst.d/zz-kernel-install", _HOOK, mode=0o755)
    put_tree(boot, packages / "usr/lib/grub/x86_64-efi", "/grub/x86_64-efi")
    text = read(boot, "/grub/grub.cfg").decode()
    image, options, then = copy.recipe.image_name, "$kernelopts", ""
    if copy.recipe.generator is Generator.DRACUT:
        image, options, then = "initramfs-{release}.img", copy.recipe.command_line, _SAVES
        assert text.count(_DEFAULT) == 1
        text = text.replace(_DEFAULT, _SAVED)
        write(boot, "/grub/grubenv", block(f"saved_entry=debian-{copy.release}"))
        _have_plugin_make_images(copy)
    section = _SECTION.format(command_line=copy.recipe.command_line)
    text, count = re.subn(
        r"### BEGIN /etc/grub.d/10_linux ###\n.*### END /etc/grub.d/10_linux ###\n",
        lambda _: section,
        text,
        flags=re.DOTALL,
    )
    assert count == 1
    write(boot, "/grub/grub.cfg", text)
    for name, more in ((copy.release, ""), ("0-rescue", " single")):
        entry = _entry(name, copy.release, image, f"{options}{more}")
        write(boot, f"/loader/entries/debian-{name}.conf", entry)
    entry = _entry("$2", "$2", image, options).replace("$kernelopts", "\\$kernelopts")
    entry = entry.replace("$grub_users", "\\$grub_users")
    adds = _ADDS_ENTRY.format(entry=entry, then=then)
    write(root, "/etc/kernel/install.d/20-grub.install", adds, mode=0o755)


def _entry(name: str, release: str, image: str, options: str) -> str:
    image = image.format(release=release)
    return _ENTRY.format(name=name, release=release, image=image, options=options)


def _have_plugin_make_images(copy: Guest) -> None:
    """Have kernel-install(8)'s plugin make them, not Debian's hook, and put the first one there."""
    root, boot = copy.disk.root, copy.disk.files("/boot")
    write(root, "/etc/kernel/postinst.d/dracut", "")
    write(root, "/usr/lib/dracut/dracut.conf.d/01-dist.conf", _DIST)
    write(root, "/etc/dracut.conf.d/watchdog.conf", 'force_drivers+=" i6300esb "\n')
    write(root, "/etc/kernel/install.d/50-dracut.install", _MAKES_IMAGE, mode=0o755)
    boot.put({f"/initramfs-{copy.release}.img": copy.initrd})
    assert isinstance(boot, Ext4)
    boot.remove(f"/{copy.recipe.image_name.format(release=copy.release)}")
