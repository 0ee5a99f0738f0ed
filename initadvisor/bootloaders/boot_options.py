"""The firmware's boot options, as its variables hold them (UEFI 2.10, section 3.1).

What is there is read from the variables, whose form the specification gives, and never from what a
program prints.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from initadvisor.measure.boot_option import BootOption, boot_option
from initadvisor.measure.efi import firmware_value, firmware_variables
from initadvisor.model.errors import InitadvisorError
from initadvisor.model.loader import TRIAL_TAG

if TYPE_CHECKING:
    from initadvisor.host import Host

LABEL: Final = "initadvisor trial"
"""How the description of our option begins."""

_OPTION = re.compile(r"Boot([0-9A-F]{4})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbered:
    """A boot option and its number."""

    number: int
    option: BootOption

    @property
    def identifier(self) -> str:
        """The name of its variable."""
        return f"Boot{self.number:04X}"

    @property
    def is_ours(self) -> bool:
        """Whether a trial made it: its description and what it hands over both say so."""
        has_tag = TRIAL_TAG in data_text(self.option)
        return self.option.description.startswith(LABEL) and has_tag


def boot_order(host: Host) -> tuple[int, ...]:
    """Return the numbers of the options that are tried one after the other."""
    value = firmware_value(host, "BootOrder") or b""
    return tuple(int.from_bytes(value[i : i + 2], "little") for i in range(0, len(value) - 1, 2))


def next_number(host: Host) -> int | None:
    """Return the number of the option that is used for the next boot only, None without one."""
    value = firmware_value(host, "BootNext")
    if value is None:
        return None
    if len(value) != 2:
        msg = f"the EFI variable BootNext has {len(value)} bytes instead of 2"
        raise InitadvisorError(msg)
    return int.from_bytes(value, "little")


def option(host: Host, number: int) -> Numbered | None:
    """Return a boot option, None where there is none of that number or it is damaged."""
    value = firmware_value(host, f"Boot{number:04X}")
    found = boot_option(value) if value is not None else None
    return Numbered(number=number, option=found) if found else None


def our_options(host: Host) -> tuple[Numbered, ...]:
    """Return the options that trials have made."""
    numbers = [
        int(match[1], 16) for name in firmware_variables(host) if (match := _OPTION.fullmatch(name))
    ]
    found = (option(host, number) for number in sorted(numbers))
    return tuple(each for each in found if each and each.is_ours)


def data_text(found: BootOption) -> str:
    """Return what is handed to the file as a command line; empty where it is none.

    Text of one byte a character, read as UTF-16, is no ASCII.
    """
    try:
        text = found.data.decode("utf-16-le").partition("\0")[0]
    except UnicodeDecodeError:
        return ""
    return text.strip() if text.isascii() and text.isprintable() else ""
