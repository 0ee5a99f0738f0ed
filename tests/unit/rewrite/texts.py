"""Rewrites a text as a generator's only configuration file."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.model.shell import Shell
from initadvisor.rewrite import dracut, initramfs_tools, mkinitcpio
from initadvisor.rewrite.files import ConfigFile, Reading
from initadvisor.rewrite.plan import rewrite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.model.setting import Setting
    from initadvisor.rewrite.edits import Wish


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """A text with the wanted setting; ``changed_lines`` count from 1 in the new text."""

    text: str
    changed_lines: tuple[int, ...]


def with_dracut(text: str, setting: Setting, command: Sequence[str] | None = None) -> Rewritten:
    """Rewrite a text as dracut reads it."""
    return _rewritten(text, dracut.wishes(setting, command), Shell.BASH)


def with_initramfs_tools(text: str, setting: Setting) -> Rewritten:
    """Rewrite a text as mkinitramfs reads it."""
    return _rewritten(text, initramfs_tools.wishes(setting), Shell.SH)


def with_mkinitcpio(text: str, setting: Setting) -> Rewritten:
    """Rewrite a text as mkinitcpio reads it."""
    return _rewritten(text, mkinitcpio.wishes(setting), Shell.BASH)


def _rewritten(text: str, wishes: Sequence[Wish], shell: Shell) -> Rewritten:
    edits = rewrite((ConfigFile(path="", text=text),), wishes, Reading(shell=shell))
    if not edits:
        return Rewritten(text=text, changed_lines=())
    return Rewritten(text=edits[0].after, changed_lines=_changed(text, edits[0].after))


def _changed(before: str, after: str) -> tuple[int, ...]:
    """Return the lines of the new text that are new or changed."""
    matcher = difflib.SequenceMatcher(a=before.split("\n"), b=after.split("\n"), autojunk=False)
    return tuple(
        index + 1
        for tag, _, _, first, last in matcher.get_opcodes()
        if tag != "equal"
        for index in range(first, last)
    )
