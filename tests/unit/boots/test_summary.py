"""Groups of boots become medians with intervals, class by class."""

from __future__ import annotations

import random
from statistics import median
from typing import TYPE_CHECKING

import pytest

from initadvisor.boots.summary import summaries
from initadvisor.core.estimates import Certainty
from initadvisor.decide.repeats import middles
from initadvisor.records.figures import BootGroup
from tests.fixtures.boots import EPOCH, LZ4, ZSTD

if TYPE_CHECKING:
    from initadvisor.core.settings import Setting


def group(
    class_key: str,
    setting: Setting | None,
    *unpack_us: int,
    machine: str | None = None,
    read_us: tuple[int, ...] = (),
) -> BootGroup:
    return BootGroup(
        machine=machine,
        kernel="6.12 #1",
        class_key=class_key,
        setting=setting,
        certainty=Certainty.CERTAIN,
        boots=len(unpack_us) + 1,
        latest_at=EPOCH,
        unpack_us=unpack_us,
        read_us=read_us,
    )


def test_each_class_has_its_settings_and_keeps_its_place() -> None:
    found = summaries(
        [
            group("new", ZSTD, 200_000, 210_000, 220_000, read_us=(1000, 3000)),
            group("old", ZSTD, 900_000),
            group("new", LZ4, 90_000),
            group("new", ZSTD, 1000, machine="another"),
            group("new", None),
        ]
    )
    assert [(same.machine, same.class_key) for same in found] == [
        *((None, "new"), (None, "old")),
        ("another", "new"),
    ]
    assert summaries([group("new", ZSTD, 1), group("old", ZSTD, 1)], limit=1)[0].class_key == "new"
    zstd, lz4, unknown = found[0].settings
    assert [s.group.setting for s in found[0].settings] == [ZSTD, LZ4, None]
    assert zstd.unpack_ms is not None
    assert zstd.unpack_ms.median == 210
    assert zstd.unpack_ms.low < 210 < zstd.unpack_ms.high
    assert (zstd.samples, zstd.reads) == (3, 2)
    assert zstd.read_ms is not None
    assert zstd.read_ms.median == 2
    assert (lz4.samples, lz4.read_ms) == (1, None)
    assert (unknown.unpack_ms, unknown.samples, unknown.group.boots) == (None, 0, 1)


@pytest.mark.parametrize("count", [101, 102, 5000, 100_000])
def test_many_boots_give_the_median_of_all_of_them(count: int) -> None:
    dice = random.Random(count)
    times = tuple(sorted(int(200_000 * dice.lognormvariate(0, 0.05)) for _ in range(count)))
    [[summary]] = [same.settings for same in summaries([group("a", ZSTD, *times)])]
    assert summary.samples == count
    assert summary.unpack_ms is not None
    assert summary.unpack_ms.median == pytest.approx(median(times) / 1000, rel=1e-3)
    if count < 10_000:
        whole = middles({"a": [time / 1000 for time in times]})["a"]
        assert summary.unpack_ms.low == pytest.approx(whole.low, rel=0.01)
        assert summary.unpack_ms.high == pytest.approx(whole.high, rel=0.01)


def test_without_boots_there_is_no_class() -> None:
    assert summaries([]) == ()
