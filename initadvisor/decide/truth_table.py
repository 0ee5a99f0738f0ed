"""A table of candidates whose sizes and times are given: somebody's measurements of one content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.core.plain_values import number, positive

if TYPE_CHECKING:
    from initadvisor.core.settings import Setting


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
    where it is not known. Raises ``ValueError``, which says what is wrong, for what no image can
    have.
    """

    setting: Setting
    size_mb: float
    unpack_ms: float
    log_sd: float = 0.0
    build_cpu_s: float | None = None

    def __post_init__(self) -> None:
        """Hold every figure against what is possible."""
        _require(self.size_mb, "size_mb", above_zero=True, most=_MOST_MB)
        _require(self.unpack_ms, "unpack_ms", above_zero=True, most=_MOST_MS)
        _require(self.log_sd, "log_sd", most=_MOST_LOG_SD)
        if self.build_cpu_s is not None:
            _require(self.build_cpu_s, "build_cpu_s", most=_MOST_CPU_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthTable:
    """Candidates of one kernel and one content.

    ``populate_ms`` is P, the part of every ``unpack_ms`` that is not decompression (creating the
    files); 0 where nothing tells it apart. ``source``: who measured what, with what. Raises
    ``ValueError``, which says what is wrong: fewer than two settings, one twice, a time to unpack
    below P.
    """

    name: str
    source: str
    populate_ms: float
    rows: tuple[TruthRow, ...]

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
        msg = f"{name} {_quoted(value)} is not a number of {least} and at most {most:.0f}"
        raise ValueError(msg) from err


def _quoted(value: object) -> str:
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
