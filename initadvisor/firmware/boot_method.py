"""How this boot was started, told from what firmware, loader, stub and kernel left behind."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from initadvisor.core.estimates import Certainty
from initadvisor.firmware.efi_variables import DEFAULT_LOADER
from initadvisor.records.boot_class import parameters
from initadvisor.records.boot_start import BootMethod, BootStart, LoaderVariables

if TYPE_CHECKING:
    from initadvisor.host import Host


_EFI_STUB, _GRUB, _KEXEC = 0x2, 0x7, 0xD
_LOADER_TYPES = {
    0x0: "LILO",
    0x1: "Loadlin",
    _EFI_STUB: "the EFI stub",
    0x3: "Syslinux",
    0x4: "Etherboot or iPXE",
    0x5: "ELILO",
    _GRUB: "GRUB",
    0x8: "U-Boot",
    0x9: "Xen",
    0xA: "Gujin",
    0xB: "QEMU or another hypervisor",
    _KEXEC: "kexec",
}
"""Who calls itself what in the boot parameters (Documentation/arch/x86/boot.rst)."""

_DECIMAL = re.compile(r"[0-9]{1,9}\n?", re.ASCII)
_SYSTEMD_BOOT = ("systemd-boot ", "gummiboot ")


@dataclass(frozen=True, slots=True, kw_only=True)
class BootTraces:
    """What there is to tell by.

    ``efi``: the kernel was started by UEFI firmware. ``loader_type``: who started the kernel, in
    the kernel's numbers; None on other processors than x86, which have no such number.
    """

    efi: bool
    loader_type: int | None
    command_line: str
    variables: LoaderVariables


def boot_start(host: Host, variables: LoaderVariables) -> BootStart:
    """Return how the running system was started; ``variables`` are its EFI variables."""
    kernels = (host.read_text("/proc/sys/kernel/bootloader_type") or "").strip()
    loader_type = int(kernels) >> 4 if _DECIMAL.fullmatch(kernels) else None
    return boot_method(
        BootTraces(
            efi=host.path("/sys/firmware/efi").is_dir() or loader_type == _EFI_STUB,
            loader_type=loader_type,
            command_line=host.read_text("/proc/cmdline") or "",
            variables=variables,
        )
    )


def boot_method(evidence: BootTraces) -> BootStart:
    """Return how a boot that left these traces was started.

    A kexec comes first: it leaves the variables of the boot before it in place.
    """
    if evidence.loader_type == _KEXEC:
        clue = "the kernel was started by kexec, says /proc/sys/kernel/bootloader_type"
        return _certain(BootMethod.KEXEC, clue)
    verdict = _on_efi(evidence) if evidence.efi else _on_bios(evidence)
    names = evidence.variables
    return replace(verdict, loader=names.loader, stub=names.stub, entry=names.entry)


def _certain(method: BootMethod, *clues: str) -> BootStart:
    return BootStart(method=method, certainty=Certainty.CERTAIN, clues=clues)


def _likely(method: BootMethod, *clues: str) -> BootStart:
    return BootStart(method=method, certainty=Certainty.LIKELY, clues=clues)


def _unknown(*clues: str) -> BootStart:
    return BootStart(method=BootMethod.UNKNOWN, certainty=Certainty.UNKNOWN, clues=clues)


def _on_bios(evidence: BootTraces) -> BootStart:
    """GRUB sets BOOT_IMAGE=, but so do Syslinux and LILO: the kernel's number comes first."""
    named = _names_image(evidence)
    if evidence.loader_type == _GRUB:
        return _certain(BootMethod.GRUB_BIOS, "no EFI", _type_clue(evidence))
    if evidence.loader_type is None and named:
        return _likely(BootMethod.GRUB_BIOS, "no EFI", "BOOT_IMAGE= on the command line")
    return _unknown("no EFI", _type_clue(evidence))


def _on_efi(evidence: BootTraces) -> BootStart:
    variables = evidence.variables
    if evidence.loader_type == _GRUB:
        return _certain(BootMethod.GRUB_EFI, _type_clue(evidence))
    if variables.stub is not None:
        return _uki(variables)
    if variables.loader is not None:
        return _named_loader(evidence, variables.loader)
    return _silent_loader(evidence)


