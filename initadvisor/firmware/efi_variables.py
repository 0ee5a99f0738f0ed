"""EFI variables of loader, stub and firmware, as efivarfs shows them.

A file is four bytes of attributes and the value (Documentation/filesystems/efivarfs.rst); the
values read here are text in UTF-16, or what the firmware keeps of its boot options. All of it is
what firmware and loaders made of it, so whatever cannot be used becomes a reason in words.
``enforces_signatures``: whether it starts signed programs only (UEFI 2.10, section 3.3).
``boot_option``: what a boot option starts (UEFI 2.10, sections 3.1.3, 3.5 and 10.3).
"""

from __future__ import annotations

import re
import struct
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from initadvisor.core.errors import InitadvisorError, require
from initadvisor.host.files import os_failure
from initadvisor.records.boot_start import EfiTimes, LoaderVariables, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from initadvisor.host import Host


_T = TypeVar("_T")

_DIRECTORY = "/sys/firmware/efi/efivars"
_LOADER = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
"""The vendor of the boot loader interface's variables."""
_GLOBAL = "8be4df61-93ca-11d2-aa0d-00e098032b8c"
"""The vendor of what the UEFI specification defines."""

_ATTRIBUTE_BYTES = 4
_NUMBER_BYTES = 2
_LONGEST_BYTES = 4096
_DECIMAL = re.compile(r"[0-9]{1,18}", re.ASCII)
_HOUR_US = 3_600_000_000


class _UnusableError(Exception):
    """Why a variable that is there cannot be used, in words."""


def variables_are_shown(host: Host) -> bool:
    """Tell whether this machine shows its EFI variables."""
    try:
        return any(host.path(_DIRECTORY).iterdir())
    except OSError:
        return False


def firmware_variables(host: Host) -> tuple[str, ...]:
    """Return the names of the variables that UEFI defines and this machine has."""
    try:
        names = [path.name for path in host.path(_DIRECTORY).iterdir()]
    except OSError:
        return ()
    return tuple(sorted(n.removesuffix(f"-{_GLOBAL}") for n in names if n.endswith(_GLOBAL)))


def loader_text(host: Host, name: str) -> str | None:
    """Return a variable of the boot loader interface that is text, None where it is not set.

    Raises ``InitadvisorError`` where it is there but cannot be read, or is no text.
    """
    return _or_error(_text, host, name)


def firmware_value(host: Host, name: str) -> bytes | None:
    """Return the value of a variable that UEFI defines (``BootNext``), None where it is not set.

    Raises ``InitadvisorError`` where it is there but cannot be read.
    """
    return _or_error(lambda host, name: _value(host, name, _GLOBAL), host, name)


def _or_error(read: Callable[[Host, str], _T | None], host: Host, name: str) -> _T | None:
    try:
        return read(host, name)
    except _UnusableError as err:
        msg = f"the EFI variable {name} {err}"
        if isinstance(err.__cause__, PermissionError):
            raise os_failure(err.__cause__, msg, only_root=True) from err
        raise InitadvisorError(msg) from err


def loader_variables(host: Host) -> LoaderVariables:
    """Return what loader, stub and firmware left in EFI variables."""
    if not variables_are_shown(host):
        return LoaderVariables()
    unreadable: list[Unreadable] = []
    return LoaderVariables(
        readable=True,
        loader=_attempt(_text, host, "LoaderInfo", unreadable),
        loader_file=_attempt(_text, host, "LoaderImageIdentifier", unreadable),
        partition_uuid=_attempt(_text, host, "LoaderDevicePartUUID", unreadable),
        entry=_attempt(_text, host, "LoaderEntrySelected", unreadable),
        oneshot_entry=_attempt(_text, host, "LoaderEntryOneShot", unreadable),
        stub=_attempt(_text, host, "StubInfo", unreadable),
        stub_file=_attempt(_text, host, "StubImageIdentifier", unreadable),
        boot_option_file=_attempt(_boot_option_file, host, "BootCurrent", unreadable),
        unreadable=tuple(unreadable),
    )


