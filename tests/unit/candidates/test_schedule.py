"""The schedule against a simulated machine whose jobs take other times than expected."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from initadvisor.candidates.schedule import (
    COST_S,
    Load,
    build_range,
    expected_cpu_s,
    may_start,
    next_job,
    threads_of,
)
from initadvisor.core.codecs import CODECS, Codec
from initadvisor.core.settings import Setting

if TYPE_CHECKING:
    from collections.abc import Sequence

PAYLOAD_BYTES = 120_000_000


def least_wall_s(loads: Sequence[Load], cores: int) -> float:
    """Return a bound that no schedule beats: all work spread evenly, or the longest job."""
    return max(
        sum(job.cpu_s for job in loads) / cores, max((job.span_s for job in loads), default=0.0)
    )


def usual_jobs(cores: int) -> list[Load]:
    """What ``--all`` builds where xz and zstd use all processors, in the order wanted."""
    commands = [
        (codec, level, (codec.value, "-T0" if codec in (Codec.ZSTD, Codec.XZ) else "-c"))
        for codec, spec in CODECS.items()
        for level in (spec.worth_trying or (spec.level,))
    ]
    loads = [
        (
            codec.spec.is_candidate,
            Load(
                cpu_s=expected_cpu_s(codec, level, PAYLOAD_BYTES),
                threads=threads_of(argv, PAYLOAD_BYTES, cores),
            ),
        )
        for codec, level, argv in commands
    ]
    return [load for _, load in sorted(loads, key=lambda item: (not item[0], item[1].cpu_s))]


def simulate(real: list[Load], expected: list[Load], *, cores: int) -> tuple[float, list[int]]:
    """Return the wall time and the order of starts; threads share the processors evenly."""
    waiting, left, now_s = list(range(len(real))), dict[int, float](), 0.0
    started: list[int] = []
    while waiting or left:
        while waiting and may_start([expected[job] for job in left], cores=cores, jobs=cores):
            job = waiting.pop(next_job([expected[job] for job in waiting], cores=cores))
            left[job] = real[job].cpu_s
            started.append(job)
        share = min(1.0, cores / sum(real[job].threads for job in left))
        step_s = min(left[job] / (real[job].threads * share) for job in left)
        for job in list(left):
            left[job] -= step_s * real[job].threads * share
            if left[job] < 1e-9:
                del left[job]
        now_s += step_s
    return now_s, started


@pytest.mark.parametrize("cores", [1, 2, 3, 8, 16])
def test_times_as_expected_end_near_the_bound(cores: int) -> None:
    jobs = usual_jobs(cores)
    wall_s, started = simulate(jobs, jobs, cores=cores)
    assert sorted(started) == list(range(len(jobs)))
    assert wall_s / least_wall_s(jobs, cores) < 1.2


def test_times_wrong_by_a_third_end_near_the_bound_on_two_processors() -> None:
    rng = random.Random(1)
    jobs = usual_jobs(2)
    ratios = []
    for _ in range(200):
        real = [
            Load(cpu_s=job.cpu_s * rng.lognormvariate(0, 0.33), threads=job.threads) for job in jobs
        ]
        ratios.append(simulate(real, jobs, cores=2)[0] / least_wall_s(real, 2))
    ratios.sort()
    assert ratios[int(0.95 * len(ratios))] < 1.15
    assert ratios[-1] < 1.3


def test_taking_the_order_as_it_stands_would_be_worse() -> None:
    """What the exception for long single-threaded jobs is good for."""
    jobs = [Load(cpu_s=10.0), Load(cpu_s=10.0), Load(cpu_s=10.0), Load(cpu_s=30.0)]
    assert simulate(jobs, jobs, cores=2)[0] == pytest.approx(30.0)
    assert next_job(jobs, cores=2) == 3


def test_the_order_is_kept_while_that_costs_nothing() -> None:
    jobs = [*(Load(cpu_s=20.0, threads=2) for _ in range(6)), Load(cpu_s=10.0)]
    assert next_job(jobs, cores=2) == 0
    _, started = simulate(jobs, jobs, cores=2)
    assert started[0] == 0
    assert started.index(6) >= 3


def test_on_one_processor_the_order_is_kept() -> None:
    jobs = usual_jobs(1)
    assert simulate(jobs, jobs, cores=1)[1] == list(range(len(jobs)))


def test_no_more_threads_than_processors_are_wanted() -> None:
    wide, narrow = Load(cpu_s=1.0, threads=4), Load(cpu_s=1.0)
    assert may_start([], cores=4, jobs=4)
    assert may_start([narrow] * 3, cores=4, jobs=4)
    assert not may_start([wide], cores=4, jobs=4)
    assert not may_start([narrow] * 4, cores=4, jobs=4)
    assert not may_start([narrow], cores=4, jobs=1)


@pytest.mark.parametrize(
    ("argv", "threads"),
    [
        (("zstd", "-19", "-T0"), 8),
        (("/usr/bin/zstd", "--threads=3"), 3),
        (("xz", "--check=crc32", "-T0"), 8),
        (("xz", "--check=crc32"), 1),
        (("xz", "-T32"), 8),
        (("lzma", "-9", "-T0"), 1),
        (("pigz", "-9"), 8),
        (("gzip", "-9"), 1),
        (("zstd", "-T"), 1),
        (("cat",), 1),
    ],
)
def test_the_command_line_tells_the_threads(argv: tuple[str, ...], threads: int) -> None:
    assert threads_of(argv, 1_000_000_000, 8) == threads


def test_a_short_payload_does_not_occupy_many_threads() -> None:
    assert threads_of(("zstd", "-T0"), 40_000_000, 8) == 2
    assert threads_of(("zstd", "-T0"), 0, 8) == 1


@pytest.mark.parametrize("codec", list(Codec))
def test_every_codec_has_a_cost_that_grows_with_level_and_payload(codec: Codec) -> None:
    costs = list(COST_S[codec].values())
    assert costs == sorted(costs)
    level = codec.spec.level
    assert 0 < expected_cpu_s(codec, level, 1_000_000) < expected_cpu_s(codec, level, 2_000_000)


def test_an_unmeasured_level_costs_as_its_neighbour() -> None:
    assert expected_cpu_s(Codec.ZSTD, 18, 100_000_000) == COST_S[Codec.ZSTD][19]


def test_a_level_that_makes_images_as_large_bounds_what_todays_build_took() -> None:
    """Twice as dear as what the table is of, all of them."""
    near, like, far = map(Setting.parse, ("zstd -3", "zstd -9", "zstd -19"))
    known = [(near, 1.0), (like, 4.4), (far, 116.0)]
    anything = build_range(Setting(Codec.ZSTD), known)
    assert anything
    assert (anything.least_s, anything.most_s) == pytest.approx((0.6, 144))
    assert "as large" not in anything.words
    told = build_range(Setting(Codec.ZSTD), known, like={like})
    assert told
    # That of -3 is of another size, -12 was not compared.
    assert (told.least_s, told.most_s) == pytest.approx((4.4, 13.2))
    assert told.words.endswith("over the levels of zstd that make images about as large")
    alone = build_range(Setting(Codec.ZSTD), [(like, 4.4)], like={like})
    assert alone
    assert (alone.least_s, alone.most_s) == pytest.approx((1.0, 13.2))
    assert build_range(Setting(Codec.XZ), known, like={like}) is None
