"""From an entry of GRUB's menu to what it boots, and to an entry of ours.

Ours is the default entry's own text with another image and some words more: whatever it
does to find its disk and to set the screen up is kept as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.bootloaders.entry import BootEntry, BootFile, replaced
from initadvisor.bootloaders.extra_cmdline import new_parameters, with_parameters
from initadvisor.bootloaders.grub.custom import identifier
from initadvisor.bootloaders.managed_files import image_note
from initadvisor.bootloaders.places import file_named
from initadvisor.core.refusals import RefusalKind, refused

if TYPE_CHECKING:
    from initadvisor.bootloaders.entry import TrialRequest
    from initadvisor.bootloaders.grub.menu import GrubMenuEntry
    from initadvisor.bootloaders.grub.script import GrubWord, Statement
    from initadvisor.host import Host


_LINUX = frozenset({"linux", "linuxefi", "linux16"})
_INITRD = frozenset({"initrd", "initrdefi", "initrd16"})
_LEFT_OUT = frozenset({"savedefault", "recordfail"})
"""Entries of ours are neither remembered as the default nor as a boot that failed."""

_FOREIGN = frozenset(
    {"multiboot", "multiboot2", "xen_hypervisor", "module", "module2", "chainloader", "configfile"}
    | {"devicetree", "boot", "source", ".", "normal", "legacy_configfile", "kexec"}
)
_REMEDY = "have an entry that starts a kernel as grub-mkconfig writes it be the default"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialText:
    """An entry of ours as GRUB reads it, and what of it the plan names."""

    title: str
    options: str
    extra_cmdline: tuple[str, ...]
    text: str


def boot_entry(host: Host, entry: GrubMenuEntry, *, mount_point: str, source: str) -> BootEntry:
    """Return what an entry boots; its files are looked for where ``mount_point`` is mounted.

    Raises ``RefusedError`` where that cannot be told, or a file is missing.
    """
    linux, initrd = _loading(entry)
    return BootEntry(
        identifier=entry.path,
        title=entry.title,
        kernel=_file(host, linux.words[1], mount_point),
        initrds=tuple(_file(host, word, mount_point) for word in initrd.words[1:]),
        options=_options(entry, linux),
        source=source,
    )


def trial_text(
    entry: GrubMenuEntry, default: BootEntry, request: TrialRequest, *, image: str
) -> TrialText:
    """Return the entry that loads ``image``, named as for GRUB, in place of what it replaces."""
    linux, initrd = _loading(entry)
    shown = request.title_beside(default.title)
    added = new_parameters(default.options, request.parameters)
    options = with_parameters(default.options, added)
    images = replaced(default.initrds, request, image)
    edits = [
        (linux.words[1].end, linux.end, f" {options}" if options else ""),
        (initrd.words[1].start, initrd.end, " ".join(images)),
        *((each.start, each.end, "") for each in entry.statements if each.command in _LEFT_OUT),
    ]
    body = entry.body
    for start, end, text in sorted(edits, reverse=True):
        body = body[: start - entry.body_start] + text + body[end - entry.body_start :]
    head = " ".join((_quoted(shown), *entry.head, "--id", _quoted(identifier(request.kind))))
    return TrialText(
        title=shown,
        options=options,
        extra_cmdline=added,
        text=f"{image_note(request.image)}menuentry {head} {{{body}}}\n",
    )


def _loading(entry: GrubMenuEntry) -> tuple[Statement, Statement]:
    """Return the statements that load kernel and images, where nothing else decides on them."""
    linux = [each for each in entry.statements if each.command in _LINUX]
    initrd = [each for each in entry.statements if each.command in _INITRD]
    reason = None
    if strange := sorted({each.command for each in entry.statements} & _FOREIGN):
        reason = f"it uses {', '.join(strange)}"
    elif len(linux) != 1 or len(initrd) != 1:
        reason = "it does not load exactly one kernel and one set of images"
    elif min(len(linux[0].words), len(initrd[0].words)) < 2:
        reason = "it names no kernel or no image"
    elif any(each.conditional for each in (*linux, *initrd)):
        reason = "what it loads depends on a condition"
    elif any(each.conditional and each.command in _LEFT_OUT for each in entry.statements):
        reason = "whether it saves itself as the default depends on a condition"
    if reason:
        told = f"GRUB's default entry {entry.title!r} cannot be copied: {reason}"
        raise refused(RefusalKind.UNCLEAR_DEFAULT, told, _REMEDY)
    return linux[0], initrd[0]


def _options(entry: GrubMenuEntry, linux: Statement) -> str:
    start, end = linux.words[1].end - entry.body_start, linux.end - entry.body_start
    return re.sub(r"\\\n", " ", entry.body[start:end]).strip()


def _file(host: Host, word: GrubWord, mount_point: str) -> BootFile:
    named = word.literal
    path = file_named(host, named, mount_point) if named else None
    if named is None or path is None:
        told = f"{word.raw}, which GRUB's default entry loads, is not found below {mount_point}"
        raise refused(RefusalKind.UNCLEAR_DEFAULT, told, _REMEDY)
    return BootFile(named=named, path=path)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
