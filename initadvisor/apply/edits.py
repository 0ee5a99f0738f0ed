"""What applying a setting changes in configuration files, for one image or for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError
from initadvisor.generators.rewriting import texts_of
from initadvisor.rewrite.files import FileEdit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.core.settings import Setting
    from initadvisor.generators import Generator, InstalledImage
    from initadvisor.host import Host


def planned_edits(
    host: Host,
    generator: Generator,
    default: InstalledImage,
    setting: Setting,
    *,
    everything: bool,
) -> tuple[tuple[FileEdit, ...], tuple[str, ...]]:
    """Return what to change so that the default image gets the setting.

    With ``everything`` all the others, too: a preset of mkinitcpio may have a configuration of its
    own, or read none of the drop-ins. Where that cannot be had, the second part says of which image
    and why; it is then left as it is, or an obstacle where a changed file is read for it, too.

    Raises ``RefusedRewriteError``, ``UnsafeError`` and what else ``rewritten`` does for the default
    image.
    """
    edits = generator.rewritten(host, default.kernel_release, setting)
    unchanged: list[str] = []
    for image in generator.images(host) if everything else ():
        try:
            more = _more(host, generator, image, setting, edits)
        except InitadvisorError as err:
            unchanged.append(f"{image.path} cannot be given the setting: {err.message}")
        else:
            edits = _merged(edits, more)
    return edits, tuple(unchanged)


def _more(
    host: Host,
    generator: Generator,
    image: InstalledImage,
    setting: Setting,
    edits: Sequence[FileEdit],
) -> tuple[FileEdit, ...]:
    """Return what to change beside ``edits``; nothing where those give the setting already."""
    release, texts = image.kernel_release, texts_of(edits)
    found = generator.configured(host, release, texts=texts, image=image).setting
    if generator.compressor(host, found) == generator.compressor(host, setting):
        return ()
    return generator.rewritten(host, release, setting, texts=texts, image=image)


def _merged(first: Sequence[FileEdit], second: Sequence[FileEdit]) -> tuple[FileEdit, ...]:
    """Return both as one; a file that is in both is now what the first found."""
    before = {edit.path: edit.before for edit in (*second, *first)}
    after = {edit.path: edit.after for edit in (*first, *second)}
    return tuple(
        FileEdit(path=path, before=before[path], after=text) for path, text in after.items()
    )
