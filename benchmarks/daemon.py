"""What the daemon costs: a start with nothing to do, one for a boot, and its work for an image.

    python -m benchmarks.daemon [--runs 20] [--image FILE]

Each start has a state directory of its own. With an image, what it does after a kernel upgrade is
done for that image (building, and weighing with the bench): the memory is that of the daemon's own
process; compressors are programs of their own.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

START = """
import resource, sys
from pathlib import Path
from initadvisor.daemon import work
from initadvisor.daemon.loop import Daemon
from initadvisor.host import Host
from initadvisor.daemon.planning import Needs

host = Host()
worker = work.AdvisorsWork(host=host)
if len(sys.argv) > 1:
    from initadvisor.advise.recommend import Request
    from initadvisor.advise.recommend import recommend
    from initadvisor.target.target import Target

    image = Path(sys.argv[1])

    class Worker(work.AdvisorsWork):
        def _target(self, release):
            return Target(path=image)

        def _lab(self, release):
            pass

        def _advise(self, config):
            print(work._in_words(recommend(host, Request(image=image, build=True),
                                           observer=self.reporter)), file=sys.stderr)
            return ()

    worker = Worker(host=host)
begun = resource.getrusage(resource.RUSAGE_SELF)
Daemon(host=host, work=worker.do, look=lambda host, needs: Needs(0)).run()
used = resource.getrusage(resource.RUSAGE_SELF)
below = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_maxrss * 1024, used.ru_utime + used.ru_stime, below.ru_utime + below.ru_stime)
"""


def start(state: Path, *words: str) -> tuple[float, float, float, float]:
    """Run the daemon; return wall seconds, peak memory in MB, its own and its programs' seconds."""
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", START, *words],
        env={**os.environ, "STATE_DIRECTORY": str(state), "CACHE_DIRECTORY": str(state / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    wall = time.perf_counter() - begun
    peak, own, programs = done.stdout.split()[-3:]
    print(done.stderr.strip()[-300:] if words else "", end="\n" if words else "")
    return wall, int(peak) / 1e6, float(own), float(programs)


def show(name: str, values: list[tuple[float, float, float, float]]) -> None:
    """Print medians with their spread."""
    figures = []
    for (unit, what), column in zip(
        (("s", "wall"), ("MB", "peak memory"), ("s", "CPU"), ("s", "CPU of programs")),
        zip(*values, strict=True),
        strict=True,
    ):
        spread = f"({min(column):.2f}-{max(column):.2f})"
        figures.append(f"{what} {statistics.median(column):.2f} {unit} {spread}")
    print(f"{name}: {', '.join(figures)}; {len(values)} runs")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--image", type=Path)
    arguments = parser.parse_args()
    booted, nothing = [], []
    for _ in range(arguments.runs):
        with tempfile.TemporaryDirectory() as directory:
            booted.append(start(Path(directory)))
            nothing.append(start(Path(directory)))
    show("a start after a boot", booted)
    show("a start with nothing to do", nothing)
    if arguments.image:
        with tempfile.TemporaryDirectory() as directory:
            queue = Path(directory, "queue")
            queue.mkdir()
            (queue / "kernel-added@6.1.0").touch()
            show("after an upgrade", [start(Path(directory), str(arguments.image.resolve()))])


if __name__ == "__main__":
    main()
