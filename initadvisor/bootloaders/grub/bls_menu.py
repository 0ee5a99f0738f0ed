"""A menu with the entries that blscfg adds when GRUB runs, in place of that command."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.bootloaders.grub.bls import (
    BlsEntry,
    GrubVariant,
    hangs_on,
    in_menu_order,
    is_entry,
    read_entry,
)
from initadvisor.bootloaders.grub.script import ScriptError, statements
from initadvisor.bootloaders.places import file_system_of, read_bytes
from initadvisor.core.errors import InitadvisorError, NeedsRootError
from initadvisor.core.refusals import RefusalKind, refused
from initadvisor.core.text import decoded
from initadvisor.host.files import listing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from initadvisor.bootloaders.grub.environment import GrubPlace
    from initadvisor.bootloaders.grub.script import Statement
    from initadvisor.core.refusals import RefusedError
    from initadvisor.host import Host


_COMMANDS = frozenset({"blscfg", "bls_import"})
_ENTRIES = "/loader/entries"
_MOST_ENTRIES = 200
_LARGEST_BYTES = 32 << 10
"""What every GRUB reads whole: upstream's knows 10,000 lines at most."""

_COUNTING = re.compile(
    r"### BEGIN \S*08_fallback_counting ###\n.*?### END \S*08_fallback_counting ###\n", re.DOTALL
)
"""Where Fedora has the second entry boot, once ``boot_counter`` has run out."""

_REMEDY = "have grub2-mkconfig make grub.cfg anew"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlsMenu:
    """grub.cfg with the entries of ``variant`` in it.

    ``files``: of each identifier its file. ``damaged``: what is wrong with which file, in words.
    """

    variant: GrubVariant
    text: str
    files: Mapping[str, str]
    damaged: tuple[str, ...]


def uses_bls(script: Sequence[Statement]) -> bool:
    """Tell whether GRUB is to read entries of the boot loader specification."""
    return any(statement.command in _COMMANDS for statement in script)


def bls_menus(
    host: Host,
    where: GrubPlace,
    text: str,
    script: Sequence[Statement],
    variables: Mapping[str, str],
) -> tuple[BlsMenu, ...]:
    """Return the menu as each GRUB would make it that this may be: nearly always one.

    ``variables``: GRUB's environment. Raises ``RefusedError`` where it cannot be told what
    GRUB will make, ``InitadvisorError`` where the entries cannot be read.
    """
    called = [statement for statement in script if statement.command in _COMMANDS]
    if len(called) != 1 or called[0].blocks or len(called[0].words) > 1:
        why = "calls blscfg with arguments, or more than once: what that shows is not known"
        raise _unclear(where.configuration, why)
    return tuple(
        _menu(host, where, text, script, variables, called[0], variant)
        for variant in _variants(host, where, script)
    )


def _menu(
    host: Host,
    where: GrubPlace,
    text: str,
    script: Sequence[Statement],
    variables: Mapping[str, str],
    call: Statement,
    variant: GrubVariant,
) -> BlsMenu:
    directory = _directory(host, where, variables, variant)
    entries = in_menu_order(_entries(host, directory, variant), variant)
    names = {"default_kernelopts", "early_initrd"}.union(*(entry.variables for entry in entries))
    values = {name: _value(where, name, script, variables) for name in sorted(names)}
    known = {name: value for name, value in values.items() if value is not None}
    made, damaged = "", []
    for entry in entries:
        path, body, problem = f"{directory}/{entry.name}", "", entry.problem
        if (entry.boots or entry.uncertain) and hangs_on(entry.name, variant):
            why = f"has .conf in the middle of its name, where {variant}'s GRUB hangs"
            raise _unclear(path, why, "rename that file before the next boot")
        if entry.boots and not entry.uncertain:
            body = entry.body(known, variant)
            if not _is_plain(body):
                body, problem = "", "says more than a kernel and its command line"
        if entry.boots or entry.uncertain:
            made += entry.menu_entry(body, known, variant)
        if problem:
            damaged.append(f"{path} {problem}")
    text = f"{text[: call.start]}\n{made}{text[call.end :]}"
    if not variables.get("boot_counter"):
        text = _COUNTING.sub("", text)
    files = {entry.identifier: f"{directory}/{entry.name}" for entry in entries}
    return BlsMenu(variant=variant, text=text, files=files, damaged=tuple(damaged))


