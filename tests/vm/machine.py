"""The virtual machine: what QEMU is told to be."""

from __future__ import annotations

import base64
import struct
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tests.vm import tools
from tests.vm.guest import Loader

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vm.guest import Guest
    from tests.vm.recording import Recording

_DETERMINISTIC = ("-accel", "tcg,thread=single", "-icount", "shift=1,sleep=off", "-smp")
_PROCESSOR = "max,erms=off,fsrm=off"
"""Where these are said to be fast, Linux copies memory byte by byte, and QEMU does just that."""
_FIRST = ("nice", "-n", "-10")
"""A clock that counts instructions goes on while QEMU waits to be scheduled, to answer as a disk:
it comes before others, where that is allowed (nice(1) goes on where it is not).
"""
_IN_ORDER = ("-object", "main-loop,id=main-loop,thread-pool-max=1")
"""Requests are done one after the other: a recording that ends anywhere has no gaps before that."""
_SECURE = ("-machine", "smm=on", "-global", "driver=cfi.pflash01,property=secure,value=on")
"""Only the firmware, in system management mode, may write its variables then."""
_SERIAL = ("-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console")


class Bus(StrEnum):
    """What a disk is connected by."""

    VIRTIO = "virtio"
    """In the guest it is ``/dev/disk/by-id/virtio-SERIAL``."""
    SATA = "sata"
    NVME = "nvme"
    IDE = "ide"
    """The machine is an older one then: i440FX instead of Q35."""
    USB_2 = "usb-2"
    """QEMU goes by the guest's clock there: 10 MB/s, always the same on a deterministic machine."""
    USB_3 = "usb-3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drive:
    """A disk; only one on virtio can be recorded."""

    path: Path
    serial: str
    bus: Bus = Bus.VIRTIO
    recording: Recording | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """How the machine differs from the ordinary one.

    With one of ``processors`` a boot takes a fifth less of the host's than with two.
    ``deterministic`` counts instructions instead of time and unpacks before anything else, so that
    the kernel's times repeat whatever the host does (one processor, two to three times slower);
    ``beside`` has it unpack beside its other work, as kernels do, on two processors in turns.
    ``bare_metal`` hides the hypervisor from the loader, which then says when it read what.
    ``read_bytes_per_s`` is how fast the guest's disk is, for firmware and kernel alike, None for as
    fast as it goes; the host's clock decides that, so that it does not repeat by the guest's.
    ``bus`` is that disk's. With ``root_beside`` the root file system is on a disk of its own as
    well, on virtio, which is not held back. ``extra_command_line`` is added to the kernel's by
    the loader, the image on the disk stays as it is; GRUB and systemd before 254 cannot do that.
    ``tpm`` is the socket of a swtpm(8) that the machine has for its TPM. ``control`` is where QEMU
    takes orders (see ``Qmp``); ``saved`` is a file that another machine, the same but for what its
    disks are kept in, was saved to: this one goes on from there. ``also`` is more for QEMU.
    """

    memory_mib: int = 1024
    processors: int = 1
    deterministic: bool = False
    beside: bool = False
    bare_metal: bool = False
    read_bytes_per_s: int | None = None
    bus: Bus = Bus.VIRTIO
    root_beside: bool = False
    extra_command_line: str = ""
    recording: Recording | None = None
    drives: tuple[Drive, ...] = ()
    tpm: Path | None = None
    control: Path | None = None
    saved: Path | None = None
    also: tuple[str, ...] = ()

    @property
    def whole_extra_command_line(self) -> str:
        """What is added to the kernel's command line for all that is asked for."""
        synchronous = self.deterministic and not self.beside
        words = (self.extra_command_line, "initramfs_async=0" if synchronous else "")
        return " ".join(word for word in words if word)


def qemu(
    guest: Guest, machine: Machine, credentials: dict[str, str], *, direct: bool, scratch: Path
) -> tuple[str, ...]:
    """Return QEMU's command line.

    ``credentials`` reach the guest's /run/credentials/@system (systemd.exec(5)). With ``direct``
    QEMU starts the kernel, without firmware and loader. ``scratch`` is a directory for files that
    it reads while it starts.
    """
    share = tools.tree() / "usr/share"
    return (
        *(_FIRST if machine.deterministic else ()),
        *tools.command("qemu-system-x86_64"),
        *("-L", str(share / "seabios"), "-L", str(share / "qemu")),
        *("-nodefaults", "-no-user-config", "-display", "none", "-nic", "none", "-no-reboot"),
        *("-machine", "pc" if machine.bus is Bus.IDE else "q35", "-m", str(machine.memory_mib)),
        *("-cpu", f"{_PROCESSOR},-hypervisor" if machine.bare_metal else _PROCESSOR),
        *_processors(machine),
        *_SERIAL,
        *(_IN_ORDER if any(drive.recording for drive in _all_drives(guest, machine)) else ()),
        *_drives(guest, machine),
        *_smbios(machine, credentials, scratch, direct=direct),
        *(_tpm(machine.tpm) if machine.tpm else ()),
        *(("-qmp", f"unix:{machine.control},server=on,wait=off") if machine.control else ()),
        *(("-incoming", f"file:{machine.saved}") if machine.saved else ()),
        *machine.also,
        *(_direct(guest, machine) if direct else _firmware(guest, machine)),
    )


def _processors(machine: Machine) -> tuple[str, ...]:
    if machine.deterministic:
        return (*_DETERMINISTIC, "2" if machine.beside else "1")
    return ("-accel", "tcg,thread=multi", "-smp", str(machine.processors))


