"""How long `enable` takes to its first line of advice, on a machine with a month of journal.

    python -m benchmarks.enable IMAGE [--boots 60] [--messages 5000] [--policy apply]

The machine is one made of files, with IMAGE, which initramfs-tools made, as the image of all its
boots. Its journal has BOOTS boots in 30 days with MESSAGES messages each. systemd, the boot loader
and virtual machines are made up, so what they take is not in the figures, nor is the start of
Python; compressors are the machine's own. 60 s are the limit. The steps are of one run, from
nothing: plan (with `doctor`), the boots of the journal, the answer, and what is turned on.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import time
from collections import Counter
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from benchmarks.journal import KERNEL_MESSAGES, OTHER_MESSAGES, boot_with_everything
from initadvisor import host as host_package
from initadvisor.advise import recommend
from initadvisor.cli import root
from initadvisor.core.codecs import Codec
from initadvisor.daemon import enable
from initadvisor.host.run import SystemRunner
from initadvisor.measure import catch_up, measure
from initadvisor.store.store import open_store
from tests.fixtures.enabling_machine import UnitRunner, make_enabling
from tests.fixtures.journals import START_US
from tests.fixtures.provable_machine import IMAGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from initadvisor.host.run import Completed
    from tests.fixtures.campaign_machine import Campaigning
    from tests.fixtures.journals import Boot

LIMIT_S = 60.0
DAYS = 30
_DAY_US = 86_400_000_000
_COMPRESSORS = {codec.value for codec in Codec}


class Programs(UnitRunner):
    """Runs the machine's own compressors."""

    def __init__(self, at: Path) -> None:
        super().__init__(at)
        self.programs = {*self.programs, *filter(SystemRunner().which, _COMPRESSORS)}

    def run(self, argv: Sequence[str | Path], **options: Any) -> Completed:  # noqa: ANN401
        """Run it, or answer from the table."""
        run = SystemRunner().run if str(argv[0]) in _COMPRESSORS else super().run
        return run(argv, **options)


def month(boots: int, messages: int, image_bytes: int) -> Iterator[Boot]:
    """Yield the boots of a month, all with one image."""
    for number in range(boots):
        boot = boot_with_everything(number, freed_kib=math.ceil(image_bytes / 4096) * 4)
        boot.start_us = START_US + number * DAYS * _DAY_US // boots
        for line in range(messages - KERNEL_MESSAGES - OTHER_MESSAGES):
            boot.add(
                _TRANSPORT="syslog",
                _SYSTEMD_UNIT=f"unit{line % 50}.service",
                SYSLOG_IDENTIFIER=f"program{line % 50}",
                MESSAGE=f"later message {line} of boot {number}",
            )
        yield boot


def machine_of(
    directory: Path, image: Path, boots: Sequence[Boot], patched: pytest.MonkeyPatch
) -> Campaigning:
    """Return the machine, which the command takes for the real one."""
    made, _ = make_enabling(directory, patched, Programs)
    content = image.read_bytes()
    installed = made.host.path(IMAGE)
    installed.write_bytes(content)
    os.utime(installed, (START_US / 1e6 - DAYS, START_US / 1e6 - DAYS))
    *made.provable.past, made.provable.machine.boot = boots
    made.provable.machine.loaded(len(content))
    made.provable.machine.identify(boots[-1])
    made.provable.write_journal()
    patched.setattr(host_package, "Host", lambda: made.host)
    patched.setattr(measure, "announce", lambda _record: None)
    return made


def timed(patched: pytest.MonkeyPatch) -> Counter[str]:
    """Have the command's steps timed; return where, in s."""
    spent_s: Counter[str] = Counter()

    def time_it(step: str, module: object, name: str, *, lines: bool = False) -> None:
        original = getattr(module, name)

        @wraps(original)
        def call(*arguments: object, **named: object) -> object:
            begun_s = time.perf_counter()
            try:
                found = original(*arguments, **named)
                return list(found) if lines else found
            finally:
                spent_s[step] += time.perf_counter() - begun_s

        patched.setattr(module, name, call)

    time_it("plan, with doctor", enable, "plan_enable")
    time_it("boots of the journal", catch_up, "catch_up")
    time_it("the answer", recommend, "recommend")
    time_it("turned on", enable, "enable", lines=True)
    return spent_s


def main() -> None:
    """Make the machine, enable it and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("image", type=Path)
    parser.add_argument("--boots", type=int, default=60)
    parser.add_argument("--messages", type=int, default=5000)
    parser.add_argument("--policy", choices=("advise", "try", "apply"), default="apply")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, pytest.MonkeyPatch.context() as patched:
        boots = list(month(asked.boots, asked.messages, asked.image.stat().st_size))
        made = machine_of(Path(scratch), asked.image, boots, patched)
        files = list(made.host.path("/var/log/journal").rglob("*.journal"))
        entries, size_mb = sum(len(boot.entries) for boot in boots), _size_mb(files)
        print(f"journal: {entries} messages of {len(boots)} boots, {size_mb:.0f} MB", flush=True)
        spent_s = timed(patched)
        begun_s = time.perf_counter()
        done = CliRunner().invoke(root, ["enable", "--policy", asked.policy, "--yes"])
        whole_s = time.perf_counter() - begun_s
        if done.exit_code:
            sys.exit(f"it failed: {done.output}{done.exception!r}")
        with open_store(made.host, readonly=True) as store:
            print(f"{len(store.known_boots())} boots recorded")
    print(done.output[done.output.index("Advice so far") :].partition("\n\n")[0].rstrip())
    spent_s["else"] = whole_s - spent_s.total()
    for step, step_s in spent_s.items():
        print(f"{step:24} {step_s:6.2f} s  {step_s / whole_s:4.0%}")
    print(f"{'enable':24} {whole_s:6.2f} s (limit {LIMIT_S:g})")


def _size_mb(files: Iterable[Path]) -> float:
    return sum(file.stat().st_size for file in files) / 1e6


if __name__ == "__main__":
    main()
