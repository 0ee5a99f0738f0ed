"""Figures as JSON has them."""

from __future__ import annotations


def rounded(value: float, digits: int = 3) -> float:
    """Round a figure; what would be -0.0 is 0."""
    return round(value, digits) + 0.0
