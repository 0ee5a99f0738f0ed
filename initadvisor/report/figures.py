"""Figures as a report shows them."""

from __future__ import annotations

from initadvisor.core.estimates import Estimate

_SECONDS_FROM = 10_000


def in_ms(value: float) -> str:
    """Return a time with its unit: ms, from 10 s in seconds; a minus is a minus sign."""
    text = f"{abs(value) / 1000:.1f} s" if abs(value) >= _SECONDS_FROM else f"{abs(value):.0f} ms"
    return _signed(text, value)


def in_s(value: float) -> str:
    """Return what a build takes, with its unit."""
    return f"{value:.{1 if value >= 1 else 2}f} s"


def interval_ms(estimate: Estimate) -> str:
    """Return the bounds of a time."""
    return between_ms(estimate.low, estimate.high)


def between_ms(lowest: float, highest: float) -> str:
    """Return two times in one unit: in seconds where one of them is."""
    if max(abs(lowest), abs(highest)) < _SECONDS_FROM:
        return f"{in_ms(lowest).removesuffix(' ms')} to {in_ms(highest)}"
    low, high = (_signed(f"{abs(one) / 1000:.1f}", one) for one in (lowest, highest))
    return f"{low} to {high} s"


def _signed(text: str, value: float) -> str:
    return f"\N{MINUS SIGN}{text}" if value < 0 and float(text.partition(" ")[0]) else text


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
