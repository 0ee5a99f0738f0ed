"""Tells which boot loader started this machine; those that cannot boot once are named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from initadvisor.bootloaders.efi import efi_bootnext
from initadvisor.bootloaders.grub import grub
from initadvisor.bootloaders.places import is_file
from initadvisor.bootloaders.systemd_boot import systemd_boot
from initadvisor.core.errors import UnsafeError
from initadvisor.core.estimates import Certainty
from initadvisor.core.refusals import RefusalKind, RefusedError, refused
from initadvisor.firmware.boot_method import boot_start
from initadvisor.firmware.efi_variables import loader_variables
from initadvisor.records.boot_start import BootMethod

if TYPE_CHECKING:
    from initadvisor.bootloaders import BootLoader
    from initadvisor.bootloaders.entry import BootEntry
    from initadvisor.host import Host
    from initadvisor.records.boot_start import LoaderVariables


BOOT_LOADERS: Final[tuple[BootLoader, ...]] = (systemd_boot, grub, efi_bootnext)

_SUPPORTED = "supported are systemd-boot, GRUB and kernels that the firmware starts itself"

_SILENT = "a boot loader that starts a unified kernel image and keeps silent"

_ENTRY = "an entry of its own"
_LABEL = "a LABEL of its own, with its INITRD, in"


def default_entry(host: Host) -> BootEntry:
    """Return what boots by default; raises ``RefusedError`` where that is not certain."""
    return detect_boot_loader(host).default_entry(host)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OtherLoader:
    """A loader that cannot be told to boot an entry just once, and what shows it.

    ``traces``: parts of the name it gives itself or of its file's on EFI. ``files``: what it is
    configured by. ``entry``: how a person gives an image an entry in its menu.
    """

    name: str
    traces: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    entry: str = _ENTRY


_OTHERS: Final = (
    _OtherLoader(
        name="rEFInd",
        traces=("refind",),
        files=("/boot/refind_linux.conf",),
        entry="a line in /boot/refind_linux.conf with its initrd=",
    ),
    _OtherLoader(
        name="Limine",
        traces=("limine",),
        files=("/boot/limine.conf", "/boot/limine.cfg", "/boot/limine/limine.conf"),
        entry="an entry with its module_path in limine.conf",
    ),
    _OtherLoader(name="CloverEFI", traces=("clover",)),
    _OtherLoader(name="OpenCore", traces=("opencore",)),
    _OtherLoader(name="ELILO", traces=("elilo",), entry="an image= with its initrd= in elilo.conf"),
    _OtherLoader(name="ZFSBootMenu", traces=("zfsbootmenu", "vmlinuz-zbm")),
    _OtherLoader(name="iPXE", traces=("ipxe",)),
    _OtherLoader(
        name="Syslinux",
        traces=("syslinux",),
        files=("/boot/syslinux/syslinux.cfg",),
        entry=f"{_LABEL} syslinux.cfg",
    ),
    _OtherLoader(
        name="petitboot",
        files=("/proc/device-tree/ibm,firmware-versions/petitboot",),
        entry=f"{_ENTRY} in the configuration that it reads",
    ),
    _OtherLoader(
        name="zipl",
        files=("/etc/zipl.conf",),
        entry=f"{_ENTRY} in /boot/loader/entries or /etc/zipl.conf, run zipl",
    ),
    _OtherLoader(
        name="the Raspberry Pi's firmware",
        files=("/boot/firmware/config.txt", "/boot/config.txt"),
        entry="a tryboot.txt beside config.txt that names it (reboot '0 tryboot' boots that once)",
    ),
    _OtherLoader(
        name="extlinux (Syslinux or U-Boot)",
        files=("/boot/extlinux/extlinux.conf",),
        entry=f"{_LABEL} extlinux.conf",
    ),
    _OtherLoader(
        name="U-Boot",
        files=("/boot/boot.scr", "/boot/uEnv.txt"),
        entry="its name at U-Boot's prompt",
    ),
    _OtherLoader(
        name="LILO",
        files=("/etc/lilo.conf",),
        entry="an image= with its initrd= in /etc/lilo.conf, run lilo",
    ),
)


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
    if other := _other_on_efi(variables):
        raise _unsupported(other.name, other.entry)
    start = boot_start(host, variables)
    if start.method is BootMethod.GRUB_BIOS and start.certainty is not Certainty.CERTAIN:
        _refuse_others(host)  # they set BOOT_IMAGE=, too
    for loader in BOOT_LOADERS:
        if start.method in loader.BOOT_METHODS:
            return loader
    if start.method is BootMethod.KEXEC:
        reason = "the running kernel was started by kexec, so that its boot loader is not known"
        raise refused(RefusalKind.UNKNOWN_LOADER, reason, "reboot through the firmware first")
    if start.method is BootMethod.LOADER_UKI:
        raise _unsupported(_SILENT, _ENTRY)
    _refuse_others(host)
    reason = f"it is not known which boot loader started this machine: {'; '.join(start.clues)}"
    raise refused(RefusalKind.UNKNOWN_LOADER, reason, _SUPPORTED)


def _refuse_others(host: Host) -> None:
    for other in _OTHERS:
        if any(is_file(host, file) for file in other.files):
            raise _unsupported(other.name, other.entry)


def _other_on_efi(variables: LoaderVariables) -> _OtherLoader | None:
    """Return another loader than those that are supported, where one shows itself.

    systemd-boot, which may have been started by another, is the one that chose the entry.
    """
    loader = (variables.loader or "").lower()
    if loader.startswith(("systemd-boot", "gummiboot", "grub")):
        return None
    files = (variables.boot_option_file or "", variables.loader_file or "")
    traces = " ".join((loader, *files)).lower()
    return next((each for each in _OTHERS if any(part in traces for part in each.traces)), None)


def _unsupported(name: str, entry: str) -> RefusedError:
    reason = f"{name} started this machine, which cannot be told to boot an entry just once"
    remedy = (
        "by hand: initadvisor candidates build, copy an image beside today's, give it "
        f"{entry}, boot that; if it is well: initadvisor apply SETTING --immediate --without-entry"
    )
    return refused(RefusalKind.UNSUPPORTED_LOADER, reason, remedy)
