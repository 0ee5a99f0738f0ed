"""What a boot costs with each setting, as bars: their lengths, and which setting is the best.

``docs/architecture.md`` says why no plotting library draws them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from initadvisor.decide.whatif import rank_settings
from initadvisor.decide.whatif_values import Conditions, ReadMedium

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.core.estimates import Estimate
    from initadvisor.core.settings import Setting
    from initadvisor.decide.whatif_values import SettingFigures
    from initadvisor.report.report import Model

_MOST_OF_BEST = 3.0
"""No picture reaches further than so many times the best, or one slow setting hides the others."""

_BESIDE = 1.08


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A setting's cost and its parts, in ms: ``cost_ms`` is their sum, with its interval.

    ``hidden_ms``: the part of the unpacking that the kernel's other work hides; ``waited_ms``: the
    part that it does not hide; ``other_ms``: other work that goes on when all is unpacked.
    """

    setting: Setting
    read_ms: float
    hidden_ms: float
    waited_ms: float
    other_ms: float
    build_ms: float
    cost_ms: Estimate
    best: bool
    as_good: bool


def here(model: Model) -> Conditions:
    """Return this machine's conditions, each the middle of what it may be."""
    return Conditions(
        read_mb_s=model.loader_mb_s.mean, cpu_scale=1.0, shadow_ms=model.overlap_ms.middle
    )


def choices(
    model: Model, *, boots_per_upgrade: float, count_builds: bool
) -> tuple[SettingFigures, ...]:
    """Return what is compared; where builds count, without the settings whose is not known."""
    if not count_builds:
        return model.choices
    return tuple(
        replace(choice, extra_ms=cpu_s * 1000 / boots_per_upgrade)
        for choice, cpu_s in zip(model.choices, model.build_cpu_s, strict=True)
        if cpu_s is not None
    )


def bars(
    model: Model, compared: Sequence[SettingFigures], conditions: Conditions
) -> tuple[Bar, ...]:
    """Return a bar for each choice, what costs least first."""
    place = ReadMedium(name="", read_mb_s=model.loader_mb_s)
    ranks = rank_settings(compared, conditions, place, model.rule)
    found = []
    for choice, rank in zip(compared, ranks, strict=True):
        unpack_ms = conditions.cpu_scale * choice.unpack_ms.mean
        hidden_ms = min(unpack_ms, conditions.shadow_ms)
        found.append(
            Bar(
                setting=choice.setting,
                read_ms=1000 * choice.size_mb.mean / conditions.read_mb_s,
                hidden_ms=hidden_ms,
                waited_ms=unpack_ms - hidden_ms,
                other_ms=conditions.shadow_ms - hidden_ms,
                build_ms=conditions.cpu_scale * choice.extra_ms,
                cost_ms=rank.cost_ms,
                best=rank.best,
                as_good=rank.as_good,
            )
        )
    return tuple(sorted(found, key=lambda bar: bar.cost_ms.mean))


def reach_ms(shown: Sequence[Bar]) -> float:
    """Return what the width of the picture stands for."""
    costs = [bar.cost_ms.mean for bar in shown]
    return _BESIDE * min(max(costs), _MOST_OF_BEST * min(costs))
