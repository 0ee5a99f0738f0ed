"""How long `inspect` takes beside plain decompression, and `--help` beside importing click.

    python -m benchmarks.inspect [IMAGE] [--runs 15]

IMAGE is compressed with zstd; without one, an image of about 120 MB unpacked is made of this
machine's programs and libraries. Each command runs in turn with the one it is compared with, after
a warm-up of both; the ratio is that of the medians, and of each pair. The peak memory is that of
the process of `inspect`. `contents` is timed with an empty cache, and again.
"""

from __future__ import annotations

import argparse
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.build import make_image

BIN = Path(sys.executable).parent


def wall_and_peak(argv: list[str]) -> tuple[float, int]:
    """Run a command; return its wall time in ms and the peak memory of its largest process."""
    started = time.perf_counter()
    with Path(os.devnull).open("wb") as nowhere:
        process = subprocess.Popen(argv, stdout=nowhere)
        _, status, usage = os.wait4(process.pid, 0)
    wall = (time.perf_counter() - started) * 1000
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        message = f"{shlex.join(argv)} failed"
        raise SystemExit(message)
    return wall, usage.ru_maxrss * 1024


def compare(ours: list[str], theirs: list[str], runs: int, limit: float) -> int:
    """Time two commands in turn and print medians, spread and ratios; return our peak memory."""
    times: tuple[list[float], list[float]] = ([], [])
    peak = 0
    for number in range(runs + 1):
        pair = wall_and_peak(ours), wall_and_peak(theirs)
        peak = max(peak, pair[0][1])
        if number:
            for column, (wall, _) in zip(times, pair, strict=True):
                column.append(wall)
    for argv, column in zip((ours, theirs), times, strict=True):
        low, high = min(column), max(column)
        print(f"{statistics.median(column):8.1f} ms ({low:.1f}-{high:.1f})  {shlex.join(argv)}")
    pairs = sorted(a / b for a, b in zip(*times, strict=True))
    ratio = statistics.median(times[0]) / statistics.median(times[1])
    print(f"   ratio {ratio:.2f} (pairs {pairs[0]:.2f}-{pairs[-1]:.2f}), limit {limit:g}\n")
    return peak


def time_contents(image: Path, runs: int) -> None:
    """Time `contents` the first time and the second, and print medians and peak memory."""
    command = [str(BIN / "initadvisor"), "contents", str(image)]
    found: tuple[list[float], list[float]] = ([], [])
    peak = 0
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as directory:
            os.environ["CACHE_DIRECTORY"] = os.environ["STATE_DIRECTORY"] = directory
            for times in found:
                wall, memory = wall_and_peak(command)
                times.append(wall)
                peak = max(peak, memory)
    first, second = map(statistics.median, found)
    print(f"contents: first {first:.0f} ms, limit 1000; second {second:.0f} ms, limit 400")
    print(f"peak memory of contents: {peak / 1e6:.0f} MB, limit 150 MB\n")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("image", nargs="?", type=Path)
    parser.add_argument("--runs", type=int, default=15)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        image = arguments.image or Path(directory) / "image.zst"
        if arguments.image is None:
            make_image(image, 120_000_000)
        # Counted by another process: a child's peak memory starts from that of this one.
        count = ["sh", "-c", f"zstd -dc {shlex.quote(str(image))} | wc -c"]
        unpacked = int(subprocess.run(count, check=True, capture_output=True).stdout)
        print(f"{image.stat().st_size / 1e6:.1f} MB, {unpacked / 1e6:.1f} MB unpacked\n")
        peak = compare(
            [str(BIN / "initadvisor"), "inspect", str(image)],
            count,
            arguments.runs,
            1.5,
        )
        limit = (1.5 * unpacked + 150e6) / 1e6
        print(f"peak memory of inspect: {peak / 1e6:.0f} MB, limit {limit:.0f} MB\n")
        time_contents(image, arguments.runs)
    compare(
        [str(BIN / "initadvisor"), "--help"],
        [sys.executable, "-c", "import click"],
        arguments.runs,
        3,
    )


if __name__ == "__main__":
    main()
