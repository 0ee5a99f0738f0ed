"""Reboots of a guest that measures each of its boots, compared with its serial console.

    python -m benchmarks.measure_guest [--reboots 30] [--as-installed]

The boots go through the generator's image and three candidates in turn, in every second one the
service is started twice; tests/guests/measure/test_measure.py does the same and checks more.
``--as-installed`` leaves the timer at its minute. Without KVM the service's processor time is that
of an emulated processor; its memory is what it would be anywhere.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.vm.guest import Recipe, guest
from tests.vm.measured_boots import measured

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.vm.measured_boots import Outcome, Reboot


def main() -> int:
    """Reboot, compare, print; the status is 1 where anything differs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.measure_guest")
    parser.add_argument("--reboots", type=int, default=30)
    parser.add_argument("--as-installed", action="store_true")
    arguments = parser.parse_args()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="measure-guest-") as scratch:
        copy = guest(Recipe()).copied_to(Path(scratch) / "guest")
        outcome = measured(copy, arguments.reboots, as_installed=arguments.as_installed)
    print(f"{len(outcome.reboots)} reboots in {time.perf_counter() - started:.0f} s")
    wrong = [*differences(outcome)]
    print("\n".join(wrong) or "every boot is recorded once, as the console has it")
    _print_figures(outcome.reboots)
    return 1 if wrong else 0


def differences(outcome: Outcome) -> Iterator[str]:
    """Say where the store and the console do not agree."""
    for number, reboot in enumerate(outcome.reboots, 1):
        kernel = reboot.kernel
        found = [r for r in outcome.history["boots"] if r["boot_id"] == kernel.boot_id]
        if len(found) != 1:
            yield f"boot {number} is recorded {len(found)} times"
            continue
        figures = found[0]["figures"]
        recorded = (figures["unpack_us"], figures["begin_to_init_us"], figures["certainty"])
        paths = [image["path"] for image in found[0]["attribution"]["images"]]
        if recorded != (kernel.unpack_us, kernel.begin_to_init_us, "certain"):
            yield f"boot {number}: {recorded} is recorded of {kernel}"
        if paths != [reboot.used.path]:
            yield f"boot {number}: it used {reboot.used}, recorded is {paths}"


def _print_figures(reboots: Sequence[Reboot]) -> None:
    started = [
        (
            int(reboot.service["ExecMainStartTimestampMonotonic"])
            - int(reboot.target["ActiveEnterTimestampMonotonic"])
        )
        / 1e6
        for reboot in reboots
    ]
    figures = {
        "unpacking, ms": [reboot.kernel.unpack_us / 1e3 for reboot in reboots],
        "begin to /init, ms": [reboot.kernel.begin_to_init_us / 1e3 for reboot in reboots],
        "service after multi-user.target, s": started,
        "service's processor time, s": _of_service(reboots, "CPUUsageNSec", 1e9),
        "service's peak memory, MB": _of_service(reboots, "MemoryPeak", 1e6),
    }
    for name, values in figures.items():
        if values:
            low, high = min(values), max(values)
            print(f"{name}: median {statistics.median(values):.3f} ({low:.3f} to {high:.3f})")


def _of_service(reboots: Sequence[Reboot], name: str, unit: float) -> list[float]:
    """Return a property of the service in each boot, as far as systemd told it."""
    values = (reboot.service.get(name, "") for reboot in reboots)
    return [int(value) / unit for value in values if value.isdigit()]


if __name__ == "__main__":
    raise SystemExit(main())
