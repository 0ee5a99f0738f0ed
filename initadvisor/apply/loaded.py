"""What the default entry loads of the images that are replaced: they, or copies of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.bootloaders.detect import detect_boot_loader
from initadvisor.core.errors import InitadvisorError, NeedsRootError, UnsafeError
from initadvisor.host.files import is_same_file, open_regular, sha256_of
from initadvisor.trial.default_boot import ONE_IMAGE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from initadvisor.apply.plan_values import PlannedImage
    from initadvisor.generators import InstalledImage
    from initadvisor.host import Host


_BY_HAND = (
    "initadvisor replaces what the generator writes, and copies of it that kernel-install(8) made: "
    "have the default entry load that, or make the change by hand and the image anew"
)
_UKI = "unified kernel images are replaced where the generator itself makes them"


def same_copies(image: InstalledImage) -> tuple[Path, ...]:
    """Return those copies of an image that hold what it does.

    Who may not read them is told those that are as large. Raises ``OSError``, and
    ``InitadvisorError`` for what cannot be read.
    """
    size_bytes = image.path.stat().st_size
    alike = tuple(path for path in image.copies if path.stat().st_size == size_bytes)
    try:
        sha256 = _sha256(image.path) if alike else ""
        return tuple(path for path in alike if _sha256(path) == sha256)
    except NeedsRootError:
        return alike


def _sha256(path: Path) -> str:
    with open_regular(path) as file:
        return sha256_of(file)


def require_loaded(host: Host, images: Sequence[PlannedImage]) -> None:
    """Raise ``UnsafeError`` where the default entry loads none of the images that are rebuilt.

    So it is where it loads what another program made of them, or a copy that is older than its
    image. More than one image is refused, too (``ONE_IMAGE``). Where nothing tells what boots by
    default, nothing is raised: no entry can be made beside it then, which is said anyway.
    """
    rebuilt = [path for one in images if one.rebuilt for path in one.image.paths]
    if not rebuilt:
        return
    try:
        default = detect_boot_loader(host).default_entry(host)
    except InitadvisorError:
        return
    known = [path for one in images for path in (*one.image.paths, *one.unlike)]
    loaded = [name for name in dict.fromkeys(default.images) if _is_among(host, name, known)]
    if len(loaded) > 1:
        msg = f"the default entry loads more than one image: {', '.join(loaded)}"
        raise UnsafeError(msg, hint=ONE_IMAGE)
    if loaded and _is_among(host, loaded[0], rebuilt):
        return
    listed = ", ".join(default.images) or "no image"
    msg = f"the next boot would not use {rebuilt[0]}: the default entry loads {listed}"
    for one in images:
        if any(_is_among(host, name, one.unlike) for name in loaded):
            path, release = one.image.path, one.image.kernel_release
            msg += f", which is not what {path} is"
            hint = f"kernel-install add {release} /boot/vmlinuz-{release} {path} copies it anew"
            raise UnsafeError(msg, hint=hint)
    if loaded:
        raise UnsafeError(msg, hint="--all has that rebuilt, too")
    raise UnsafeError(msg, hint=_UKI if default.is_uki else _BY_HAND)


def _is_among(host: Host, name: str, paths: Sequence[Path]) -> bool:
    file = host.path(name)
    return any(is_same_file(path, file) for path in paths)
