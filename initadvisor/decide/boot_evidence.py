"""What boots tell the cost model, and what it has learnt from them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from initadvisor.records.marks import Waiting

if TYPE_CHECKING:
    from initadvisor.core.estimates import Estimate
    from initadvisor.core.settings import Setting
    from initadvisor.records.read_interval import Beside, IntervalSource


_LONGEST_US = 3_600_000_000
"""One hour: no boot that can be learnt from takes longer between any two of its marks."""

_BOUNDS = {
    "unpack_us": (1, _LONGEST_US),
    "begin_to_init_us": (1, _LONGEST_US),
    "shadow_us": (0, _LONGEST_US),
    "rest_us": (0, _LONGEST_US),
    "read_us": (1, _LONGEST_US),
    "loaded_mb": (1e-6, 1e5),
    "age_days": (0, 1e5),
}


class Relation(StrEnum):
    """How comparable a boot is with those that the advice is for.

    ``same``: of the same class (kernel, command line, hardware, power). ``near``: of this machine,
    but of another class; it tells less, see ``boot_summary``. Boots of another board or
    processor are no evidence at all.
    """

    SAME = "same"
    NEAR = "near"


@dataclass(frozen=True, slots=True, kw_only=True)
class BootEvidence:
    """One boot of this machine in figures; None for what it does not tell.

    ``class_key``: the same for boots of one class. ``digest`` and ``setting``: of the image and of
    what made it, only where they are certain. ``loaded_mb``: all that the loader passed, in 10^6
    bytes. ``shadow_us`` and ``rest_us``: B1 and B2 where they were seen, see ``ShadowObservation``.
    ``read_us``: an interval that contains the reading of the image, by which clock readings and
    with what else in it; None also where disk or way of booting were others than now.

    Raises ``ValueError`` for a figure that is no time (or size) of a boot: 0 where something must
    have passed, more than an hour, not a number.
    """

    relation: Relation
    class_key: str
    age_days: float | None = None
    digest: str | None = None
    setting: Setting | None = None
    loaded_mb: float | None = None
    unpack_us: float | None = None
    begin_to_init_us: float | None = None
    waiting: Waiting = Waiting.UNKNOWN
    shadow_us: float | None = None
    rest_us: float | None = None
    read_us: float | None = None
    read_source: IntervalSource | None = None
    read_beside: tuple[Beside, ...] = ()

    def __post_init__(self) -> None:
        for name, (least, most) in _BOUNDS.items():
            value = getattr(self, name)
            # Not a number compares with nothing.
            if value is not None and not least <= value <= most:
                msg = f"{name}={value!r} is not from {least:g} to {most:g}"
                raise ValueError(msg)


class Parameter(StrEnum):
    """What all candidates share on one machine, as it is shown.

    ``loader``: its speed, 1 / r, in MB/s. ``fixed``: L, in ms. ``shadow``, ``rest``,
    ``populate``: B1, B2 and P, in ms. ``cpu`` and ``lab``: the factors of ``Machine``.
    """

    LOADER = "loader"
    FIXED = "fixed"
    SHADOW = "overlap"
    REST = "rest"
    POPULATE = "populate"
    CPU = "cpu"
    LAB = "lab"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterUpdate:
    """One thing before and after the boots, and how many of them told something of it."""

    what: Parameter
    prior: Estimate
    posterior: Estimate
    boots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PosteriorSummary:
    """What the boots taught.

    ``updates``: every shared quantity, those included of which no boot told anything.
    ``boots_used``: how many told something of any; ``own_boots``: for each candidate, how many
    of today's class unpacked its very image. ``read_sizes``: how many different loaded sizes the
    loader's speed rests on; of one it is only bounded.
    """

    updates: tuple[ParameterUpdate, ...]
    boots_used: int
    own_boots: tuple[int, ...]
    read_sizes: int

    @property
    def informed(self) -> frozenset[Parameter]:
        """What at least one boot told something of."""
        return frozenset(update.what for update in self.updates if update.boots)

    def now(self, what: Parameter) -> Estimate:
        """Return what is known of it after the boots; raises ``KeyError`` where it is not here."""
        return {update.what: update.posterior for update in self.updates}[what]
