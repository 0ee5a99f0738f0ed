"""What would be best with another disk, processor or shadow: a table's, or this machine's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.advise.truth_tables import truth_table
from initadvisor.advise.whatif_choices import ComparedSettings, of_machine, of_table
from initadvisor.core.config import Objective
from initadvisor.core.errors import UsageError
from initadvisor.decide.cost import Factor
from initadvisor.decide.whatif_values import Rule, Span, WhatIf
from initadvisor.decide.whatif_views import UNITS, Comparison, at_speed
from initadvisor.host.configuration import load_config

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.advise.evaluation import RecommendObserver
    from initadvisor.core.config import Config
    from initadvisor.decide.whatif_values import GivenValue, ReadMedium
    from initadvisor.host import Host


_MOST_RANGES = 2
_ASSUMED = "assumed, not measured: a round figure for what boot loaders get from such a disk"
DISKS = tuple(
    at_speed(mb_s, name=name, source=_ASSUMED)
    for name, mb_s in (("NVMe", 1500.0), ("SATA SSD", 500.0), ("SD card", 20.0))
)
"""The classic comparison. Loaders read through the firmware's drivers, and what those get from the
same disk differs by a factor of 10 between machines."""

_AS_MEASURED, _NO_SHADOW = 1.0, 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the user asks; fields as the options of ``initadvisor whatif``, None where not given."""

    table: str | None = None
    image: Path | None = None
    read_speed_mb_s: GivenValue | None = None
    cpu_scale: GivenValue | None = None
    shadow_ms: GivenValue | None = None
    objective: Objective | None = None

    @property
    def given(self) -> dict[Factor, GivenValue]:
        """The conditions that the user names."""
        conditions = {
            Factor.LOADER: self.read_speed_mb_s,
            Factor.SHADOW: self.shadow_ms,
            Factor.CPU: self.cpu_scale,
        }
        return {factor: value for factor, value in conditions.items() if value is not None}

    @property
    def ranges(self) -> dict[Factor, Span]:
        """Those of them that are ranges."""
        return {factor: value for factor, value in self.given.items() if isinstance(value, Span)}

    def value(self, factor: Factor, otherwise: float) -> float:
        """Return a condition's one value."""
        value = self.given.get(factor, otherwise)
        return otherwise if isinstance(value, Span) else value


def what_if(host: Host, question: Question, *, observer: RecommendObserver) -> WhatIf:
    """Price every setting under the conditions asked for, and say where the best one changes.

    Without a table the images are this machine's (or of the image given), as ``recommend`` knows
    them. Raises ``UsageError`` for more than two ranges or a table that is none, and whatever
    ``recommend`` raises.
    """
    ranges = question.ranges
    if len(ranges) > _MOST_RANGES:
        msg = "cannot vary read speed, processor and shadow at the same time"
        raise UsageError(msg, hint="give a range to two of them at most")
    config = load_config(host)
    objective = question.objective or config.objective
    subject = _subject(host, question, config, objective, observer)
    places = _places(question, subject)
    comparison = Comparison(
        choices=subject.choices,
        rule=Rule(
            tolerance_ms=config.tolerance_ms,
            tolerance_fraction=config.tolerance_fraction,
            by_size=objective is Objective.SIZE,
        ),
        cpu_scale=question.value(Factor.CPU, _AS_MEASURED),
        shadow_ms=question.value(Factor.SHADOW, _NO_SHADOW),
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
        assumptions=(*_said(question, places), *subject.remarks),
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
    from initadvisor.advise.evaluation import Request
    from initadvisor.advise.recommend import recommend  # takes long; tables need it not

    return of_machine(
        recommend(host, Request(image=question.image), observer=observer), config, objective
    )


def _places(question: Question, subject: ComparedSettings) -> tuple[ReadMedium, ...]:
    """Return what is read from: what was given, else this machine's disk, else the classic ones.

    Where nothing at all is given, this machine's own stands beside the classic ones.
    """
    speed, loader = question.read_speed_mb_s, subject.loader
    if speed is not None:
        return (at_speed(speed.low if isinstance(speed, Span) else speed),)
    if loader is None:
        return DISKS
    return (loader,) if question.given else (loader, *DISKS)


def _said(question: Question, places: tuple[ReadMedium, ...]) -> tuple[str, ...]:
    """Say in words what was assumed or given, not measured."""
    given, said = question.given, []
    if not isinstance(question.read_speed_mb_s, Span):
        said += [
            f"{place.name}: the loader reads {place.read_mb_s.mean:.4g} {UNITS[Factor.LOADER]}"
            f"{_interval(place)} ({place.read_mb_s.source})"
            for place in places
        ]
    if Factor.CPU not in given:
        said.append("the processor is the one that the times to unpack are of")
    elif Factor.CPU not in question.ranges:
        said.append(
            f"the processor takes {given[Factor.CPU]:g} times as long, as given, to create files "
            "and to decompress alike; that was not measured"
        )
    if Factor.SHADOW not in given:
        said.append(
            "the shadow is taken to be 0 ms: a boot waits for all of the unpacking, as most "
            "machines' boots do; --shadow names another"
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
