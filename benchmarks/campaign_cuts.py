"""Power cuts during a campaign of trials: what is booted, and does the campaign go on, every time?

    python -m benchmarks.campaign_cuts [--cuts 100] [--seed 0] [--every 1]

One Debian guest goes through a campaign, which is recorded; for each cut its disk and the variables
of its firmware are made as a power cut at that moment would leave them, looked at, and booted: all
of them, or one of ``--every`` so many (tests/vm/campaign_cuts.py).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.vm.campaign_cuts import cuts
from tests.vm.campaign_moments import Stage
from tests.vm.campaign_standing import TRIAL
from tests.vm.campaign_states import replayed
from tests.vm.campaigning import recorded_campaign

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.vm.campaign_cuts import Cut


def main() -> int:
    """Cut, print each and the sums; the status is 1 where anything was not as it has to be."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.campaign_cuts")
    parser.add_argument("--cuts", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=1)
    arguments = parser.parse_args()
    started = time.perf_counter()
    torn = 0
    done: list[Cut] = []
    with tempfile.TemporaryDirectory(prefix="campaign-cuts-") as directory:
        scratch = Path(directory)
        campaign = recorded_campaign(scratch / "campaign")
        print(f"recorded in {time.perf_counter() - started:.0f} s", flush=True)
        for number, leg in enumerate(campaign.legs):
            outcome = replayed(campaign, leg)
            torn += len(outcome.torn)
            print(f"boot {number}, every state of its boot partition: {outcome}", flush=True)
        made = cuts(
            campaign, arguments.cuts, seed=arguments.seed, every=arguments.every, scratch=scratch
        )
        for cut in made:
            done.append(cut)
            print(_line(len(done), cut), flush=True)
    print(f"{time.perf_counter() - started:.0f} s in all")
    _print_sums(done)
    return 1 if torn or any(cut.trouble for cut in done) else 0


def _line(number: int, cut: Cut) -> str:
    recovery = cut.recovery
    words = [
        f"{number:4}: {cut.stage:9} in boot {cut.boot}",
        f"{cut.writes:4} writes, {cut.lost:3} lost",
        "a trial armed" if cut.armed else "nothing armed",
    ]
    if recovery and recovery.entry:
        words += [f"booted {recovery.entry}", f"{recovery.state}: {recovery.reason}"]
    return "; ".join((*words, *cut.trouble))


def _print_sums(done: Sequence[Cut]) -> None:
    """Print a row for each stage, and one for all."""
    columns = ("cuts", "booted", "default", "trial", "no boot", "with trouble")
    print(f"{'':10}" + "  ".join(columns))
    for stage in (*Stage, None):
        some = [cut for cut in done if stage in {cut.stage, None}]
        booted = [cut.recovery.entry for cut in some if cut.recovery]
        entries = Counter("trial" if entry == TRIAL else "default" for entry in booted if entry)
        row = {
            "cuts": len(some),
            "booted": len(booted),
            **{name: entries[name] for name in ("default", "trial")},
            "no boot": booted.count(None),
            "with trouble": sum(bool(cut.trouble) for cut in some),
        }
        cells = (f"{row[name]:>{len(name)}}" for name in columns)
        print(f"{stage or 'all':10}" + "  ".join(cells))


if __name__ == "__main__":
    raise SystemExit(main())
