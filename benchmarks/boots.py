"""How long it takes to learn from 100,000 boots, and from one.

    python -m benchmarks.boots [--boots 100000] [--runs 5]

The boots are of a machine that has had 200 kernels, with a few images each, booted with every
setting; one in 30 is disturbed. The same again where no boot is like another (every image has a
size of its own), which no machine does; that is for information. "summary": from the boots'
figures to what is kept of them; "all of it": to the joint draws. Last, what one boot more takes
where there are 10,000 and 20 candidates: the draws, the decision, and which boot would teach most.
Times are processor time.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from initadvisor.decide.boot_evidence import BootEvidence, Relation
from initadvisor.decide.decision import Thresholds, decide
from initadvisor.decide.next_boot import BootLimits, next_boots
from initadvisor.decide.posterior.posterior import sample_posterior_costs, summarised
from initadvisor.records.marks import Waiting
from initadvisor.records.read_interval import Beside, IntervalSource
from tests.fixtures.known_machines import candidate, draw_costs
from tests.fixtures.synthetic_boots import FIELD, unknown_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from initadvisor.decide.cost import CandidateFacts, Machine

SUMMARY_S = 0.3
DRAWS_S = 0.5
UPDATE_S = 0.2
MANY_BOOTS = 10_000
KERNELS = 200
DISTURBED = 30


def wide_field() -> tuple[CandidateFacts, ...]:
    """Return 20 candidates."""
    settings = [f"zstd -{level}" for level in (1, 3, 6, 9, 12, 15, 19)]
    settings += [f"lz4 -{level}" for level in (1, 6, 9)] + [f"gzip -{n}" for n in (1, 6, 9)]
    settings += [f"xz -{level}" for level in (0, 6, 9)] + ["lzop -9", "bzip2", "lzma", "cat"]
    rng = np.random.default_rng(1)
    return tuple(
        replace(
            candidate(
                setting,
                float(rng.uniform(30, 110)),
                0 if setting == "cat" else float(rng.uniform(40, 900)),
                log_sd=0.0 if setting == "cat" else 0.15,
            ),
            digest=f"{number:064x}",
        )
        for number, setting in enumerate(settings)
    )


def one_more(
    machine: Machine, field: Sequence[CandidateFacts], boots: Sequence[BootEvidence]
) -> None:
    """Do all that follows a boot."""
    given = sample_posterior_costs(machine, field, boots, seed=1)
    thresholds = Thresholds()
    decision = decide(given.draws, field, baseline=0, thresholds=thresholds, source="a benchmark")
    next_boots(
        given.posterior,
        machine,
        field,
        decision=decision,
        own_boots=given.summary.own_boots,
        baseline=0,
        thresholds=thresholds,
        limits=BootLimits(),
    )


def machine_s_boots(
    count: int,
    *,
    each_its_own: bool,
    seed: int,
    field: Sequence[CandidateFacts] = FIELD,
) -> list[BootEvidence]:
    """Return boots, the latest first."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(0, 0.05, (count, 4))
    noise[::DISTURBED, 0] += 2
    boots = []
    for number, (unpack, shadow, rest, read) in enumerate(np.exp(noise)):
        booted = field[number % len(field)]
        kernel = number * KERNELS // count
        loaded_mb = booted.size_mb.median * (1 + 0.0005 * (kernel % 40))
        if each_its_own:
            loaded_mb = booted.size_mb.median * float(rng.uniform(0.8, 1.2))
        unpack_us = float(1000 * unpack * (80 + booted.decompress_ms.median))
        hidden = number % 7 == 0
        boots.append(
            BootEvidence(
                relation=Relation.NEAR if kernel else Relation.SAME,
                class_key=f"kernel {kernel}",
                age_days=number / 10,
                digest=f"{number if each_its_own else kernel}" if kernel else booted.digest,
                setting=booted.setting,
                loaded_mb=loaded_mb,
                unpack_us=unpack_us,
                begin_to_init_us=unpack_us + 150_000.0,
                waiting=Waiting.HIDDEN if hidden else Waiting.WAITED,
                shadow_us=None if hidden else float(40_000 * shadow),
                rest_us=None if hidden else float(150_000 * rest),
                read_us=float(1e6 * (0.4 + loaded_mb / 150) * read),
                read_source=IntervalSource.EXEC_MINUS_INIT,
                read_beside=(Beside.LOADER, Beside.KERNEL),
            )
        )
    return boots


def processor_s(work: Callable[[], object], runs: int) -> str:
    """Return the median of some runs, and the least and the most."""
    times = []
    for _ in range(runs):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return f"{statistics.median(times):.3f} s ({min(times):.3f} to {max(times):.3f})"


def seconds(shown: str) -> float:
    """Return the median again."""
    return float(shown.split(maxsplit=1)[0])


def main() -> int:
    """Print what it takes; 1 where it is more than it may be."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--boots", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    machine = unknown_machine()
    print(f"without boots: {processor_s(lambda: draw_costs(machine, FIELD, seed=1), args.runs)}")
    late = False
    for count, each_its_own in ((1, False), (args.boots, False), (args.boots, True)):
        boots = machine_s_boots(count, each_its_own=each_its_own, seed=1)
        summary = processor_s(partial(summarised, machine, FIELD, boots), args.runs)
        learn = partial(sample_posterior_costs, machine, FIELD, boots, seed=1)
        whole = processor_s(learn, args.runs)
        given = learn()
        print(
            f"{count} boots{', each its own' if each_its_own else ''}: summary {summary}, "
            f"all of it {whole}, {given.summary.boots_used} used, "
            f"worth {given.posterior.effective:.0f} draws"
        )
        if not each_its_own:
            late |= seconds(summary) > SUMMARY_S or seconds(whole) - seconds(summary) > DRAWS_S
    field = wide_field()
    boots = machine_s_boots(MANY_BOOTS, each_its_own=False, seed=1, field=field)
    update = processor_s(partial(one_more, machine, field, boots), args.runs)
    print(f"one boot more, after {MANY_BOOTS} and with {len(field)} candidates: {update}")
    late |= seconds(update) > UPDATE_S
    return int(late)


if __name__ == "__main__":
    sys.exit(main())
