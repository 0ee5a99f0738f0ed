"""What boots tell of the time to unpack: P, factors of processor, lab and codecs, D of what booted.

U of one image is P + cpu * codec * D, of which a boot shows the sum. All candidates share P and
cpu, and those of a codec its error, so the boots of one sharpen all; what is left of each is how
well its own D was known beforehand. That part is integrated out (its effect on the logarithm of U
is nearly linear), so that what has to be drawn are three numbers and one for each codec that
booted, however many candidates did, and then each own D given those.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from initadvisor.decide.costs import populate_column
from initadvisor.decide.posterior.smc import log_sum, posterior_of_normal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from initadvisor.core.codecs import Codec
    from initadvisor.decide.arrays import Floats
    from initadvisor.decide.cost import CandidateFacts, Machine, Quantity
    from initadvisor.decide.costs import ParameterDraws
    from initadvisor.decide.posterior.groups import Location


_POPULATE, _CPU, _LAB = range(3)
_LEAST_MS = 1e-6
_SCALES, _TAIL = 7, 30.0
_FEW_SCALES, _SHORT_TAIL = 5, 16.0
_MANY = 16.0
"""Normal distributions that make up Student's t (within 0.7 % of all its mass, and at 20 standard
deviations), and those that do where freedom is more than this (there up to 6).
"""

_ROUNDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Booted:
    """A candidate that booted: where its U was seen, and what was known of it before.

    ``own``: of D, or of U where the lab measured it; None where U is P, which is shared. ``codec``:
    where the error of D is shared by a codec.
    """

    seen: Location
    own: Quantity | None
    lab: bool
    codec: Codec | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """P in ms, cpu, lab and the factors of codecs that booted, of each draw."""

    populate: Floats
    cpu: Floats
    lab: Floats
    codecs: Mapping[Codec, Floats]


class _Unpacking:
    """The model of U, in numbers that are standard normal beforehand."""

    def __init__(
        self,
        machine: Machine,
        candidates: Sequence[CandidateFacts],
        seen: Mapping[int, Location],
    ) -> None:
        self._machine = machine
        self.column = populate_column(candidates)
        self._populate = machine.populate_ms
        if self.column is not None:
            self._populate = candidates[self.column].unpack_ms or machine.populate_ms
        self.booted = {
            column: _booted(candidates[column], place, is_populate=column == self.column)
            for column, place in sorted(seen.items())
        }
        self.active = [
            number
            for number, matters in (
                (_POPULATE, any(not b.lab for b in self.booted.values())),
                (_CPU, any(not b.lab and b.own for b in self.booted.values())),
                (_LAB, self.column is not None or any(b.lab for b in self.booted.values())),
            )
            if matters
        ]
        self.codecs = {
            booted.codec: candidates[column].codec_log_sd
            for column, booted in self.booted.items()
            if booted.codec
        }

    @property
    def dimensions(self) -> int:
        """How many numbers there are."""
        return len(self.active) + len(self.codecs)

    def shared(self, active: Floats) -> _Shared:
        """Return what the candidates share at these draws; what no boot tells of is at its median.

        Whatever ``populate`` is drawn from, in a machine known by its lab it includes ``lab``.
        """
        known = len(self.active)
        normal = np.zeros((len(active), 3))
        normal[:, self.active] = active[:, :known]
        lab = _at(self._machine.lab, normal[:, _LAB])
        populate = _at(self._populate, normal[:, _POPULATE])
        return _Shared(
            populate=np.maximum(populate if self.column is None else populate * lab, _LEAST_MS),
            cpu=_at(self._machine.cpu, normal[:, _CPU]),
            lab=lab,
            codecs={
                codec: np.exp(log_sd * active[:, known + number])
                for number, (codec, log_sd) in enumerate(self.codecs.items())
            },
        )

    def log_likelihood(self, active: Floats) -> Floats:
        """Return the logarithm of how likely what was seen is, all own D integrated out."""
        shared = self.shared(active)
        return np.asarray(
            sum(log_sum(_log_densities(booted, shared)) for booted in self.booted.values())
        )


def draw_unpacking(
    rng: np.random.Generator,
    machine: Machine,
    candidates: Sequence[CandidateFacts],
    seen: Mapping[int, Location],
    prior: ParameterDraws,
) -> tuple[ParameterDraws, float]:
    """Return the parts with all that unpacking depends on as it is given what was seen.

    ``seen``: the logarithm of U in ms, by the candidate's column. The second value is how many
    independent draws they are worth.
    """
    model = _Unpacking(machine, candidates, seen)
    count = len(prior.cpu)
    found = posterior_of_normal(model.log_likelihood, model.dimensions, count, rng=rng)
    shared = model.shared(found.draws)
    own, codec = prior.own_ms.copy(), prior.codec.copy()
    for column, candidate in enumerate(candidates):
        if candidate.codec_log_sd and candidate.setting.codec in shared.codecs:
            codec[:, column] = shared.codecs[candidate.setting.codec]
    for column, booted in model.booted.items():
        if booted.own:
            own[:, column] = _draw_own(rng, booted, booted.own, shared)
    if model.column is not None and _POPULATE in model.active:
        own[:, model.column] = shared.populate / shared.lab
    return (
        replace(
            prior,
            own_ms=own,
            codec=codec,
            populate_ms=shared.populate if _POPULATE in model.active else prior.populate_ms,
            cpu=shared.cpu if _CPU in model.active else prior.cpu,
            lab=shared.lab if _LAB in model.active else prior.lab,
        ),
        found.effective,
    )


def _booted(candidate: CandidateFacts, seen: Location, *, is_populate: bool) -> _Booted:
    if is_populate:
        return _Booted(seen=seen, own=None, lab=False)
    if candidate.unpack_ms is not None:
        return _Booted(seen=seen, own=candidate.unpack_ms, lab=True)
    own = candidate.decompress_ms if candidate.decompress_ms.median > 0 else None
    codec = candidate.setting.codec if own and candidate.codec_log_sd else None
    return _Booted(seen=seen, own=own, lab=False, codec=codec)


def _at(quantity: Quantity, normal: Floats) -> Floats:
    return np.asarray(quantity.median * np.exp(quantity.log_sd * normal))


def _log_densities(booted: _Booted, shared: _Shared) -> Floats:
    """Return the density of what was seen at each draw (columns), for each scale of its blur."""
    weights, scales = _scales(booted.seen.freedom)
    rest, own_ms = _model(booted, shared)
    whole = rest + own_ms
    part = own_ms / whole
    own_sd = booted.own.log_sd if booted.own else 0.0
    # The mean of log(P + D) where D is blurred is a little more than at the median of D.
    expected = np.log(whole) + part * (1 - part) * own_sd**2 / 2
    variance = (booted.seen.sd * scales[:, None]) ** 2 + (part * own_sd) ** 2
    off = (booted.seen.middle - expected) ** 2 / variance
    return np.asarray(np.log(weights)[:, None] - (np.log(variance) + off) / 2)


def _model(booted: _Booted, shared: _Shared) -> tuple[Floats, Floats]:
    """Return what U is made of: what is shared, and the candidate's own at its median."""
    if booted.own is None:
        return shared.populate, np.zeros_like(shared.populate)
    if booted.lab:
        return np.zeros_like(shared.lab), np.maximum(booted.own.median * shared.lab, _LEAST_MS)
    own_ms = booted.own.median * shared.cpu
    return shared.populate, own_ms * shared.codecs[booted.codec] if booted.codec else own_ms


