"""What has changed since the daemon ran last: another boot, another disk below the image."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from initadvisor.generators.detect import detect_generator
from initadvisor.host.files import make_directory, whole_file
from initadvisor.measure.boot_disk import boot_disk
from initadvisor.measure.record import running_boot_id
from initadvisor.model.errors import InitadvisorError
from initadvisor.model.queue import Note, Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.daemon.queue import Queue
    from initadvisor.host import Host

_NAME = "seen"
_MOST_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The boot (its ID) and the disk that the image is on; None where that is not known."""

    boot_id: str | None = None
    disk: str | None = None


def notice(host: Host, queue: Queue) -> tuple[Note, ...]:
    """Note what has changed since this was called last, and return it.

    It is remembered after it was noted: what is noted twice is one. Raises ``InitadvisorError``
    where that cannot be written.
    """
    before, now = _read(host), look(host)
    notes = tuple(changes(before, now))
    for note in notes:
        queue.add(note)
    kept = replace(now, disk=now.disk or before.disk)
    if kept != before:
        _write(host, kept)
    return notes


def changes(before: Seen, now: Seen) -> Iterator[Note]:
    """Yield what has happened between two looks.

    A disk that is not known (behind device mapper, say) is never another one.
    """
    if now.boot_id and now.boot_id != before.boot_id:
        yield Note(reason=Reason.BOOTED)
    if before.disk and now.disk and now.disk != before.disk:
        yield Note(reason=Reason.DISK_REPLACED)


def look(host: Host) -> Seen:
    """Return what there is now."""
    boot_id = None
    with contextlib.suppress(InitadvisorError):
        boot_id = running_boot_id(host)
    return Seen(boot_id=boot_id, disk=image_disk(host))


def image_disk(host: Host) -> str | None:
    """Return the disk that the image is on which boots by default, None where it is not known."""
    with contextlib.suppress(InitadvisorError):
        generator = detect_generator(host)
        images = generator.images(host) if generator else ()
        return boot_disk(host, images[0].path) if images else None
    return None


def _read(host: Host) -> Seen:
    """Return what was remembered; what cannot be read is nothing, and everything is news."""
    try:
        with (host.state_dir() / _NAME).open("rb") as file:
            values = json.loads(file.read(_MOST_BYTES))
        return Seen(boot_id=_text(values, "boot_id"), disk=_text(values, "disk"))
    except (OSError, ValueError):
        return Seen()


def _text(values: object, key: str) -> str | None:
    value = values.get(key) if isinstance(values, dict) else None
    return value if isinstance(value, str) else None


def _write(host: Host, seen: Seen) -> None:
    path = host.state_dir() / _NAME
    make_directory(path.parent)
    try:
        with whole_file(path) as file:
            file.write(json.dumps(asdict(seen)).encode() + b"\n")
    except OSError as err:
        msg = f"cannot write {path}: {err.strerror}"
        raise InitadvisorError(msg) from err
