"""The firmware's boot options (UEFI 2.10, section 3.1), and efibootmgr(8), which changes them.

What is there is read from the variables, whose form the specification gives. efibootmgr lists all
boot options after every change. Up to version 17 a line ends with the option's
description unless ``-v`` is given; from 18 on a tab and the device path follow it always.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from initadvisor.bootloaders.entry import EntryKind
from initadvisor.core.errors import InitadvisorError
from initadvisor.firmware.efi_variables import (
    BootOption,
    boot_option,
    firmware_value,
    firmware_variables,
)
from initadvisor.host.owner import OWNER, owner_of_host
from initadvisor.records.boot_start import TRIAL_TAG

if TYPE_CHECKING:
    from initadvisor.host import Host


_DESCRIPTIONS: Final = {
    EntryKind.TRIAL: re.compile(rf"initadvisor trial .* \[(?P<owner>{OWNER})\]"),
    EntryKind.PREVIOUS: re.compile(
        rf"initadvisor: previous image( \(.*\))? \[(?P<owner>{OWNER})\]"
    ),
}
"""What the options are called, and whose they are."""

_OPTION = re.compile(r"Boot([0-9A-F]{4})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbered:
    """A boot option and its number. ``kind``: which of our entries it is, None for no such one."""

    number: int
    option: BootOption
    kind: EntryKind | None = None

    @property
    def identifier(self) -> str:
        """The name of its variable."""
        return f"Boot{self.number:04X}"

    @property
    def owned(self) -> tuple[str, EntryKind] | None:
        """Which system has made it with this program, and for what; None for any other option.

        Of a trial's both its description and what it hands over say so; the previous image's hands
        over what the default one does.
        """
        for kind, description in _DESCRIPTIONS.items():
            if found := description.fullmatch(self.option.description):
                is_trial = kind is EntryKind.TRIAL
                if not is_trial or TRIAL_TAG in data_text(self.option):
                    return found["owner"], kind
        return None


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


def described(title: str, owner: str) -> str:
    """Return what an owner's option is called."""
    return f"{title} [{owner}]"


def option(host: Host, number: int) -> Numbered | None:
    """Return a boot option, None where there is none of that number or it is damaged."""
    value = firmware_value(host, f"Boot{number:04X}")
    found = boot_option(value) if value is not None else None
    if found is None:
        return None
    read = Numbered(number=number, option=found)
    owner, kind = read.owned or (None, None)
    return replace(read, kind=kind) if owner and owner == owner_of_host(host) else read


def owned_options(host: Host) -> tuple[Numbered, ...]:
    """Return the options that this program has made, on this system and on others."""
    numbers = [
        int(match[1], 16) for name in firmware_variables(host) if (match := _OPTION.fullmatch(name))
    ]
    found = (option(host, number) for number in sorted(numbers))
    return tuple(each for each in found if each and each.owned)


def data_text(found: BootOption) -> str:
    """Return what is handed to the file as a command line; empty where it is none.

    Text of one byte a character, read as UTF-16, is no ASCII.
    """
    try:
        text = found.data.decode("utf-16-le").partition("\0")[0]
    except UnicodeDecodeError:
        return ""
    return text.strip() if text.isascii() and text.isprintable() else ""


_LISTED_OPTION = re.compile(
    r"Boot(?P<number>[0-9A-Fa-f]{4})(?P<active>[* ]) (?P<description>[^\t]*)(\t.*)?"
)
_TIMEOUT_S = 60


def run(host: Host, *words: str) -> dict[int, str]:
    """Run efibootmgr and return the descriptions that it lists after that, by number.

    Raises ``ProgramError`` where it fails.
    """
    done = host.runner.run(["efibootmgr", *words], timeout_s=_TIMEOUT_S)
    return parse(done.stdout.decode(errors="replace"))


def parse(text: str) -> dict[int, str]:
    """Read a listing; lines that are no boot option's are of no interest here."""
    matches = map(_LISTED_OPTION.fullmatch, text.splitlines())
    return {int(found["number"], 16): found["description"].rstrip() for found in matches if found}
