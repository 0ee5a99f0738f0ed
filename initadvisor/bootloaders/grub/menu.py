"""GRUB's menu: which entry its configuration boots by default, and what that entry does."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.bootloaders.grub.bls import GrubVariant
from initadvisor.bootloaders.grub.script import GrubWord, ScriptError, Statement, statements
from initadvisor.core.refusals import RefusalKind, RefusedError, refused

if TYPE_CHECKING:
    from collections.abc import Sequence


_IDENTIFIER_OPTIONS = ("--id", "$menuentry_id_option")
_ARGUMENTS = ("--class", "--users", "--hotkey", "--source", *_IDENTIFIER_OPTIONS)
"""Options of menuentry and submenu that have an argument, here or behind an equals sign."""

_ASSIGNED_DEFAULT = re.compile(r"default=(?P<value>.*)", re.DOTALL)
_NEXT_ENTRY = re.compile(r'"?\$\{?next_entry\}?"?')
_SAVED_ENTRY = re.compile(r'"?\$\{?saved_entry\}?"?')
_NAME_ONE = "name it: GRUB_DEFAULT in /etc/default/grub, then update-grub or grub-mkconfig"


@dataclass(frozen=True, slots=True, kw_only=True)
class GrubMenuEntry:
    """An entry of the menu, ``path`` of identifiers or titles that leads to it as GRUB writes it.

    ``statements`` are those of its body; ``head`` are its own words that a copy needs, too.
    """

    title: str
    path: str
    head: tuple[str, ...]
    body: str
    body_start: int
    statements: tuple[Statement, ...]


def parsed(text: str, path: str) -> tuple[Statement, ...]:
    """Read a script; raises ``RefusedError`` where it is none."""
    try:
        return statements(text)
    except ScriptError as err:
        reason = f"{path} is not understood: {err}"
        raise refused(RefusalKind.UNCLEAR_DEFAULT, reason, "make it anew: grub-mkconfig") from err


def refuse_what_keeps(script: Sequence[Statement], path: str) -> None:
    """Raise ``RefusedError`` where GRUB would not read our entry, or not forget the selection."""
    if not any(_saves_next_entry(statement) for statement in script):
        reason = f"{path} does not forget next_entry, so that a trial would be booted for ever"
        raise refused(RefusalKind.NO_ONE_SHOT, reason, "make it anew: grub-mkconfig")
    if not custom_sources(script):
        reason = f"{path} does not read custom.cfg, where a trial's entry goes"
        remedy = "restore /etc/grub.d/41_custom (executable), then update-grub or grub-mkconfig"
        raise refused(RefusalKind.NO_ONE_SHOT, reason, remedy)
    if any("check_signatures" in word.raw for each in script for word in each.words):
        reason = f"{path} has GRUB check signatures, and a trial's entry has none"
        remedy = "trials are not possible with check_signatures"
        raise refused(RefusalKind.SIGNED_CONFIGURATION, reason, remedy)


def custom_sources(script: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return the statements that read custom.cfg (/etc/grub.d/41_custom)."""
    return tuple(
        statement
        for statement in script
        if statement.command in {"source", "."}
        and not statement.blocks
        and statement.words[-1].raw.strip("\"'").endswith("/custom.cfg")
    )


