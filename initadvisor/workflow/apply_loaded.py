"""Whether the next boot loads what applying would replace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.bootloaders.detect import detect_boot_loader
from initadvisor.model.errors import InitadvisorError, UnsafeError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.model.apply import PlannedImage
    from initadvisor.model.boot_entry import BootEntry

_COPIES = (
    "initadvisor replaces what the generator writes, not copies of it (kernel-install(8) makes "
    "some): have the default entry load that, or make the change by hand and the image anew"
)


def require_loaded(host: Host, images: Sequence[PlannedImage]) -> None:
    """Raise ``UnsafeError`` where the default entry loads none of the images that are rebuilt.

    With Debian's package systemd-boot it does not: its script in /etc/initramfs/post-update.d has
    kernel-install(8) copy what update-initramfs writes, and the entry loads the copy. Where nothing
    tells what boots by default, nothing is raised: no entry can be made beside it then, which is
    said anyway.
    """
    rebuilt = [planned.image.path for planned in images if planned.rebuilt]
    if not rebuilt:
        return
    try:
        loaded = _loaded(detect_boot_loader(host).default_entry(host))
    except InitadvisorError:
        return
    files = [host.path(path) for path in loaded]
    if any(_is_same(path, file) for path in rebuilt for file in files):
        return
    listed = ", ".join(loaded) or "no image"
    msg = f"the next boot would not use {rebuilt[0]}: the default entry loads {listed}"
    others = [planned.image.path for planned in images if not planned.rebuilt]
    is_other = any(_is_same(path, file) for path in others for file in files)
    raise UnsafeError(msg, hint="--all has that rebuilt, too" if is_other else _COPIES)


def _loaded(entry: BootEntry) -> tuple[str, ...]:
    if entry.is_uki:
        return (entry.kernel.path,)
    return tuple(file.path for file in entry.initrds)


def _is_same(path: Path, file: Path) -> bool:
    """Tell whether both names lead to one file: entries may name a symbolic link."""
    try:
        return path.samefile(file)
    except OSError:
        return False
