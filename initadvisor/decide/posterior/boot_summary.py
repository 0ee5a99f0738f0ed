"""What boots tell, in few figures: however many there are, what follows is as quick.

Boots are put in columns, so that a hundred thousand of them are as quick as a few.

Boots of one class scatter by a spread that is learnt from repeats (``groups.scatter``), from a
stated prior where there are none. What is not scatter does not shrink with the number of boots:

- Of the very image in the same class: 1 %. What all those boots have in common (where memory was
  laid out, how warm the machine was that month) need not be so at the next.
- Of an earlier image made with the same setting, by its size: 5 %.
- Of another class (another kernel, command line, battery): 20 % for unpacking, 35 % for B1 and B2.
  Assumed, not measured. It is little beside what is known without any boot (of B1 a factor of 12
  either way, from other people's machines), and far too much for such boots to overrule those of
  the same class. All of them together count once: they may differ from today's in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from initadvisor.decide.boot_evidence import Relation
from initadvisor.decide.posterior.groups import combined, grouped, location, scatter
from initadvisor.records.marks import Waiting
from initadvisor.records.read_interval import Beside

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from initadvisor.decide.arrays import Booleans, Floats, Integers
    from initadvisor.decide.boot_evidence import BootEvidence
    from initadvisor.decide.cost import CandidateFacts
    from initadvisor.decide.posterior.groups import Location


T = TypeVar("T")

_WAITING = {waiting: code for code, waiting in enumerate(Waiting)}

LEAST_MS = 0.1
"""Anything shorter is not told from nothing, and has no logarithm to compare by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalGroup:
    """What the intervals of boots have in common that are to be compared: class, clocks, content.

    ``has_kernel``, ``may_have_menu``: whether reading the kernel, and waiting in a menu, is in it.
    """

    near: bool
    has_kernel: bool
    may_have_menu: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """A row for each boot; times in ms, not a number where the boot does not tell, -1 for no key.

    ``own_column``: the candidate whose very image was booted; ``setting_column``: the first
    candidate that is made with the same setting. ``line``: its index in ``lines``.
    """

    near: Booleans
    age_days: Floats
    class_key: Integers
    digest: Integers
    own_column: Integers
    setting_column: Integers
    loaded_mb: Floats
    unpack_ms: Floats
    begin_to_init_ms: Floats
    waiting: Integers
    shadow_ms: Floats
    rest_ms: Floats
    read_ms: Floats
    line: Integers
    lines: tuple[IntervalGroup, ...]

    def waits(self, waiting: Waiting) -> Booleans:
        """Tell which boots are of this kind."""
        return np.asarray(self.waiting == _WAITING[waiting])


def columns(boots: Sequence[BootEvidence], candidates: Sequence[CandidateFacts]) -> Columns:
    """Put boots in columns."""
    digest, digests = _numbered([boot.digest for boot in boots])
    setting, settings = _numbered([boot.setting for boot in boots])
    class_key, _ = _numbered([boot.class_key for boot in boots])
    waiting, kinds = _numbered([boot.waiting for boot in boots])
    relation, relations = _numbered([boot.relation for boot in boots])
    near = np.array([found is Relation.NEAR for found in relations])[relation]
    line, lines = _lines(boots, near, class_key * len(relations) + relation)
    return Columns(
        near=near,
        age_days=_floats([boot.age_days for boot in boots]),
        class_key=class_key,
        digest=np.array([-1 if found is None else i for i, found in enumerate(digests)])[digest],
        own_column=_columns_of(digests, [c.digest for c in candidates])[digest],
        setting_column=_columns_of(settings, [c.setting for c in candidates])[setting],
        loaded_mb=_floats([boot.loaded_mb for boot in boots]),
        unpack_ms=_ms([boot.unpack_us for boot in boots]),
        begin_to_init_ms=_ms([boot.begin_to_init_us for boot in boots]),
        waiting=np.array([_WAITING[kind] for kind in kinds])[waiting],
        shadow_ms=_ms([boot.shadow_us for boot in boots]),
        rest_ms=_ms([boot.rest_us for boot in boots]),
        read_ms=_ms([boot.read_us for boot in boots]),
        line=line,
        lines=lines,
    )


