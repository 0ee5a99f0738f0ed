"""Made-up machines, whose right answer is known, and how a campaign on them ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.model.cost import Outcome
    from initadvisor.model.setting import Setting


class Strain(StrEnum):
    """In which way a machine is not as the cost model says.

    ``curved``: reading takes a power of the size (0.85 or 1.15). ``drift``: what every candidate
    pays grows or shrinks by 1 % of a boot with every boot. ``contention``: while the kernel has
    other work, unpacking is slowed by 30 %. ``correlated``: a slow boot is followed by slow boots
    (0.8 of it stays). ``outliers``: three times as many boots are disturbed.
    """

    NONE = "none"
    CURVED = "curved"
    DRIFT = "drift"
    CONTENTION = "contention"
    CORRELATED = "correlated"
    OUTLIERS = "outliers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What the machines of one simulation have in common.

    ``read_mb_s``: the loader's speed, in 10^6 bytes per second. ``shadow_ms``: B1.
    ``noise_log_sd``: how far single boots are apart, in every part. ``outliers``: which part of the
    boots is disturbed. ``unpack_log_sd``: how far what is known of each candidate's unpacking
    beforehand is from the truth; ``lab``: whether it was measured in a virtual machine.
    """

    read_mb_s: float
    shadow_ms: float
    noise_log_sd: float
    outliers: float = 0.05
    strain: Strain = Strain.NONE
    unpack_log_sd: float
    lab: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TrueMachine:
    """A machine as it is: figures as in ``model.cost``, a value for each candidate in tuples.

    Today's setting is the first. Times in ms, sizes in 10^6 bytes.
    """

    settings: tuple[Setting, ...]
    size_mb: tuple[float, ...]
    decompress_ms: tuple[float, ...]
    populate_ms: float
    read_s_per_mb: float
    fixed_ms: float
    kernel_mb: float
    shadow_ms: float
    rest_ms: float
    noise_log_sd: float
    outliers: float
    strain: Strain
    read_power: float = 1.0
    drift_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRun:
    """How a campaign on one machine ended.

    ``boots``: after how many; ``outcome`` is undecided where they were used up. ``stated``: with
    which probability it was said to be right. ``regret_ms``: what a boot costs more than with the
    best; ``right``: that is within the tolerance, and a switch does not lose time.
    ``order``: which candidates booted, by column.
    """

    boots: int
    outcome: Outcome
    setting: Setting
    stated: float
    regret_ms: float
    tolerance_ms: float
    right: bool
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedRun:
    """The classic comparison on one machine: many boots of every setting, the least mean wins."""

    boots: int
    setting: Setting
    regret_ms: float
    right: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """Decisions that were said to be right with about the same probability.

    ``stated``: the mean of that probability; ``right``: which part of them was; ``count``: of how
    many.
    """

    stated: float
    right: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What came of simulated campaigns.

    ``boots_median`` and ``boots_90``: after how many boots half and 90 % of them were decided, None
    where so many never were. ``decided``, ``right``: which part of all; what is undecided is not
    right. ``beyond_ms``: mean regret beyond the tolerance. ``fixed_boots``, ``fixed_right``,
    ``fixed_beyond_ms``: the same of the classic comparison.
    """

    machines: int
    decided: float
    boots_median: int | None
    boots_90: int | None
    right: float
    beyond_ms: float
    calibration: tuple[Stated, ...]
    fixed_boots: int
    fixed_right: float
    fixed_beyond_ms: float