def _variants(host: Host, where: GrubPlace, script: Sequence[Statement]) -> tuple[GrubVariant, ...]:
    """Return whose blscfg it is; both where nothing tells: a signed GRUB has it built in."""
    loaded = {w.raw for each in script if each.command == "insmod" for w in each.words[1:]}
    modules = {path.name for path in host.path(where.directory).glob("*/bls*.mod")}
    if "blscfg" in loaded or "blscfg.mod" in modules:
        return (GrubVariant.FEDORA,)
    if "blsuki" in loaded or "blsuki.mod" in modules:
        return (GrubVariant.UPSTREAM,)
    return tuple(GrubVariant)


def _directory(
    host: Host, where: GrubPlace, variables: Mapping[str, str], variant: GrubVariant
) -> str:
    """Return where the entries are, on the file system of grub.cfg; Fedora looks in /boot, too."""
    mount_point = file_system_of(host, where.directory).mount_point.rstrip("/")
    places = [_ENTRIES]
    if variant is GrubVariant.FEDORA:
        places = [variables.get("blsdir", _ENTRIES), f"/boot{_ENTRIES}"]
    for place in places:
        if host.path(f"{mount_point}{place}").is_dir():
            return f"{mount_point}{place}"
    missing = f"{mount_point}{places[0]}"
    raise _unclear(missing, "is not there, where GRUB looks for entries")


def _entries(host: Host, directory: str, variant: GrubVariant) -> Iterator[BlsEntry]:
    files = [path for path in listing(host, directory) if is_entry(path.name, variant)]
    if len(files) > _MOST_ENTRIES:
        why = f"has more than {_MOST_ENTRIES} entries, too many to read"
        raise _unclear(directory, why, "remove those of kernels that are not there")
    for path in files:
        try:
            content = read_bytes(path) or b""
        except NeedsRootError:
            raise
        except InitadvisorError as err:
            yield BlsEntry(name=path.name, values={}, uncertain=f"is not known: {err.message}")
            continue
        if len(content) > _LARGEST_BYTES:
            large = f"is larger than {_LARGEST_BYTES} bytes"
            yield BlsEntry(name=path.name, values={}, uncertain=large)
        else:
            yield read_entry(path.name, decoded(content), variant)


def _value(
    where: GrubPlace, name: str, script: Sequence[Statement], variables: Mapping[str, str]
) -> str | None:
    """Return a variable's value when blscfg runs; None where it has none.

    grub.cfg sets ``kernelopts`` where the environment does not. Raises ``RefusedError`` where it
    sets it otherwise.
    """
    found = {
        word.literal.partition("=")[2] if word.literal is not None else None
        for statement in script
        for word in statement.words[: 2 if statement.command == "set" else 1]
        if word.raw.startswith(f"{name}=")
        and not any(block.command == "menuentry" for block in statement.blocks)
    }
    kept = variables.get(name)
    if not found or (kept and name == "kernelopts"):
        return kept
    value = found.pop()
    if found or value is None or kept:
        raise _unclear(where.configuration, f"sets {name}, which entries use, to several values")
    return value


def _is_plain(body: str) -> bool:
    """Tell whether GRUB reads each line of an entry as the one command that it is here."""
    if len(body) > _LARGEST_BYTES:
        return False
    try:
        found = statements(body)
    except ScriptError:
        return False
    words = {word.raw for statement in found for word in statement.words}
    return len(found) == body.count("\n") and not words & {"{", "}"}


def _unclear(path: str, why: str, remedy: str = _REMEDY) -> RefusedError:
    return refused(RefusalKind.UNCLEAR_DEFAULT, f"{path} {why}", remedy)
