"""What lies beside a trial's unified kernel image, in ``IMAGE.extra.d`` (systemd-stub(7)).

Copies of what is beside the default image: addons, credentials, extensions. With Secure Boot on,
when systemd-stub takes no words from a boot entry, the trial's words are there, too, in an addon:
a PE file that the firmware has to accept. Such a directory is for one name of an image only, so
that nothing but the trial's boot reads it. It is there only while the entry is: whoever comes after
an interruption finds it by that.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.bootloaders.entry import EntryKind, default_uki
from initadvisor.bootloaders.managed_files import write_whole
from initadvisor.bootloaders.safety import ignores_options
from initadvisor.core.errors import BadImageError, UnsafeError
from initadvisor.firmware.signers import require_same_signers, signers
from initadvisor.generators.ukify import NAME as UKIFY
from initadvisor.generators.ukify import can_sign, can_unify, make_addon, no_key
from initadvisor.host.files import (
    append_range,
    failing_as,
    free_bytes,
    make_directory,
    open_regular,
    remove_tree_durably,
    remove_whole,
    sha256_of,
    sync_directory,
    whole_file,
)
from initadvisor.host.owner import is_named_like_ours
from initadvisor.host.storage.mounts import machine_path, mount_of, mounts_of_host
from initadvisor.image.pe import sections_of_uki

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.bootloaders import BootLoader
    from initadvisor.bootloaders.entry import BootEntry, TrialPlan
    from initadvisor.host import Host


_SUFFIX = ".addon.efi"
_FOR_EVERY = "loader/addons"
_ADDON = f"~initadvisor{_SUFFIX}"
"""Behind all others: words are added in the order of names, and the last one counts."""

_LARGEST_BYTES = 1 << 20
"""One of systemd's addons is 10 KB."""

_SPARE_BYTES = 2 << 20
"""For the trial's addon, and what others write meanwhile."""


def require_can_sign(host: Host, default: BootEntry) -> None:
    """Raise ``UnsafeError`` where a trial beside the default entry needs an addon, and none can be
    made that would count.
    """
    if not ignores_options(host, default):
        return
    _require_signed(host, default)
    if host.runner.which(UKIFY) is None:
        msg = f"Secure Boot is on, and no trial's words can be signed: {UKIFY} is not installed"
        raise UnsafeError(msg, hint="install systemd-ukify")
    if not can_sign(host):
        raise no_key(host)


def require_can_unify(host: Host, default: BootEntry) -> None:
    """Raise ``UnsafeError`` where no candidate could stand in for the unified image that boots.

    So it is without ukify, and where that has no key although the image is signed, or nothing can
    tell by whom (``signers``): found out before candidates are built.
    """
    image = default.kernel.path
    if not default.is_uki:
        return
    if not can_unify(host):
        msg = f"no trials of {image}, a unified kernel image: {UKIFY} is not installed"
        raise UnsafeError(msg, hint="install systemd-ukify; apply goes without it")
    if signers(host, host.path(image)) and not can_sign(host):
        raise no_key(host, because=f"{image} is signed", what="a trial's image")


def _require_signed(host: Host, default: BootEntry) -> None:
    """Raise ``UnsafeError`` where nothing says who has to sign a trial's image and words.

    The firmware starts an image without a signature where it was told that image's hash.
    """
    image = default.kernel.path
    if not default_uki(host, image).signed:
        msg = f"Secure Boot is on, and {image} has no signature: no trial's would start"
        raise UnsafeError(msg, hint="have it signed with a key that the firmware trusts")


def write_beside(host: Host, plan: TrialPlan) -> None:
    """Have beside a planned trial's image what has to be there, and nothing else.

    Raises ``UnsafeError`` where there is no room, or no key to sign the addon with, or it is not
    signed with that of the default image, and ``InitadvisorError`` where it cannot be written.
    """
    image, like = plan.request.image, plan.default.kernel.path
    if not plan.default.is_uki or image == like:
        return
    remove_beside(host, image)
    target, sources = _directory(host, image), _files(_directory(host, like))
    if plan.needs_addon:
        _require_counts(host, like)
    if sources or plan.needs_addon:
        with failing_as(f"cannot have {target}"):
            target.mkdir(exist_ok=True)
            sync_directory(target)  # on FAT its own clusters first, then the name that leads there
            sync_directory(target.parent)
            need = sum(source.stat().st_size for source in sources) + _SPARE_BYTES
            if free_bytes(target) < need:
                msg = f"no room for {target}: {need / 1e6:.1f} MB"
                raise UnsafeError(msg)
            for source in sources:
                _copy(source, target / source.name)
    if plan.needs_addon:
        write_whole(host, target / _ADDON, _made(host, plan.extra_cmdline))
    require_beside(host, image, plan.default, plan.extra_cmdline)


