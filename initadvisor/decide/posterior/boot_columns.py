"""Boots as columns of figures, so that a hundred thousand of them are as quick as a few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from initadvisor.decide.boot_evidence import Relation
from initadvisor.records.marks import Waiting
from initadvisor.records.read_interval import Beside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from initadvisor.decide.boot_evidence import BootEvidence
    from initadvisor.decide.cost import CandidateFacts

    Floats = NDArray[np.float64]

    Integers = NDArray[np.int64]

    Booleans = NDArray[np.bool_]


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
