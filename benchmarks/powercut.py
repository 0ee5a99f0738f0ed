"""Power cuts while a guest applies a setting and goes back: does it boot, with what, every time?

    python -m benchmarks.powercut [--cuts 100] [--seed 0] [--loader systemd-boot]

One Debian guest with initramfs-tools builds its images and is saved; from there it is resumed for
each cut, killed when it has made some number of writes, and booted from what a disk with a write
cache would have kept of them (tests/vm/power_cut.py).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.vm.applied import recorded
from tests.vm.applying import saved
from tests.vm.guest import Loader
from tests.vm.power_cut import Side, cuts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.vm.power_cut import Cut

_OVER = (Side.OLD, Side.NEW)


def main() -> int:
    """Cut, print each and the sums; the status is 1 where anything was not as it has to be."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.powercut")
    parser.add_argument("--cuts", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--loader", type=Loader, default=Loader.SYSTEMD_BOOT)
    arguments = parser.parse_args()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="powercut-") as directory:
        scratch = Path(directory)
        guest = saved(arguments.loader, scratch / "saved")
        reference = recorded(guest, scratch / "reference")
        print(f"saved and recorded in {time.perf_counter() - started:.0f} s", flush=True)
        done: list[Cut] = []
        for made in cuts(guest, reference, arguments.cuts, arguments.seed, scratch):
            done.append(made)
            print(_line(len(done), made), flush=True)
    print(f"{time.perf_counter() - started:.0f} s in all")
    _print_sums(done)
    return 1 if any(made.trouble for made in done) else 0


def _line(number: int, made: Cut) -> str:
    words = (
        f"{number:4}: {made.writes:4} writes, {made.lost:3} lost, after '{made.said}'",
        f"found {made.found or '-'}, left {made.left or '-'}",
        *made.trouble,
    )
    return "; ".join(words)


def _print_sums(done: Sequence[Cut]) -> None:
    """Print one table: of what was found and left, and how often that was recovered."""
    found, left = Counter(made.found for made in done), Counter(made.left for made in done)
    columns = {
        "cuts": len(done),
        "booted": sum(made.found is not None for made in done),
        "old": left[Side.OLD],
        "new": left[Side.NEW],
        "mixed at first": found[Side.MIXED],
        "recovered": sum(made.left in _OVER and not made.trouble for made in done),
    }
    print("  ".join(columns))
    print("  ".join(f"{value:>{len(name)}}" for name, value in columns.items()))


if __name__ == "__main__":
    raise SystemExit(main())
