"""How long the guest harness takes: seven boots of a cached guest, and making it from nothing.

    python -m benchmarks.guest [--runs 1] [--cold]

The seven boots (tests/vm/seven_boots.py) go through one-shot entries, one of them corrupt; the time
includes copying the guest, compressing the candidates and reading the journal. ``--cold`` makes
programs and guest anew first, in a cache of its own that is deleted afterwards.

Machines without KVM take all the processors there are, so the processor time that others took
meanwhile is shown.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.vm.guest import Recipe, guest
from tests.vm.journal import journal
from tests.vm.seven_boots import plan, run

if TYPE_CHECKING:
    from collections.abc import Iterator

SEVEN_BOOTS_S = 150
FROM_NOTHING_S = 120
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Times:
    """Seconds: on the clock, of processors for us, and of processors for everybody else."""

    wall_s: float = 0.0
    own_cpu_s: float = 0.0
    others_cpu_s: float = 0.0


@contextmanager
def timed() -> Iterator[Times]:
    """Fill in the times when the block is left."""
    times = Times()
    started, own, everybody = time.perf_counter(), own_cpu_s(), everybodys_cpu_s()
    yield times
    times.wall_s = time.perf_counter() - started
    times.own_cpu_s = own_cpu_s() - own
    times.others_cpu_s = everybodys_cpu_s() - everybody - times.own_cpu_s


def own_cpu_s() -> float:
    """Return the processor time of this process and of its children that ended."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def everybodys_cpu_s() -> float:
    """Return the processor time the machine has spent (proc_stat(5)), idle and I/O wait aside."""
    fields = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    user, nice, system, _idle, _iowait, irq, softirq, *_ = fields
    return (user + nice + system + irq + softirq) / TICKS_PER_S


def show(name: str, times: Times, limit_s: float) -> None:
    """Print times and whether the wall time is within its limit."""
    verdict = "yes" if times.wall_s <= limit_s else "NO"
    print(
        f"{name:14} {times.wall_s:6.1f} s (limit {limit_s} s: {verdict}), "
        f"processors: {times.own_cpu_s:.0f} s own, {times.others_cpu_s:.0f} s others'"
    )


def seven_boots() -> None:
    """Boot seven times from the cache, and check that six boots reached the journal."""
    with tempfile.TemporaryDirectory() as scratch, timed() as times:
        directory = Path(scratch)
        copy = guest(Recipe()).copied_to(directory / "guest")
        boots = run(copy, plan(copy, directory), directory)
        kept = {boot.boot_id for boot in journal(copy.disk)}
    assert kept == {boot.boot_id for boot in boots if boot.boot_id}
    assert len(kept) == 6
    show("seven boots", times, SEVEN_BOOTS_S)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--cold", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="guest-cache-") as cache:
        if arguments.cold:
            os.environ["XDG_CACHE_HOME"] = cache
        with timed() as times:
            guest(Recipe())
        if arguments.cold:
            show("from nothing", times, FROM_NOTHING_S)
        for _ in range(arguments.runs):
            seven_boots()


if __name__ == "__main__":
    main()
