"""Sampled answers against fully built ones, on the images of the corpus.

    python -m benchmarks.sampled [--anew] [--fit] [IMAGE...]

For every image: each setting's size as estimated from a sample against that of its candidate, and
whether the stated interval holds it; then the winner of the sampled answer against that of the
fully built one, for several speeds of the loader. What the shipped table of errors
(``initadvisor/data/sampling.json``) takes off as bias was learned on these same images, so each
image is also judged by a table made of the others. ``--fit`` writes the table. Estimates are kept
between runs; ``--anew`` makes them anew. The candidates must have been built (``benchmarks.corpus
--build``).
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from math import exp, log, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from benchmarks.corpus import CorpusImage, built_host, corpus, sampled_host
from initadvisor.advise.recommend import Request, recommend
from initadvisor.candidates.build import kept_candidates
from initadvisor.candidates.estimates import estimates
from initadvisor.candidates.plan import build_commands
from initadvisor.candidates.sampler import sample_task
from initadvisor.candidates.search_space import open_search_space
from initadvisor.core.config import Config
from initadvisor.data.tables import sampling_error
from initadvisor.decide.sampling import Error
from initadvisor.lab.observing import Unseen
from initadvisor.target.target import find_target

if TYPE_CHECKING:
    from initadvisor.core.settings import Setting
    from initadvisor.host import Host

SPEEDS_MB_S = (20.0, 100.0, 500.0, 2000.0)
LIMIT = 0.03
Z95 = 1.96
LEAST_LOG_SD = 0.008
"""Images of three layouts are alike. Content of another kind may differ by more than they do."""
TABLE = Path(__file__).parent.parent / "initadvisor/data/sampling.json"


Group: TypeAlias = tuple[str, bool, bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One setting of one image: the error of its size without a correction, as a logarithm.

    ``left``: the part of the content that was not sampled.
    """

    image: CorpusImage
    setting: Setting
    slow: bool
    far: bool
    raw: float
    left: float

    @property
    def group(self) -> Group:
        """What errors are taken together: a codec, on which sample, with what reach."""
        return self.setting.codec.value, self.slow, self.far


def compared(image: CorpusImage) -> list[Comparison]:
    """Estimate every setting of an image and hold it against the candidate."""
    host, built = sampled_host(image), built_host(image)
    found = []
    with open_search_space(
        host, find_target(host, image.path), Config(), only=(), everything=True
    ) as ground:
        wanted, _ = build_commands(
            host, ground.generator, ground.settings, image_sha256=ground.source.sha256
        )
        truth = kept_candidates(built, ground.generator, ground.source, wanted)
        guessed = estimates(host, ground.generator, ground.source, wanted, observer=Unseen())
        for sampled in guessed.candidates:
            candidate = truth.get(sampled.setting)
            if candidate is None:
                continue
            if not candidate.command or sampled.setting.codec == "cat":
                continue
            recipe = next(r for r in wanted if r.setting == sampled.setting)
            subject = sample_task(host, ground.generator, recipe, sampled.whole_bytes)
            slow, far = subject.slow, subject.far
            left = max(0.0, 1 - sampled.sample_bytes / sampled.whole_bytes)
            bias = sampling_error(sampled.setting.codec, slow=slow, far=far).bias * sqrt(left)
            main_bytes = candidate.size_bytes - candidate.main_offset
            raw = log(sampled.main_bytes.median / main_bytes) + bias
            found.append(
                Comparison(
                    image=image, setting=sampled.setting, slow=slow, far=far, raw=raw, left=left
                )
            )
    return found


