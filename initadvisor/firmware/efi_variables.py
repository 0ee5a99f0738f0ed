"""EFI variables of loader, stub and firmware, as efivarfs shows them.

A file is four bytes of attributes and the value (Documentation/filesystems/efivarfs.rst); the
values read here are text in UTF-16, or what the firmware keeps of its boot options. All of it is
what firmware and loaders made of it, so whatever cannot be used becomes a reason in words.
``enforces_signatures``: whether it starts signed programs only (UEFI 2.10, section 3.3).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from initadvisor.core.errors import InitadvisorError, NeedsRootError
from initadvisor.firmware.boot_option import boot_option_file
from initadvisor.records.boot_start import EfiTimes, LoaderVariables, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable

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
            raise NeedsRootError(msg) from err
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
    if len(data) > _ATTRIBUTE_BYTES + _LONGEST_BYTES:
        msg = f"is longer than {_LONGEST_BYTES} bytes"
        raise _UnusableError(msg)
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
    if not text:
        msg = "is empty"
        raise _UnusableError(msg)
    if not text.isprintable():
        msg = "holds characters that cannot be printed"
        raise _UnusableError(msg)
    return text


def _time_us(host: Host, name: str) -> int | None:
    """Return a variable of the loader that is a time in microseconds; 0 is no time."""
    text = _text(host, name)
    if text is None:
        return None
    if not _DECIMAL.fullmatch(text) or not int(text):
        msg = f"is no time in microseconds: {text[:40]!r}"
        raise _UnusableError(msg)
    return int(text)


def _boot_option_file(host: Host, name: str) -> str | None:
    """Return the file of the boot option whose number the variable holds."""
    number = _value(host, name, _GLOBAL)
    if number is None:
        return None
    if len(number) != _NUMBER_BYTES:
        msg = f"has {len(number)} bytes instead of {_NUMBER_BYTES}"
        raise _UnusableError(msg)
    option = _value(host, f"Boot{int.from_bytes(number, 'little'):04X}", _GLOBAL)
    return boot_option_file(option or b"")


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
