"""Records with a number: a small file of JSON each, which says what may have to be removed.

Nothing that is read is trusted. What an earlier version has recorded in another way is not
followed, and set aside; what a newer one has recorded is left alone.
"""

from __future__ import annotations

import logging
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.core.serialisation import (
    NewerSchemaError,
    OlderSchemaError,
    ReadLimits,
    from_document,
    to_document,
)
from initadvisor.core.text import shown
from initadvisor.host.files import os_failure
from initadvisor.host.renames import quarantine_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from _typeshed import DataclassInstance

    from initadvisor.core.serialisation import Names
    from initadvisor.host import Host


_Kind = TypeVar("_Kind", bound="DataclassInstance")

_log = logging.getLogger(__name__)

_NUMBER = re.compile(r"(\d{1,9})\.json")

_MOST_BYTES = 16 << 20
"""Far more than a record has; what is cut off here is no JSON."""

LATEST_S = 1 << 36
"""In the year 4147: clocks that are farther off cannot be shown."""

PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[^/\0]+)+")
"""An absolute path without empty parts, ``.`` and ``..``."""


class DamagedRecordError(InitadvisorError):
    """A record that cannot be read; ``path`` is where it lies."""

    def __init__(self, message: str, path: Path, *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.path = path


class OlderRecordError(DamagedRecordError):
    """A record that an earlier version has written, in a way that is not known here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFiles(Generic[_Kind]):
    """All records of one kind.

    ``name``: what one is called, and with an s the directory. ``check`` raises ``ValueError`` for
    what cannot be the record of a number. ``if_damaged``, ``if_older`` and ``if_newer`` say what to
    do about a record that cannot be followed. ``names`` and ``limits`` as in ``from_plain``.
    """

    kind: type[_Kind]
    name: str
    schema: int
    check: Callable[[_Kind, int], None]
    if_damaged: str
    if_older: str
    if_newer: str
    names: Names = ()
    limits: ReadLimits = field(default_factory=ReadLimits)

    def directory(self, host: Host) -> Path:
        """Return where this run records."""
        return host.state_dir() / f"{self.name}s"

    def path(self, host: Host, number: int) -> Path:
        """Return where a record is or would be."""
        return self.directory(host) / f"{number:06}.json"

    def text(self, record: _Kind) -> bytes:
        """Return what is written."""
        return to_document(record, schema=self.schema)

    def paths(self, directory: Path | None) -> list[Path]:
        """Return where records are, the earliest first; raises ``InitadvisorError``."""
        if directory is None:
            return []
        return [directory / name for name in _names(directory) if name.endswith(".json")]

    def all(self, directory: Path | None) -> tuple[_Kind | InitadvisorError, ...]:
        """Return all records, with the error in the place of each that cannot be read.

        Raises ``InitadvisorError`` where the directory cannot be read.
        """
        found = map(self.read, self.paths(directory))
        return tuple(record for record in found if record is not None)

    def read(self, path: Path) -> _Kind | InitadvisorError | None:
        """Read a record; None where it went meanwhile: who only reads has no lock."""
        try:
            number = int(path.stem)
            with path.open("rb") as file:
                text = file.read(_MOST_BYTES)
            found = from_document(
                self.kind,
                text,
                schema=self.schema,
                where=self.name,
                names=self.names,
                limits=self.limits,
            )
            self.check(found, number)
        except FileNotFoundError:
            return None
        except PermissionError as err:
            return os_failure(err, f"cannot read {path}", only_root=True)
        except NewerSchemaError:
            msg = f"not touching the {self.name} in {path}: a newer version has recorded it"
            return UnsafeError(msg, hint=self.if_newer)
        except OlderSchemaError:
            msg = f"not following the {self.name} in {path}: an earlier version has recorded it"
            return OlderRecordError(msg, path, hint=self.if_older)
        except (OSError, ValueError) as err:
            why = err.strerror if isinstance(err, OSError) else shown(str(err))
            msg = f"cannot read the {self.name} in {path}: {why}"
            return DamagedRecordError(msg, path, hint=self.if_damaged)
        return found

    def following_number(self, host: Host) -> int:
        """Return the number of the next record: above those that were set aside, too.

        Raises ``InitadvisorError`` where the directory cannot be read.
        """
        matches = map(_NUMBER.match, _names(self.directory(host)))
        return max((int(found[1]) for found in matches if found), default=0) + 1

    def set_older_aside(self, directory: Path | None, *, advice: str = "") -> None:
        """Move records of an older layout out of the way, with a word in the log, and ``advice``.

        Nothing that they name is touched. Only with the lock held; raises ``InitadvisorError``.
        """
        for record in self.all(directory):
            if isinstance(record, OlderRecordError):
                aside = quarantine_file(record.path)
                _log.warning("%s; it was moved to %s%s", record.message, aside.name, advice)


def _names(directory: Path) -> list[str]:
    try:
        # Path.glob would take a directory that may not be read for an empty one.
        return sorted(os.listdir(directory))  # noqa: PTH208
    except FileNotFoundError:
        return []
    except OSError as err:
        raise os_failure(err, f"cannot read {directory}", only_root=True) from err
