"""What has changed since the daemon ran last: another boot, another image, another disk."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.boots.record import running_boot_id
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.serialisation import to_plain
from initadvisor.daemon.notes import Note, NoteReason
from initadvisor.generators.detect import detect_generator
from initadvisor.host.cached import read_cached
from initadvisor.host.files import failing_as, remove_whole, write_file
from initadvisor.host.storage.boot_partition import boot_disk
from initadvisor.host.storage.mounts import machine_path, mount_of, mounts_of_host

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.daemon.queue import Queue
    from initadvisor.generators import InstalledImage
    from initadvisor.host import Host


_NAME = "seen"
_WATCHED = "image"
"""A link to the image, which ``systemd/initadvisord.path`` follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemSnapshot:
    """The boot (its ID), and the image that boots by default: None where that is not known.

    ``image`` has another value for each that is made anew, ``release`` is its kernel and ``disk``
    what it is on.
    """

    boot_id: str | None = None
    image: str | None = None
    release: str | None = None
    disk: str | None = None

    @property
    def path(self) -> Path | None:
        """Where the image is."""
        return Path(self.image.rsplit(" ", 2)[0]) if self.image else None


def notice(host: Host, queue: Queue) -> tuple[Note, ...]:
    """Note what has changed since this was called last, and return it.

    From then on systemd starts the daemon when the image is made anew. It is remembered after it
    was noted: what is noted twice is one. Raises ``InitadvisorError`` where that cannot be written.
    """
    before, now = _read(host), look(host)
    notes = tuple(changes(before, now))
    queue.add(*notes)
    away = now.image is None
    kept = replace(
        now,
        image=before.image if away else now.image,
        release=before.release if away else now.release,
        disk=now.disk or before.disk,
    )
    if kept != before:
        _write(host, kept)
    if kept.path:
        _watch(host, kept.path)
    return notes


def changes(before: SystemSnapshot, now: SystemSnapshot) -> Iterator[Note]:
    """Yield what has happened between two looks.

    Images that nobody has noted are found here, too: made by hand, or noted just before a power
    cut. A disk that is not known (behind device mapper, say) is never another one.
    """
    if now.boot_id and now.boot_id != before.boot_id:
        yield Note(reason=NoteReason.BOOTED)
    if now.image and now.image != before.image:
        yield Note(reason=NoteReason.IMAGE_REBUILT, release=_noted(now.release))
    if before.disk and now.disk and now.disk != before.disk:
        yield Note(reason=NoteReason.DISK_REPLACED)


def look(host: Host) -> SystemSnapshot:
    """Return what there is now."""
    boot_id = None
    with contextlib.suppress(InitadvisorError):
        boot_id = running_boot_id(host)
    if found := _default_image(host):
        with contextlib.suppress(OSError):
            status = found.path.stat()
            return SystemSnapshot(
                boot_id=boot_id,
                image=f"{found.path} {status.st_size} {status.st_mtime_ns}",
                release=found.kernel_release,
                disk=boot_disk(host, found.path),
            )
    return SystemSnapshot(boot_id=boot_id)


def image_disk(host: Host) -> str | None:
    """Return the disk that the image is on which boots by default, None where it is not known."""
    found = _default_image(host)
    return boot_disk(host, found.path) if found else None


def _watch(host: Host, image: Path) -> None:
    """Have systemd watch the image, but not where it is mounted only while it is used.

    There each unmounting would be news, and looking at the image would mount it again.
    """
    mounts = mounts_of_host(host)
    mount = mount_of(mounts, machine_path(host, image))
    points = {each.mount_point for each in mounts if each.fs_type == "autofs"}
    link = host.state_dir() / _WATCHED
    with failing_as(f"cannot have {image} watched by {link}", only_root=True):
        before = link.readlink() if link.is_symlink() else None
        wanted = None if mount and mount.mount_point in points else image
        if before == wanted:
            return
        remove_whole(link)  # systemd makes a directory of what it is to watch (MakeDirectory=)
        if wanted:
            link.symlink_to(wanted)


def _default_image(host: Host) -> InstalledImage | None:
    with contextlib.suppress(InitadvisorError):
        generator = detect_generator(host)
        images = generator.images(host) if generator else ()
        return images[0] if images else None
    return None


def _noted(release: str | None) -> str | None:
    """Return a release as a note may name it; what it cannot name is the default image's."""
    note = Note.parse(f"{NoteReason.IMAGE_REBUILT}@{release}") if release else None
    return note.release if note else None


def _read(host: Host) -> SystemSnapshot:
    """Return what was remembered; what cannot be read is nothing, and everything is news."""
    return read_cached(host.state_dir() / _NAME, SystemSnapshot) or SystemSnapshot()


def _write(host: Host, seen: SystemSnapshot) -> None:
    text = json.dumps(to_plain(seen)) + "\n"
    write_file(host.state_dir() / _NAME, text.encode())
