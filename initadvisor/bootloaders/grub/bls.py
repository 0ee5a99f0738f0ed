"""Entries of the boot loader specification as GRUB's command blscfg reads them.

There are two of that name. Upstream's (blsuki.mod, since 2.14) and the patch of Fedora, RHEL and
CentOS (blscfg.mod, branch fedora-44 of rhboot/grub2) sort entries differently, and differ in other
things that a ``GrubVariant`` names. Neither does what systemd-boot does: a file is read up to its
first line without a value, and of several titles, kernels or options the first one counts.
Fedora's of release 45 and RHEL 10's show unified kernel images, too (``efi``), earlier ones do not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cmp_to_key
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Final

from initadvisor.core.text import encoded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


SUFFIX: Final = ".conf"

_BLANK = " \t"
_SHORTEST = len("a.conf")
_IN_NAME = re.compile(r"[A-Za-z0-9_]", re.ASCII)
_FEDORA_BEGINS = ("load_video", "set gfxpayload=keep", "insmod gzio")
"""What each entry of Fedora's does first (create_entry() in blscfg.c)."""

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)


_EXPANDED = ("options", "initrd", "grub_users")


class GrubVariant(StrEnum):
    """Whose ``blscfg`` it is."""

    UPSTREAM = "upstream"
    FEDORA = "Fedora"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlsEntry:
    """A file of ``/loader/entries``: its ``name``, and the values of each key in their order.

    ``is_cut``: it goes on where GRUB stops reading. ``uncertain``: why GRUB may not show it.
    """

    name: str
    values: Mapping[str, tuple[str, ...]]
    is_cut: bool = False
    uncertain: str = ""

    @property
    def identifier(self) -> str:
        """What GRUB calls the entry."""
        return self.name.removesuffix(SUFFIX)

    @property
    def title(self) -> str:
        """What the menu shows: without a title the kernel's path."""
        return self._first("title") or self._first("linux") or ""

    @property
    def problem(self) -> str:
        """What is wrong with it, to be said behind its name; empty where nothing is."""
        if self.uncertain:
            return self.uncertain
        if not self.boots:
            return "names no kernel, so that GRUB does not show it"
        if self.is_cut:
            return "goes on behind a line without a value, where GRUB stops reading"
        return ""

    @property
    def boots(self) -> bool:
        """Whether it is shown, as far as that is certain: other entries have no kernel."""
        return "linux" in self.values

    def _first(self, key: str) -> str | None:
        return next(iter(self.values.get(key, ())), None)

    @property
    def variables(self) -> frozenset[str]:
        """The names of those that GRUB may put the values of into the entry."""
        texts = [each for key in _EXPANDED for each in self.values.get(key, ())]
        return frozenset(
            found[1] or found[2] for each in texts for found in _VARIABLE.finditer(each)
        )

    def menu_entry(self, body: str, variables: Mapping[str, str], variant: GrubVariant) -> str:
        """Return the entry as a script has it; a condition stands for what is uncertain.

        Anybody may boot it, also where GRUB asks for a password, unless it names users.
        """
        users = expanded(self._first("grub_users"), variables, variant)
        who = "--unrestricted" if users is None else f"--users {_quoted(users)}"
        names = f"{_quoted(self.title)} {who} --id {_quoted(self.identifier)}"
        made = f"menuentry {names} {{\n{body}}}\n"
        return f"if uncertain; then\n{made}fi\n" if self.uncertain else made

    def body(self, variables: Mapping[str, str], variant: GrubVariant) -> str:
        """Return what the entry does, with the values of variables in place of them."""
        fedora = variant is GrubVariant.FEDORA
        options = expanded(self._first("options"), variables, variant)
        if options is None and fedora:
            options = expanded(variables.get("default_kernelopts"), variables, variant)
        kernel, images = self._first("linux") or "", list(self.values.get("initrd", ()))
        if fedora and (early := variables.get("early_initrd")):
            beside = (images or [kernel])[0].rpartition("/")[0]
            images = [*(f"{beside}/{name}" for name in early.split(" ")), *images]
        lines = list(_FEDORA_BEGINS) if fedora else []
        lines.append(f"linux {kernel} {options or ''}")
        if images:
            initrd = " ".join(("initrd", *images))
            lines.append(_VARIABLE.sub(lambda m: variables.get(m[1] or m[2], ""), initrd))
        lines += (f"devicetree {path}" for path in self.values.get("devicetree", ()))
        return "".join(f"{line}\n" for line in lines)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def is_entry(name: str, variant: GrubVariant) -> bool:
    """Tell whether GRUB takes a file for an entry, by its name."""
    if variant is GrubVariant.FEDORA and (name.startswith(".") or len(name) < _SHORTEST):
        return False
    return name.endswith(SUFFIX)


