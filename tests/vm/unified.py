"""Guests that boot a unified kernel image: who makes it, and how it becomes the default."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.vm import secure_boot
from tests.vm.applying import UKIFY
from tests.vm.guest import Generator

IMAGES = "/boot/EFI/Linux/*.efi"

_BY_SYSTEMD_BOOT = f"""
rm -r /boot/loader/entries/*
printf 'timeout 0\\ndefault %s\\n' "$(basename {IMAGES})" >/boot/loader/loader.conf
ls -l {IMAGES}
sync -f /boot
"""
_BY_FIRMWARE = f"""
efibootmgr --create --disk /dev/nvme0n1 --part 1 --label Linux \\
    --loader "$(echo {IMAGES} | sed 's,^/boot,,' | tr / '\\\\')"
ls -l {IMAGES}
sync -f /boot
"""
"""systemd-boot stays where it is: Debian's hooks run kernel-install(8) where it is installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unified:
    """``packages``: what is needed to make the image; ``by_firmware``: no boot loader starts it.

    ``secure_boot``: it is signed, and the firmware starts nothing else.
    """

    generator: Generator
    packages: tuple[str, ...]
    commands: str
    """What makes it the first time, in a guest that has booted from its files."""
    by_firmware: bool = False
    secure_boot: bool = False

    @property
    def script(self) -> str:
        """The commands after which it is what boots."""
        return self.commands + (_BY_FIRMWARE if self.by_firmware else _BY_SYSTEMD_BOOT)


BY_MKINITCPIO = Unified(
    generator=Generator.MKINITCPIO,
    packages=UKIFY,
    commands="""
mkdir -p /boot/EFI/Linux
cat >/etc/mkinitcpio.d/linux.preset <<'END'
ALL_kver="/boot/vmlinuz-linux"
PRESETS=('default')
default_uki="/boot/EFI/Linux/arch-linux.efi"
END
mkinitcpio -P
rm /boot/initramfs-linux.img
""",
)
BY_DRACUT = Unified(
    generator=Generator.DRACUT,
    packages=("binutils",),
    commands="""
rm -f /etc/kernel/postinst.d/dracut /boot/initrd.img-*
printf 'layout=uki\\ninitrd_generator=dracut\\nuki_generator=dracut\\n' >/etc/kernel/install.conf
echo "kernel_cmdline='$(cat /etc/kernel/cmdline)'" >/etc/dracut.conf.d/cmdline.conf
kernel-install add $(uname -r) /boot/vmlinuz-$(uname -r)
rm -rf /boot/debian/*
""",
)
BY_UKIFY_FOR_FIRMWARE = Unified(
    generator=Generator.INITRAMFS_TOOLS,
    packages=UKIFY,
    commands="""
printf 'layout=uki\\n' >/etc/kernel/install.conf
update-initramfs -u
rm -rf /boot/debian/*
""",
    by_firmware=True,
)
BY_UKIFY_SIGNED = replace(
    BY_UKIFY_FOR_FIRMWARE,
    packages=(*UKIFY, *secure_boot.PACKAGES),
    by_firmware=False,
    secure_boot=True,
)