def _all_drives(guest: Guest, machine: Machine) -> tuple[Drive, ...]:
    own = Drive(
        path=guest.disk.path, serial="QM00001", bus=machine.bus, recording=machine.recording
    )
    return (own, *machine.drives)


def _drives(guest: Guest, machine: Machine) -> list[str]:
    arguments: list[str] = []
    for number, drive in enumerate(_all_drives(guest, machine)):
        is_own = number == 0
        if drive.recording:
            # Flushes must get as far as the log, so nothing may leave them out.
            how = (
                "driver=blklogwrites,log-sector-size=512,cache=writeback,file.driver=file,"
                f"file.filename={drive.path},log.driver=file,log.filename={drive.recording.log}"
            )
        else:
            how = f"format=raw,cache=unsafe,discard=unmap,file={drive.path}"
        if is_own and machine.read_bytes_per_s:
            how += f",throttling.bps-read={machine.read_bytes_per_s}"
        if host := _USB_HOSTS.get(drive.bus):
            arguments += ["-device", f"{host},id=usb"]
        if is_own and machine.root_beside:
            how += ",file.locking=off"
        device = f"{_device(drive)},drive=d{number},serial={drive.serial},bootindex={number + 1}"
        arguments += ["-drive", f"if=none,id=d{number},{how}", "-device", device]
        if is_own and machine.root_beside:
            arguments += _root_beside(guest)
    return arguments


def _device(drive: Drive) -> str:
    match drive.bus:
        case Bus.VIRTIO:
            # Merged requests may be more pieces than QEMU's log can add its own to, and they fail.
            return "virtio-blk-pci" + (",request-merging=off" if drive.recording else "")
        case Bus.SATA | Bus.IDE:
            return "ide-hd"
        case Bus.NVME:
            return "nvme"
        case Bus.USB_2 | Bus.USB_3:
            return "usb-storage,bus=usb.0"


_USB_HOSTS = {Bus.USB_2: "usb-ehci", Bus.USB_3: "qemu-xhci"}


def _root_beside(guest: Guest) -> list[str]:
    """Return what shows the root partition once more, as a disk.

    The guest must not use the partition itself: nothing keeps the two the same but the host's file.
    """
    root = guest.disk.partition("/")
    how = (
        f"driver=raw,offset={root.offset_bytes},size={root.size_bytes},cache=unsafe,"
        f"file.driver=file,file.filename={guest.disk.path},file.locking=off"
    )
    device = "virtio-blk-pci,drive=root,serial=root"
    return ["-drive", f"if=none,id=root,{how}", "-device", device]


def _smbios(
    machine: Machine, credentials: dict[str, str], scratch: Path, *, direct: bool
) -> list[str]:
    strings = [
        f"io.systemd.credential.binary:{name}={base64.b64encode(value.encode()).decode()}"
        for name, value in credentials.items()
    ]
    if not direct and machine.whole_extra_command_line:
        extra = machine.whole_extra_command_line
        strings.append(f"io.systemd.boot.kernel-cmdline-extra={extra}")
    arguments: list[str] = []
    for number, string in enumerate(strings):
        path = scratch / f"smbios-{number}"
        path.write_text(string)
        arguments += ["-smbios", f"type=11,path={path}"]
    if machine.bare_metal:
        path = scratch / "smbios-bios"
        path.write_bytes(_bios_information())
        arguments += ["-smbios", f"file={path}"]
    return arguments


def _tpm(socket: Path) -> tuple[str, ...]:
    return (
        *("-chardev", f"socket,id=tpm,path={socket}"),
        *("-tpmdev", "emulator,id=tpm,chardev=tpm", "-device", "tpm-tis,tpmdev=tpm"),
    )


def _bios_information() -> bytes:
    """Return an SMBIOS table of type 0 that does not say "this is a virtual machine".

    systemd-boot looks at bit 4 of the second extension byte (src/boot/vmm.c). Here that byte says
    UEFI and targeted content distribution; 0x08 is "characteristics not supported".
    """
    length, handle, vendor, version, segment, date, rom_size = 24, 0, 1, 2, 0xE800, 3, 0
    table = struct.pack(
        *("<BBHBBHBBQBBBBBB", 0, length, handle, vendor, version, segment, date, rom_size),
        *(0x08, 0x00, 0x0C, 1, 0, 0xFF, 0xFF),
    )
    return table + b"Bare metal\x001.0\x0001/01/2025\x00\x00"


def _direct(guest: Guest, machine: Machine) -> tuple[str, ...]:
    line = f"{guest.recipe.command_line} {machine.whole_extra_command_line}".strip()
    return ("-kernel", str(guest.kernel), "-initrd", str(guest.initrd), "-append", line)


def _firmware(guest: Guest, machine: Machine) -> tuple[str, ...]:
    """Return what makes QEMU start UEFI firmware; without it there is a BIOS."""
    loader = guest.recipe.loader
    if machine.whole_extra_command_line and loader.is_grub:
        msg = "GRUB takes no extra command line: boot directly, or change its configuration"
        raise ValueError(msg)
    if loader is Loader.GRUB_BIOS:
        return ()
    name = "OVMF_CODE_4M.secboot.fd" if guest.secure_boot else "OVMF_CODE_4M.fd"
    code = tools.tree() / f"usr/share/OVMF/{name}"
    return (
        *(_SECURE if guest.secure_boot else ()),
        *("-drive", f"if=pflash,unit=0,format=raw,readonly=on,file={code}"),
        *("-drive", f"if=pflash,unit=1,format=raw,file={guest.variables}"),
    )
