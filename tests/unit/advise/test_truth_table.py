"""A table of candidates holds nothing that no image can have."""

from __future__ import annotations

from typing import Any

import pytest

from initadvisor.advise.truth_tables import TruthRow, TruthTable
from initadvisor.core.settings import Setting

ZSTD, LZ4 = Setting.parse("zstd"), Setting.parse("lz4 -9")


def row(setting: Setting = ZSTD, **changed: object) -> TruthRow:
    """Return a row, with some of its figures changed."""
    values: dict[str, Any] = {"setting": setting, "size_mb": 30.0, "unpack_ms": 200.0}
    return TruthRow(**{**values, **changed})


def table(*rows: TruthRow, **changed: object) -> TruthTable:
    """Return a table, with something of it changed."""
    values: dict[str, Any] = {"name": "a", "source": "a test", "populate_ms": 90.0, "rows": rows}
    return TruthTable(**{**values, **changed})


def test_a_table_may_say_little() -> None:
    made = table(row(), row(LZ4, log_sd=0.05, build_cpu_s=2.5), populate_ms=0)
    assert [r.build_cpu_s for r in made.rows] == [None, 2.5]
    assert row(Setting.parse("cat"), unpack_ms=0).unpack_ms == 0


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"size_mb": 0}, "size_mb 0 is not a number of more than 0"),
        ({"size_mb": float("nan")}, "size_mb nan"),
        ({"size_mb": 1e7}, "at most 1000000"),
        ({"size_mb": "30"}, "size_mb '30'"),
        ({"size_mb": True}, "size_mb True"),
        ({"size_mb": 10**9000}, "very many digits"),
        ({"size_mb": "x" * 9999}, r"x\.\.\. is not"),
        ({"unpack_ms": 0.0}, "unpack_ms 0.0"),
        ({"unpack_ms": float("inf")}, "unpack_ms inf"),
        ({"log_sd": -0.1}, "log_sd -0.1 is not a number of at least 0"),
        ({"log_sd": 4}, "at most 3"),
        ({"build_cpu_s": -1}, "build_cpu_s -1"),
    ],
)
def test_a_row_refuses(changed: dict[str, Any], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        row(**changed)


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"rows": (row(),)}, "2 to 100 settings can be compared, not 1"),
        ({"rows": (row(), row(size_mb=3.0))}, "zstd stands there twice"),
        ({"populate_ms": 201}, "unpack_ms 200 is below populate_ms 201"),
        ({"populate_ms": None}, "populate_ms None"),
        ({"name": " "}, "name is not a text"),
        ({"name": 3}, "name is not a text"),
        ({"name": "\x1b[2J"}, "name holds characters that cannot be shown"),
        ({"source": "x" * 3000}, "source is not a text of at most 2000"),
    ],
)
def test_a_table_refuses(changed: dict[str, Any], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        table(row(), row(LZ4), **changed)
