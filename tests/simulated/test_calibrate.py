"""The calibration table: kernel and user space compared, made of what was measured."""

from __future__ import annotations

from math import log

import pytest

from benchmarks.calibrate import Measured, Times, line, table
from initadvisor.core.codecs import Codec
from initadvisor.core.settings import Setting

_USER_MS = {"lz4 -1": 1.0, "lz4 -9": 0.8, "zstd -3": 2.0, "zstd -19": 3.0}


def measured(
    name: str, *, unpacked_mb: int = 100, lz4_factor: float = 1.0, far_ratio: float = 0.9
) -> Measured:
    """Return a content of which user space takes 1 ms per MB for lz4 -1, and more for others.

    The kernel takes half of that for lz4 and 8 ms, and for zstd as long, or where it looks far back
    its own ratio.
    """

    def times(text: str) -> Times:
        user_ms = _USER_MS[text] * unpacked_mb
        if text.startswith("lz4"):
            decompress_ms = 0.5 * user_ms * lz4_factor + 8
        else:
            decompress_ms = user_ms * (far_ratio if text == "zstd -19" else 1.0)
        return Times(
            compressed_bytes=10**6,
            kernel_ms=unpacked_mb + decompress_ms,
            decompress_ms=decompress_ms,
            user_ms=user_ms,
        )

    plain = Times(
        compressed_bytes=unpacked_mb * 10**6, kernel_ms=unpacked_mb, decompress_ms=0.0, user_ms=0.0
    )
    return Measured(
        name=name,
        unpacked_bytes=unpacked_mb * 10**6,
        kernel="user-mode Linux 6.1",
        disturbed=(),
        times={
            Setting.parse("cat"): plain,
            **{Setting.parse(text): times(text) for text in _USER_MS},
        },
    )


def test_a_small_image_tells_the_fixed_part_from_the_ratio() -> None:
    found = table([measured("small", unpacked_mb=20), measured("large")], source="here")
    lz4, zstd = found["decompress"]["lz4"], found["decompress"]["zstd"]
    assert lz4["near"]["ratio"] == pytest.approx(0.5, abs=0.01)
    assert lz4["near"]["fixed_ms"] == pytest.approx(8, abs=0.2)
    assert lz4["near"]["user_ms_per_mb"] == pytest.approx(0.9)
    assert zstd["near"] == {"ratio": 1.0, "fixed_ms": 0.0, "user_ms_per_mb": 2.0}
    assert zstd["far"] == {"ratio": 0.9, "fixed_ms": 0.0, "user_ms_per_mb": 3.0}
    assert "far" not in lz4
    assert found["populate_ms_per_mb"]["median"] == 1.0
    assert found["source"] == "here"
    assert found["measured"]["large"]["lz4 -1"] == {
        "compressed_bytes": 10**6,
        "kernel_ms": 158.0,
        "decompress_ms": 58.0,
        "user_ms": 100.0,
    }


def test_contents_that_differ_give_a_wider_interval() -> None:
    pair = [measured("a"), measured("b", lz4_factor=1.5)]
    found = table(pair, source="here")["decompress"]
    apart = log((50 * 1.5 + 8) / 58) / 2**0.5
    assert found[Codec.LZ4]["log_sd"] == pytest.approx(apart, abs=0.01)
    assert found[Codec.ZSTD]["log_sd"] == 0.05


def test_one_content_says_little_of_others() -> None:
    found = table([measured("a")], source="here")["decompress"]
    assert {codec["log_sd"] for codec in found.values()} == {0.15}


def test_a_fixed_part_is_never_below_nothing_nor_all_there_is() -> None:
    ratio, fixed_ms = line([(10.0, 5.0), (100.0, 100.0)])
    assert fixed_ms == 0
    assert ratio == pytest.approx((0.5 * 1.0) ** 0.5)
    ratio, fixed_ms = line([(10.0, 50.0), (100.0, 50.0)])
    assert 0 < fixed_ms < 50
    assert ratio > 0
