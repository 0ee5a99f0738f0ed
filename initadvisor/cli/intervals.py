"""Intervals of medians, as far as they rest on what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.cli.paragraphs import print_item

if TYPE_CHECKING:
    from collections.abc import Collection

    from initadvisor.stats.repeats import Middle


def interval(middle: Middle) -> str:
    """Return where another such median would be, nothing where that was not measured."""
    return "" if middle.assumed else f"{middle.low:.1f}..{middle.high:.1f}"


def explain_intervals(middles: Collection[Middle]) -> None:
    """Print to stdout what the intervals of tables rest on, and why some medians have none."""
    from initadvisor.stats.repeats import BETWEEN_RUNS_LOG_SD

    if any(not middle.assumed for middle in middles):
        print_item(
            "95 %: where the median of as many others would be, by how far all settings of the "
            f"table scatter, and {BETWEEN_RUNS_LOG_SD:.0%} (assumed) from one occasion to another"
        )
    if any(middle.assumed for middle in middles):
        print_item("no interval: too few boots of these settings to tell how far they scatter")
