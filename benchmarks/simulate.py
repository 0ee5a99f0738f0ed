"""How many boots a decision takes, and how often it is right, on synthetic machines.

    python -m benchmarks.simulate [--machines 200] [--table NAME|FILE]... [--today SETTING]
        [--read-speed 16..1500] [--shadow 5..800] [--evidence bench|lab] [--violation half]
        [--processes N] [--json FILE]

Machines are like those of measured tables, by default the built-in ones, and which setting is the
best there is known. By default half of them break the cost model on purpose. The package's own
decision code boots them until it is certain. The loader's speed and the time that the kernel does
not wait are log-uniform in their ranges; content, processor and single settings vary around the
table's. The same options give the same figures, on any number of processors. Intervals are of 95 %.
``benchmarks.decision`` holds fixed conditions to what is expected of them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.campaign_figures import figures, setting_uses
from benchmarks.synthetic import (
    BENCH_LOG_SD,
    BREAKING,
    LAB_LOG_SD,
    MachineRun,
    ModelViolation,
    Rules,
    Scenario,
    TableSet,
    draw_conditions,
    measured_tables,
    prior_machine,
    simulate_one,
    spread,
)
from initadvisor.advise.truth_tables import truth_table
from initadvisor.core.errors import UsageError
from initadvisor.core.settings import Setting
from initadvisor.decide.decision import Thresholds
from initadvisor.decide.next_boot import BootLimits
from initadvisor.decide.whatif_values import Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.campaign_figures import BootCount, Figures, Mean, Share
    from initadvisor.decide.whatif_values import GivenValue

MIXES: dict[str, tuple[ModelViolation, ...]] = {
    "half": tuple(one for breaking in BREAKING for one in (ModelViolation.NONE, breaking)),
    **{str(one): (one,) for one in ModelViolation},
    "all": BREAKING,
}
"""The violations that machines have in turns, by the name of the option's choice."""