def _floats(values: Sequence[float | None]) -> Floats:
    return np.array(values, dtype=np.float64)  # None becomes not a number


def _ms(values_us: Sequence[float | None]) -> Floats:
    return np.maximum(_floats(values_us) / 1000, LEAST_MS)


def _numbered(values: Sequence[T]) -> tuple[Integers, list[T]]:
    """Return a number for each value, and the values by their number.

    Most are the same object many times; to look at each once only is much quicker.
    """
    identities = np.fromiter(map(id, values), dtype=np.int64, count=len(values))
    _, first, inverse = np.unique(identities, return_index=True, return_inverse=True)
    objects = [values[index] for index in first]
    distinct = sorted(set(objects), key=str)
    numbers = {value: number for number, value in enumerate(distinct)}
    return np.array([numbers[value] for value in objects])[inverse], distinct


def _columns_of(values: Sequence[T | None], of_candidates: Sequence[T | None]) -> Integers:
    """Return for each value the first candidate that has it, -1 for none."""
    return np.array(
        [
            of_candidates.index(value) if value is not None and value in of_candidates else -1
            for value in values
        ]
    )


def _lines(
    boots: Sequence[BootEvidence], near: Booleans, class_key: Integers
) -> tuple[Integers, tuple[IntervalGroup, ...]]:
    """Number the lines there are; -1 for a boot without an interval that can be used.

    A menu that was shown may have taken any time.
    """
    source, sources = _numbered([boot.read_source for boot in boots])
    beside, besides = _numbered([boot.read_beside for boot in boots])
    unusable = np.array([Beside.MENU in content for content in besides])[beside]
    number = (class_key * len(sources) + source) * len(besides) + beside
    _, first, inverse = np.unique(number, return_index=True, return_inverse=True)
    contents = [besides[beside[index]] for index in first]
    lines = tuple(
        IntervalGroup(
            near=bool(near[index]),
            has_kernel=Beside.KERNEL in content,
            may_have_menu=Beside.MENU_IF_ANY in content,
        )
        for index, content in zip(first, contents, strict=True)
    )
    return np.where(unusable, -1, inverse), lines


UNPACK_LOG_SD = 0.09
_SHADOW_LOG_SD = 0.1
_REST_LOG_SD = 0.1
"""How far single boots are apart, before repeats tell: more than on most machines, because what two
or three boots seem to decide on a machine that scatters by 12 % is otherwise wrong too often
(benchmarks/decision.py).
"""

_SAME_IMAGE_LOG_SD = 0.01
_REBUILT_LOG_SD = 0.05
_NEAR_UNPACK_LOG_SD = 0.2
_NEAR_SHADOW_LOG_SD = 0.35
_SEEN_SHADOW_LOG_SD = 0.3
"""The last message before the init task waits is not the moment it began to wait."""

_ANOTHER_CONTENT = 0.25
"""An image so much larger or smaller (its logarithm) is not an earlier one of the same content."""

_LEAST_MB = 1e-6

_NEAR_BOOTS = 100
"""So many boots of other classes count, the latest: kernels long past tell less of today's."""

_BIN = 0.1
"""Times to unpack that are this near to each other (their logarithms) bound B1 alike."""

