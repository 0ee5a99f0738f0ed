"""The calibration table: ratios of kernel and user space, made of what was measured."""

from __future__ import annotations

from math import log

import pytest

from benchmarks.calibrate import Measured, table
from initadvisor.core.codecs import Codec
from initadvisor.core.settings import Setting


def measured(name: str, *, populate_ms: float, lz4_ms: float, factor: float = 1.0) -> Measured:
    """Return a content that takes these times in the kernel, and 100 ms each in user space."""
    return Measured(
        name=name,
        unpacked_bytes=100_000_000,
        kernel="user-mode Linux 6.1",
        disturbed=(),
        times_ms={
            Setting.parse("cat"): (populate_ms, 1.0),
            Setting.parse("lz4 -1"): (populate_ms + lz4_ms * factor, 100.0),
            Setting.parse("lz4 -9"): (populate_ms + lz4_ms * factor, 100.0),
            Setting.parse("xz"): (populate_ms + 120.0, 100.0),
        },
    )


def test_a_ratio_is_of_the_decompress_parts() -> None:
    found = table(
        [
            measured("a", populate_ms=90, lz4_ms=50),
            measured("b", populate_ms=150, lz4_ms=50),
        ],
        source="here",
    )
    assert found["decompress"][Codec.LZ4]["ratio"] == 0.5
    assert found["decompress"][Codec.XZ]["ratio"] == 1.2
    assert found["populate_ms_per_mb"]["median"] == 1.2
    assert found["source"] == "here"
    assert found["measured"]["a"]["lz4 -1"] == {"kernel_ms": 140.0, "user_ms": 100.0}


def test_contents_that_differ_give_a_wider_interval() -> None:
    pair = [
        measured("a", populate_ms=90, lz4_ms=50),
        measured("b", populate_ms=90, lz4_ms=50, factor=1.5),
    ]
    found = table(pair, source="here")["decompress"]
    assert found[Codec.LZ4]["log_sd"] == pytest.approx(log(1.5) / 3**0.5, abs=0.01)
    assert found[Codec.XZ]["log_sd"] == 0.05


def test_one_content_says_little_of_others() -> None:
    found = table([measured("a", populate_ms=90, lz4_ms=50)], source="here")["decompress"]
    assert {row["log_sd"] for row in found.values()} == {0.15}
