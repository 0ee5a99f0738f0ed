"""How long `recommend` takes, first and again, and the memory of its own process.

    python -m benchmarks.recommend IMAGE [--runs 3] [-- OPTIONS OF RECOMMEND]

Each run starts with an empty cache. The memory is bounded by 1.5 times the unpacked size of the
image plus 150 MB; compressors are programs of their own, their memory is in the answer.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHILD = """
import atexit, resource, sys
from initadvisor.cli import main
atexit.register(
    lambda: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, file=sys.stderr)
)
main()
"""


def run(cache: str, arguments: list[str]) -> tuple[float, int, dict]:
    """Run the command once; return wall seconds, the peak memory of its process, its answer."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", CHILD, "recommend", "--json", *arguments],
        env={**os.environ, "CACHE_DIRECTORY": cache, "STATE_DIRECTORY": f"{cache}/state"},
        capture_output=True,
        text=True,
        check=True,
    )
    wall = time.perf_counter() - started
    return wall, int(done.stderr.split()[-1]), json.loads(done.stdout)


def show(name: str, values: list[float], unit: str) -> None:
    """Print a median with its spread."""
    low, high = min(values), max(values)
    print(f"{name:22} {statistics.median(values):8.2f} {unit} ({low:.2f}-{high:.2f})")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("image", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("options", nargs="*")
    arguments = parser.parse_args()
    first, again, memory = [], [], []
    answer = {}
    for _ in range(arguments.runs):
        with tempfile.TemporaryDirectory() as cache:
            command = ["--image", str(arguments.image), *arguments.options]
            wall, peak, answer = run(cache, command)
            first.append(wall)
            memory.append(peak / 1e6)
            again.append(run(cache, command)[0])
    limit = (1.5 * answer["unpacked_bytes"] + 150e6) / 1e6
    show("first answer", first, "s")
    show("second answer", again, "s")
    show("peak memory", memory, f"MB, limit {limit:.0f}")
    print(f"within the limit: {'yes' if max(memory) <= limit else 'NO'}")


if __name__ == "__main__":
    main()
