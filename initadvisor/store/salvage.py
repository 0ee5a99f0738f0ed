"""Boots found in the bytes of a data base that SQLite cannot read any more.

Where tables, pages or indexes are damaged, most rows of ``boot_record`` still are as they were
written. Each is found by how its JSON begins, and proven by its seal; see "B-tree Pages" and
"Record Format" of sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from initadvisor.core.plain_values import from_json
from initadvisor.records.boot import as_record
from initadvisor.store.seals import seal_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from initadvisor.records.boot import BootRecord
    from initadvisor.store.rows import Value


_ROW = re.compile(
    rb"(?P<header>[\x04-\x08]\x00(?P<text>[\x80-\xff]{0,3}[\x00-\x7f])(?P<seal>[\x01-\x06]))"
    rb'\{"boot_id":"'
)
"""The types of the columns of ``boot_record``: NULL for the row's number, text, whole number."""

_PAGE_BYTES = 4096
_SEAL_BYTES = (0, 1, 2, 3, 4, 6, 8)


def whole_records(path: Path) -> tuple[BootRecord, ...]:
    """Return the boots whose records are whole, in the order of the file; raises ``OSError``."""
    data = path.read_bytes()
    return tuple(_records(data))


def _records(data: bytes) -> Iterator[BootRecord]:
    for found in _ROW.finditer(data):
        text_bytes = (_number(found["text"]) - 13) // 2
        seal_bytes = _SEAL_BYTES[found["seal"][0]]
        row_bytes = len(found["header"]) + text_bytes + seal_bytes
        if not 0 < row_bytes <= len(data):
            continue
        row = _row(data, found.start(), row_bytes)
        record, seal = row[len(found["header"]) : -seal_bytes], row[-seal_bytes:]
        with suppress(ValueError):  # also what is no text
            text = record.decode("ascii")
            key = _key(data, found.start(), row_bytes)
            values: dict[str, Value] = {"boot": key, "record": text}
            if int.from_bytes(seal, "big", signed=True) == seal_of("boot_record", values):
                yield as_record(from_json(text))


def _row(data: bytes, start: int, row_bytes: int) -> bytes:
    """Return a row, with what of it is on other pages."""
    longest = _PAGE_BYTES - 35
    if row_bytes <= longest:
        return data[start : start + row_bytes]
    least = (_PAGE_BYTES - 12) * 32 // 255 - 23
    here = least + (row_bytes - least) % (_PAGE_BYTES - 4)
    end = start + (here if here <= longest else least)
    row, link = data[start:end], data[end : end + 4]
    while len(row) < row_bytes and (page := int.from_bytes(link, "big")):
        start = (page - 1) * _PAGE_BYTES
        link, more = data[start : start + 4], data[start + 4 : start + _PAGE_BYTES]
        if not more:
            break
        row += more
    return row[:row_bytes]


def _key(data: bytes, start: int, row_bytes: int) -> int:
    """Return the number that stands between a row's length and the row.

    Raises ``ValueError`` where there is none.
    """
    length = _as_bytes(row_bytes)
    for key_bytes in range(1, 10):
        begin = start - key_bytes
        key = data[begin:start]
        if data[begin - len(length) : begin] == length and _as_bytes(_number(key)) == key:
            return _number(key)
    raise ValueError(start)


def _number(varint: bytes) -> int:
    """Return what seven bits of each byte say; of numbers below 2**56."""
    number = 0
    for byte in varint:
        number = number << 7 | byte & 0x7F
    return number


def _as_bytes(number: int) -> bytes:
    found = [number & 0x7F]
    while number := number >> 7:
        found.insert(0, number & 0x7F | 0x80)
    return bytes(found)
