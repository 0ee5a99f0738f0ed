"""What would be best with another disk, processor or overlap.

Compared are the settings of a table, or this machine's images as far as they are known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp
from typing import TYPE_CHECKING

from initadvisor.advise.recommendation import build_cpu_s, unknown_build
from initadvisor.advise.truth_tables import truth_table
from initadvisor.core.config import Objective
from initadvisor.core.errors import UsageError
from initadvisor.core.estimates import Estimate, SizeSource, three_digits
from initadvisor.decide.boot_evidence import Parameter
from initadvisor.decide.cost import Factor
from initadvisor.decide.upgrades import upgrade_pace
from initadvisor.decide.whatif import UNITS, Comparison, at_speed, cost_ms
from initadvisor.decide.whatif_values import (
    Conditions,
    ReadMedium,
    Rule,
    SettingFigures,
    Span,
    WhatIf,
)
from initadvisor.host.configuration import load_config
from initadvisor.records.built_image import SkippedSetting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from initadvisor.advise.recommend import RecommendObserver
    from initadvisor.advise.recommendation import Recommendation, Row
    from initadvisor.advise.truth_tables import TruthTable
    from initadvisor.core.config import Config
    from initadvisor.core.settings import Setting
    from initadvisor.decide.upgrades import UpgradePace
    from initadvisor.decide.whatif_values import GivenValue
    from initadvisor.host import Host


_MOST_RANGES = 2
_ASSUMED = "assumed, not measured: a round figure for what boot loaders get from such a disk"
DISKS = tuple(
    at_speed(mb_s, name=name, source=_ASSUMED)
    for name, mb_s in (("NVMe", 1500.0), ("SATA SSD", 500.0), ("SD card", 20.0))
)
"""The classic comparison. Loaders read through the firmware's drivers, and what those get from the
same disk differs by a factor of 10 between machines."""

_AS_MEASURED, _NO_OVERLAP = 1.0, 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the user asks; fields as the options of ``initadvisor whatif``, None where not given."""

    table: str | None = None
    image: Path | None = None
    read_speed_mb_s: GivenValue | None = None
    cpu_scale: GivenValue | None = None
    overlap_ms: GivenValue | None = None
    objective: Objective | None = None

    @property
    def given(self) -> dict[Factor, GivenValue]:
        """The conditions that the user names."""
        conditions = {
            Factor.LOADER: self.read_speed_mb_s,
            Factor.SHADOW: self.overlap_ms,
            Factor.CPU: self.cpu_scale,
        }
        return {factor: value for factor, value in conditions.items() if value is not None}

    @property
    def ranges(self) -> dict[Factor, Span]:
        """Those of them that are ranges."""
        return {factor: value for factor, value in self.given.items() if isinstance(value, Span)}

    def one(self, factor: Factor) -> float | None:
        """Return a condition's one value; None where it is a range or not given."""
        value = self.given.get(factor)
        return None if isinstance(value, Span) else value

    def value(self, factor: Factor, otherwise: float) -> float:
        """Return a condition's one value."""
        value = self.one(factor)
        return otherwise if value is None else value


def what_if(host: Host, question: Question, *, observer: RecommendObserver) -> WhatIf:
    """Price every setting under the conditions asked for, and say where the best one changes.

    Without a table the images are this machine's (or of the image given), as ``recommend`` knows
    them. Raises ``UsageError`` for more than two ranges or a table that is none, and whatever
    ``recommend`` raises.
    """
    ranges = question.ranges
    if len(ranges) > _MOST_RANGES:
        msg = "cannot vary read speed, processor and overlap at the same time"
        raise UsageError(msg, hint="give a range to two of them at most")
    config = load_config(host)
    objective = question.objective or config.objective
    subject = _subject(host, question, config, objective, observer)
    places = _places(question, subject)
    # Of two waits the difference never grows with the overlap: at its median it is at its own.
    overlap_ms = subject.overlap_ms.middle if subject.overlap_ms else _NO_OVERLAP
    comparison = Comparison(
        choices=subject.choices,
        rule=Rule(
            tolerance_ms=config.tolerance_ms,
            tolerance_fraction=config.tolerance_fraction,
            today=subject.today,
            by_size=objective is Objective.SIZE,
        ),
        cpu_scale=question.value(Factor.CPU, _AS_MEASURED),
        shadow_ms=question.value(Factor.SHADOW, overlap_ms),
    )
    return WhatIf(
        name=subject.name,
        source=subject.source,
        objective=objective,
        rule=comparison.rule,
        choices=subject.choices,
        columns=tuple(comparison.column(place) for place in places) if not ranges else (),
        lines=tuple(
            comparison.line(place, factor, span)
            for place in places
            for factor, span in ranges.items()
            if len(ranges) == 1
        ),
        maps=tuple(comparison.map(place, ranges) for place in places)
        if len(ranges) == _MOST_RANGES
        else (),
        left_out=subject.left_out,
        assumptions=(*_said(question, places, subject.overlap_ms), *subject.remarks),
    )


