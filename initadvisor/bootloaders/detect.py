"""Tells which boot loader started this machine; those that cannot boot once are named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from initadvisor.bootloaders.efi import efi_bootnext
from initadvisor.bootloaders.grub import grub
from initadvisor.bootloaders.places import is_file
from initadvisor.bootloaders.systemd_boot import systemd_boot
from initadvisor.core.errors import UnsafeError
from initadvisor.core.refusals import RefusalKind, RefusedError, refused
from initadvisor.firmware.boot_method import boot_start
from initadvisor.firmware.efi_variables import loader_variables
from initadvisor.records.boot_start import BootMethod

if TYPE_CHECKING:
    from initadvisor.bootloaders import BootLoader
    from initadvisor.host import Host
    from initadvisor.records.boot_start import LoaderVariables


BOOT_LOADERS: Final[tuple[BootLoader, ...]] = (systemd_boot, grub, efi_bootnext)

_SUPPORTED = "supported are systemd-boot, GRUB and kernels that the firmware starts itself"

_SILENT = "a boot loader that starts a unified kernel image and keeps silent"

_OTHERS_ON_EFI: Final = (
    ("rEFInd", ("refind",)),
    ("Limine", ("limine",)),
    ("CloverEFI", ("clover",)),
    ("OpenCore", ("opencore",)),
    ("ELILO", ("elilo",)),
    ("Syslinux", ("syslinux",)),
    ("ZFSBootMenu", ("zfsbootmenu", "vmlinuz-zbm")),
    ("iPXE", ("ipxe",)),
)
"""Loaders, and what is part of the name they give themselves or of their file's."""

_OTHERS_BY_FILE: Final = (
    ("Limine", ("/boot/limine.conf", "/boot/limine.cfg", "/boot/limine/limine.conf")),
    ("Syslinux (extlinux)", ("/boot/extlinux/extlinux.conf", "/boot/syslinux/syslinux.cfg")),
    ("the Raspberry Pi's firmware", ("/boot/firmware/config.txt", "/boot/config.txt")),
    ("U-Boot", ("/boot/boot.scr", "/boot/uEnv.txt")),
    ("LILO", ("/etc/lilo.conf",)),
    ("zipl", ("/etc/zipl.conf",)),
)
"""Loaders, and the files that they are configured by."""


def loader_named(name: str) -> BootLoader:
    """Return the loader; raises ``UnsafeError`` for one that this version does not know."""
    for loader in BOOT_LOADERS:
        if name == loader.NAME:
            return loader
    msg = f"a trial's entry was made for the boot loader {name!r}, which this version does not know"
    raise UnsafeError(msg, hint="use the version that made it")


def detect_boot_loader(host: Host) -> BootLoader:
    """Return the boot loader that started the running system.

    Raises ``RefusedError`` for one that is not supported, with its name where that is known, and
    where it cannot be told: after kexec, without EFI variables.
    """
    variables = loader_variables(host)
    if name := _other_on_efi(variables):
        raise _unsupported(name)
    start = boot_start(host, variables)
    for loader in BOOT_LOADERS:
        if start.method in loader.BOOT_METHODS:
            return loader
    if start.method is BootMethod.KEXEC:
        reason = "the running kernel was started by kexec, so that its boot loader is not known"
        raise refused(RefusalKind.UNKNOWN_LOADER, reason, "reboot through the firmware first")
    if start.method is BootMethod.LOADER_UKI:
        raise _unsupported(_SILENT)
    for name, files in _OTHERS_BY_FILE:
        if any(is_file(host, file) for file in files):
            raise _unsupported(name)
    reason = f"it is not known which boot loader started this machine: {'; '.join(start.clues)}"
    raise refused(RefusalKind.UNKNOWN_LOADER, reason, _SUPPORTED)


def _other_on_efi(variables: LoaderVariables) -> str | None:
    """Return the name of another loader than those that are supported, where one shows itself.

    systemd-boot, which may have been started by another, is the one that chose the entry.
    """
    loader = (variables.loader or "").lower()
    if loader.startswith(("systemd-boot", "gummiboot", "grub")):
        return None
    files = (variables.boot_option_file or "", variables.loader_file or "")
    traces = " ".join((loader, *files)).lower()
    return next((name for name, parts in _OTHERS_ON_EFI if any(p in traces for p in parts)), None)


def _unsupported(name: str) -> RefusedError:
    reason = f"{name} started this machine, which cannot be told to boot an entry just once"
    return refused(RefusalKind.UNSUPPORTED_LOADER, reason, _SUPPORTED)
