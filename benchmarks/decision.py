"""How many boots a decision takes, and how often it is right, on machines whose answer is known.

    python -m benchmarks.decision [--machines 1000] [--processes 2] [--evidence lab|bench|both]
        [--only READ,SHADOW,NOISE] [--json FILE]

36 cells: the loader reads 16, 100, 500 or 1500 MB/s, the kernel has 0, 100 or 800 ms of other work,
single boots are 3, 6 or 12 % apart; one boot in 20 is disturbed. In each cell half of the machines
are as the model says, the other half break it in one of five ways. How often intervals hold the
truth, what is definite and which switches lose what matters is told after 0, 1 and 3 boots (those
that took as many). Their images are those of the
built-in tables that were measured for this package, varied. What is known beforehand is what a lab
would say (5 % off, and all of it 10 % off), or a bench (30 % off). A campaign ends when its
decision is settled, and is given up after 40 boots, which counts as a miss. Seeds are fixed: the
same code gives the same figures.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from itertools import product
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from benchmarks.campaign_figures import figures, mean, share
from benchmarks.synthetic import (
    BENCH_LOG_SD,
    BREAKING,
    LAB_LOG_SD,
    MachineConditions,
    ModelViolation,
    Rules,
    TableSet,
    measured_tables,
    prior_machine,
    simulate_one,
    spread,
)
from initadvisor.decide.cost import Outcome
from initadvisor.decide.decision import Thresholds
from initadvisor.decide.next_boot import BootLimits

if TYPE_CHECKING:
    from benchmarks.campaign_figures import Figures
    from benchmarks.synthetic import CampaignRun

READ_MB_S = (16.0, 100.0, 500.0, 1500.0)
SHADOW_MS = (0.0, 100.0, 800.0)
NOISE = (0.03, 0.06, 0.12)
_RIGHT = 0.95
RULES = Rules(thresholds=Thresholds(), limits=BootLimits())


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One combination of conditions, of machines that follow the model or break it."""

    lab: bool
    follows: bool
    read_mb_s: float
    shadow_ms: float
    noise: float

    def conditions(self, number: int) -> MachineConditions:
        """Return those of the machine with this number."""
        return MachineConditions(
            read_mb_s=self.read_mb_s,
            shadow_ms=self.shadow_ms,
            noise_log_sd=self.noise,
            violation=(ModelViolation.NONE if self.follows else BREAKING[number % len(BREAKING)]),
            unpack_log_sd=LAB_LOG_SD if self.lab else BENCH_LOG_SD,
            lab=self.lab,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One machine of a cell."""

    cell: Cell
    violation: ModelViolation
    campaign: CampaignRun


def run(job: tuple[Cell, int, int]) -> list[Run]:
    """Run some machines of a cell: from the first number up to the second."""
    cell, first, last = job
    prior, source = prior_machine(), TableSet(tables=measured_tables())
    runs = []
    for number in range(first, last):
        conditions = cell.conditions(number)
        seed = (
            *(int(cell.lab), int(cell.follows), int(cell.read_mb_s), int(cell.shadow_ms)),
            *(round(cell.noise * 100), number),
        )
        one = simulate_one(source, conditions, RULES, prior=prior, seed=seed)
        runs.append(Run(cell=cell, violation=conditions.violation, campaign=one.campaign))
    return runs


def summarised(runs: list[Run]) -> Figures:
    """Put runs into figures."""
    return figures([run.campaign for run in runs], certainty=RULES.thresholds.certainty)


def shown(name: str, found: Figures) -> str:
    """Return a line."""
    median, most = (
        "-" if count.boots is None else str(count.boots)
        for count in (found.boots_median, found.boots_90)
    )
    stated = " ".join(
        f"{one.stated:.3f}:{one.right.part:.3f}({one.right.of})" for one in found.calibration
    )
    return (
        f"{name:<34} n={found.machines:<5} boots {median:>3} {most:>3}  "
        f"decided {found.settled.part:.3f}  right {found.right.part:.3f}  "
        f"beyond {found.beyond_ms.mean:6.2f} ms  stated {stated}"
    )


def looked(name: str, runs: list[Run], boots: int) -> str:
    """Return a line of what answers were after so many boots."""
    looks = [look for run in runs for look in run.campaign.looks if look.boots == boots]
    if not looks:
        return f"{name}, {boots} boots: none"
    switches = [look for look in looks if look.outcome is Outcome.SWITCH]
    held, of = sum(look.held for look in looks), sum(look.of for look in looks)
    definite = share(sum(look.outcome is not Outcome.UNDECIDED for look in looks), len(looks))
    harmful = share(sum(look.harmful for look in switches), max(1, len(switches)))
    regret = mean([look.regret_ms for look in looks])
    return (
        f"{name}, {boots} boots: n={len(looks)} intervals hold {held / of:.3f}  definite "
        f"{definite.part:.3f}  harmful {harmful.part:.3f} ({harmful.low:.3f}..{harmful.high:.3f}) "
        f"of {len(switches)} switches  regret {regret.mean:.1f} ms"
    )


def weak_cells(runs: list[Run]) -> list[str]:
    """Return the cells in which at most 95 % of the decisions are right, with 99 % certainty."""
    found = []
    for cell in dict.fromkeys(run.cell for run in runs):
        own = [run.campaign for run in runs if run.cell == cell]
        settled = [run for run in own if run.outcome is not Outcome.UNDECIDED]
        right = sum(run.right for run in settled)
        if settled and _at_most(right, len(settled)) < _RIGHT:
            found.append(f"{cell_name(cell)}: right {right} of {len(settled)}")
    return found


def _at_most(count: int, of: int) -> float:
    """Return the 99 % upper bound of a share (Wilson)."""
    z, part = NormalDist().inv_cdf(0.99), count / of
    middle = part + z * z / (2 * of)
    wide = z * sqrt(part * (1 - part) / of + z * z / (4 * of * of))
    return (middle + wide) / (1 + z * z / of)


def cell_name(cell: Cell) -> str:
    """Return a cell in words."""
    name = f"{cell.read_mb_s:g} MB/s {cell.shadow_ms:g} ms {cell.noise:.0%}"
    return name if cell.follows else f"{name} broken"


def misses(runs: list[Run], *, lab: bool) -> list[str]:
    """Return what is not as it should be, over all cells of one kind of evidence."""
    found = [f"99 % upper bound of right under {_RIGHT:.0%}: {weak}" for weak in weak_cells(runs)]
    whole = summarised(runs)
    median, most = whole.boots_median.boots, whole.boots_90.boots
    if median is None or median > (3 if lab else 8):
        found.append(f"median of boots {median}")
    if lab and (most is None or most > 20):
        found.append(f"90 % of boots {most}")
    for cell in dict.fromkeys(run.cell for run in runs):
        own = summarised([run for run in runs if run.cell == cell])
        name = cell_name(cell)
        if own.right.part < (0.95 if cell.follows else 0.90):
            found.append(f"{name}: right {own.right.part:.3f}")
        if cell.read_mb_s >= 100 and own.beyond_ms.mean >= 3:
            found.append(f"{name}: regret beyond the tolerance {own.beyond_ms.mean:.2f} ms")
    found.extend(
        f"stated {one.stated:.3f}, right {one.right.part:.3f} of {one.right.of}"
        for one in whole.calibration
        if one.right.part < one.stated - 0.02
    )
    return found


def reported(runs: list[Run], *, lab: bool) -> list[str]:
    """Print the figures of one kind of evidence, and return what is not as it should be."""
    print(f"== {'lab (5 %)' if lab else 'bench (30 %)'}")
    cells = {cell: [run for run in runs if run.cell == cell] for cell in (run.cell for run in runs)}
    for cell, own in cells.items():
        print(shown(cell_name(cell), summarised(own)))
    for violation in ModelViolation:
        if own := [run for run in runs if run.violation is violation]:
            print(shown(f"all, {violation}", summarised(own)))
    print(shown("all", summarised(runs)))
    for cell, own in cells.items():
        print(looked(cell_name(cell), own, 0))
    halves = {
        "as the model says": [run for run in runs if run.cell.follows],
        "broken": [run for run in runs if not run.cell.follows],
        "all": runs,
    }
    for boots, (name, half) in product(RULES.looks, halves.items()):
        print(looked(name, half, boots))
    return misses(runs, lab=lab)


def main() -> int:
    """Print figures for every cell; 1 where they are not what they should be."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--machines", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--evidence", choices=("lab", "bench", "both"), default="both")
    parser.add_argument("--only", help="READ,SHADOW,NOISE of one cell, as 100,0,0.06")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    kinds = {"lab": (True,), "bench": (False,), "both": (True, False)}[args.evidence]
    cells = [
        Cell(lab=lab, follows=follows, read_mb_s=read, shadow_ms=shadow, noise=noise)
        for lab, follows, read, shadow, noise in product(
            kinds, (True, False), READ_MB_S, SHADOW_MS, NOISE
        )
        if args.only in {None, f"{read:g},{shadow:g},{noise:g}"}
    ]
    if not cells:
        parser.error(f"there is no cell {args.only}: see READ_MB_S, SHADOW_MS and NOISE")
    started = time.monotonic()
    per_cell = max(1, args.machines // 2)
    step = 50
    jobs = [
        (cell, first, min(first + step, per_cell))
        for cell in cells
        for first in range(0, per_cell, step)
    ]
    runs: list[Run] = []
    for done in spread(run, jobs, processes=args.processes):
        runs.extend(done)
        if sys.stderr.isatty():
            print(f"\r{len(runs)} machines", end="", file=sys.stderr)
    bad = [
        f"{'lab' if lab else 'bench'}: {miss}"
        for lab in kinds
        for miss in reported([run for run in runs if run.cell.lab == lab], lab=lab)
    ]
    print(f"{len(runs)} machines in {time.monotonic() - started:.0f} s")
    for miss in bad:
        print(f"MISSED: {miss}")
    if args.json:
        args.json.write_text(json.dumps([asdict(run) for run in runs], default=str))
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