def require_beside(host: Host, image: str, default: BootEntry, words: Sequence[str]) -> None:
    """Raise ``UnsafeError`` where what is beside a trial's image is not what has to be there.

    ``words``: the trial's. Raises ``InitadvisorError`` where it cannot be read.
    """
    like = default.kernel.path
    if not default.is_uki or image == like:
        return
    directory, addon = _directory(host, image), _directory(host, image) / _ADDON
    found, wanted = _digests(directory), _digests(_directory(host, like))
    found.pop(_ADDON, None)
    if wrong := sorted(name for name, _ in found.items() ^ wanted.items()):
        msg = f"not arming a boot of {image}: {directory / wrong[0]} is not as beside {like}"
        raise UnsafeError(msg, hint="begin the trial anew")
    if not ignores_options(host, default):
        return
    _require_signed(host, default)
    if _words(addon) != " ".join(words):
        msg = f"not arming a boot of {image}: {addon} does not say its words"
        raise UnsafeError(msg, hint="begin the trial anew")
    require_same_signers(host, host.path(like), addon)


def take_down(host: Host, loader: BootLoader) -> bool:
    """Remove the trial's entry; before that a selection of it, and what is beside its image.

    Returns whether there was an entry; raises ``InitadvisorError``.
    """
    if image := loader.entry(host, EntryKind.TRIAL):
        loader.disarm(host)
        remove_beside(host, image)
    return loader.remove(host)


def remove_beside(host: Host, image: str) -> None:
    """Remove what is beside an image of ours; what is beside another is not ours."""
    directory = _directory(host, image)
    if is_named_like_ours(Path(image).name) and os.path.lexists(directory):
        with failing_as(f"cannot remove {directory}"):
            remove_tree_durably(directory)


def _require_counts(host: Host, like: str) -> None:
    """Raise ``UnsafeError`` where an addon would have words count more than a trial's.

    After ``--`` the kernel takes all words for init's. Those of the addons for every image come
    before those of an image's own, where the trial's are (systemd: src/boot/stub.c).
    """
    own, every = _addons(_directory(host, like)), _addons_for_every(host, like)
    for addon in own:
        if addon.name > _ADDON:
            msg = f"the words of {addon} would come behind a trial's"
            raise UnsafeError(msg, hint=f"give it a name before {_ADDON}")
    for addon in (*every, *own):
        if "--" in (_words(addon) or "").split():
            msg = f"{addon} would have a trial's words be for init"
            raise UnsafeError(msg, hint="have no -- in its words")


def _addons(directory: Path) -> list[Path]:
    return [path for path in _files(directory) if path.name.endswith(_SUFFIX)]


def _addons_for_every(host: Host, image: str) -> list[Path]:
    """Return the addons for all images on the same partition."""
    mount = mount_of(mounts_of_host(host), machine_path(host, host.path(image)))
    return _addons(host.path(f"{mount.mount_point}/{_FOR_EVERY}")) if mount else []


def _directory(host: Host, image: str) -> Path:
    return host.path(f"{image}.extra.d")


def _files(directory: Path) -> list[Path]:
    """Return the files of a directory that may not be there."""
    with failing_as(f"cannot read {directory}"):
        there = directory.iterdir() if directory.is_dir() else ()
        return sorted(path for path in there if path.is_file())


def _digests(directory: Path) -> dict[str, str]:
    found = {}
    for path in _files(directory):
        with failing_as(f"cannot read {path}"), open_regular(path) as file:
            found[path.name] = sha256_of(file)
    return found


def _copy(source: Path, target: Path) -> None:
    with open_regular(source) as file, whole_file(target) as copy:
        append_range(copy, file, offset=0, size_bytes=file.seek(0, os.SEEK_END))


def _made(host: Host, words: Sequence[str]) -> bytes:
    """Return an addon with these words."""
    place = host.cache_dir() / "addon"  # where a program outside of a unit's sandbox sees it
    with failing_as(f"cannot make an addon in {place}"):
        try:
            remove_whole(place)
            make_directory(place)
            make_addon(host, words, place / _ADDON)
            return _small(place / _ADDON)
        finally:
            remove_whole(place)


def _small(addon: Path) -> bytes:
    """Return a new addon's bytes; raises ``UnsafeError`` for more than any addon has."""
    with addon.open("rb") as file:
        content = file.read(_LARGEST_BYTES + 1)
    if len(content) > _LARGEST_BYTES:
        msg = f"{UKIFY} makes an addon of more than {_LARGEST_BYTES} bytes"
        raise UnsafeError(msg, hint="see what its configuration adds to it")
    return content


def _words(addon: Path) -> str | None:
    """Return the words of an addon, None where there is none."""
    if not os.path.lexists(addon):
        return None
    with (
        open_regular(addon) as file,
        failing_as(f"cannot read {addon}"),
        contextlib.suppress(BadImageError),
    ):
        size_bytes = min(file.seek(0, os.SEEK_END), _LARGEST_BYTES)
        for name, part in sections_of_uki(file, size_bytes):
            if name == ".cmdline":
                file.seek(part.offset)
                return file.read(part.size_bytes).rstrip(b"\0\n").decode(errors="replace")
    return None
