"""custom.cfg, which GRUB's configuration reads at its end: our blocks in it, and what is not ours.

There is one for each kind of entry. A block is marked, and the mark says what has to be undone with
it, so that without our blocks the file is byte for byte what it was.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from initadvisor.bootloaders.entry import EntryKind
from initadvisor.core.refusals import RefusalKind, refused

_WORDS: Final = {
    EntryKind.TRIAL: "added by initadvisor for a trial, removed when it is over",
    EntryKind.PREVIOUS: "added by initadvisor for the image before the last change",
}
_MADE, _ENDED = " (file made)", " (line ended)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Custom:
    """The file's content: ``rest`` without a block, None where the file was made for that.

    ``block`` is what is between the marks, None where there is none.
    """

    rest: str | None
    block: str | None


def identifier(kind: EntryKind) -> str:
    """Return what GRUB calls our entry."""
    return f"initadvisor-{kind}"


def split(content: str | None, kind: EntryKind) -> Custom:
    """Tell the block of a kind and the rest apart; ``content`` is None where there is no file.

    Raises ``RefusedError`` where our marks are there, but not as they were written.
    """
    if content is None:
        return Custom(rest=None, block=None)
    name = identifier(kind)
    marks = content.count(f"BEGIN {name}"), content.count(f"END {name}")
    if marks == (0, 0):
        return Custom(rest=content, block=None)
    # Counted first: with many beginnings the pattern would look for an end behind each of them.
    block = _pattern(kind).search(content) if marks == (1, 1) else None
    if block is None:
        reason = f"the block of {name} in custom.cfg was changed by somebody else"
        raise refused(RefusalKind.FOREIGN_ENTRY, reason, "remove it by hand")
    before, after = content[: block.start()], content[block.end() :]
    # The line that was ended has to stay so while something follows: our other block, or a line
    # that somebody has added.
    is_last = not after and not before.endswith(tuple(map(_end, EntryKind)))
    rest = before + ("\n" if block["newline"] and not (block["note"] == _ENDED and is_last) else "")
    rest += after
    made = block["note"] == _MADE and not rest
    return Custom(rest=None if made else rest, block=block["text"])


def without_ours(content: str | None) -> str | None:
    """Return the file's content without any block of ours, None where it was made for them."""
    for kind in EntryKind:
        content = split(content, kind).rest
    return content


def joined(rest: str | None, block: str, kind: EntryKind) -> str:
    """Return the file's content with our block at its end, where it changes no entry's number."""
    foreign = without_ours(rest)
    note = ""
    if foreign is None:
        note = _MADE
    elif foreign and not foreign.endswith("\n"):
        note = _ENDED
    newline = "\n" if rest and not rest.endswith("\n") else ""
    return f"{rest or ''}{newline}{_begin(kind)}{note} ###\n{block}{_end(kind)}\n"


def _pattern(kind: EntryKind) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<newline>\n?)^{re.escape(_begin(kind))}(?P<note> \([a-z ]+\))? ###\n"
        rf"(?P<text>.*?)^{re.escape(_end(kind))}\n",
        re.MULTILINE | re.DOTALL,
    )


def _begin(kind: EntryKind) -> str:
    return f"### BEGIN {identifier(kind)}: {_WORDS[kind]}"


def _end(kind: EntryKind) -> str:
    return f"### END {identifier(kind)} ###"