def _silent_loader(evidence: BootTraces) -> BootStart:
    """Tell by the command line. What names itself may also be hidden, with its variables."""
    if _names_image(evidence) and not _names_initrd(evidence):
        clue = "BOOT_IMAGE= on the command line, as GRUB sets it"
        return _certain(BootMethod.GRUB_EFI, clue)
    if not _names_initrd(evidence):
        return _unknown("no loader names itself", _type_clue(evidence))
    if not _tells_names(evidence.variables):
        return _unknown(
            "initrd= on the command line, which systemd-boot or the EFI stub reads",
            "the EFI variables that would tell cannot be read",
        )
    clues = ("initrd= on the command line", "no loader names itself")
    if _names_image(evidence):
        return _likely(BootMethod.EFI_STUB, *clues, "but BOOT_IMAGE= is there, too")
    return _certain(BootMethod.EFI_STUB, *clues)


def _uki(variables: LoaderVariables) -> BootStart:
    """Tell who started a unified kernel image; its stub has run.

    Without a loader that names itself it was the firmware, or shim, or a GRUB that keeps silent:
    then the file of the firmware's boot option is another one.
    """
    stub = f"StubInfo: {variables.stub}"
    if variables.loader is not None:
        by_systemd_boot = variables.loader.startswith(_SYSTEMD_BOOT)
        method = BootMethod.SYSTEMD_BOOT_UKI if by_systemd_boot else BootMethod.LOADER_UKI
        return _certain(method, stub, f"LoaderInfo: {variables.loader}")
    image = variables.stub_file or variables.loader_file
    option = variables.boot_option_file
    if image is None or option is None:
        return _likely(BootMethod.FIRMWARE_UKI, stub, "no loader names itself")
    if _is_same_file(image, option):
        return _certain(BootMethod.FIRMWARE_UKI, stub, f"the firmware's boot option is {option}")
    return _certain(BootMethod.LOADER_UKI, stub, f"the firmware's boot option is {option}")


def _named_loader(evidence: BootTraces, loader: str) -> BootStart:
    """Tell by LoaderInfo; systemd-boot may have started another loader, which keeps silent."""
    clue = f"LoaderInfo: {loader}"
    named = _names_image(evidence)
    if loader.startswith(_SYSTEMD_BOOT):
        if _names_initrd(evidence):
            return _certain(BootMethod.SYSTEMD_BOOT, clue, "initrd= on the command line")
        if named:
            silent = "BOOT_IMAGE= without initrd= on the command line, as GRUB sets it"
            return _likely(BootMethod.GRUB_EFI, clue, silent)
        return _likely(BootMethod.SYSTEMD_BOOT, clue)
    if loader.startswith("GRUB"):
        method = _certain if named else _likely
        return method(BootMethod.GRUB_EFI, clue)
    if _names_initrd(evidence):
        return _likely(BootMethod.EFI_STUB, clue, "initrd= on the command line")
    return _unknown(clue, "a loader that is not known here")


def _tells_names(variables: LoaderVariables) -> bool:
    hidden = {wrong.source for wrong in variables.unreadable}
    return variables.readable and hidden.isdisjoint({"LoaderInfo", "StubInfo"})


def _names_image(evidence: BootTraces) -> bool:
    return bool(parameters(evidence.command_line, "BOOT_IMAGE"))


def _names_initrd(evidence: BootTraces) -> bool:
    return bool(parameters(evidence.command_line, "initrd"))


def _type_clue(evidence: BootTraces) -> str:
    if evidence.loader_type is None:
        return "this kernel does not tell who started it"
    name = _LOADER_TYPES.get(evidence.loader_type, f"loader number {evidence.loader_type:#x}")
    return f"the kernel was started by {name}"


def _is_same_file(identifier: str, file: str) -> bool:
    """Compare a device path's text with a file's; case does not count on the ESP (FAT)."""
    found = _plain(identifier)
    if file == DEFAULT_LOADER:
        head, _, tail = _plain(file).partition("*")
        return head in found and found.endswith(tail)
    return found.endswith(_plain(file))


def _plain(path: str) -> str:
    return path.replace("/", "\\").lower()
