"""efibootmgr(8): run, and what it prints.

It lists all boot options after every change. Up to version 17 a line ends with the option's
description unless ``-v`` is given; from 18 on a tab and the device path follow it always.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from initadvisor.host import Host

_OPTION = re.compile(
    r"Boot(?P<number>[0-9A-Fa-f]{4})(?P<active>[* ]) (?P<description>[^\t]*)(\t.*)?"
)
_NUMBER = re.compile(r"[0-9A-Fa-f]{4}")
_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What efibootmgr lists; ``next_number`` is None where no boot option is selected."""

    next_number: int | None
    descriptions: Mapping[int, str]


def run(host: Host, *words: str) -> Listing:
    """Run efibootmgr and return what it lists after that.

    Raises ``ProgramError`` where it fails.
    """
    done = host.runner.run(["efibootmgr", *words], timeout_s=_TIMEOUT_S)
    return parse(done.stdout.decode(errors="replace"))


def parse(text: str) -> Listing:
    """Read a listing; lines that are no boot option's are of no interest here."""
    next_number: int | None = None
    descriptions: dict[int, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(": ")
        if colon and name == "BootNext" and _NUMBER.fullmatch(value.strip()):
            next_number = int(value, 16)
        elif match := _OPTION.fullmatch(line):
            descriptions[int(match["number"], 16)] = match["description"].rstrip()
    return Listing(next_number=next_number, descriptions=descriptions)
