"""What measuring a boot costs it, how long backfill takes, and a history of many boots.

    python -m benchmarks.measure [--unit] [--backfill] [--history] [--boots 500] [--runs 5]

Without a choice all three. Every figure is of processes of their own, start of Python included:
median and range of the runs. The machine is one made of files, with an image of 40 MB and a journal
of BOOTS boots with 2500 messages each; `journalctl` reads the kernel's messages of the same files.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.journal import boot_with_everything, made_up
from tests.fixtures.booted import Booted
from tests.fixtures.boots import LZ4, ZSTD, boot_record
from tests.fixtures.journals import write_journal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MANY_BOOTS = 100_000
KERNELS = 20

AS_MACHINE = """
import sys
from pathlib import Path
from initadvisor import host
machine = host.Host(root=Path(sys.argv.pop(1)))
host.Host = lambda: machine
import initadvisor.measure.measure as measuring
measuring.announce = lambda record: None
from initadvisor.cli import main
main()
"""


def timed(argv: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float, float]:
    """Run a command; return its wall and processor times in s, and its peak memory in MB."""
    with tempfile.TemporaryFile() as nowhere:
        started = time.perf_counter()
        process = subprocess.Popen(argv, stdout=nowhere, env={**os.environ, **environment})
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{argv} failed")
    return wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def report(name: str, runs: Sequence[tuple[float, float, float]]) -> None:
    """Print medians and ranges."""
    columns = zip(("s wall", "s CPU", "MB"), zip(*runs, strict=True), strict=True)
    words = (
        f"{statistics.median(values):6.2f} ({min(values):.2f}-{max(values):.2f}) {unit}"
        for unit, values in columns
    )
    print(f"{name:42}", *words, sep="  ", flush=True)


def machine_with_journal(directory: Path, boots: int) -> Path:
    """Make the machine; return its root directory. The running boot is the last of the journal."""
    machine = Booted(root=directory / "machine", boot=boot_with_everything(boots - 1))
    image_bytes = (40_000 + boots - 1) * 1024 - 100  # rounded to pages, what the kernel says
    machine.initramfs_tools()
    machine.image(size_bytes=image_bytes)
    machine.loaded(image_bytes)
    write_journal(
        machine.root / "var/log/journal" / "0123456789abcdef0123456789abcdef" / "system.journal",
        made_up(directory, boots),
    )
    machine.host()
    return machine.root


def bench_unit(directory: Path, root: Path, runs: int) -> None:
    """Time what the unit does: one boot, recorded into a store that has many."""
    state = directory / "state of unit"
    argv = [sys.executable, "-c", AS_MACHINE, str(root), "measure"]
    environment = {"STATE_DIRECTORY": str(state), "CACHE_DIRECTORY": str(directory / "cache")}
    found = []
    for _ in range(runs + 1):
        shutil.rmtree(state, ignore_errors=True)
        found.append(timed(argv, environment))
    report("measure, the running boot", found[1:])


def bench_backfill(directory: Path, root: Path, runs: int) -> None:
    """Time backfill of an empty store, and journalctl on the same files."""
    state = directory / "state of backfill"
    journalctl = shutil.which("journalctl") or sys.exit("journalctl is missing")
    journal = next((root / "var/log/journal").iterdir())
    commands = {
        "measure --backfill": [
            sys.executable,
            "-c",
            AS_MACHINE,
            str(root),
            "measure",
            "--backfill",
        ],
        "journalctl -o json _TRANSPORT=kernel": [
            *(journalctl, "-D", str(journal), "-o", "json", "_TRANSPORT=kernel"),
        ],
    }
    environment = {"STATE_DIRECTORY": str(state), "CACHE_DIRECTORY": str(directory / "cache")}
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in commands}
    for _ in range(runs + 1):
        shutil.rmtree(state, ignore_errors=True)
        for name, argv in commands.items():
            found[name].append(timed(argv, environment))
    for name, times in found.items():
        report(name, times[1:])
    shutil.rmtree(state)
    report(
        "measure --backfill, the first time", [timed(commands["measure --backfill"], environment)]
    )
    report("measure --backfill, nothing new", [timed(commands["measure --backfill"], environment)])


def bench_history(directory: Path, runs: int) -> None:
    """Time the history of many boots against that of one."""
    from initadvisor.host import Host
    from initadvisor.store.store import open_store

    argv = [sys.executable, "-m", "initadvisor", "history"]
    for boots in (1, MANY_BOOTS):
        os.environ["STATE_DIRECTORY"] = str(directory / f"state of {boots}")
        with open_store(Host()) as store:
            store.add_boots(
                boot_record(
                    number % MANY_BOOTS,
                    unpack_us=200_000 + number * 7919 % 20_000,
                    read_us=900_000 + number * 104_729 % 90_000,
                    setting=(ZSTD, LZ4)[number % 2],
                    kernel=f"6.{number * KERNELS // MANY_BOOTS}.1 #1",
                )
                for number in range(boots)
            )
        report(f"history of {boots} boots", [timed(argv, {}) for _ in range(runs + 1)][1:])
    with open_store(Host(), readonly=True) as store:
        for name, read in (("figures", store.boot_figures), ("groups", store.boot_groups)):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
            count = len(read())
            used_s = resource.getrusage(resource.RUSAGE_SELF).ru_utime - before
            print(f"{count} {name} of {MANY_BOOTS} boots: {used_s:.2f} s CPU")


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name in ("unit", "backfill", "history"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--boots", type=int, default=500)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    every = not (arguments.unit or arguments.backfill or arguments.history)
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        if every or arguments.unit or arguments.backfill:
            root = machine_with_journal(directory, arguments.boots)
            if every or arguments.unit:
                bench_unit(directory, root, arguments.runs)
            if every or arguments.backfill:
                bench_backfill(directory, root, arguments.runs)
        if every or arguments.history:
            bench_history(directory, arguments.runs)


if __name__ == "__main__":
    main()