_CONDITIONS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked: machines like ``source``, under the conditions of ``scenario``."""

    source: TableSet
    scenario: Scenario
    rules: Rules
    seed: int


def like_tables(names: Sequence[str], today: Setting | None) -> TableSet:
    """Return the tables with these names (by default the measured ones) that have ``today``.

    Raises ``UsageError`` for what is no table, and where no table has ``today``.
    """
    tables = tuple(truth_table(name) for name in dict.fromkeys(names)) or measured_tables()
    kept = tuple(
        table for table in tables if today is None or today in {row.setting for row in table.rows}
    )
    if not kept:
        msg = f"no table has the setting {today}"
        raise UsageError(msg)
    return TableSet(tables=kept, today=today)


def run_machine(job: tuple[Question, int]) -> MachineRun:
    """Run the campaign on the machine with a number.

    Conditions have their own random numbers: other conditions leave the rest of a machine as it is.
    """
    question, number = job
    rng = np.random.default_rng([question.seed, number, _CONDITIONS])
    return simulate_one(
        question.source,
        draw_conditions(rng, question.scenario, number),
        question.rules,
        prior=prior_machine(),
        seed=(question.seed, number),
    )


def simulate(question: Question, machines: int, *, processes: int) -> Iterator[MachineRun]:
    """Yield the campaigns on so many machines."""
    jobs = [(question, number) for number in range(machines)]
    if processes == 1:
        return map(run_machine, jobs)
    return spread(run_machine, jobs, processes=processes)


def by_violation(runs: Sequence[MachineRun], certainty: float) -> dict[str, Figures]:
    """Return the figures of all machines, and of each violation where there are several."""
    found = {"all": figures([run.campaign for run in runs], certainty=certainty)}
    violations = dict.fromkeys(run.conditions.violation for run in runs)
    for violation in violations if len(violations) > 1 else ():
        own = [run.campaign for run in runs if run.conditions.violation is violation]
        found[str(violation)] = figures(own, certainty=certainty)
    return found


def print_figures(runs: Sequence[MachineRun], certainty: float) -> None:
    """Print all figures as tables, with their intervals."""
    found = by_violation(runs, certainty)
    print(f"{'machines':<12}{'':>6} {'boots':>14} {'90 % within':>14} {'right %':>20} regret ms")
    for name, own in found.items():
        boots, most = _boots(own.boots_median), _boots(own.boots_90)
        right, regret = _share(own.right), _mean(own.regret_ms)
        print(f"{name:<12}{own.machines:>6} {boots:>14} {most:>14} {right:>20} {regret}")
    print("\nstated %  right %")
    for one in found["all"].calibration:
        print(f"{one.stated * 100:>8.1f}  {_share(one.right)} of {one.right.of}")
    print(f"\n{'setting':<12}{'best %':>20} {'chosen %':>20} {'booted %':>20} boots")
    for use in setting_uses([run.campaign for run in runs]):
        best, chosen, booted = _share(use.best), _share(use.chosen), _share(use.booted)
        print(f"{use.setting!s:<12}{best:>20} {chosen:>20} {booted:>20} {_mean(use.boots)}")


def _share(share: Share) -> str:
    return f"{share.part * 100:.1f} ({share.low * 100:.1f}..{share.high * 100:.1f})"


def _boots(count: BootCount) -> str:
    boots, low, high = ("-" if b is None else b for b in (count.boots, count.low, count.high))
    return f"{boots} ({low}..{high})"


def _mean(mean: Mean) -> str:
    if mean.low is None or mean.high is None:
        return f"{mean.mean:.2f}"
    return f"{mean.mean:.2f} ({mean.low:.2f}..{mean.high:.2f})"


def document(question: Question, runs: Sequence[MachineRun]) -> str:
    """Return question, figures and every machine as JSON."""
    return json.dumps(
        {
            "tables": [table.name for table in question.source.tables],
            "today": question.source.today,
            "scenario": question.scenario,
            "rules": question.rules,
            "seed": question.seed,
            "figures": by_violation(runs, question.rules.thresholds.certainty),
            "settings": setting_uses([run.campaign for run in runs]),
            "machines": runs,
        },
        default=_plain,
    )


def _plain(value: object) -> object:
    """Return a setting in words, another dataclass as its fields."""
    if is_dataclass(value) and not isinstance(value, Setting):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return str(value)


def number_or_range(text: str) -> GivenValue:
    """Return the number or the range (LOW..HIGH) that a text names; ``ValueError`` for none."""
    low, dots, high = text.partition("..")
    return Span(low=float(low), high=float(high)) if dots else float(low)


def main() -> None:
    """Simulate and print."""
    usual = Thresholds()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--machines", type=int, default=200)
    parser.add_argument("--table", dest="tables", action="append", default=[], metavar="NAME|FILE")
    parser.add_argument("--today", metavar="SETTING")
    parser.add_argument(
        "--read-speed", type=number_or_range, default=Span(low=16.0, high=1500.0), metavar="MB/S"
    )
    parser.add_argument(
        "--shadow", type=number_or_range, default=Span(low=5.0, high=800.0), metavar="MS"
    )
    parser.add_argument("--noise", type=float, default=6.0, metavar="PERCENT")
    parser.add_argument("--outliers", type=float, default=5.0, metavar="PERCENT")
    parser.add_argument("--evidence", choices=("bench", "lab"), default="bench")
    parser.add_argument("--violation", choices=tuple(MIXES), default="half")
    parser.add_argument("--most-boots", type=int, default=40)
    parser.add_argument("--certainty", type=float, default=usual.certainty)
    parser.add_argument("--tolerance-ms", type=float, default=usual.tolerance_ms)
    parser.add_argument("--tolerance-fraction", type=float, default=usual.tolerance_fraction)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    lab = asked.evidence == "lab"
    try:
        source = like_tables(asked.tables, Setting.parse(asked.today) if asked.today else None)
    except UsageError as err:
        parser.error(err.message)
    question = Question(
        source=source,
        scenario=Scenario(
            read_mb_s=asked.read_speed,
            shadow_ms=asked.shadow,
            noise_log_sd=asked.noise / 100,
            outliers=asked.outliers / 100,
            violations=MIXES[asked.violation],
            unpack_log_sd=LAB_LOG_SD if lab else BENCH_LOG_SD,
            lab=lab,
        ),
        rules=Rules(
            thresholds=Thresholds(
                tolerance_ms=asked.tolerance_ms,
                tolerance_fraction=asked.tolerance_fraction,
                certainty=asked.certainty,
            ),
            limits=BootLimits(),
            most_boots=asked.most_boots,
        ),
        seed=asked.seed,
    )
    runs: list[MachineRun] = []
    for run in simulate(question, asked.machines, processes=asked.processes):
        runs.append(run)
        if sys.stderr.isatty():
            print(f"\r{len(runs)} machines", end="", file=sys.stderr)
    print_figures(runs, asked.certainty)
    if asked.json:
        asked.json.write_text(document(question, runs))


if __name__ == "__main__":
    main()