def hangs_on(name: str, variant: GrubVariant) -> bool:
    """Tell whether GRUB never gets past an entry of that name, and so to no menu.

    Fedora's create_entry() looks for the ending again from where it has just found it.
    """
    inner = name.removesuffix(SUFFIX).removesuffix(SUFFIX)
    return variant is GrubVariant.FEDORA and SUFFIX in inner


def read_entry(name: str, text: str, variant: GrubVariant) -> BlsEntry:
    """Read a file's text as far as GRUB does."""
    values: dict[str, list[str]] = {}
    lines = iter(text.replace("\r", "").split("\n"))
    for line in lines:
        found = _key_and_value(line.partition("\0")[0].lstrip(_BLANK), variant)
        if found is None:
            break
        key, value = found
        if not key.startswith("#"):
            values.setdefault(key, []).append(value)
    is_cut = any(line.strip() and not line.startswith("#") for line in lines)
    entry = BlsEntry(
        name=name, values={key: tuple(each) for key, each in values.items()}, is_cut=is_cut
    )
    if variant is GrubVariant.FEDORA and "efi" in values:
        return replace(entry, uncertain="has a unified kernel image, which not every GRUB shows")
    if variant is GrubVariant.FEDORA and entry.boots and entry.identifier.endswith(SUFFIX):
        return replace(entry, uncertain="has another name in GRUB, which takes .conf off twice")
    return entry


def _key_and_value(line: str, variant: GrubVariant) -> tuple[str, str] | None:
    """Return what a line says; None where GRUB stops reading: it has no value."""
    if line.startswith("#"):
        return "#", ""
    if variant is GrubVariant.FEDORA:
        key, _, value = line.partition(" " if " " in line else "\t")
        return (key, value.lstrip(_BLANK)) if value else None
    key = re.split(r"[ \t]", line, maxsplit=1)[0]
    value = line[len(key) :].lstrip(_BLANK)
    return (key, value) if value else None


def expanded(value: str | None, variables: Mapping[str, str], variant: GrubVariant) -> str | None:
    """Return a value with those of variables in it; None where nothing is left.

    As ``expand_val`` does it in both: a blank follows each variable's value in place of the one
    behind its name, and a single character before or behind a variable is lost.
    """
    if not value:
        return None
    done: list[str] = []
    start = end = 0
    in_variable = False

    def add() -> bool:
        piece = value[start : end + 1]
        if not in_variable:
            done.append(piece)
        elif piece in variables:
            done.append(f"{variables[piece]} ")
        return bool(done)

    for position, character in enumerate(value):
        escaped = variant is GrubVariant.FEDORA and value[end] == "\\"
        if character == "$" and not escaped:
            if start != end and not add():
                return None
            in_variable, start = True, position + 1
        elif in_variable and not _IN_NAME.match(character):
            add()
            in_variable, start = False, position + (character == " ")
        end = position
    if start != end:
        add()
    return "".join(done) if done else None


