"""Tables of candidates whose sizes and times are given: somebody's measurements of one content.

The built-in ones go by their names, a user's own are read from a TOML or CSV file.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, UsageError
from initadvisor.core.plain_values import from_json, from_toml, number, positive
from initadvisor.core.settings import Setting
from initadvisor.core.text import shown
from initadvisor.host.files import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_MOST_MB = 1e6
_MOST_MS = 1e7
_MOST_LOG_SD = 3.0
_MOST_CPU_S = 1e7
_LEAST_ROWS, _MOST_ROWS = 2, 100
_MOST_NAME = 60
_MOST_SOURCE = 2000
_MOST_BITS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthRow:
    """One setting: the size of its image (10^6 bytes) and U, the kernel's time to unpack it.

    ``log_sd``: how far another measurement of the time may be from this one, the standard deviation
    of its logarithm; 0 where nothing tells. ``build_cpu_s``: processor time of the compressor, None
    where it is not known. Only an image without compression can have no time to unpack: where
    nothing is created, as of a kernel. Raises ``ValueError``, which says what is wrong, for what no
    image can have.
    """

    setting: Setting
    size_mb: float
    unpack_ms: float
    log_sd: float = 0.0
    build_cpu_s: float | None = None

    def __post_init__(self) -> None:
        """Hold every figure against what is possible."""
        _require(self.size_mb, "size_mb", above_zero=True, most=_MOST_MB)
        compressed = self.setting.codec is not Codec.CAT
        _require(self.unpack_ms, "unpack_ms", above_zero=compressed, most=_MOST_MS)
        _require(self.log_sd, "log_sd", most=_MOST_LOG_SD)
        if self.build_cpu_s is not None:
            _require(self.build_cpu_s, "build_cpu_s", most=_MOST_CPU_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthTable:
    """Candidates of one kernel and one content.

    ``populate_ms`` is P, the part of every ``unpack_ms`` that is not decompression (creating the
    files); 0 where nothing tells it apart. ``source``: who measured what, with what. ``doubts``: in
    words, which of its figures do not add up. Raises ``ValueError``, which says what is wrong:
    fewer than two settings, one twice, a time to unpack below P.
    """

    name: str
    source: str
    populate_ms: float
    rows: tuple[TruthRow, ...]
    doubts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Hold the rows against each other."""
        _require_text(self.name, "name", _MOST_NAME)
        _require_text(self.source, "source", _MOST_SOURCE)
        require_ms(self.populate_ms, "populate_ms")
        if not _LEAST_ROWS <= len(self.rows) <= _MOST_ROWS:
            msg = f"{_LEAST_ROWS} to {_MOST_ROWS} settings can be compared, not {len(self.rows)}"
            raise ValueError(msg)
        seen: set[Setting] = set()
        for row in self.rows:
            if row.setting in seen:
                msg = f"{row.setting} stands there twice"
                raise ValueError(msg)
            seen.add(row.setting)
            if row.unpack_ms < self.populate_ms:
                msg = (
                    f"{row.setting}: unpack_ms {row.unpack_ms:g} is below populate_ms "
                    f"{self.populate_ms:g}, which is a part of it"
                )
                raise ValueError(msg)


def require_ms(value: object, name: str) -> None:
    """Raise ``ValueError``, which names the figure, for what is no time in ms."""
    _require(value, name, most=_MOST_MS)


def _require(value: object, name: str, *, most: float, above_zero: bool = False) -> None:
    try:
        checked = positive(value) if above_zero else number(value)
        number(checked, most=most)
    except ValueError as err:
        least = "more than 0" if above_zero else "at least 0"
        msg = f"{name} {_figure(value)} is not a number of {least} and at most {most:.0f}"
        raise ValueError(msg) from err


