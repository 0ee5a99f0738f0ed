"""How long the boots in a large journal take to read, beside `journalctl -k -o json`.

    python -m benchmarks.journal [--boots 500] [--runs 3] [--directory DIRECTORY]

Without DIRECTORY a journal is made of boots with 1200 kernel messages each, /init being run after
840 of them, and 1300 others. Both read the same files, in turn, after a first pass of each that is
not counted; the times are those of processes of their own, start of Python included.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fixtures.journals import Boot, write_journal

if TYPE_CHECKING:
    from collections.abc import Iterator

KERNEL_MESSAGES = 1200
OTHER_MESSAGES = 1300
BEGIN, END, RUN = 500, 521, 840

READ = """
import sys
from pathlib import Path
from initadvisor.host import Host
from initadvisor.boots.journal import opened_journal
from initadvisor.boots.journal_files import JournalSource
from initadvisor.boots.record import rejections
with opened_journal(Host(), JournalSource(directory=Path(sys.argv[1]))) as journal:
    boots = [journal.read(span) for span in journal.spans()]
print(sum(not rejections(boot.kernel.timestamps) for boot in boots))
"""


def boot_with_everything(number: int, *, freed_kib: int | None = None) -> Boot:
    """Return a boot as long as those of ordinary machines; each has an image of its own size."""
    freed_kib = 40_000 + number if freed_kib is None else freed_kib
    boot = Boot(number=number)
    special = {
        0: "Linux version 6.1.0-44-amd64 (a@b) (cc) #1 SMP Debian 6.1",
        30: "Kernel command line: root=/dev/sda1 ro quiet",
        BEGIN: "Trying to unpack rootfs image as initramfs...",
        END - 1: "NET: Registered PF_INET6 protocol family",
        END: f"Freeing initrd memory: {freed_kib}K",
        RUN: "Run /init as init process",
    }
    for line in range(KERNEL_MESSAGES):
        text = f"pci 0000:{line % 256:02x}:1f.{line % 8}: BAR {line % 6} [mem {line:#x}] assigned"
        at_us = 1500 * line + (300_000 if line >= END else 0)
        boot.kernel(at_us, special.get(line, text))
    for line in range(OTHER_MESSAGES):
        boot.add(
            _TRANSPORT="stdout",
            _SYSTEMD_UNIT=f"unit{line % 50}.service",
            SYSLOG_IDENTIFIER=f"program{line % 50}",
            MESSAGE=f"message {line} of boot {number}",
        )
    return boot.finished("1.5s (kernel) + 9s (userspace) = 10.5s", KERNEL_USEC="1500000")


def wall_and_cpu(argv: list[str]) -> tuple[float, float, bytes]:
    """Run a command; return its wall and processor times in s, and the end of its output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        subprocess.run(argv, check=True, stdout=output, timeout=600)
        wall_s = time.perf_counter() - started
        output.seek(-min(output.tell(), 100), 2)
        tail = output.read()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall_s, cpu_s, tail


def compare(directory: Path, runs: int) -> None:
    """Time both and print medians and spread."""
    journalctl = shutil.which("journalctl") or sys.exit("journalctl is missing")
    commands = {
        "initadvisor": [sys.executable, "-c", READ, str(directory)],
        "journalctl": [journalctl, "-D", str(directory), "-o", "json", "_TRANSPORT=kernel"],
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for number in range(runs + 1):
        for name, argv in commands.items():
            wall_s, cpu_s, tail = wall_and_cpu(argv)
            if number:
                times[name].append((wall_s, cpu_s))
            elif name == "initadvisor":
                print(f"{int(tail)} boots that are samples")
    for name, pairs in times.items():
        for kind, column in zip(("wall", "CPU"), zip(*pairs, strict=True), strict=True):
            low, middle, high = min(column), statistics.median(column), max(column)
            print(f"{name:12} {kind:4} {middle:6.2f} s ({low:.2f}-{high:.2f})")


def made_up(directory: Path, boots: int) -> Iterator[Boot]:
    """Yield boots, telling how far it is."""
    for number in range(boots):
        yield boot_with_everything(number)
        if not (number + 1) % 100:
            print(f"{number + 1} boots written to {directory}", file=sys.stderr)


def main() -> None:
    """Make a journal if none is given, and read it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--boots", type=int, default=500)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--directory", type=Path)
    arguments = parser.parse_args()
    if arguments.directory:
        compare(arguments.directory, arguments.runs)
        return
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        write_journal(directory / "system.journal", made_up(directory, arguments.boots))
        compare(directory, arguments.runs)


if __name__ == "__main__":
    main()