def in_menu_order(entries: Iterable[BlsEntry], variant: GrubVariant) -> tuple[BlsEntry, ...]:
    """Return the entries as the menu would have them all, newest first.

    Of names that GRUB takes for one it shows the first that the directory happens to give it.
    """
    compare = _fedora_order if variant is GrubVariant.FEDORA else _upstream_order
    by_name = {entry.name: entry for entry in entries}
    found = [by_name[name] for name in sorted(by_name, key=cmp_to_key(compare), reverse=True)]
    for at, (one, other) in enumerate(pairwise(tuple(found))):
        if compare(one.name, other.name) == 0:
            alike = f"is to GRUB the same as {other.name}, and it shows one of them"
            found[at] = replace(one, uncertain=alike)
            found[at + 1] = replace(other, uncertain=alike.replace(other.name, one.name))
    return tuple(found)


def _fedora_order(one: str, other: str) -> int:
    """Compare name, version and release, as split_cmp() in Fedora's blscfg.c does."""
    pairs = zip(_split(one), _split(other), strict=True)
    return next((order for a, b in pairs if (order := _rpm_order(a, b))), 0)


def _split(name: str) -> tuple[bytes, bytes, bytes]:
    """Split at the last two hyphens; what is missing is missing at the end."""
    parts = encoded(name.removesuffix(SUFFIX)).rsplit(b"-", 2)
    first, second, third = [*parts, b"", b""][:3]
    return first, second, third


_SEGMENT = re.compile(rb"[0-9]+|[A-Za-z]+|[~+]")


def _rpm_order(one: bytes, other: bytes) -> int:
    """Compare versions as vercmp() in Fedora's blscfg.c does, which is rpm's.

    ``~`` is less than the end and ``+`` more than that, both are less than anything else.
    """
    for a, b in zip_longest(_SEGMENT.findall(one), _SEGMENT.findall(other), fillvalue=b""):
        if a == b:
            continue
        if b"~" in {a, b}:
            return -1 if a == b"~" else 1
        if not (a and b):
            return 1 if a else -1
        if b"+" in {a, b}:
            return -1 if a == b"+" else 1
        if a.isdigit() != b.isdigit():
            return 1 if a.isdigit() else -1
        if order := _number_order(a, b) if a.isdigit() else (a > b) - (a < b):
            return order
    return 0


def _number_order(one: bytes, other: bytes) -> int:
    a, b = (number.lstrip(b"0") for number in (one, other))
    return ((len(a), a) > (len(b), b)) - ((len(a), a) < (len(b), b))


_ENDINGS = re.compile(rb"(?:\.[A-Za-z~][A-Za-z0-9~]*)*\Z")
_NUMBER = re.compile(rb"[0-9]*")


def _upstream_order(one: str, other: str) -> int:
    """Compare names as gnulib's filevercmp() does: without their endings, and then with them."""
    a, b = encoded(one), encoded(other)
    if a.startswith(b".") != b.startswith(b"."):
        return -1 if a.startswith(b".") else 1
    plain = [_ENDINGS.sub(b"", name, count=1) for name in (a, b)]
    return _verrev_order(*plain) or _verrev_order(a, b)


def _verrev_order(one: bytes, other: bytes) -> int:
    """Compare text and numbers in turn, as gnulib's verrevcmp() does."""
    i = j = 0
    while i < len(one) or j < len(other):
        while _is_text(one, i) or _is_text(other, j):
            a, b = _rank(one, i), _rank(other, j)
            if a != b:
                return 1 if a > b else -1
            i, j = i + 1, j + 1
        numbers = _NUMBER.match(one, i), _NUMBER.match(other, j)
        a_digits, b_digits = (found[0] if found else b"" for found in numbers)
        if order := _number_order(a_digits, b_digits):
            return order
        i, j = i + len(a_digits), j + len(b_digits)
    return 0


def _is_text(name: bytes, place: int) -> bool:
    return place < len(name) and not name[place : place + 1].isdigit()


def _rank(name: bytes, place: int) -> int:
    """Return where a character is in the order: ``~``, the end, digits, letters, all others."""
    character = name[place : place + 1]
    if not character or character == b"~":
        return -2 if character else -1
    if character.isdigit():
        return 0
    return ord(character) if character.isalpha() else ord(character) + 256