def default_entry(
    text: str,
    script: Sequence[Statement],
    path: str,
    *,
    saved_entry: str | None,
    variant: GrubVariant | None = None,
) -> GrubMenuEntry:
    """Return the entry that is booted when ``next_entry`` is not set.

    ``variant``: whose GRUB it is, None where that is not known and all of them have to agree.

    Raises ``RefusedError`` where nothing says for certain which one that is.
    """
    wanted = _wanted(script, path, saved_entry)
    limit = min((source.start for source in custom_sources(script)), default=len(text))
    inside: Statement | None = None
    names: list[str] = []
    for part in wanted.parts:
        if inside and inside.command == "menuentry":
            raise _unclear(wanted, "that leads past an entry")
        inside = _choose(script, inside, part, limit=limit, wanted=wanted, variant=variant)
        names.append((_identifier(inside) or _title(inside)).replace(">", ">>"))
    if inside is None or inside.command != "menuentry" or inside.body is None:
        raise _unclear(wanted, "that is a submenu")
    return _menu_entry(text, script, inside, ">".join(names))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What ``default`` is set to, by the configuration at ``path``."""

    text: str
    path: str

    @property
    def parts(self) -> tuple[str, ...]:
        """What leads through submenus; a doubled ``>`` is a character (grub-core/normal/menu.c)."""
        split = self.text.replace(">>", "\0").split(">")
        return tuple(part.replace("\0", ">") for part in split)


def _unclear(wanted: _Wanted, why: str) -> RefusedError:
    reason = f"{wanted.path} boots {wanted.text!r} by default, but {why}"
    return refused(RefusalKind.UNCLEAR_DEFAULT, reason, _NAME_ONE)


def _wanted(script: Sequence[Statement], path: str, saved_entry: str | None) -> _Wanted:
    """Find the one statement that sets ``default`` when ``next_entry`` is not set."""
    values = {
        match["value"]
        for statement in script
        if not any(block.command == "menuentry" for block in statement.blocks)
        for word in statement.words[: 2 if statement.command == "set" else 1]
        if (match := _ASSIGNED_DEFAULT.fullmatch(word.raw))
        and not _NEXT_ENTRY.fullmatch(match["value"])
    }
    if len(values) != 1:
        listed = ", ".join(sorted(values)) or "nothing"
        reason = f"{path} sets default to {listed}: which entry is booted depends on more"
        raise refused(RefusalKind.UNCLEAR_DEFAULT, reason, _NAME_ONE)
    raw = values.pop()
    if _SAVED_ENTRY.fullmatch(raw):
        if not saved_entry:
            reason = "GRUB's default is the saved entry, and none is saved"
            raise refused(RefusalKind.NO_DEFAULT, reason, "save one: grub-set-default 0")
        return _Wanted(saved_entry, path)
    literal = GrubWord(raw, 0, len(raw)).literal
    if not literal:
        reason = f"{path} sets default to {raw}, which is not known before GRUB runs"
        raise refused(RefusalKind.NO_DEFAULT, reason, _NAME_ONE)
    return _Wanted(literal, path)


def _choose(
    script: Sequence[Statement],
    inside: Statement | None,
    part: str,
    *,
    limit: int,
    wanted: _Wanted,
    variant: GrubVariant | None,
) -> Statement:
    """Return the entry or submenu that one part of the default means, among those of a level.

    What begins with a number is that number (get_entry_number in grub-core/normal/menu.c). Fedora's
    GRUB looks for an identifier of that name first, then for a title, and for a number at last; it
    takes none of them where the first of several words is an identifier.
    """
    level = [
        each
        for each in script
        if each.command in {"menuentry", "submenu"}
        and (each.blocks[-1].start if each.blocks else None) == (inside.start if inside else None)
    ]
    number = _number(part)
    numbered = [] if number is None else level[number : number + 1]
    named = [each for each in level if part and part in {_identifier(each), _title(each)}]
    identified = [each for each in named if part == (_identifier(each) or _title(each))]
    upstream = named[:1] if number is None else numbered
    is_number = variant is None or _NUMBER.fullmatch(part)
    fedora = (identified or named or (numbered if is_number else []))[:1]
    first_word = part.split(maxsplit=1)[:1]
    if not identified and any([_identifier(each) or _title(each)] == first_word for each in level):
        fedora = []
    if variant is None and upstream != fedora:
        raise _unclear(wanted, "GRUB and Fedora's GRUB take that for different entries")
    chosen = fedora if variant is GrubVariant.FEDORA else upstream
    if not chosen:
        missing = "there is no such entry"
        raise _unclear(wanted, missing if number is None else "there are not so many entries")
    found = chosen[0]
    if chosen != numbered:
        number = None
    before = level[: level.index(found) + 1]
    if number is not None and (any(each.conditional for each in before) or found.start > limit):
        raise _unclear(wanted, "which number an entry has depends on what GRUB finds")
    if found.conditional:
        raise _unclear(wanted, "whether the entry is there depends on what GRUB finds")
    if number is None and any(map(_has_computed_name, before)):
        raise _unclear(wanted, "what an entry before it is called depends on what GRUB finds")
    return found


_NUMBER = re.compile(
    r"[ \t\r\n]*(?:0x(?P<hex>[0-9A-Fa-f]+)|(?P<octal>0[0-7]+)|(?!0x)([0-9]{1,30}))"
)


def _number(part: str) -> int | None:
    """Return the number that a default begins with as ``grub_strtoul`` reads it, None for a name.

    ``6.1 kernel`` is 6 and ``010`` is 8 (kern/misc.c, the same in 2.06 and 2.14).
    """
    found = _NUMBER.match(part)
    if found is None:
        return None
    bases = {"hex": 16, "octal": 8}
    return int(found[found.lastindex or 0], bases.get(found.lastgroup or "", 10))


def _menu_entry(
    text: str, script: Sequence[Statement], entry: Statement, path: str
) -> GrubMenuEntry:
    start, end = entry.body or (0, 0)
    return GrubMenuEntry(
        title=_title(entry) or path,
        path=path,
        head=_head(entry),
        body=text[start:end],
        body_start=start,
        statements=tuple(each for each in script if start <= each.start < end),
    )


def _options(entry: Statement) -> tuple[list[tuple[str, GrubWord | None]], list[GrubWord]]:
    """Return the options of a menuentry with their arguments, and its other words."""
    options: list[tuple[str, GrubWord | None]] = []
    others: list[GrubWord] = []
    words = list(entry.words[1:])
    while words:
        word = words.pop(0)
        if word.raw in _ARGUMENTS and words:
            options.append((word.raw, words.pop(0)))
        elif word.raw.startswith("-"):
            name, equals, value = word.raw.partition("=")
            start = word.end - len(value)
            options.append((name, GrubWord(value, start, word.end) if equals else None))
        else:
            others.append(word)
    return options, others


def _identifier(entry: Statement) -> str | None:
    given = [word for name, word in _options(entry)[0] if name in _IDENTIFIER_OPTIONS]
    return given[-1].literal if given and given[-1] else None


def _has_computed_name(entry: Statement) -> bool:
    """Tell whether a variable decides what an entry's identifier or title is."""
    options, others = _options(entry)
    identifiers = [word for name, word in options if name in _IDENTIFIER_OPTIONS and word]
    return any(word.literal is None for word in (*identifiers, *others[:1]))


def _title(entry: Statement) -> str:
    others = _options(entry)[1]
    return (others[0].literal or "") if others else ""


def _head(entry: Statement) -> tuple[str, ...]:
    """Return who may boot the entry, and what it looks like."""
    kept: list[str] = []
    for name, word in _options(entry)[0]:
        if name in {"--class", "--users"} and word:
            kept += [name, word.raw]
        elif name == "--unrestricted":
            kept.append(name)
    return tuple(kept)


def _saves_next_entry(statement: Statement) -> bool:
    return statement.command == "save_env" and "next_entry" in {w.raw for w in statement.words[1:]}
