"""Figures as a report shows them."""

from __future__ import annotations

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
    """Return the bounds of a time."""
    return between_ms(estimate.low, estimate.high)


def between_ms(lowest: float, highest: float) -> str:
    """Return two times, with the unit once where it is the same."""
    low, high = in_ms(lowest), in_ms(highest)
    return f"{low[:-3] if low.endswith(' ms') and high.endswith(' ms') else low} to {high}"


def megabytes(size_bytes: float) -> str:
    """Return a size with its unit."""
    return f"{size_bytes / 1e6:.1f} MB"


def interval_s(estimate: Estimate) -> str:
    """Return the bounds of what a build takes."""
    return f"{in_s(estimate.low).removesuffix(' s')} to {in_s(estimate.high)}"


def megabytes_of(size_bytes: Estimate) -> Estimate:
    """Return a size in 10^6 bytes."""
    middle, low, high = (one / 1e6 for one in (size_bytes.middle, size_bytes.low, size_bytes.high))
    return Estimate(mean=middle, low=low, high=high, source=size_bytes.source)
