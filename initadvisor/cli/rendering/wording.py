"""Figures and intervals in sentences: short, and never surer than they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from initadvisor.cli.rendering.paragraphs import print_item

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from initadvisor.core.estimates import Estimate
    from initadvisor.decide.repeats import Middle


def figure(estimate: Estimate) -> str:
    """Return a mean and its interval."""
    return f"{short(estimate.mean)} ({interval(estimate)})"


def interval(estimate: Estimate) -> str:
    """Return the bounds of an estimate."""
    return f"{short(estimate.low)}..{short(estimate.high)}"


def more_or_less(estimate: Estimate) -> str:
    """Return a difference in ms as so much more or so much less."""
    if estimate.mean >= 0:
        return f"{figure(estimate)} ms more"
    return f"{figure(turned_round(estimate))} ms less"


def turned_round(estimate: Estimate) -> Estimate:
    """Return the difference of the same two figures the other way round."""
    return replace(estimate, mean=-estimate.mean, low=-estimate.high, high=-estimate.low)


def short(value: float) -> str:
    """Return a number without decimals, thousands of them as such."""
    # "-0" is no number to show.
    return f"{value / 1000:.0f}k" if abs(value) >= 10_000 else f"{round(value)}"


def rounded(value: float) -> str:
    """Return a number with two significant digits, in full."""
    return f"{float(f'{value:.2g}'):g}"


def percent(probability: float) -> str:
    """Return a probability in percent that never claims certainty."""
    if probability > 0.99:
        return "over 99 %"
    return "under 1 %" if probability < 0.01 else f"{probability * 100:.0f} %"


def boots(count: int) -> str:
    """Return so many boots."""
    return "1 boot" if count == 1 else f"{count} boots"


def listed(words: Sequence[object]) -> str:
    """Return words as a list in a sentence."""
    *others, last = (str(word) for word in words)
    return f"{', '.join(others)} and {last}" if others else last


def measured_interval(middle: Middle) -> str:
    """Return where another such median would be, nothing where that was not measured."""
    return "" if middle.assumed else f"{middle.low:.1f}..{middle.high:.1f}"


def explain_intervals(middles: Collection[Middle]) -> None:
    """Print to stdout what the intervals of tables rest on, and why some medians have none."""
    from initadvisor.decide.repeats import BETWEEN_RUNS_LOG_SD

    if any(not middle.assumed for middle in middles):
        print_item(
            "95 %: where the median of as many others would be, by how far all settings of the "
            f"table scatter, and {BETWEEN_RUNS_LOG_SD:.0%} (assumed) from one occasion to another"
        )
    if any(middle.assumed for middle in middles):
        print_item("no interval: too few boots of these settings to tell how far they scatter")
