"""What `lab` costs beyond the boots themselves, with user-mode Linux.

    python -m benchmarks.lab [IMAGE] [--runs 3] [--rounds 5]

Eight settings of IMAGE (without it: a large one of Debian's, see tests/fixtures) are built, then in
turns `initadvisor lab --rounds N` is timed as a user calls it, Python's start, reading the images
and the boot that is not counted included, and N bare boots of `linux.uml` with each of the same
images, from start to end. The ratio of the two is what counts.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

SETTINGS = ("cat", "lz4 -1", "lz4 -9", "lzop -9", "zstd -3", "zstd -19", "gzip -9", "xz")
MAIN = [sys.executable, "-c", "from initadvisor.cli import main; main()"]
BARE = (
    *("linux.uml", "mem=1500M", "initramfs_async=0", "initcall_debug", "loglevel=8"),
    *("rdinit=/does-not-exist", "panic=-1", "con=null", "con0=fd:0,fd:1"),
)


def lab(
    image: Path, rounds: int | None, directory: str, settings: Sequence[str] = SETTINGS
) -> tuple[float, dict[str, Any]]:
    """Run the lab, until it is settled unless rounds are given; return its wall time in s, and
    its answer.
    """
    only = [word for setting in settings for word in ("--only", setting)]
    only += ["--rounds", str(rounds)] if rounds else []
    started = time.perf_counter()
    done = subprocess.run(
        [*MAIN, "lab", "--json", "--engine", "uml", "--image", image, *only],
        env={
            **os.environ,
            "CACHE_DIRECTORY": f"{directory}/cache",
            "STATE_DIRECTORY": f"{directory}/state",
        },
        stdout=subprocess.PIPE,
        check=True,
    )
    return time.perf_counter() - started, json.loads(done.stdout)


def bare(image: str, directory: str) -> float:
    """Boot user-mode Linux by itself, to its end; return the wall time in s."""
    started = time.perf_counter()
    with subprocess.Popen(
        [*BARE, f"initrd={image}", f"uml_dir={directory}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        process.communicate(timeout=120)
        took = time.perf_counter() - started
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return took


def default_image() -> Path:
    """Return a large image of Debian's, made once."""
    from tests.fixtures.generated import large_image

    return large_image()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("image", type=Path, nargs="?")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    image = arguments.image or default_image()
    ratios = []
    with tempfile.TemporaryDirectory() as directory:
        lab(image, 1, directory)  # builds the candidates
        for number in range(arguments.runs):
            wall_s, answer = lab(image, arguments.rounds, directory)
            paths = [row["path"] for row in answer["settings"]]
            boots_s = sum(bare(path, directory) for path in paths for _ in range(arguments.rounds))
            ratios.append(wall_s / boots_s)
            print(
                f"run {number + 1}: {len(paths)} images, {arguments.rounds} rounds: lab "
                f"{wall_s:.1f} s, bare boots {boots_s:.1f} s, ratio {ratios[-1]:.2f}; "
                f"{'; '.join(answer['warnings']) or 'quiet'}"
            )
    print(
        f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f}), at most 1.3"
    )


if __name__ == "__main__":
    main()
