"""Samples of several runs, pooled into figures with the spread that yet another run would show."""

from __future__ import annotations

from math import exp, hypot, log, sqrt
from statistics import fmean, median
from typing import TYPE_CHECKING

from initadvisor.decide.cost import Quantity
from initadvisor.decide.repeats import BETWEEN_RUNS_LOG_SD, median_error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Runs = Sequence[Sequence[float]]


_Z95 = 1.96


def pooled(subjects: Mapping[str, Runs], *, source: str) -> dict[str, Quantity]:
    """Return the median of each subject, and how far another run's median may be from it.

    ``subjects`` has for each subject the positive samples of its runs; no run is empty. How much
    samples scatter, within a run and from run to run, is taken from all subjects together, because
    one alone has too few of either. Runs are compared by their medians, so that one disturbed boot
    does not decide.
    """
    known = {name: runs for name, runs in subjects.items() if runs}
    every = {
        f"{name} {number}": run for name, runs in known.items() for number, run in enumerate(runs)
    }
    medians = {name: [log(median(run)) for run in runs] for name, runs in known.items()}
    between = _between(list(medians.values()))
    figures = {}
    for name, values in medians.items():
        counts = [len(run) for run in known[name]]
        error = median_error(every, round(fmean(counts)))
        run_sd = max(between, hypot(error, BETWEEN_RUNS_LOG_SD))
        figures[name] = Quantity(
            median=exp(fmean(values, weights=counts)),
            # Another run differs from the true value as these do, whose mean differs, too.
            log_sd=run_sd * sqrt(1 + 1 / len(values)),
            source=source,
        )
    return figures


def _between(medians: Sequence[Sequence[float]]) -> float:
    """Return the standard deviation of runs around their subject's mean, 0 where none has two.

    Widened by how uncertain one is that few runs tell: the first term by which Student's t exceeds
    the normal distribution at 95 %.
    """
    freedom = sum(len(values) - 1 for values in medians)
    if not freedom:
        return 0.0
    squares = sum((value - fmean(values)) ** 2 for values in medians for value in values)
    return sqrt(squares / freedom) * (1 + (_Z95**2 + 1) / (4 * freedom))
