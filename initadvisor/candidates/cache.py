"""The candidates that were built, kept by what they were made of.

A candidate is two files: the image, and a record beside it that is written when the image is
complete, verified and on the disk. What has no record is no candidate; the next build removes it.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError
from initadvisor.core.serialisation import (
    NewerSchemaError,
    OlderSchemaError,
    from_document,
    to_document,
)
from initadvisor.core.settings import Setting
from initadvisor.host.files import make_directory, remove_partial, whole_file
from initadvisor.host.lock import lock_file, locked
from initadvisor.records.built_image import BuiltImage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.host import Host


log = logging.getLogger(__name__)

_SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedCandidate:
    """A candidate and the image it was derived from: its path, digest and kernel release.

    ``built_at_ns`` is the time stamp of its file, in ns since 1970.
    """

    candidate: BuiltImage
    image: str
    image_sha256: str
    kernel: str | None
    built_at_ns: int


class Cache:
    """The directory of candidates of one host."""

    def __init__(self, host: Host) -> None:
        self.directory = host.cache_dir() / "candidates"
        self._lock = lock_file(host.cache_dir(), "candidates")

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only one who builds or removes; clean up after a run that was interrupted.

        Raises ``InitadvisorError`` while another process holds the lock.
        """
        make_directory(self.directory)
        with locked(self._lock, what="a build of candidates"):
            self._clean()
            yield

    def _clean(self) -> None:
        remove_partial(self.directory)
        for path in (*self.directory.glob("*.img"), *self.directory.glob("*.json")):
            if _load(path.with_suffix(".img")) is None:
                log.info("removing %s, which is no whole candidate", path)
                path.unlink(missing_ok=True)

    def image_path(self, key: str) -> Path:
        """Return where the image with this key is or would be."""
        return self.directory / f"{key}.img"

    def find(self, key: str) -> CachedCandidate | None:
        """Return the candidate with this key, None where there is no complete one."""
        return _load(self.image_path(key))

    def all(self) -> tuple[CachedCandidate, ...]:
        """Return every complete candidate, the oldest first."""
        found = (_load(path) for path in self.directory.glob("*.img"))
        return tuple(sorted((c for c in found if c), key=lambda c: c.built_at_ns))

    def of_size(self, size_bytes: int) -> tuple[CachedCandidate, ...]:
        """Return the complete candidates of this size; the records of others are not read."""
        fitting = (p for p in self.directory.glob("*.img") if p.stat().st_size == size_bytes)
        return tuple(cached for cached in map(_load, fitting) if cached)

    def keep(self, cached: CachedCandidate) -> None:
        """Write the record that makes the image a candidate."""
        with whole_file(_record_path(Path(cached.candidate.path)), mode=0o600) as file:
            file.write(to_document(cached, schema=_SCHEMA))

    def remove(self, cached: CachedCandidate) -> None:
        """Remove a candidate, its record first, so that no half of it is ever taken for whole."""
        path = Path(cached.candidate.path)
        try:
            _record_path(path).unlink(missing_ok=True)
            path.unlink(missing_ok=True)
        except OSError as err:
            msg = f"cannot remove {path}: {err.strerror}"
            raise InitadvisorError(msg) from err


def _record_path(image: Path) -> Path:
    return image.with_suffix(".json")


def _load(path: Path) -> CachedCandidate | None:
    """Read the record of an image; a record that does not fit its image counts as none."""
    try:
        text, stat = _record_path(path).read_bytes(), path.stat()
        cached = from_document(CachedCandidate, text, schema=_SCHEMA, names=(Setting, BuiltImage))
    except (FileNotFoundError, NotADirectoryError, OlderSchemaError, NewerSchemaError):
        return None
    except (OSError, ValueError) as err:
        log.warning("ignoring the candidate %s: %s", path, err)
        return None
    candidate = replace(cached.candidate, path=str(path))
    if (stat.st_size, stat.st_mtime_ns) != (candidate.size_bytes, cached.built_at_ns):
        log.warning("ignoring the candidate %s: it was changed after it was built", path)
        return None
    return replace(cached, candidate=candidate)