_MOST_BINS = 8
_MOST_COUNTS = 5.0
"""A bound that was seen more often is not surer: B1 differs from boot to boot, but not freely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How often boots that unpacked in exp(``log_ms``) waited, and how often they did not.

    Their logarithms are blurred by ``log_sd``.
    """

    log_ms: Floats
    waited: Floats
    hidden: Floats
    log_sd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Of boots that unpacked in ``unpack_ms``: where the logarithm of max(B1, U) + B2 is."""

    unpack_ms: float
    whole: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowSummary:
    """What boots tell of B1 and B2, as logarithms of ms; None for what none of them tells.

    ``shadow``: B1 where it was seen. ``rest``: B2 where the init task waited (or unpacked itself).
    ``hidden``: B1 + B2 where it did not wait. ``used``: for each boot, whether it tells something.
    """

    bounds: tuple[Bounds, ...]
    shadow: Location | None
    rest: Location | None
    hidden: Location | None
    together: tuple[Together, ...]
    used: Booleans


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpackSummary:
    """For each candidate that booted, by its column: where the logarithm of its U (in ms) is.

    ``used``: for each boot, whether it tells any of this. ``own``: for each candidate, how many of
    them are of its very image and of today's class. ``log_sd``: how far boots of one image and
    class are apart.
    """

    seen: Mapping[int, Location]
    used: Booleans
    own: Integers
    log_sd: float


def summarise_unpacking(boots: Columns, candidates: Sequence[CandidateFacts]) -> UnpackSummary:
    """Return what boots tell of the time to unpack."""
    sizes = np.array([max(candidate.size_mb.median, _LEAST_MB) for candidate in candidates])
    own = boots.own_column >= 0
    column = np.where(own, boots.own_column, boots.setting_column)
    grown = np.where(own, 0.0, np.log(sizes[column] / boots.loaded_mb))
    known = (column >= 0) & ~np.isnan(boots.unpack_ms) & (np.abs(grown) < _ANOTHER_CONTENT)
    known &= ~boots.near | _latest(boots)
    kind = np.where(boots.near, 2, np.where(own, 0, 1))
    floors = (_SAME_IMAGE_LOG_SD, _REBUILT_LOG_SD, _NEAR_UNPACK_LOG_SD)
    spread = _unpack_spread(boots)
    groups = grouped((np.log(boots.unpack_ms) + grown)[known], (column * len(floors) + kind)[known])
    found: dict[int, list[Location]] = {}
    for key, middle, count in zip(groups.keys, groups.middle(spread), groups.count, strict=True):
        of, which = divmod(int(key), len(floors))
        place = location(float(middle), int(count), sd=spread, floor=floors[which])
        found.setdefault(of, []).append(place)
    of_own = boots.own_column[known & own & ~boots.near]
    return UnpackSummary(
        seen={of: combined(places) for of, places in found.items()},
        used=known,
        own=np.bincount(of_own, minlength=len(candidates)).astype(np.int64),
        log_sd=spread,
    )


def _unpack_spread(boots: Columns) -> float:
    """Return how far boots of one image and class are apart in the logarithm of U."""
    size = np.round(1000 * np.log(np.where(boots.loaded_mb > 0, boots.loaded_mb, 1.0)))
    # An image that is not known is told from others by its size.
    image = np.where(boots.digest >= 0, 2 * boots.digest, 2 * size.astype(np.int64) + 1)
    known = ~np.isnan(boots.unpack_ms) & ((boots.digest >= 0) | ~np.isnan(boots.loaded_mb))
    number = (image - image.min()) * (boots.class_key.max() + 1) + boots.class_key
    return scatter(grouped(np.log(boots.unpack_ms[known]), number[known]), UNPACK_LOG_SD)


def summarise_shadow(boots: Columns, *, unpack_log_sd: float, synchronous: bool) -> ShadowSummary:
    """Return what boots tell of B1 and B2, given how far boots of one image are apart in U.

    ``synchronous``: today's kernel has no shadow. Only then do boots of such kernels count, whose
    B2 is nobody else's: it is all the work that others do in B1 as well.
    """
    counts = ~boots.near | _latest(boots)
    waited = boots.waits(Waiting.WAITED) & counts
    hidden = boots.waits(Waiting.HIDDEN) & counts
    alone = boots.waits(Waiting.SYNCHRONOUS) & counts & synchronous
    whole = boots.begin_to_init_ms
    has_unpack, has_whole = ~np.isnan(boots.unpack_ms), ~np.isnan(whole)
    unclear = boots.waits(Waiting.UNKNOWN) & counts & has_unpack & has_whole
    seen = np.minimum(boots.shadow_ms, boots.unpack_ms)
    return ShadowSummary(
        bounds=_bounds(boots, waited, hidden, unpack_log_sd),
        shadow=_place(boots, seen, waited, _SHADOW_LOG_SD, _SEEN_SHADOW_LOG_SD),
        rest=_place(boots, boots.rest_ms, waited | alone, _REST_LOG_SD, _SAME_IMAGE_LOG_SD),
        hidden=_place(boots, whole, hidden, _REST_LOG_SD, _SAME_IMAGE_LOG_SD),
        together=_together(boots, unclear),
        used=((waited | hidden) & (has_unpack | has_whole))
        | ((waited | alone) & ~np.isnan(boots.rest_ms))
        | unclear,
    )


def _latest(boots: Columns) -> Booleans:
    """Tell which boots of other classes are among the latest; one of unknown age is none."""
    age = np.where(boots.near, boots.age_days, np.inf)
    age = np.where(np.isnan(age), np.inf, age)
    if len(age) <= _NEAR_BOOTS:
        return boots.near
    return np.asarray(boots.near & (age <= np.partition(age, _NEAR_BOOTS - 1)[_NEAR_BOOTS - 1]))


def _place(
    boots: Columns, values_ms: Floats, which: Booleans, prior_sd: float, floor: float
) -> Location | None:
    """Return where the logarithm of a value is: of boots of the same class and of all others."""
    known = which & ~np.isnan(values_ms)
    if not known.any():
        return None
    logs = np.log(values_ms[known])
    spread = scatter(grouped(logs, boots.class_key[known]), prior_sd)
    groups = grouped(logs, boots.near[known].astype(np.int64))
    near = float(np.hypot(floor, _NEAR_SHADOW_LOG_SD))
    return combined(
        [
            location(float(middle), int(count), sd=spread, floor=near if key else floor)
            for key, middle, count in zip(
                groups.keys, groups.middle(spread), groups.count, strict=True
            )
        ]
    )


def _bounds(
    boots: Columns, waited: Booleans, hidden: Booleans, unpack_log_sd: float
) -> tuple[Bounds, ...]:
    """Return how often boots waited, by the time they took to unpack: same class, then others."""
    blur = float(np.hypot(unpack_log_sd, _SHADOW_LOG_SD))
    found = []
    for near in (False, True):
        known = (waited | hidden) & (boots.near == near) & ~np.isnan(boots.unpack_ms)
        if not known.any():
            continue
        logs = np.log(boots.unpack_ms[known])
        groups = grouped(logs, np.floor(logs / _BIN).astype(np.int64))
        of = np.searchsorted(groups.keys, np.floor(logs / _BIN).astype(np.int64))
        counts = [
            np.bincount(of, weights=kind[known].astype(np.float64), minlength=len(groups.keys))
            for kind in (waited, hidden)
        ]
        worth = np.minimum(1.0, _MOST_COUNTS / groups.count)
        found.append(
            Bounds(
                log_ms=groups.median,
                waited=np.asarray(counts[0] * worth),
                hidden=np.asarray(counts[1] * worth),
                log_sd=float(np.hypot(blur, _NEAR_SHADOW_LOG_SD if near else 0.0)),
            )
        )
    return tuple(found)


def _together(boots: Columns, which: Booleans) -> tuple[Together, ...]:
    """Return what boots tell that do not show whether anything waited, the commonest kinds."""
    logs = np.log(boots.unpack_ms[which])
    near = boots.near[which].astype(np.int64)
    number = 2 * np.floor(logs / _BIN).astype(np.int64) + near
    whole = np.log(np.maximum(boots.begin_to_init_ms, boots.unpack_ms + LEAST_MS)[which])
    spread = scatter(grouped(whole, boots.class_key[which]), _REST_LOG_SD)
    unpack, groups = grouped(logs, number), grouped(whole, number)
    middle = groups.middle(spread)
    commonest = np.lexsort((groups.keys, -groups.count))[:_MOST_BINS]
    return tuple(
        Together(
            unpack_ms=float(np.exp(unpack.median[index])),
            whole=location(
                float(middle[index]),
                int(groups.count[index]),
                sd=spread,
                floor=_NEAR_SHADOW_LOG_SD if groups.keys[index] % 2 else _SAME_IMAGE_LOG_SD,
            ),
        )
        for index in commonest
    )
