"""What can be found out again, kept so that it need not be: a small file of JSON each."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError
from initadvisor.core.plain_values import from_json
from initadvisor.core.serialisation import ReadLimits, from_plain, to_plain
from initadvisor.host.files import write_file

if TYPE_CHECKING:
    from pathlib import Path
    from typing import TypeVar

    from _typeshed import DataclassInstance

    from initadvisor.core.serialisation import Names

    _Kind = TypeVar("_Kind", bound=DataclassInstance)


_log = logging.getLogger(__name__)

_MOST_BYTES = 16 << 20
_USUAL = ReadLimits()
_unwritable: set[Path] = set()


def read_cached(
    path: Path, kind: type[_Kind], *, names: Names = (), limits: ReadLimits = _USUAL
) -> _Kind | None:
    """Return what an earlier run has kept; what cannot be read is none. See ``from_plain``."""
    with suppress(OSError, ValueError):
        with path.open("rb") as file:
            plain = from_json(file.read(_MOST_BYTES))
        return from_plain(kind, plain, names=names, limits=limits)
    return None


def keep(path: Path, value: DataclassInstance, *, what: str) -> None:
    """Keep a value for later runs; where that cannot be, ``what`` it is stands in the log.

    Of a directory that cannot be written to, it is said once.
    """
    try:
        write_file(path, json.dumps(to_plain(value)).encode())
    except InitadvisorError as err:
        if path.parent not in _unwritable:
            _unwritable.add(path.parent)
            _log.warning("cannot keep %s: %s", what, err)
