"""The calibration table: kernel and user space compared, made of what was measured."""

from __future__ import annotations

from math import log

import pytest

from benchmarks.calibrate import Measured, Times, table
from initadvisor.candidates.controls import buffer_bytes, window_log
from initadvisor.core.codecs import Codec
from initadvisor.core.settings import Setting
from initadvisor.data.tables import shipped_document

_USER_MS = {"lz4 -1": 1.0, "lz4 -9": 0.8, "zstd -3": 2.0, "zstd -19": 3.0}
_BUFFER_MS_PER_MB = 2.0


def measured(
    name: str, *, unpacked_mb: int = 100, lz4_factor: float = 1.0, far_ratio: float = 0.9
) -> Measured:
    """Return a content of which user space takes 1 ms per MB for lz4 -1, and more for others.

    The kernel takes half of that for lz4, and for zstd as long, or where it looks far back its own
    ratio; and 2 ms for each MB of its buffers.
    """

    def times(text: str) -> Times:
        setting, user_ms = Setting.parse(text), _USER_MS[text] * unpacked_mb
        ratio = 0.5 * lz4_factor if setting.codec is Codec.LZ4 else 1.0
        window = window_log(setting.codec, (setting.codec, *setting.options), level=None)
        buffer_ms = _BUFFER_MS_PER_MB * buffer_bytes(setting.codec, window) / 1e6
        decompress_ms = user_ms * (far_ratio if text == "zstd -19" else ratio) + buffer_ms
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


def test_small_images_tell_the_time_for_buffers_from_the_ratios() -> None:
    found = table([measured("small", unpacked_mb=20), measured("large")], source="here")
    lz4, zstd = found["decompress"]["lz4"], found["decompress"]["zstd"]
    assert found["buffer_ms_per_mb"]["user-mode Linux"] == pytest.approx(2, abs=0.02)
    assert lz4["near"] == {"ratio": pytest.approx(0.5, abs=0.01), "user_ms_per_mb": 0.9}
    assert zstd["near"] == {"ratio": pytest.approx(1, abs=0.01), "user_ms_per_mb": 2.0}
    assert zstd["far"] == {"ratio": pytest.approx(0.9, abs=0.01), "user_ms_per_mb": 3.0}
    assert "far" not in lz4
    assert found["populate_ms_per_mb"]["median"] == 1.0
    assert found["source"] == "here"
    assert found["measured"]["large"]["lz4 -1"] == {
        "compressed_bytes": 10**6,
        "kernel_ms": 166.8,
        "decompress_ms": 66.8,
        "user_ms": 100.0,
    }


def test_contents_that_differ_give_a_wider_interval() -> None:
    pair = [measured("a"), measured("b", lz4_factor=1.5)]
    found = table(pair, source="here")["decompress"]
    apart = log(1.5) / 2**0.5 * 0.8  # its buffers are alike
    assert found[Codec.LZ4]["log_sd"] == pytest.approx(apart, abs=0.05)
    assert found[Codec.ZSTD]["log_sd"] == 0.05


def test_one_content_says_little_of_others() -> None:
    found = table([measured("a")], source="here")["decompress"]
    assert {codec["log_sd"] for codec in found.values()} == {0.15}


@pytest.mark.parametrize("own", [None, 0.1])
def test_the_kernel_s_own_time_for_buffers_is_as_shipped_where_it_cannot_be_taken(
    own: float | None,
) -> None:
    found = table([measured("a")], source="here", kernel_buffer_ms_per_mb=own)["buffer_ms_per_mb"]
    assert found["kernel"] == (own or shipped_document()["buffer_ms_per_mb"]["kernel"])
