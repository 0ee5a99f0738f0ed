"""The answers of ``tests.fixtures``, where tests of the simulation look for them."""

from __future__ import annotations

from tests.fixtures.answers import LZ4, ZSTD, answer, decision, figure, row

__all__ = ["LZ4", "ZSTD", "answer", "decision", "figure", "row"]
