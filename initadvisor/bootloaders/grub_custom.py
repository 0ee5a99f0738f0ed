"""custom.cfg, which GRUB's configuration reads at its end: our block in it, and what is not ours.

The block is marked, and the mark says what has to be undone with it, so that without the block the
file is byte for byte what it was.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from initadvisor.model.refusal import RefusalKind, refused

IDENTIFIER: Final = "initadvisor-trial"
"""What GRUB calls our entry."""

_WORDS = "added by initadvisor for a trial, removed when it is over"
_BEGIN = f"### BEGIN {IDENTIFIER}: {_WORDS}"
_MADE, _ENDED = " (file made)", " (line ended)"
_END = f"### END {IDENTIFIER}"
_BLOCK = re.compile(
    rf"(?P<before>\n?)^{re.escape(_BEGIN)}(?P<note> \([a-z ]+\))? ###\n"
    rf"(?P<text>.*?)^{re.escape(_END)} ###\n",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Custom:
    """The file's content: ``foreign`` without our block, None where the file was made for it.

    ``block`` is what is between the marks, None where there is none.
    """

    foreign: str | None
    block: str | None


def split(content: str | None) -> Custom:
    """Tell our block and the rest apart; ``content`` is None where there is no file.

    Raises ``RefusedError`` where our marks are there, but not as they were written.
    """
    if content is None:
        return Custom(foreign=None, block=None)
    blocks = list(_BLOCK.finditer(content))
    marks = content.count(f"BEGIN {IDENTIFIER}") + content.count(f"END {IDENTIFIER}")
    if marks != 2 * len(blocks) or len(blocks) > 1:
        reason = f"the block of {IDENTIFIER} in custom.cfg was changed by somebody else"
        raise refused(RefusalKind.FOREIGN_ENTRY, reason, "remove it by hand")
    if not blocks:
        return Custom(foreign=content, block=None)
    block = blocks[0]
    kept = "" if block["note"] == _ENDED else block["before"]
    foreign = content[: block.start()] + kept + content[block.end() :]
    made = block["note"] == _MADE and not foreign
    return Custom(foreign=None if made else foreign, block=block["text"])


def joined(foreign: str | None, block: str) -> str:
    """Return the file's content with our block at its end, where it changes no entry's number."""
    if foreign is None:
        return f"{_BEGIN}{_MADE} ###\n{block}{_END} ###\n"
    if foreign and not foreign.endswith("\n"):
        return f"{foreign}\n{_BEGIN}{_ENDED} ###\n{block}{_END} ###\n"
    return f"{foreign}{_BEGIN} ###\n{block}{_END} ###\n"
