"""What is compared: the settings of a table, or this machine's images as far as they are known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, sqrt
from typing import TYPE_CHECKING

from initadvisor.candidates.build_range import build_range
from initadvisor.core.codecs import Codec
from initadvisor.core.config import Objective
from initadvisor.core.errors import UsageError
from initadvisor.core.estimates import Estimate, SizeSource
from initadvisor.decide.boot_evidence import Parameter
from initadvisor.decide.upgrades import upgrade_pace
from initadvisor.decide.whatif_values import ReadMedium, SettingFigures
from initadvisor.image.contents import Verdict
from initadvisor.records.built_image import SkippedSetting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from initadvisor.advise.recommendation import Recommendation, Row
    from initadvisor.candidates.build_range import BuildRange
    from initadvisor.core.config import Config
    from initadvisor.decide.truth_table import TruthTable
    from initadvisor.decide.upgrades import UpgradePace


_Z95 = 1.96
_LEAST = 2
_OF_UNPACKING = frozenset({Parameter.POPULATE, Parameter.CPU, Parameter.LAB})
"""What those assumptions of ``recommend`` are about that are not replaced by what is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSettings:
    """What is compared and who says so.

    ``loader``: this machine's own, where the images are its own. ``remarks``: what their figures
    rest on.
    """

    name: str
    source: str
    choices: tuple[SettingFigures, ...]
    left_out: tuple[SkippedSetting, ...]
    loader: ReadMedium | None = None
    remarks: tuple[str, ...] = ()


def of_table(table: TruthTable, config: Config, objective: Objective) -> ComparedSettings:
    """Return the settings of a table.

    Raises ``UsageError`` where the objective counts builds and the table does not tell of them.
    """
    known = [
        (
            SettingFigures(
                setting=row.setting,
                size_mb=_lognormal(row.size_mb, 0.0, "the table"),
                unpack_ms=_lognormal(row.unpack_ms, row.log_sd, "the table"),
            ),
            row.build_cpu_s,
        )
        for row in table.rows
    ]
    pace = upgrade_pace(config.boots_per_upgrade, None)
    choices, skipped_settings = _with_builds(known, pace, objective)
    _require_comparison(table.name, choices, skipped_settings)
    return ComparedSettings(
        name=table.name,
        source=table.source,
        choices=choices,
        left_out=skipped_settings,
        remarks=_said(pace, objective),
    )


def of_machine(answer: Recommendation, config: Config, objective: Objective) -> ComparedSettings:
    """Return what ``recommend`` knows of an image and its candidates, and of the loader.

    What may not be chosen on this machine is left out. Raises ``UsageError`` where less than two
    are left.
    """
    unfit = {row.setting: why for row in answer.rows if (why := _why_unfit(row))}
    fit = [row for row in answer.rows if row.setting not in unfit]
    known = [(_of_row(row), _build_cpu_s(row, answer.rows)) for row in fit]
    pace = upgrade_pace(config.boots_per_upgrade, answer.pace)
    choices, unbuilt = _with_builds(known, pace, objective)
    skipped_settings = (
        *(SkippedSetting(setting=setting, reason=why) for setting, why in unfit.items()),
        *unbuilt,
        *answer.skipped,
    )
    _require_comparison(str(answer.image), choices, skipped_settings)
    speed = answer.storage.loader_mb_s
    middle = sqrt(speed.low * speed.high)  # of a figure known up to a factor
    return ComparedSettings(
        name=str(answer.image),
        source=f"this image and its candidates as recommend knows them, evidence: "
        f"{answer.evidence}",
        choices=choices,
        left_out=skipped_settings,
        loader=ReadMedium(name="this machine", read_mb_s=replace(speed, mean=middle)),
        remarks=(
            *(one.text for one in answer.assumptions if one.about in _OF_UNPACKING),
            *_said(pace, objective),
            *_said_of_builds(answer.rows, objective),
            *(f"{row.setting}: {note}" for row in fit for note in row.notes),
            *answer.warnings,
        ),
    )


def _of_row(row: Row) -> SettingFigures:
    return SettingFigures(
        setting=row.setting,
        size_mb=_lognormal(row.size_bytes / 1e6, row.size_log_sd, str(row.size_source)),
        unpack_ms=row.unpack_ms,
        built=row.size_source is SizeSource.BUILT,
    )


def _build_cpu_s(row: Row, rows: Sequence[Row]) -> float | None:
    """Return what building a row took; of an image nobody built, the middle of what it may be."""
    if row.build_cpu_s is not None or row.setting.codec is Codec.CAT:
        return row.build_cpu_s or 0.0
    spread = _unknown_build(row, rows)
    return spread.middle_s if spread else None


def _unknown_build(row: Row, rows: Sequence[Row]) -> BuildRange | None:
    known = ((other.setting, other.build_cpu_s) for other in rows)
    return build_range(row.setting, [(one, cpu_s) for one, cpu_s in known if cpu_s is not None])


def _said_of_builds(rows: Sequence[Row], objective: Objective) -> Iterator[str]:
    """Say of what nobody built what its build is taken to be, if the objective counts it."""
    for row in rows:
        found = row.build_cpu_s is None and row.setting.codec is not Codec.CAT
        if objective is Objective.BALANCED and found and (spread := _unknown_build(row, rows)):
            yield spread.words


def _why_unfit(row: Row) -> str | None:
    if row.lint.verdict is Verdict.REFUSED:
        return f"its kernel would refuse it: {'; '.join(row.lint.reasons)}"
    if row.unusable is not None:
        return row.unusable
    return None if row.fits else "the boot partition has no room for it"


def _with_builds(
    known: Iterable[tuple[SettingFigures, float | None]], pace: UpgradePace, objective: Objective
) -> tuple[tuple[SettingFigures, ...], tuple[SkippedSetting, ...]]:
    """Add each build's share of a boot, if the objective counts it."""
    if objective is not Objective.BALANCED:
        return tuple(choice for choice, _ in known), ()
    choices, skipped_settings = [], []
    for choice, cpu_s in known:
        if cpu_s is None:
            reason = "what building it takes is not known"
            skipped_settings.append(SkippedSetting(setting=choice.setting, reason=reason))
        else:
            extra_ms = cpu_s * 1000 / pace.boots
            choices.append(replace(choice, extra_ms=extra_ms))
    return tuple(choices), tuple(skipped_settings)


def _said(pace: UpgradePace, objective: Objective) -> tuple[str, ...]:
    """Say over how many boots a build is spread, if the objective counts it."""
    return (pace.words,) if objective is Objective.BALANCED else ()


def _require_comparison(
    name: str, choices: Sequence[SettingFigures], skipped_settings: Iterable[SkippedSetting]
) -> None:
    if len(choices) < _LEAST:
        why = "; ".join(f"{skipped.setting}: {skipped.reason}" for skipped in skipped_settings)
        msg = f"cannot compare the settings of {name}: less than two are left ({why})"
        raise UsageError(msg, hint="choose another --objective or table")


def _lognormal(middle: float, log_sd: float, source: str) -> Estimate:
    factor = exp(_Z95 * log_sd)
    return Estimate(mean=middle, low=middle / factor, high=middle * factor, source=source)
