"""What is known beforehand: data files, each with where its figures come from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, require
from initadvisor.core.plain_values import from_json
from initadvisor.core.text import shown
from initadvisor.decide.cost import Calibration, ObservedBoot, Quantity
from initadvisor.decide.sampling import Error
from initadvisor.host.files import open_regular

if TYPE_CHECKING:
    from initadvisor.host import Host


CALIBRATION = "calibration.json"
"""The calibration table's name, in the package and, where it was made anew, in the state."""

_SCHEMA = 3
_TEXT_LIMIT_BYTES = 1 << 20
_PLAUSIBLE = 1e4
"""No ratio and no time per MB is further from 1 than this factor."""

_PLAUSIBLE_LOG_SD = 3.0
_NEAR, _FAR = "near", "far"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationTable:
    """How kernel and user-space decompression compare.

    ``populate_ms_per_mb``: the kernel's time to create the files, per 10^6 unpacked bytes.
    ``buffer_ms_per_mb``: a kernel's time to map a decompressor's buffers, per 10^6 bytes, and
    ``uml_buffer_ms_per_mb`` that of user-mode Linux, which asks the host for every page of them.
    ``machine_log_sd``: how far a machine's kernel may be from the calibrated one, on every codec
    alike. ``rows`` go by the codec, and whether its window is of megabytes. ``source`` says what
    was measured, with what; ``warnings`` why it is not another table.
    """

    source: str
    populate_ms_per_mb: Quantity
    buffer_ms_per_mb: float
    uml_buffer_ms_per_mb: float
    machine_log_sd: float
    rows: dict[tuple[Codec, bool], Calibration]
    warnings: tuple[str, ...] = ()

    def row(self, codec: Codec, *, far: bool) -> Calibration:
        """Return the row of a codec with such a window, or else with the other."""
        return self.rows.get((codec, far)) or self.rows[codec, not far]


@cache
def shipped_calibration() -> CalibrationTable:
    """Return the calibration table shipped with the package."""
    return _parse(shipped_document())


def shipped_document() -> dict[str, Any]:
    """Return the document of the shipped table, all that its figures were made of included."""
    return _load(CALIBRATION)


def calibration(host: Host) -> CalibrationTable:
    """Return the calibration table made on this machine, or the shipped one.

    Codecs that the own table lacks are as in the shipped one. One that is no such table is a
    warning.
    """
    shipped = shipped_calibration()
    path: Path | None = None
    try:
        path = host.state_file(CALIBRATION)
        if path is None:
            return shipped
        with open_regular(path) as file:
            own = _parse(from_json(file.read(_TEXT_LIMIT_BYTES)))
    except InitadvisorError as err:
        why = err.message
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as err:
        why = shown(f"{path} is no calibration table ({type(err).__name__}: {err})")
    else:
        measured = {codec for codec, _ in own.rows}
        others = {of: row for of, row in shipped.rows.items() if of[0] not in measured}
        return replace(own, rows=others | own.rows)
    return replace(shipped, warnings=(f"the shipped calibration is used, because {why}",))


def _parse(table: dict[str, Any]) -> CalibrationTable:
    """Read a table; raises ``ValueError``, ``KeyError`` or ``TypeError`` for what is none."""
    require(table["schema"] == _SCHEMA, f"its schema is not {_SCHEMA}")
    require(len(table["decompress"]) > 0, "it has no codec")
    if not isinstance(table["source"], str):
        raise TypeError(table["source"])
    source = shown(table["source"])
    populate, buffers = table["populate_ms_per_mb"], table["buffer_ms_per_mb"]
    return CalibrationTable(
        source=source,
        populate_ms_per_mb=_quantity(populate["median"], populate["log_sd"], source),
        buffer_ms_per_mb=_quantity(buffers["kernel"], 0.0, source).median,
        uml_buffer_ms_per_mb=_quantity(buffers["user-mode Linux"], 0.0, source).median,
        machine_log_sd=_quantity(1.0, table["machine_log_sd"]["value"], source).log_sd,
        rows={
            (Codec(name), window == _FAR): _row(row, codec)
            for name, codec in table["decompress"].items()
            for window, row in _windows(codec).items()
        },
    )


def _windows(codec: dict[str, Any]) -> dict[str, Any]:
    found = {window: codec[window] for window in (_NEAR, _FAR) if window in codec}
    require(bool(found), f"a codec has neither {_NEAR} nor {_FAR}")
    return found


def _row(row: dict[str, Any], codec: dict[str, Any]) -> Calibration:
    ratio = _quantity(row["ratio"], codec["log_sd"], "")
    return Calibration(
        ratio=ratio.median,
        user_ms_per_mb=_quantity(row["user_ms_per_mb"], 0.0, "").median,
        log_sd=ratio.log_sd,
        own_log_sd=_quantity(1.0, codec["own_log_sd"], "").log_sd,
    )


def _quantity(median: float, log_sd: float, source: str) -> Quantity:
    require(
        1 / _PLAUSIBLE < median < _PLAUSIBLE and 0 <= log_sd <= _PLAUSIBLE_LOG_SD,
        f"{median} within exp({log_sd}) is not plausible",
    )
    return Quantity(median=float(median), log_sd=float(log_sd), source=source)


@cache
def _sampling_errors() -> dict[tuple[str, bool, bool], Error]:
    return {
        (row["codec"], row["slow"], row["far"]): Error(bias=row["bias"], log_sd=row["log_sd"])
        for row in _load("sampling.json")["errors"]
    }


def sampling_error(codec: Codec, *, slow: bool, far: bool) -> Error:
    """Return how far sizes estimated from a sample were from those built.

    ``slow`` settings are estimated from a smaller sample; ``far``: the window is of megabytes. Of a
    kind that was not compared, the error is as wide as any of this codec.
    """
    errors = _sampling_errors()
    if known := errors.get((codec.value, slow, far)):
        return known
    alike = [error for (name, _, _), error in errors.items() if name == codec.value]
    return Error(bias=0.0, log_sd=2 * max(error.log_sd for error in alike))


@cache
def observed_boots() -> tuple[ObservedBoot, ...]:
    """Return the boots of real machines that the prior of the shadow is drawn from."""
    return tuple(
        ObservedBoot(
            waited=row["waited"],
            unpack_ms=row["unpack_ms"],
            shadow_ms=row.get("shadow_ms"),
            begin_to_init_ms=row["begin_to_init_ms"],
        )
        for row in _load("real_boots.json")["boots"]
    )


def _load(name: str) -> dict[str, Any]:
    text = Path(__file__).with_name(name).read_text("utf-8")
    table: dict[str, Any] = from_json(text)
    return table
