"""The same candidates under other conditions: another disk, processor or shadow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from initadvisor.core.config import Objective
    from initadvisor.core.estimates import Estimate
    from initadvisor.core.settings import Setting
    from initadvisor.decide.cost import BestRange, Factor
    from initadvisor.records.built_image import SkippedSetting


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingFigures:
    """One setting: the size of its image (10^6 bytes) and U, the time a kernel takes to unpack it.

    ``extra_ms``: what the objective adds to each boot. ``off_ms``: how much more than at the middle
    of all figures it costs on the very machine they are of, as the middle of a difference is not
    the difference of middles. Where nothing is known of how far off a figure may be, its interval
    has no width. ``built``: the size is that of a file.
    """

    setting: Setting
    size_mb: Estimate
    unpack_ms: Estimate
    extra_ms: float = 0.0
    off_ms: float = 0.0
    built: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What a choice is priced under.

    ``read_mb_s``: the loader's speed. ``cpu_scale``: what unpacking (creating the files as well as
    decompressing) and building take, as a multiple; 2 is a processor half as fast. ``shadow_ms``:
    B1, how long the kernel has other work before something waits for the initramfs. ``own``: loader
    and overlap are those of the machine that the figures are of.
    """

    read_mb_s: float
    cpu_scale: float
    shadow_ms: float
    own: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Which choice is the best, and which others are as good.

    As good is what costs more than the best by at most ``tolerance_ms`` or by at most
    ``tolerance_fraction`` of what ``today`` (None in a table: the best) takes to read and unpack.
    ``by_size``: the smallest is the best, whatever it costs in time, and only the fraction counts.
    """

    tolerance_ms: float
    tolerance_fraction: float
    today: Setting | None = None
    by_size: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A range of values, ``low`` below ``high``."""

    low: float
    high: float


GivenValue: TypeAlias = "float | Span"
"""What a user says of a condition: one value, or a range of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMedium:
    """Something to read from, and how fast its loader is; the source says who claims that.

    ``own``: it is that of the machine that the figures are of.
    """

    name: str
    read_mb_s: Estimate
    own: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRank:
    """What one choice costs under some conditions, in ms, and how that compares."""

    setting: Setting
    cost_ms: Estimate
    best: bool
    as_good: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """All choices under the same conditions."""

    title: str
    conditions: Conditions
    ranks: tuple[SettingRank, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfLine:
    """All choices along a range of one condition; ``medium`` is empty where speed is what varies.

    ``ranges``: which setting is the best, from where to where. ``suitable``: where each setting
    is as good as the best. ``columns``: some points of the range, its ends among them.
    """

    medium: str
    factor: Factor
    span: Span
    ranges: tuple[BestRange, ...]
    suitable: Mapping[Setting, tuple[Span, ...]]
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MapRow:
    """The best settings for one value of the condition that goes down a map.

    ``as_good`` has for each value across those that are as good as the best, today's first, then
    the best; ``best`` the best alone, ``ranges`` where exactly one follows another.
    """

    value: float
    best: tuple[Setting, ...]
    as_good: tuple[tuple[Setting, ...], ...]
    ranges: tuple[BestRange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WinnersMap:
    """Which setting is the best where two conditions vary; ``medium`` as for ``WhatIfLine``."""

    medium: str
    across: Factor
    values: tuple[float, ...]
    down: Factor
    rows: tuple[MapRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """The whole answer: ``columns``, or ``lines`` for one range, or ``maps`` for two.

    ``name`` and ``source`` are of the table of sizes and times; ``left_out`` what is in it and
    could not be compared; ``assumptions`` what was not measured, in words.
    """

    name: str
    source: str
    objective: Objective
    rule: Rule
    choices: tuple[SettingFigures, ...]
    columns: tuple[Column, ...] = ()
    lines: tuple[WhatIfLine, ...] = ()
    maps: tuple[WinnersMap, ...] = ()
    left_out: tuple[SkippedSetting, ...] = ()
    assumptions: tuple[str, ...] = ()
