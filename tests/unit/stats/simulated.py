"""The machines of ``tests.fixtures``, where tests of the simulation look for them."""

from __future__ import annotations

from tests.fixtures.synthetic_boots import FIELD, WITH_LAB, simulate, unknown_machine

__all__ = ["FIELD", "WITH_LAB", "simulate", "unknown_machine"]
