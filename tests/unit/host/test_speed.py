"""What a few samples say, and when they are doubted."""

from __future__ import annotations

import pytest

from initadvisor.host.storage.cold_read import beside_others, doubts, next_read
from initadvisor.records.storage import DeviceKind, ReadWarning

EVEN = [500.0, 510.0, 490.0, 505.0, 495.0]


def doubts_about(
    samples: list[float],
    kind: DeviceKind = DeviceKind.SATA,
    *,
    size_bytes: int = 40_000_000,
    resident: float = 0.0,
) -> set[ReadWarning]:
    return set(doubts(samples, kind, size_bytes=size_bytes, resident=resident))


def test_the_interval_holds_the_next_read() -> None:
    estimate = next_read(EVEN, "test")
    assert estimate.mean == pytest.approx(500)
    assert estimate.low < min(EVEN)
    assert estimate.high > max(EVEN)
    assert estimate.low > 450
    assert estimate.source == "test"


def test_a_wide_spread_gives_a_wide_interval_of_positive_speeds() -> None:
    estimate = next_read([100.0, 20.0, 60.0], "test")
    assert 0 < estimate.low < 10
    assert estimate.high > 300


def test_one_sample_is_known_within_a_factor_of_two() -> None:
    estimate = next_read([100.0], "test")
    assert (estimate.low, estimate.mean, estimate.high) == (50.0, 100.0, 200.0)


def test_many_samples_are_beyond_the_table_of_quantiles() -> None:
    estimate = next_read(EVEN * 5, "test")
    assert estimate.low == pytest.approx(500 / 1.03, rel=0.01)


def test_a_much_slower_first_read_is_the_cold_one() -> None:
    samples = [260.0, 1150.0, 1340.0, 1260.0, 1340.0]
    estimate = next_read(samples, "5 cold reads")
    assert (estimate.low, estimate.mean, estimate.high) == (130.0, 260.0, 1340.0)
    assert estimate.source == "the first of 5 cold reads"
    assert doubts_about(samples, DeviceKind.NVME) == {ReadWarning.FIRST_SLOWER}


@pytest.mark.parametrize(
    ("kind", "samples", "doubt"),
    [
        (DeviceKind.SATA, [2000.0, 2100.0], ReadWarning.IMPLAUSIBLE),
        (DeviceKind.SD_EMMC, [900.0], ReadWarning.IMPLAUSIBLE),
        (DeviceKind.USB, [5000.0], ReadWarning.IMPLAUSIBLE),
        (DeviceKind.VIRTIO, EVEN, ReadWarning.VIRTUAL),
        (DeviceKind.NONE, EVEN, ReadWarning.NO_DEVICE),
    ],
)
def test_what_cannot_be_is_doubted(
    kind: DeviceKind, samples: list[float], doubt: ReadWarning
) -> None:
    assert doubts_about(samples, kind) == {doubt}


@pytest.mark.parametrize("kind", [DeviceKind.SATA, DeviceKind.OTHER, DeviceKind.UNKNOWN])
def test_ordinary_reads_are_believed(kind: DeviceKind) -> None:
    assert doubts_about(EVEN, kind) == set()


def test_pages_that_stayed_in_memory_are_reported() -> None:
    assert doubts_about(EVEN, resident=0.5) == {ReadWarning.CACHED}
    assert doubts_about(EVEN, resident=0.001) == set()


def test_a_short_file_tells_little() -> None:
    assert doubts_about(EVEN, size_bytes=100_000) == {ReadWarning.SHORT}


@pytest.mark.parametrize("kind", list(DeviceKind))
def test_every_kind_has_a_bound_or_none(kind: DeviceKind) -> None:
    bound = kind.plausible_mb_s
    assert bound is None or bound > 500


def test_beside_other_work_a_slow_first_read_is_not_called_cold() -> None:
    samples = [60.0, 480.0, 500.0, 90.0, 510.0]
    assert set(doubts([60.0, 500.0], DeviceKind.SATA, size_bytes=1 << 30, resident=0.0)) == {
        ReadWarning.FIRST_SLOWER
    }
    assert set(
        doubts([60.0, 500.0], DeviceKind.SATA, size_bytes=1 << 30, resident=0.0, busy=True)
    ) == {ReadWarning.BUSY}
    speed = beside_others(samples, "5 cold reads")
    assert (speed.low, speed.mean, speed.high) == (30, 480, 1020)
    assert speed.source == "5 cold reads, beside other work"
