"""custom.cfg, which GRUB's configuration reads at its end: our blocks in it, and what is not ours.

There is one for each kind of entry, and each system that has this ``/boot`` has its own. A block is
marked with its owner, and the mark says what has to be undone with it, so that without our blocks
the file is byte for byte what it was.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from initadvisor.bootloaders.entry import EntryKind
from initadvisor.core.refusals import RefusalKind, refused
from initadvisor.host.owner import OWNER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_WORDS: Final = {
    EntryKind.TRIAL: "added by initadvisor for a trial, removed when it is over",
    EntryKind.PREVIOUS: "added by initadvisor for the image before the last change",
}
_MADE, _ENDED = " (file made)", " (line ended)"

_NAME = rf"initadvisor-(?P<owner>{OWNER})-(?P<kind>{'|'.join(EntryKind)})"
_BEGIN = re.compile(rf"### BEGIN {_NAME}: (?P<words>[a-z ,]+)(?P<note> \([a-z ]+\))? ###\n")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_END = re.compile(rf"### END {_NAME} ###\n?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Custom:
    """The file's content: ``rest`` without a block, None where the file was made for that.

    ``block`` is what is between the marks, None where there is none.
    """

    rest: str | None
    block: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomBlock:
    """An entry of this program's, whichever system's, and where in the file it stands."""

    owner: str
    kind: EntryKind
    note: str
    text: str
    start: int
    end: int


def identifier(owner: str, kind: EntryKind) -> str:
    """Return what GRUB calls an owner's entry."""
    return f"initadvisor-{owner}-{kind}"


def split(content: str | None, owner: str, kind: EntryKind) -> Custom:
    """Tell an owner's block of a kind and the rest apart; ``content`` is None without a file.

    Raises ``RefusedError`` where its marks are there, but not as they were written.
    """
    if content is None:
        return Custom(rest=None, block=None)
    name = identifier(owner, kind)
    marks = content.count(f"BEGIN {name}"), content.count(f"END {name}")
    if marks == (0, 0):
        return Custom(rest=content, block=None)
    # Counted first: of a file full of marks no block is looked at.
    found = [
        each
        for each in (blocks(content) if marks == (1, 1) else ())
        if (each.owner, each.kind) == (owner, kind)
    ]
    if not found:
        reason = f"the block of {name} in custom.cfg was changed by somebody else"
        raise refused(RefusalKind.FOREIGN_ENTRY, reason, "remove it by hand")
    rest = _without(content, found)
    made = found[0].note == _MADE and not rest
    return Custom(rest=None if made else rest, block=found[0].text)


def without_ours(content: str | None, owner: str) -> str | None:
    """Return the file's content without any block of an owner, None where it was made for them."""
    for kind in EntryKind:
        content = split(content, owner, kind).rest
    return content


def joined(rest: str | None, block: str, owner: str, kind: EntryKind) -> str:
    """Return the file's content with our block at its end, where it changes no entry's number."""
    foreign = _without_any(rest)
    note = ""
    if foreign is None:
        note = _MADE
    elif foreign and not foreign.endswith("\n"):
        note = _ENDED
    newline = "\n" if rest and not rest.endswith("\n") else ""
    name = identifier(owner, kind)
    begin, end = f"### BEGIN {name}: {_WORDS[kind]}{note} ###\n", f"### END {name} ###\n"
    return f"{rest or ''}{newline}{begin}{block}{end}"


def blocks(content: str) -> Iterator[CustomBlock]:
    """Yield the blocks that are whole and marked as they were written, of every owner."""
    opened: re.Match[str] | None = None
    start = position = text_start = 0
    for line in _LINE.findall(content):
        following = position + len(line)
        if begun := _BEGIN.fullmatch(line):
            opened, start, text_start = begun, position, following
        elif (ended := _END.fullmatch(line)) and opened and line.endswith("\n"):
            kind = EntryKind(opened["kind"])
            same = ended.group("owner", "kind") == opened.group("owner", "kind")
            if same and opened["words"] == _WORDS[kind]:
                text = content[text_start:position]
                yield CustomBlock(
                    owner=opened["owner"],
                    kind=kind,
                    note=opened["note"] or "",
                    text=text,
                    start=start,
                    end=following,
                )
            opened = None
        position = following


def _without(content: str, found: Sequence[CustomBlock]) -> str:
    """Return the content without some of its blocks, which are in their order."""
    kept = ""
    pieces: list[str] = []
    end = len(content)
    for block in reversed(found):
        pieces.append(content[block.end : end])
        kept = kept or pieces[-1]
        end = block.start
        # The line that was ended has to stay so while something follows: another block, or a line
        # that somebody has added.
        if block.note == _ENDED and not kept and content.endswith("\n", 0, end):
            line = content[content.rfind("\n", 0, end - 1) + 1 : end - 1]
            end -= not _END.fullmatch(line)
    return "".join((content[:end], *reversed(pieces)))


def _without_any(content: str | None) -> str | None:
    """Return what neither this program nor one on another system has put into the file.

    None where it was made for the blocks.
    """
    found = list(blocks(content or ""))
    rest = _without(content or "", found) if found else content
    return None if found and found[0].note == _MADE and not rest else rest