def _subject(
    host: Host,
    question: Question,
    config: Config,
    objective: Objective,
    observer: RecommendObserver,
) -> ComparedSettings:
    if question.table is not None:
        return of_table(truth_table(question.table), config, objective)
    from initadvisor.advise.recommend import Request, recommend  # takes long; tables need it not

    speed = question.one(Factor.LOADER)
    request = Request(
        image=question.image,
        read_speed_mb_s=speed,
        overlap_ms=question.one(Factor.SHADOW),
        objective=objective,
    )
    if speed is not None:
        config = replace(config, read_speed_mb_s=speed)
    return of_machine(recommend(host, request, observer=observer), config, objective)


def _places(question: Question, subject: ComparedSettings) -> tuple[ReadMedium, ...]:
    """Return what is read from: what was given, else this machine's disk, else the classic ones.

    Where nothing at all is given, this machine's own stands beside the classic ones.
    """
    speed, loader = question.read_speed_mb_s, subject.loader
    own = loader is not None and not question.ranges.keys() & {Factor.LOADER, Factor.SHADOW}
    if speed is not None:
        place = at_speed(speed.low if isinstance(speed, Span) else speed)
        return (replace(place, own=own),)
    if loader is None:
        return DISKS
    here = replace(loader, own=own)
    return (here,) if question.given else (here, *DISKS)


def _said(
    question: Question, places: tuple[ReadMedium, ...], overlap_ms: Estimate | None
) -> tuple[str, ...]:
    """Say in words what was assumed or given, not measured."""
    given, said = question.given, []
    if not isinstance(question.read_speed_mb_s, Span):
        said += [
            f"{place.name}: the loader reads {three_digits(place.read_mb_s.mean)} "
            f"{UNITS[Factor.LOADER]}"
            f"{_interval(place)} ({place.read_mb_s.source})"
            for place in places
        ]
    if question.read_speed_mb_s is None and any(place.own for place in places):
        said.append(
            "this machine stands at the middle of what it may be: recommend weighs all of that, "
            "and may advise another setting than what is best there"
        )
    if Factor.CPU not in given:
        said.append("the processor is the one that the times to unpack are of")
    elif Factor.CPU not in question.ranges:
        said.append(
            f"the processor takes {given[Factor.CPU]:g} times as long, as given, to create files "
            "and to decompress alike; that was not measured"
        )
    if Factor.SHADOW not in given and overlap_ms:
        middle, low, high = map(three_digits, (overlap_ms.middle, overlap_ms.low, overlap_ms.high))
        of = f", the middle of what it may be here ({low}..{high}; {overlap_ms.source})"
        exact = overlap_ms.low == overlap_ms.high
        known = overlap_ms.source if exact else f"taken to be {middle} ms{of}"
        said.append(f"the overlap is {known}; --overlap names another")
    elif Factor.SHADOW not in given:
        said.append(
            "the overlap is taken to be 0 ms: a boot waits for all of the unpacking, as most "
            "machines' boots do; --overlap names another"
        )
    elif Factor.SHADOW not in question.ranges:
        said.append(f"the kernel has other work for {given[Factor.SHADOW]:g} ms, as given")
    said.append("what every setting costs alike (the kernel, the rest of the boot) is not included")
    return tuple(said)


def _interval(place: ReadMedium) -> str:
    speed = place.read_mb_s
    return (
        ""
        if speed.low == speed.high
        else f", {speed.low:.0f} to {speed.high:.0f} {UNITS[Factor.LOADER]}"
    )


