"""How much processor time `report` takes beyond a second `recommend`, and how large its page is.

    python -m benchmarks.report IMAGE [--boots 1000] [--runs 5]

So many boots are recorded before. Both commands know the image from a run before them.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from initadvisor.host import Host
from initadvisor.store.store import open_store
from tests.fixtures.boots import LZ4, ZSTD, boot_record

MOST_S = {1_000: 1.0, 100_000: 3.0}


def ran_s(directory: Path, *arguments: str) -> float:
    """Run a command and return its processor time in seconds, whatever else the machine does."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "initadvisor", *arguments],
        env={
            **os.environ,
            "CACHE_DIRECTORY": str(directory / "cache"),
            "STATE_DIRECTORY": str(directory / "state"),
        },
        capture_output=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(image: Path, count: int, runs: int) -> bool:
    """Measure with so many boots, print, and tell whether it is within the limit."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        os.environ["STATE_DIRECTORY"] = str(directory / "state")
        with open_store(Host()) as store:
            store.add_boots(
                boot_record(number, setting=(ZSTD, LZ4)[number // 50 % 2])
                for number in range(1, count + 1)
            )
        page = directory / "page.html"
        recommend = ("recommend", "--image", str(image), "--quiet")
        report = ("report", "--image", str(image), "-o", str(page))
        ran_s(directory, *recommend)
        pairs = [(ran_s(directory, *recommend), ran_s(directory, *report)) for _ in range(runs)]
        more = [written - asked for asked, written in pairs]
        most = MOST_S.get(count)
        print(
            f"{count:7} boots: recommend {statistics.median(one for one, _ in pairs):.2f} s, "
            f"report {statistics.median(more):.2f} s more ({min(more):.2f} to {max(more):.2f}"
            f"{f', limit {most:g}' if most else ''}), page {page.stat().st_size / 1000:.0f} kB"
        )
        return most is None or statistics.median(more) <= most


def main() -> None:
    """Measure and print; the status tells whether it is quick enough."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("image", type=Path)
    parser.add_argument("--boots", type=int, nargs="+", default=[1_000])
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    good = [measure(arguments.image, count, arguments.runs) for count in arguments.boots]
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