def _figure(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return "(of very many digits)"  # which Python refuses to write
    text = repr(value)
    return text if len(text) <= _MOST_NAME else f"{text[:_MOST_NAME]}..."


def _require_text(value: object, name: str, most: int) -> None:
    if not isinstance(value, str) or not value.strip() or len(value) > most:
        msg = f"{name} is not a text of at most {most} characters"
        raise ValueError(msg)
    if not value.isprintable():
        msg = f"{name} holds characters that cannot be shown"
        raise ValueError(msg)


_BUILT_IN = "truth_tables.json"
_SCHEMA = 1
_LIMIT_BYTES = 1 << 16
_LONGEST_VALUE = 60
_SIZES = {"size_mb": 1.0, "size_bytes": 1e-6}
_PERCENT = "percent_of_cat"
_TIMES = ("unpack_ms", "decompress_ms")
_SPEEDS = ("output_mb_s", "input_mb_s")
_ROW_KEYS = frozenset({"setting", *_SIZES, _PERCENT, *_TIMES, *_SPEEDS, "log_sd", "build_cpu_s"})
_TABLE_KEYS = frozenset({"name", "source", "populate_ms", "unpacked_mb", "rows"})
_MS_PER_S = 1000.0
_ROUNDED = 0.05
"""Published figures are rounded: those that are no further apart than this part agree."""

_HINT = "initadvisor-whatif(1) describes such a file"


def truth_table_names() -> tuple[str, ...]:
    """Return the names of the built-in tables."""
    return tuple(_built_in())


def truth_table(name_or_path: str) -> TruthTable:
    """Return the built-in table of that name, or the one that a file holds.

    Raises ``UsageError`` for what is neither and for a file that is no such table, naming what is
    wrong and where; ``InitadvisorError`` and ``NeedsRootError`` for a file that cannot be read.
    """
    if known := _built_in().get(name_or_path):
        return known
    path = Path(name_or_path)
    if not name_or_path or not _is_there(path):
        msg = f"no built-in table and no file is called {_quoted(name_or_path)}"
        raise UsageError(msg, hint=f"one of: {', '.join(truth_table_names())}; or a file's path")
    return read_table(path)


def read_table(path: Path) -> TruthTable:
    """Read a table from a file, TOML or CSV; raises as ``truth_table`` does."""
    where = shown(str(path))
    text = _text(path)
    try:
        document = from_toml(text) if _is_toml(path, text) else _from_csv(text)
        return _table(document, name=path.stem, source=f"{path.name}, as given")
    except (ValueError, UsageError, csv.Error) as err:
        msg = f"{where} is no table of candidates: {shown(str(err))}"
        raise UsageError(msg, hint=_HINT) from err


@cache
def _built_in() -> Mapping[str, TruthTable]:
    text = resources.files("initadvisor.data").joinpath(_BUILT_IN).read_text("utf-8")
    document = from_json(text)
    if document["schema"] != _SCHEMA:
        raise ValueError(document["schema"])
    tables = [_table(table, name="", source="") for table in document["tables"]]
    return {table.name: table for table in tables}


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:
        return True  # who may read it is told when it is opened
    except (OSError, ValueError):  # no name that a file can have
        return False


def _text(path: Path) -> str:
    try:
        with open_regular(path) as file:
            content = file.read(_LIMIT_BYTES + 1)
    except OSError as err:
        msg = f"cannot read {path}: {err.strerror}"
        raise InitadvisorError(msg) from err
    if len(content) > _LIMIT_BYTES:
        msg = f"{path} is no table of candidates: it is longer than {_LIMIT_BYTES >> 10} KiB"
        raise UsageError(msg, hint=_HINT)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        msg = f"{path} is no table of candidates: not UTF-8 at byte {err.start}"
        raise UsageError(msg, hint=_HINT) from err


def _is_toml(path: Path, text: str) -> bool:
    """Tell by the name, else by the first line that says something: CSV's has no ``=`` or ``[``."""
    if path.suffix.lower() in {".toml", ".csv"}:
        return path.suffix.lower() == ".toml"
    first = next((line for line in text.splitlines() if line.strip() and line[0] != "#"), "")
    return "=" in first or first.startswith("[")


def _from_csv(text: str) -> dict[str, Any]:
    """Read lines under a line of titles; what starts with ``#`` is a comment."""
    lines = [line for line in io.StringIO(text) if line.strip() and not line.startswith("#")]
    reader = csv.DictReader(lines, strict=True, skipinitialspace=True)
    titles = reader.fieldnames or ()
    if repeated := next((title for title in titles if list(titles).count(title) > 1), None):
        msg = f"the column {_quoted(repeated)} stands there twice"
        raise ValueError(msg)
    _require_known({title.strip(): None for title in titles if title}, _ROW_KEYS, "the column ")
    return {"rows": [_csv_row(row) for row in reader]}


def _csv_row(row: Mapping[Any, Any]) -> dict[str, Any]:
    if None in row:
        msg = (
            f"the line of {_quoted(next(iter(row.values())))} has more values than there are titles"
        )
        raise ValueError(msg)
    said = {key.strip(): value.strip() for key, value in row.items() if value and value.strip()}
    return {key: value if key == "setting" else _number(key, value) for key, value in said.items()}


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as err:
        msg = f"{_quoted(key)}: {_quoted(text)} is not a number"
        raise ValueError(msg) from err


def _table(document: Mapping[str, Any], *, name: str, source: str) -> TruthTable:
    """Return the table a document holds; raises ``ValueError`` or ``UsageError`` for what is none.

    ``name`` and ``source`` are what it has where it says nothing itself.
    """
    _require_known(document, _TABLE_KEYS, "")
    rows = document.get("rows")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        msg = "it has no rows ([[rows]] in TOML, lines under the titles in CSV)"
        raise ValueError(msg)
    if document.get("populate_ms") is not None:
        require_ms(document["populate_ms"], "populate_ms")
    if document.get("unpacked_mb") is not None:
        _require(document["unpacked_mb"], "unpacked_mb", above_zero=True, most=_MOST_MB)
    populate_ms, unpacked_mb = document.get("populate_ms"), document.get("unpacked_mb")
    given = [
        _GivenRow(row, number, populate_ms, unpacked_mb) for number, row in enumerate(rows, start=1)
    ]
    checked = tuple(row.truth() for row in given)
    return TruthTable(
        name=document.get("name", name),
        source=document.get("source", source),
        populate_ms=0.0 if populate_ms is None else populate_ms,
        rows=checked,
        doubts=tuple(doubt for row in given for doubt in row.doubts),
    )


class _GivenRow:
    """A row as somebody wrote it: a size and a time, or what they follow from.

    A size in MB, bytes, or percent of what is unpacked; a time, or a speed in MB of what comes out
    or of what goes in. Of two of a kind the first named here counts, and the other is held against
    it.
    """

    def __init__(
        self, row: Mapping[str, Any], number: int, populate_ms: object, unpacked_mb: object
    ) -> None:
        _require_known(row, _ROW_KEYS, f"row {number}: ")
        setting = row.get("setting")
        if not isinstance(setting, str):
            msg = f"row {number} has no setting"
            raise ValueError(msg)
        self.doubts: tuple[str, ...] = ()
        self._row = row
        self._setting = setting
        self._where = f"row {number} ({_quoted(setting)})"
        self._populate_ms = populate_ms
        self._unpacked_mb = unpacked_mb
        self._size_key = self._only_key(tuple(_SIZES), _PERCENT)
        self._time_key = self._only_key(_TIMES, *_SPEEDS)
        for key in (_PERCENT, "output_mb_s"):
            if key in row and unpacked_mb is None:
                msg = f"{self._where}: {key} needs unpacked_mb in the table, the size of cat"
                raise ValueError(msg)
        if self._time_key != "unpack_ms" and populate_ms is None:
            msg = (
                f"{self._where}: {self._time_key} needs populate_ms in the table, what creating "
                "the files takes (0 if unpacking is nothing else)"
            )
            raise ValueError(msg)

    def truth(self) -> TruthRow:
        """Return the row, and know its doubts; raises ``ValueError`` for what no image can have."""
        try:
            self.doubts = tuple(self._doubts())
            if self._time_key == "decompress_ms":
                require_ms(self._row[self._time_key], self._time_key)  # of the sum it could not
            return TruthRow(
                setting=Setting.parse(self._setting),
                size_mb=self._size_mb(),
                unpack_ms=self._unpack_ms(),
                log_sd=self._row.get("log_sd", 0.0),
                build_cpu_s=self._row.get("build_cpu_s"),
            )
        except (ValueError, UsageError) as err:
            msg = f"{self._where}: {err}"
            raise ValueError(msg) from err

    def _doubts(self) -> Iterator[str]:
        size_mb = self._size_mb()
        if _PERCENT in self._row and self._size_key != _PERCENT:
            percent = 100 * size_mb / _float(self._unpacked_mb, "unpacked_mb")
            told = _float(self._row[_PERCENT], _PERCENT)
            if not _agree(percent, told):
                are = f"{size_mb:.4g} MB are {percent:.3g} % of cat"
                yield f"{self._setting}: {are}, not {told:g} %"
        if self._time_key in _SPEEDS:
            return
        took_ms = self._unpack_ms() - self._added_ms()
        for key in _SPEEDS:
            if key not in self._row:
                continue
            expected_ms = self._at_speed_ms(key)
            if not _agree(took_ms, expected_ms):
                said = f"{self._setting}: {key} makes {expected_ms:.4g} ms, not {took_ms:.4g}"
                yield said + self._why(key, took_ms)

    def _why(self, key: str, took_ms: float) -> str:
        """Return what was divided by what, where that is how a time came about."""
        mistaken = _MS_PER_S * self._size_mb() / self._speed(key)
        if key != "output_mb_s" or not _agree(took_ms, mistaken):
            return ""
        return ", which is the compressed size divided by the speed of what comes out"

    def _size_mb(self) -> float:
        if self._size_key == _PERCENT:
            unpacked_mb = _float(self._unpacked_mb, "unpacked_mb")
            return unpacked_mb * _float(self._row[_PERCENT], _PERCENT) / 100
        return _float(self._row[self._size_key], self._size_key) * _SIZES[self._size_key]

    def _unpack_ms(self) -> float:
        """Return all of the time; a value that is added to can no longer be told in errors."""
        if self._time_key in _SPEEDS:
            return self._at_speed_ms(self._time_key) + self._added_ms()
        return _float(self._row[self._time_key], self._time_key) + self._added_ms()

    def _added_ms(self) -> float:
        return 0.0 if self._time_key == "unpack_ms" else _float(self._populate_ms, "populate_ms")

    def _at_speed_ms(self, key: str) -> float:
        size = self._unpacked_mb if key == "output_mb_s" else self._size_mb()
        return _MS_PER_S * _float(size, "unpacked_mb") / self._speed(key)

    def _speed(self, key: str) -> float:
        speed = _float(self._row[key], key)
        _require(speed, key, above_zero=True, most=_MOST_MB)
        return speed

    def _only_key(self, keys: tuple[str, ...], *others: str) -> str:
        found = [key for key in keys if key in self._row]
        found += [key for key in others if key in self._row][: 0 if found else 1]
        if len(found) != 1:
            named = " or ".join((*keys, *others))
            why = "not both" if found else "and has neither"
            msg = f"{self._where} needs {named}, {why}"
            raise ValueError(msg)
        return found[0]


def _agree(one: float, other: float) -> bool:
    return abs(one - other) <= _ROUNDED * max(abs(one), abs(other))


def _float(value: object, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        msg = f"{key} {_quoted(value)} is not a number"
        raise ValueError(msg)
    try:
        return float(value)
    except OverflowError as err:
        msg = f"{key} is a number of too many digits"
        raise ValueError(msg) from err


def _require_known(given: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    if unknown := next((key for key in given if key not in known), None):
        names = ", ".join(sorted(known))
        msg = f"{where}{_quoted(unknown)} is not known (one of: {names})"
        raise ValueError(msg)


def _quoted(text: object) -> str:
    written = text if isinstance(text, str) else type(text).__name__
    short = written if len(written) <= _LONGEST_VALUE else f"{written[:_LONGEST_VALUE]}..."
    return f"'{shown(short)}'"