_Z95 = 1.96
_LEAST = 2
_OF_UNPACKING = frozenset({Parameter.POPULATE, Parameter.CPU, Parameter.LAB})
"""What those assumptions of ``recommend`` are about that are not replaced by what is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSettings:
    """What is compared and who says so.

    ``today``, ``loader``, ``overlap_ms``: this machine's own, where the images are its own.
    ``remarks``: what their figures rest on.
    """

    name: str
    source: str
    choices: tuple[SettingFigures, ...]
    left_out: tuple[SkippedSetting, ...]
    today: Setting | None = None
    loader: ReadMedium | None = None
    overlap_ms: Estimate | None = None
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
        remarks=(
            *(f"it does not add up: {doubt}" for doubt in table.doubts),
            *_said_of_pace(pace, objective),
        ),
    )


def of_machine(answer: Recommendation, config: Config, objective: Objective) -> ComparedSettings:
    """Return what ``recommend`` knows of an image and its candidates, and of the loader.

    What may not be chosen on this machine is left out. Raises ``UsageError`` where less than two
    are left.
    """
    unfit = {row.setting: why for row in answer.rows if (why := row.unfit)}
    fit = [row for row in answer.rows if row.setting not in unfit]
    known = [(_of_row(row), build_cpu_s(row, answer.rows)) for row in fit]
    pace = upgrade_pace(config.boots_per_upgrade, answer.pace)
    choices, unbuilt = _with_builds(known, pace, objective)
    skipped_settings = (
        *(SkippedSetting(setting=setting, reason=why) for setting, why in unfit.items()),
        *unbuilt,
        *answer.skipped,
    )
    _require_comparison(str(answer.image), choices, skipped_settings)
    speed, given = answer.storage.loader_mb_s, config.read_speed_mb_s
    read_mb_s = replace(speed, mean=speed.middle if given is None else given)
    loader = ReadMedium(name="this machine", read_mb_s=read_mb_s)
    return ComparedSettings(
        name=str(answer.image),
        source=f"this image and its candidates as recommend knows them, evidence: "
        f"{answer.evidence}",
        choices=_as_recommended(choices, answer, loader, objective),
        left_out=skipped_settings,
        today=answer.baseline,
        loader=loader,
        overlap_ms=answer.overlap_ms,
        remarks=(
            *(one.text for one in answer.assumptions if one.about in _OF_UNPACKING),
            *_said_of_pace(pace, objective),
            *_said_of_builds(answer.rows, objective),
            *(f"{row.setting}: {note}" for row in fit for note in row.notes),
            *answer.warnings,
        ),
    )


def _of_row(row: Row) -> SettingFigures:
    return SettingFigures(
        setting=row.setting,
        size_mb=_lognormal(row.size_bytes / 1e6, row.size_log_sd, str(row.size_source)),
        unpack_ms=replace(row.unpack_ms, mean=row.unpack_ms.middle),
        built=row.size_source is SizeSource.BUILT,
    )


def _as_recommended(
    choices: Sequence[SettingFigures],
    answer: Recommendation,
    loader: ReadMedium,
    objective: Objective,
) -> tuple[SettingFigures, ...]:
    """Have differences on the machine itself be those that ``recommend`` shows."""
    here = Conditions(
        read_mb_s=loader.read_mb_s.mean,
        cpu_scale=_AS_MEASURED,
        shadow_ms=answer.overlap_ms.middle if answer.overlap_ms else _NO_OVERLAP,
    )
    saving_ms = {row.setting: row.saving_ms.middle for row in answer.rows}
    [today] = [row for row in answer.rows if row.setting == answer.baseline]
    build_s = build_cpu_s(today, answer.rows) if objective is Objective.BALANCED else None
    extra_ms = (build_s or 0.0) * 1000 / answer.pace.boots
    todays_ms = cost_ms(replace(_of_row(today), extra_ms=extra_ms), here)
    return tuple(
        replace(one, off_ms=todays_ms - saving_ms[one.setting] - cost_ms(one, here))
        for one in choices
    )


def _said_of_builds(rows: Sequence[Row], objective: Objective) -> Iterator[str]:
    """Say of what nobody built what its build is taken to be, if the objective counts it."""
    for row in rows:
        if objective is Objective.BALANCED and (spread := unknown_build(row, rows)):
            yield spread.words


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


def _said_of_pace(pace: UpgradePace, objective: Objective) -> tuple[str, ...]:
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
