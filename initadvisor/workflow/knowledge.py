"""What the package itself knows: data files, each with where its figures come from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from initadvisor.model.codec import Codec
from initadvisor.model.cost import Calibration, ObservedBoot, Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationTable:
    """How kernel and user-space decompression compare.

    ``populate_ms_per_mb``: the kernel's time to create the files, per 10^6 unpacked bytes.
    ``machine_log_sd``: how far a machine's kernel may be from the calibrated one, on every codec
    alike. ``source`` says what was measured, with what.
    """

    source: str
    populate_ms_per_mb: Quantity
    machine_log_sd: float
    codecs: dict[Codec, Calibration]


@cache
def calibration() -> CalibrationTable:
    """Return the calibration table shipped with the package."""
    table = _load("calibration.json")
    populate = table["populate_ms_per_mb"]
    return CalibrationTable(
        source=table["source"],
        populate_ms_per_mb=Quantity(median=populate["median"], log_sd=populate["log_sd"]),
        machine_log_sd=table["machine_log_sd"]["value"],
        codecs={
            Codec(name): Calibration(
                codec=Codec(name),
                ratio=Quantity(median=row["ratio"], log_sd=row["log_sd"], source=table["source"]),
            )
            for name, row in table["decompress"].items()
        },
    )


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
    text = resources.files("initadvisor.data").joinpath(name).read_text("utf-8")
    table: dict[str, Any] = json.loads(text)
    return table
