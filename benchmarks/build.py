"""How close `candidates build --all` comes to the best possible schedule.

    python -m benchmarks.build [IMAGE] [--runs 3] [--size-mb 120] [--jobs N]

Each run starts with an empty cache. No schedule takes less wall time than the compressors' CPU time
spread over all processors, or than the longest of them; the ratio to the larger of the two is what
counts, and it includes starting Python, reading the image, unpacking it and verifying every
candidate.

Compressors run at idle priority: whatever else the machine does comes first. So the processor time
that others took is shown, and the ratio on what they left (processor time that was there for the
build, used or not, by what the compressors used).

Without IMAGE one is made of the modules, programs and libraries of this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from initadvisor.candidates.schedule import threads_of
from initadvisor.image.cpio import CpioWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

PLACES = ("/usr/lib/modules", "/usr/bin", "/usr/lib")
LARGEST_FILE_BYTES = 8_000_000
MAIN = "from initadvisor.cli import main; main()"
COMMAND = [sys.executable, "-c", MAIN, "candidates", "build", "--all", "--json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One build of everything; times in s, of processors where they say CPU."""

    wall_s: float
    compressors_cpu_s: float
    own_cpu_s: float
    others_cpu_s: float
    longest_s: float
    cores: int

    @property
    def ratio(self) -> float:
        """The wall time by the bound that no schedule beats."""
        return self.wall_s / max(self.compressors_cpu_s / self.cores, self.longest_s)

    @property
    def ratio_on_what_was_left(self) -> float:
        """The same, as if the processor time that others took had not been there."""
        there_s = self.cores * self.wall_s - self.others_cpu_s
        return there_s / max(self.compressors_cpu_s, self.longest_s * there_s / self.wall_s)


def make_image(path: Path, size_bytes: int) -> None:
    """Write an image of this machine's own files."""
    cpio = path.with_suffix(".cpio")
    with cpio.open("wb") as file, CpioWriter(file) as writer:
        known: set[Path] = set()
        for source in ordinary_files():
            for parent in reversed(source.parents):
                if parent not in known and parent != Path("/"):
                    known.add(parent)
                    writer.directory(str(parent).lstrip("/"))
            writer.file(str(source).lstrip("/"), source.read_bytes())
            if file.tell() >= size_bytes:
                break
    subprocess.run(["/usr/bin/zstd", "-q", "-T0", "--rm", str(cpio), "-o", str(path)], check=True)


def ordinary_files() -> Iterator[Path]:
    """Yield the readable files that an initramfs could have."""
    for place in PLACES:
        for path in sorted(Path(place).rglob("*")):
            if (
                path.is_file()
                and not path.is_symlink()
                and 0 < path.stat().st_size < LARGEST_FILE_BYTES
                and os.access(path, os.R_OK)
            ):
                yield path


def busy_s() -> float:
    """Return the time all processors were busy since boot (/proc/stat, see proc_stat(5))."""
    fields = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields[:8])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def children_cpu_s() -> float:
    """Return the CPU time of the children waited for, theirs included."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(image: Path, cache: str, options: list[str]) -> tuple[Run, dict[str, Any]]:
    """Build everything once; return the figures and what the command said."""
    busy, own, started = busy_s(), children_cpu_s(), time.perf_counter()
    done = subprocess.run(
        [*COMMAND, "--image", str(image), *options],
        env={**os.environ, "CACHE_DIRECTORY": cache},
        stdout=subprocess.PIPE,
        check=True,
    )
    wall_s = time.perf_counter() - started
    own_cpu_s = children_cpu_s() - own
    result = json.loads(done.stdout)
    candidates = result["candidates"]
    cores = len(os.sched_getaffinity(0))
    payload_bytes = max(candidate["size_bytes"] for candidate in candidates)
    run = Run(
        wall_s=wall_s,
        compressors_cpu_s=sum(candidate["build_cpu_s"] for candidate in candidates),
        own_cpu_s=own_cpu_s,
        others_cpu_s=max(0.0, busy_s() - busy - own_cpu_s),
        longest_s=max(
            candidate["build_cpu_s"] / threads_of(candidate["command"], payload_bytes, cores)
            for candidate in candidates
        ),
        cores=cores,
    )
    return run, result


def show(name: str, values: list[float]) -> None:
    """Print a median with its spread."""
    print(f"{name:34} {statistics.median(values):8.2f}  ({min(values):.2f}-{max(values):.2f})")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("image", type=Path, nargs="?")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--size-mb", type=int, default=120)
    parser.add_argument("--jobs", type=int)
    arguments = parser.parse_args()
    options = ["--jobs", str(arguments.jobs)] if arguments.jobs else []
    runs: list[Run] = []
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        image = arguments.image or Path(scratch) / "image"
        if not arguments.image:
            make_image(image, arguments.size_mb * 1_000_000)
        for number in range(arguments.runs):
            run, result = measure(image, f"{scratch}/cache-{number}", options)
            runs.append(run)
            print(f"run {number + 1}: {run.wall_s:.1f} s, ratio {run.ratio:.3f}", flush=True)
    for candidate in sorted(result["candidates"], key=lambda c: c["build_cpu_s"]):
        print(
            f"  {candidate['setting']:12} {candidate['size_bytes'] / 1e6:7.1f} MB"
            f" {candidate['build_cpu_s']:7.2f} s CPU {candidate['build_s']:7.2f} s wall"
            f" {candidate['build_peak_bytes'] / 1e6:6.0f} MB memory"
        )
    for gap in result["skipped"]:
        print(f"  {gap['setting']:12} not built: {gap['reason']}")
    print(f"{len(result['candidates'])} candidates on {runs[0].cores} processors, median (range):")
    show("wall s", [run.wall_s for run in runs])
    show("compressors CPU s", [run.compressors_cpu_s for run in runs])
    show("the build's other CPU s", [run.own_cpu_s - run.compressors_cpu_s for run in runs])
    show("longest compressor s", [run.longest_s for run in runs])
    show("CPU s of everybody else", [run.others_cpu_s for run in runs])
    show("ratio to the best schedule", [run.ratio for run in runs])
    show("  on what everybody else left", [run.ratio_on_what_was_left for run in runs])


if __name__ == "__main__":
    main()
