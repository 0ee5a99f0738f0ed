"""Figures as a report shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.core.estimates import Estimate

_SECONDS_FROM = 10_000


def in_ms(value: float) -> str:
    """Return a time with its unit: ms, from 10 s in seconds; a minus is a minus sign."""
    text = f"{abs(value) / 1000:.1f} s" if abs(value) >= _SECONDS_FROM else f"{abs(value):.0f} ms"
    return f"\N{MINUS SIGN}{text}" if value < 0 and not text.startswith("0 ") else text


def in_s(value: float) -> str:
    """Return what a build takes, with its unit."""
    return f"{value:.{1 if value >= 1 else 2}f} s"


def interval_ms(estimate: Estimate) -> str:
    """Return the bounds of a time, with the unit once where it is the same."""
    low, high = in_ms(estimate.low), in_ms(estimate.high)
    return f"{low[:-3] if low.endswith(' ms') and high.endswith(' ms') else low} to {high}"


def megabytes(size_bytes: float) -> str:
    """Return a size with its unit."""
    return f"{size_bytes / 1e6:.1f} MB"
