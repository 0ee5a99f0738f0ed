"""What others have published, by the same model: which setting costs least at which speed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.advise.truth_tables import truth_table, truth_table_names
from initadvisor.advise.whatif import of_table
from initadvisor.core.config import Config, Objective
from initadvisor.core.estimates import three_digits
from initadvisor.decide.cost import Factor
from initadvisor.decide.whatif import best_along
from initadvisor.decide.whatif_values import Conditions, Rule, Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.decide.whatif_values import SettingFigures

_SPEEDS = Span(low=0.1, high=8000.0)
_OUR_OWN = "measured for this package"
_CONFIG = Config()


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """A table of somebody else; ``winners``: in words, from the slowest loader to the fastest.

    ``choices``: its settings, which the model compares.
    """

    name: str
    source: str
    choices: tuple[SettingFigures, ...]
    winners: tuple[str, ...]
    doubts: tuple[str, ...]


def published_tables(asked: Sequence[str] = ()) -> tuple[PublishedTable, ...]:
    """Return tables, all unpacking waited for: the ``asked`` ones, names or files, come first.

    The others are the built-in ones that are not this package's own. Raises what ``truth_table``
    does.
    """
    built_in = (truth_table(name) for name in truth_table_names())
    others = (table for table in built_in if not table.source.startswith(_OUR_OWN))
    rule = Rule(tolerance_ms=_CONFIG.tolerance_ms, tolerance_fraction=_CONFIG.tolerance_fraction)
    found = []
    for table in dict.fromkeys((*map(truth_table, asked), *others)):
        choices = of_table(table, _CONFIG, Objective.BOOT).choices
        conditions = Conditions(read_mb_s=_SPEEDS.low, cpu_scale=1.0, shadow_ms=0.0)
        ranges = best_along(choices, conditions, Factor.LOADER, _SPEEDS, rule)
        winners = tuple(
            f"{one.setting} {'up to' if one is not ranges[-1] else 'from'} "
            f"{three_digits(one.high if one is not ranges[-1] else one.low)} MB/s"
            for one in ranges
        )
        found.append(
            PublishedTable(
                name=table.name,
                source=table.source,
                choices=choices,
                winners=winners if len(ranges) > 1 else (f"{ranges[0].setting} at any speed",),
                doubts=table.doubts,
            )
        )
    return tuple(found)
