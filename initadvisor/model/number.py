"""Numbers out of JSON, where anything may stand: also NaN, infinity, and 400 digits."""

from __future__ import annotations

_MOST = 1e15
"""No figure of a machine is larger: bytes, milliseconds, bytes per second."""

_LEAST_POSITIVE = 1e-9


def number(value: object, *, least: float = 0.0, most: float = _MOST) -> float:
    """Return a number between the two; raises ``ValueError`` for all else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(value)
    if not least <= value <= most:
        raise ValueError(value)
    return float(value)


def positive(value: object) -> float:
    """Return a number above 0; raises ``ValueError`` for all else."""
    return number(value, least=_LEAST_POSITIVE)
