"""Made-up machines, whose right answer is known, and how a campaign on them ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.model.cost import Outcome
    from initadvisor.model.setting import Setting
    from initadvisor.model.whatif import Given


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


BREAKING = tuple(strain for strain in Strain if strain is not Strain.NONE)
"""The ways in which a machine can break the model."""


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
class Scenario:
    """Of which conditions the machines of a simulation draw theirs; fields as in ``Conditions``.

    Of a range each machine draws a value, all orders of magnitude (of the shadow those above 1 ms)
    alike. ``strains`` are taken in turns.
    """

    read_mb_s: Given
    shadow_ms: Given
    noise_log_sd: float
    outliers: float
    strains: tuple[Strain, ...]
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
    ``order``: which candidates booted, by column; ``booted``: the same as settings. ``best``: what
    costs least in truth.
    """

    boots: int
    outcome: Outcome
    setting: Setting
    stated: float
    regret_ms: float
    tolerance_ms: float
    right: bool
    order: tuple[int, ...]
    booted: tuple[Setting, ...]
    best: Setting


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


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRun:
    """One made-up machine: what it was drawn from, and what came of both designs."""

    seed: tuple[int, ...]
    table: str
    conditions: Conditions
    today: Setting
    campaign: CampaignRun
    fixed: FixedRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A part of a number of machines; ``low`` and ``high`` bound, with 95 %, that of all such."""

    count: int
    of: int
    part: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BootCount:
    """After how many boots some part of all campaigns is settled, and its 95 % interval.

    None: not within the boots that a campaign may take.
    """

    boots: int | None
    low: int | None
    high: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean over machines and its 95 % interval, None where they are few or do not differ."""

    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Believed:
    """Settled decisions said to be right with about the same probability, and how many were."""

    stated: float
    right: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingUse:
    """What became of one setting, over all machines.

    ``best``: it is what costs least in truth. ``chosen``: it is what a campaign ended with, what
    would be advised then where it was not settled. ``booted``: it was booted at all; ``boots``: how
    often, on average. ``fixed_chosen``: what the classic comparison ended with.
    """

    setting: Setting
    best: Share
    chosen: Share
    booted: Share
    boots: Mean
    fixed_chosen: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedFigures:
    """What came of the classic comparison; ``boots`` is the median, fields as in ``Figures``."""

    boots: int
    right: Share
    regret_ms: Mean
    beyond_ms: Mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What came of the campaigns on some machines, each figure with how far chance may move it.

    ``settled``, ``right``: parts of all; what is not settled is not right. ``regret_ms``: what a
    boot costs more than with the best; ``beyond_ms``: what of it is beyond the tolerance.
    """

    machines: int
    boots_median: BootCount
    boots_90: BootCount
    settled: Share
    right: Share
    regret_ms: Mean
    beyond_ms: Mean
    calibration: tuple[Believed, ...]
    fixed: FixedFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """The whole answer to how long a campaign takes on machines like some.

    ``tables``: what they are drawn from. ``by_strain``: the same figures for each way to break the
    model, where there are several. ``assumptions``: all that was made up, in words.
    """

    seed: int
    tables: tuple[str, ...]
    scenario: Scenario
    certainty: float
    tolerance_ms: float
    tolerance_fraction: float
    most_boots: int
    runs: tuple[MachineRun, ...]
    figures: Figures
    by_strain: tuple[tuple[Strain, Figures], ...]
    settings: tuple[SettingUse, ...]
    assumptions: tuple[str, ...]
