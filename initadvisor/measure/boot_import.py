"""Boots that another machine exported: read, judged, and kept apart."""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError, require
from initadvisor.core.plain_values import from_json
from initadvisor.core.text import shown
from initadvisor.host.files import open_regular
from initadvisor.records.boot import RecordSource, from_exported
from initadvisor.store.store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

    from initadvisor.host import Host
    from initadvisor.records.boot import BootRecord


_SCHEMA = 3
_MOST_JSON_BYTES = 16 << 20
"""What is read as a whole; a table is read row by row."""
_MOST_LINE_BYTES = 1 << 18
_BOM = b"\xef\xbb\xbf"
"""What some editors put in front of text."""

_MOST_BOOTS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """How many boots were read, and how many of them are new here; where they are kept."""

    boots: int
    new: int
    path: Path


def import_boots(host: Host, path: Path) -> Imported:
    """Keep the boots of an export (``history --json`` or ``--csv``), all of them or none.

    They stay apart from this machine's, whatever they say of themselves. Raises
    ``InitadvisorError`` for what is no such export, or too large.
    """
    boots = 0

    def counted(records: Iterator[BootRecord]) -> Iterator[BootRecord]:
        nonlocal boots
        for record in records:
            yield replace(record, source=RecordSource.IMPORT)
            boots += 1  # once it is kept

    with open_regular(path) as file:
        try:
            with open_store(host) as store:
                new = store.add_boots(counted(_records(file)))
                return Imported(boots=boots, new=len(new), path=store.path)
        except (ValueError, csv.Error) as err:
            msg = f"cannot import {path}: boot {boots + 1}: {shown(str(err))}"
            raise InitadvisorError(msg, hint="nothing was imported") from err


def _records(file: IO[bytes]) -> Iterator[BootRecord]:
    """Yield the records; raises ``ValueError`` for what is none."""
    is_json = file.read(_MOST_LINE_BYTES).removeprefix(_BOM).lstrip()[:1] in {b"{", b"["}
    file.seek(0)
    for number, record in enumerate(_of_json(file) if is_json else _of_csv(file)):
        require(number < _MOST_BOOTS, f"there are more than {_MOST_BOOTS}")
        yield record


def _of_json(file: IO[bytes]) -> Iterator[BootRecord]:
    data = file.read(_MOST_JSON_BYTES + 1)
    require(
        len(data) <= _MOST_JSON_BYTES,
        f"the file is longer than {_MOST_JSON_BYTES >> 20} MiB; export it with --csv",
    )
    document = from_json(data.removeprefix(_BOM).decode(errors="replace"))
    require(isinstance(document, dict), "the JSON is no object, as an export is")
    require(
        document.get("schema") == _SCHEMA,
        f"the schema is not {_SCHEMA}: another version of initadvisor wrote it",
    )
    boots = document.get("boots")
    require(isinstance(boots, list), "there is no list of boots")
    yield from map(from_exported, boots)


def _of_csv(file: IO[bytes]) -> Iterator[BootRecord]:
    rows = csv.reader(_lines(file), strict=True)
    titles = next(rows, [])
    require("record" in titles, "neither JSON nor a table with the column 'record'")
    column = titles.index("record")
    for row in rows:
        require(len(row) == len(titles), f"a row with {len(row)} columns instead of {len(titles)}")
        yield from_exported(from_json(row[column]))


def _lines(file: IO[bytes]) -> Iterator[str]:
    while line := file.readline(_MOST_LINE_BYTES):
        require(len(line) < _MOST_LINE_BYTES, f"a line is longer than {_MOST_LINE_BYTES >> 10} KiB")
        yield line.decode(errors="replace")