def _draw_own(rng: np.random.Generator, booted: _Booted, own: Quantity, shared: _Shared) -> Floats:
    """Draw the candidate's own D (or U of the lab), given what is shared and what was seen.

    A draw from the prior and one of the blur, then the nearest to both that gives what was seen:
    exact where U is linear, and nearly so here.
    """
    count = len(shared.cpu)
    densities = _log_densities(booted, shared)
    reached = np.cumsum(np.exp(densities - densities.max(axis=0)), axis=0)
    which = (reached < rng.random(count) * reached[-1]).sum(axis=0).clip(max=len(densities) - 1)
    blur = booted.seen.sd * _scales(booted.seen.freedom)[1][which]
    own_sd = own.log_sd
    drawn = own_sd * rng.standard_normal(count)
    wanted = booted.seen.middle - blur * rng.standard_normal(count)
    rest, own_ms = _model(booted, shared)
    off = np.zeros(count)
    for _ in range(_ROUNDS):
        now = own_ms * np.exp(off)
        part = now / (rest + now)
        gain = part * own_sd**2 / (part**2 * own_sd**2 + blur**2)
        off = drawn + gain * (wanted - np.log(rest + now) + part * (off - drawn))
    return np.asarray(own.median * np.exp(np.clip(off, -6 * own_sd, 6 * own_sd)))


@lru_cache(maxsize=64)
def _scales(freedom: float) -> tuple[Floats, Floats]:
    """Return weights and scales of normal distributions that together are Student's t.

    Its precision is a Gamma variate of mean 1; its logarithm is taken at even distances where it
    has any weight to speak of.
    """
    number, tail = (_FEW_SCALES, _SHORT_TAIL) if freedom > _MANY else (_SCALES, _TAIL)
    reach = np.sqrt(tail / freedom)
    log_precision = np.linspace(-reach - 0.6 * tail / 2 / freedom, 0.65 * reach, number)
    log_weights = freedom / 2 * (log_precision - np.exp(log_precision))
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum(), np.exp(-log_precision / 2)