def fitted(comparisons: list[Comparison]) -> dict[Group, Error]:
    """Return the bias and the spread of each group, wide enough for an image not among these.

    Settings of one image err alike, so that each image counts once; of few images the spread is
    uncertain, too, which Student's t makes wider (its first term beyond the normal distribution).
    """
    groups: dict[Group, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in comparisons:
        if one.left > 0.1:
            groups[one.group][one.image.name].append(one.raw / sqrt(one.left))
    errors = {}
    for group, images in groups.items():
        means = [statistics.fmean(values) for values in images.values()]
        bias = statistics.fmean(means)
        every = [value - bias for values in images.values() for value in values]
        spread = sqrt(statistics.fmean(value**2 for value in every))
        number, freedom = len(means), max(len(means) - 1, 1)
        wider = 1 + (Z95**2 + 1) / (4 * freedom)
        log_sd = wider * spread * sqrt((number + 1) / freedom)
        errors[group] = Error(bias=bias, log_sd=max(LEAST_LOG_SD, log_sd))
    return errors


def judged(comparisons: list[Comparison]) -> list[tuple[Comparison, float, bool]]:
    """Return each error as for an image the table was not made with, and if it was covered."""
    found = []
    for image in {one.image.name for one in comparisons}:
        table = fitted([one for one in comparisons if one.image.name != image])
        for one in comparisons:
            if one.image.name == image and one.group in table:
                error = table[one.group]
                rest = one.raw - error.bias * sqrt(one.left)
                found.append((one, rest, abs(rest) <= Z95 * error.log_sd * sqrt(one.left) + 1e-9))
    return found


def show_sizes(comparisons: list[Comparison]) -> None:
    """Print the errors by image and by group."""
    results = judged(comparisons)
    print(f"\n{'setting':12} {'sample':6} {'n':>3} {'mean':>7} {'spread':>7} {'worst':>7}  covered")
    groups: dict[tuple[str, str], list[tuple[float, bool]]] = defaultdict(list)
    for one, rest, covered in results:
        groups[str(one.setting), "small" if one.slow else "large"].append((rest, covered))
    for (setting, sample), rows in sorted(groups.items()):
        rests = [rest for rest, _ in rows]
        print(
            f"{setting:12} {sample:6} {len(rows):3} {statistics.fmean(rests):+7.2%}"
            f" {statistics.pstdev(rests):7.2%} {max(rests, key=abs):+7.2%}"
            f"  {statistics.fmean(ok for _, ok in rows):.0%}"
        )
    print()
    for layout in sorted({one.image.layout for one, _, _ in results}):
        rows = [(rest, ok) for one, rest, ok in results if one.image.layout is layout]
        print(
            f"{layout:16} {len(rows):3} sizes: within {LIMIT:.0%}:"
            f" {statistics.fmean(abs(exp(rest) - 1) <= LIMIT for rest, _ in rows):.1%},"
            f" worst {max((rest for rest, _ in rows), key=abs):+.2%},"
            f" in their interval: {statistics.fmean(ok for _, ok in rows):.1%}"
        )
    for one, rest, _ in results:
        if abs(exp(rest) - 1) > LIMIT:
            print(f"{one.image.name}, {one.setting}: {rest:+.2%}")
    covered = statistics.fmean(ok for _, _, ok in results)
    within = statistics.fmean(abs(exp(rest) - 1) <= LIMIT for _, rest, _ in results)
    print(f"all {len(results)} sizes: within {LIMIT:.0%}: {within:.1%}, covered: {covered:.1%}")


def write_table(comparisons: list[Comparison]) -> None:
    """Write the table that is shipped."""
    errors = fitted(comparisons)
    document: dict[str, object] = {
        "schema": 1,
        "source": f"sizes estimated from samples against the candidates built, "
        f"{len({one.image.name for one in comparisons})} images of dracut, initramfs-tools and "
        f"Arch's layout, {datetime.now(UTC):%Y-%m}, benchmarks/sampled.py",
        "errors": [
            {
                "codec": codec,
                "slow": slow,
                "far": far,
                "bias": round(error.bias, 5),
                "log_sd": round(error.log_sd, 5),
            }
            for (codec, slow, far), error in sorted(errors.items())
        ],
    }
    TABLE.write_text(json.dumps(document, indent=2) + "\n", "utf-8")


def winner(host: Host, image: CorpusImage, speed: float) -> tuple[str, dict]:
    """Return the setting with the smallest expected cost, and every setting's."""
    request = Request(image=image.path, read_speed_mb_s=speed)
    answer = recommend(host, request, observer=Unseen())
    totals = {str(row.setting): row.total_ms.mean for row in answer.rows}
    decision = answer.decision
    best = decision.leader if decision.leader_saving_ms.mean > 0 else answer.baseline
    return str(best), totals


def show_winners(images: list[CorpusImage]) -> None:
    """Compare the winners of sampled and of built answers."""
    good = total = 0
    for image in images:
        for speed in SPEEDS_MB_S:
            sampled, _ = winner(sampled_host(image), image, speed)
            best, totals = winner(built_host(image), image, speed)
            # A candidate with the bytes of today's image bears the name of that, without a level.
            named = sampled if sampled in totals else sampled.split()[0]
            loss = totals[named] - totals[best]
            fine = loss <= max(5.0, 0.02 * totals[best])
            good, total = good + fine, total + 1
            if sampled != best:
                print(
                    f"{image.name} at {speed:g} MB/s: {sampled} for {best}, {loss:.1f} ms of"
                    f" {totals[best]:.0f}: {'as good' if fine else 'NOT as good'}"
                )
    print(f"the same winner, or one as good: {good} of {total} ({good / total:.1%})")


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--anew", action="store_true")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--sizes-only", action="store_true")
    parser.add_argument("images", nargs="*")
    arguments = parser.parse_args()
    images = [i for i in corpus() if not arguments.images or i.name in arguments.images]
    comparisons: list[Comparison] = []
    for image in images:
        if arguments.anew:
            shutil.rmtree(sampled_host(image).cache_dir(), ignore_errors=True)
        comparisons += compared(image)
        print(image.name, flush=True)
    show_sizes(comparisons)
    if arguments.fit:
        write_table(comparisons)
    if not arguments.sizes_only:
        show_winners(images)


if __name__ == "__main__":
    main()
