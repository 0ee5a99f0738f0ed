"""What applying a setting changes in configuration files, for one kernel or for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.generators.rewriting import texts_of
from initadvisor.model.errors import InitadvisorError
from initadvisor.rewrite.files import FileEdit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.generators import Generator
    from initadvisor.host import Host
    from initadvisor.model.setting import Setting


def planned_edits(
    host: Host, generator: Generator, kernel_release: str, setting: Setting, *, everything: bool
) -> tuple[tuple[FileEdit, ...], tuple[str, ...]]:
    """Return what to change so that one kernel's default image gets the setting.

    With ``everything`` those of the others, too: a preset of mkinitcpio may have a configuration of
    its own, or read none of the drop-ins. Where that cannot be had, the second part says of which
    kernel and why; its images are then left as they are, or an obstacle where a changed file is
    theirs, too.

    Raises ``RefusedRewriteError``, ``UnsafeError`` and what else ``rewritten`` does for the one.
    """
    edits = generator.rewritten(host, kernel_release, setting)
    unchanged: list[str] = []
    others = dict.fromkeys(image.kernel_release for image in generator.images(host))
    others.pop(kernel_release, None)
    for release in others if everything else ():
        try:
            more = _more(host, generator, release, setting, edits)
        except InitadvisorError as err:
            unchanged.append(f"the setting cannot be had for Linux {release}: {err.message}")
        else:
            edits = _merged(edits, more)
    return edits, tuple(unchanged)


def _more(
    host: Host,
    generator: Generator,
    release: str,
    setting: Setting,
    edits: Sequence[FileEdit],
) -> tuple[FileEdit, ...]:
    """Return what to change beside ``edits``; nothing where those give the setting already."""
    texts = texts_of(edits)
    found = generator.configured(host, release, texts=texts).setting
    if generator.compressor(host, found) == generator.compressor(host, setting):
        return ()
    return generator.rewritten(host, release, setting, texts=texts)


def _merged(first: Sequence[FileEdit], second: Sequence[FileEdit]) -> tuple[FileEdit, ...]:
    """Return both as one; a file that is in both is now what the first found."""
    before = {edit.path: edit.before for edit in (*second, *first)}
    after = {edit.path: edit.after for edit in (*first, *second)}
    return tuple(
        FileEdit(path=path, before=before[path], after=text) for path, text in after.items()
    )