def efi_times(host: Host) -> tuple[EfiTimes, tuple[Unreadable, ...]]:
    """Return the loader's times, and why what was there of them is not used.

    Times that contradict each other are all left out: it is not known which one is wrong.
    """
    unreadable: list[Unreadable] = []
    times = EfiTimes(
        init_us=_attempt(_time_us, host, "LoaderTimeInitUSec", unreadable),
        menu_us=_attempt(_time_us, host, "LoaderTimeMenuUSec", unreadable),
        exec_us=_attempt(_time_us, host, "LoaderTimeExecUSec", unreadable),
    )
    if reason := _contradiction(times):
        unreadable.append(Unreadable(source="LoaderTime*USec", reason=reason))
        return EfiTimes(), tuple(unreadable)
    return times, tuple(unreadable)


def _attempt(
    read: Callable[[Host, str], _T | None], host: Host, name: str, unreadable: list[Unreadable]
) -> _T | None:
    try:
        return read(host, name)
    except _UnusableError as err:
        unreadable.append(Unreadable(source=name, reason=str(err)))
        return None


def _value(host: Host, name: str, vendor: str) -> bytes | None:
    """Return a variable's value, None where there is no such variable."""
    try:
        with host.path(f"{_DIRECTORY}/{name}-{vendor}").open("rb") as file:
            data = file.read(_ATTRIBUTE_BYTES + _LONGEST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as err:
        msg = f"cannot be read: {err.strerror}"
        raise _UnusableError(msg) from err
    require(
        len(data) <= _ATTRIBUTE_BYTES + _LONGEST_BYTES,
        f"is longer than {_LONGEST_BYTES} bytes",
        _UnusableError,
    )
    return data[_ATTRIBUTE_BYTES:]


def _text(host: Host, name: str) -> str | None:
    """Return a variable of the loader that is text; what follows its NUL does not count."""
    value = _value(host, name, _LOADER)
    if value is None:
        return None
    try:
        text = value.decode("utf-16-le").partition("\0")[0]
    except UnicodeDecodeError as err:
        msg = "is no text in UTF-16"
        raise _UnusableError(msg) from err
    require(text, "is empty", _UnusableError)
    require(text.isprintable(), "holds characters that cannot be printed", _UnusableError)
    return text


def _time_us(host: Host, name: str) -> int | None:
    """Return a variable of the loader that is a time in microseconds; 0 is no time."""
    text = _text(host, name)
    if text is None:
        return None
    require(
        _DECIMAL.fullmatch(text) and int(text),
        f"is no time in microseconds: {text[:40]!r}",
        _UnusableError,
    )
    return int(text)


def _boot_option_file(host: Host, name: str) -> str | None:
    """Return the file of the boot option whose number the variable holds."""
    number = _value(host, name, _GLOBAL)
    if number is None:
        return None
    require(
        len(number) == _NUMBER_BYTES,
        f"has {len(number)} bytes instead of {_NUMBER_BYTES}",
        _UnusableError,
    )
    value = _value(host, f"Boot{int.from_bytes(number, 'little'):04X}", _GLOBAL)
    option = boot_option(value or b"")
    return option.file if option else None


def _contradiction(times: EfiTimes) -> str | None:
    """Return what is wrong with the times together; systemd-boot takes them in this order."""
    known = [time for time in (times.init_us, times.menu_us, times.exec_us) if time is not None]
    if known != sorted(known):
        return f"the times are not in order: {', '.join(map(str, known))}"
    if known and known[-1] - known[0] > _HOUR_US:
        return f"more than an hour lies between the times {known[0]} and {known[-1]}"
    return None


_ON = b"\1"


def enforces_signatures(host: Host) -> bool:
    """Tell whether Secure Boot is on; in setup mode nothing is enforced, and on BIOS neither.

    Raises ``InitadvisorError`` where the variables are there but cannot be read.
    """
    if not variables_are_shown(host):
        return False
    return firmware_value(host, "SecureBoot") == _ON and firmware_value(host, "SetupMode") != _ON


DEFAULT_LOADER = r"\EFI\BOOT\BOOT*.EFI"
"""What the firmware starts from a disk when no file is named; ``*`` stands for the processor."""

_HEAD = struct.Struct("<IH")  # attributes, bytes of the device path
_NODE = struct.Struct("<BBH")  # type, subtype, bytes of the node with this header
_FILE = (4, 4)
_HARD_DRIVE = (4, 1)
_GPT_SIGNATURE = 2
_SIGNATURE_TYPE = 37
_SIGNATURE = slice(20, 36)
"""Where a hard drive's node has its signature, and of which type it is, without the header."""
_ACTIVE = 1
_NO_DISK = {
    *((4, 6), (4, 7)),  # a part of the firmware: its shell, its setup
    *((3, 11), (3, 12), (3, 13), (3, 24)),  # the network: MAC, IPv4, IPv6, URI
}
_END = 0x7F


@dataclass(frozen=True, slots=True, kw_only=True)
class BootOption:
    r"""A boot option of the firmware.

    ``file``: what it names (``\EFI\systemd\systemd-bootx64.efi``), ``DEFAULT_LOADER`` where it
    names a disk only, None where it is part of the firmware or comes over the network.
    ``partition_uuid``: the GPT partition that it is on,
    in small letters; None where the option names none. ``data``: what is handed to the file.
    """

    description: str
    active: bool
    file: str | None
    partition_uuid: str | None
    data: bytes


def boot_option(option: bytes) -> BootOption | None:
    """Read a load option; None where it is damaged."""
    if len(option) < _HEAD.size:
        return None
    attributes, path_bytes = _HEAD.unpack_from(option)
    position = _HEAD.size
    while option[position : position + 2] not in {b"\0\0", b""}:
        position += 2
    description = option[_HEAD.size : position].decode("utf-16-le", errors="replace")
    position += 2
    nodes = list(_nodes(option[position : position + path_bytes]))
    if not nodes or nodes[-1][0][0] != _END:
        return None
    return BootOption(
        description=description,
        active=bool(attributes & _ACTIVE),
        file=_file_of(nodes),
        partition_uuid=next(
            (_partition(node) for kind, node in nodes if kind == _HARD_DRIVE), None
        ),
        data=option[position + path_bytes :],
    )


def _file_of(nodes: list[tuple[tuple[int, int], bytes]]) -> str | None:
    if {kind for kind, _ in nodes} & _NO_DISK:
        return None
    names = [_utf16(content) for kind, content in nodes if kind == _FILE]
    if not all(name.isprintable() for name in names):
        return None
    return "\\".join(names).replace("\\\\", "\\") or DEFAULT_LOADER


def _partition(node: bytes) -> str | None:
    """Return the partition's UUID from the node of a hard drive (UEFI 2.10, 10.3.5.1)."""
    if len(node) <= _SIGNATURE_TYPE or node[_SIGNATURE_TYPE] != _GPT_SIGNATURE:
        return None
    return str(uuid.UUID(bytes_le=node[_SIGNATURE]))


def _nodes(path: bytes) -> Iterator[tuple[tuple[int, int], bytes]]:
    """Yield type with subtype, and content, of each node up to the end of the path or its damage.

    The end is a node, too; a path without it is damaged.
    """
    position = 0
    while position + _NODE.size <= len(path):
        kind, subkind, size = _NODE.unpack_from(path, position)
        if size < _NODE.size or position + size > len(path):
            return
        yield (kind, subkind), path[position + _NODE.size : position + size]
        if kind == _END:
            return
        position += size


def _utf16(content: bytes) -> str:
    return content.decode("utf-16-le", errors="replace").partition("\0")[0]
