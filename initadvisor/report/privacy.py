"""Text that may be given away: without names of users and of the machine, IDs and serial numbers.

What a report takes is chosen field by field; this is for names and sentences that may hold more.
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from initadvisor.core.settings import Setting
from initadvisor.core.text import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import DataclassInstance

    from initadvisor.host import Host

_Value = TypeVar("_Value")

HIDDEN = "[hidden]"
_LONGEST = 1000
"""Characters: no sentence of this program is as long, whoever names its files."""

_LEAST_NAME = 3
"""Shorter names are parts of too many words; where they are homes, they are hidden all the same."""

_COMMON_NAMES = frozenset(
    [
        "arch",
        "archlinux",
        "debian",
        "desktop",
        "fedora",
        "guest",
        "host",
        "kernel",
        "laptop",
        "linux",
        "localhost",
        "server",
        "system",
        "systemd",
        "test",
        "ubuntu",
        "user",
        "virtual",
    ]
)
"""Names of many machines and users, which say nothing of one; they stand in our own sentences."""

_FIRST_USER, _NOBODY = 1000, 65534
_SERIALS = (
    *(f"/sys/class/dmi/id/{one}" for one in ("product_serial", "product_uuid", "board_serial")),
    "/sys/class/dmi/id/chassis_serial",
)
_BY = ("id", "uuid", "label", "partuuid", "partlabel")
_IDS = (
    r"(?<![0-9A-Za-z])[0-9A-Fa-f]{32}(?![0-9A-Za-z])",
    r"(?<![0-9A-Za-z])[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![0-9A-Za-z])",
    r"(?<![0-9A-Za-z])[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}(?![0-9A-Za-z])",
    r"(?<=/home/)[^/\s]+",
    r"(?<=/media/)[^/\s]+",
    r"(?<=/run/user/)[^/\s]+",
    *(rf"(?<=by-{kind}[-/])[^\s/]+" for kind in _BY),
)
"""Machine, boot and partition IDs, network addresses, the users of directories, links to disks."""


class Privacy:
    """Knows what of one machine is private."""

    def __init__(self, host: Host) -> None:
        words = sorted({re.escape(word) for word in _private_words(host)}, key=len, reverse=True)
        known = [rf"(?<![0-9A-Za-z])(?:{'|'.join(words)})(?![0-9A-Za-z])"] if words else []
        self._pattern = re.compile("|".join([*_IDS, *known]))

    def masked(self, value: _Value) -> _Value:
        """Return a value with all its texts masked, fit to be shown, and not too long."""
        return cast("_Value", self._masked(value))

    def _masked(self, value: object) -> object:
        match value:
            case Enum() | Setting():
                return value
            case str():
                text = shown(self._pattern.sub(HIDDEN, value))
                return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
            case Path():
                return Path(self.masked(str(value)))
            case tuple():
                return tuple(map(self._masked, value))
            case _ if is_dataclass(value) and not isinstance(value, type):
                return self._masked_fields(value)
            case _:
                return value

    def _masked_fields(self, value: DataclassInstance) -> object:
        was = {field.name: getattr(value, field.name) for field in fields(value)}
        now = {name: self._masked(one) for name, one in was.items()}
        changed = {name: one for name, one in now.items() if one is not was[name]}
        return replace(value, **changed) if changed else value


def _private_words(host: Host) -> Iterator[str]:
    for word in _names(host):
        if len(word) >= _LEAST_NAME and word.casefold() not in _COMMON_NAMES:
            yield word
    serials = [host.read_text(path) for path in _SERIALS]
    serials += [
        host.read_text(f"/{path.relative_to(host.root)}")
        for pattern in ("*/device/serial", "*/device/wwid", "*/serial")
        for path in host.path("/sys/block").glob(pattern)
    ]
    yield from (word for text in serials if len(word := (text or "").strip()) >= _LEAST_NAME)


def _names(host: Host) -> Iterator[str]:
    """Yield the machine's name, and for each user the name, the whole name and the home's."""
    yield (host.read_text("/etc/hostname") or "").strip()
    for line in (host.read_text("/etc/passwd") or "").splitlines():
        user, *others = line.split(":")
        if len(others) != 6 or not others[1].isdecimal():
            continue
        if _FIRST_USER <= int(others[1]) < _NOBODY:
            yield user
            yield others[3].partition(",")[0].strip()
            yield others[4].rpartition("/")[2]
