"""The built-in tables of candidates, measured anew: what a kernel takes to unpack real images.

    python -m benchmarks.truth_tables [--write] [--rounds 3] [--tries 2] [IMAGE...]

User-mode Linux, the kernel's own code as a process, unpacks every candidate of some images of the
corpus (``benchmarks.corpus --build`` makes them), in turns; settings that are out of the question
on any machine once. Where samples of one image differ by more than 5 % it is tried again, and the
quietest run counts. Prints each table; ``--write`` puts it into the package's
``data/truth_tables.json`` if it was quiet, where tables with other names, those of other people's
measurements, stay as they are. A run takes about five minutes on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from benchmarks.corpus import OwnCacheHost, images
from initadvisor.host.hardware import cpu_model
from initadvisor.model.codec import Codec
from initadvisor.model.config import Config
from initadvisor.model.lab import LabSubject
from initadvisor.model.setting import Setting
from initadvisor.stats.repeats import log_spread
from initadvisor.stats.samples import pooled
from initadvisor.store.store import open_store
from initadvisor.vm.engines import uml_machine
from initadvisor.workflow.candidates import kept_candidates
from initadvisor.workflow.field import Ground, surveyed
from initadvisor.workflow.plan import recipes
from initadvisor.workflow.target import find_target
from initadvisor.workflow.timing import LabImage, Rounds, time_images, unpack_ms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.corpus import CorpusImage
    from initadvisor.model.candidate import Candidate

CONTENTS = {
    "dracut-bookworm-full": "dracut 059 with all modules it takes, Debian 12",
    "dracut-bookworm-laptop": "dracut 059 for one laptop, with microcode, Debian 12",
    "dracut-bookworm-minimal": "dracut 059 with a shell and four drivers, Debian 12",
    "tools-bookworm-laptop": "initramfs-tools 0.142 for one laptop, Debian 12",
    "arch-trixie-laptop": "mkinitcpio's layout, modules compressed already, Debian 13's files",
    "arch-cloud": "mkinitcpio's layout, modules of a cloud kernel, Debian 12's files",
}
"""The images, each in words. They differ in size, and in what is in them compressed already."""

TABLES = Path(__file__).parent.parent / "initadvisor/data/truth_tables.json"
ONCE = 1
QUIET = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchHost(OwnCacheHost):
    """The candidates of one image, and a state that is gone afterwards."""

    scratch: Path

    @override
    def state_dir(self) -> Path:
        return self.scratch


class Progress:
    """Prints a dot for each boot."""

    def booted(self, *_: object) -> None:
        """Count a boot."""
        print(".", end="", flush=True)

    def lost(self, subject: LabSubject, lost: object) -> None:
        """Tell of a boot without a sample."""
        print(f"\n{subject.setting}: {lost}")


def built(host: ScratchHost, ground: Ground) -> dict[Setting, Candidate]:
    """Return the candidates that are there, a generator's default named by its level."""
    wanted, _ = recipes(host, ground.generator, ground.settings, image_sha256=ground.source.sha256)
    kept = kept_candidates(host, ground.generator, ground.source, wanted)
    named = {}
    for setting, candidate in kept.items():
        level = ground.generator.default_level(host, setting)
        exact = Setting.at_level(setting.codec, level) if level is not None else setting
        named[setting if exact in kept else exact] = candidate
    return named


def lab_image(setting: Setting, candidate: Candidate) -> LabImage:
    """Return a candidate as the lab boots it."""
    path = Path(candidate.path)
    subject = LabSubject(
        setting=setting, path=str(path), sha256=candidate.sha256, size_bytes=candidate.size_bytes
    )
    return LabImage(subject=subject, file=path)


def measured(image: CorpusImage, rounds: int) -> tuple[float, dict[str, Any]]:
    """Time all candidates of an image; return how far samples are apart, and its table."""
    with tempfile.TemporaryDirectory() as scratch:
        host = ScratchHost(name=image.name, kind="built", scratch=Path(scratch))
        target = find_target(host, image.path)
        with surveyed(host, target, Config(), only=(), everything=True) as ground:
            candidates = built(host, ground)
            room = ground.source.contents.room_bytes
        assert Setting(Codec.CAT) in candidates, "run benchmarks.corpus --build first"
        machine = uml_machine(host)
        samples: dict[str, list[list[float]]] = defaultdict(list)
        doubts: dict[str, None] = {}
        for number, hopeless in ((rounds, False), (ONCE, True)):
            with open_store(host) as store:
                recorded = time_images(
                    host,
                    machine,
                    [
                        lab_image(setting, candidate)
                        for setting, candidate in candidates.items()
                        if setting.codec.spec.contender is not hopeless
                    ],
                    unpacked_bytes=room,
                    rounds=Rounds(most=number, until_settled=False),
                    store=store,
                    observer=Progress(),
                    seed=number,
                )
            for digest, times in unpack_ms(recorded.samples).items():
                samples[digest].append(times)
            doubts.update(dict.fromkeys(w for w in recorded.warnings if "certain" not in w))
    print()
    spread = log_spread({digest: runs[0] for digest, runs in samples.items()})
    source = provenance(host, image.name, machine.version, rounds, spread, doubts)
    return spread, table(image.name, source, candidates, samples)


def provenance(
    host: ScratchHost,
    name: str,
    kernel: str,
    rounds: int,
    spread: float,
    doubts: Mapping[str, None],
) -> str:
    """Say who measured what, with what, and how far samples of one image were apart."""
    return (
        f"measured for this package (benchmarks/truth_tables.py): {CONTENTS[name]}; unpacked by "
        f"{kernel}, another kernel than any machine's own, median of {rounds} boots each in turns "
        f"(one of bzip2 and lzma), samples of one image differ by {spread:.1%}; "
        f"{cpu_model(host)}, {datetime.now(UTC):%Y-%m-%d}"
        + (f"; disturbed: {'; '.join(doubts)}" if doubts else "")
    )


def table(
    name: str,
    source: str,
    candidates: Mapping[Setting, Candidate],
    samples: Mapping[str, Sequence[Sequence[float]]],
) -> dict[str, Any]:
    """Return the document of one table; what gave no sample is left out."""
    figures = pooled(samples, source=name)
    rows = [
        {
            "setting": str(setting),
            "size_bytes": candidate.size_bytes,
            "unpack_ms": round(figures[candidate.sha256].median, 1),
            "log_sd": round(figures[candidate.sha256].log_sd, 3),
            "build_cpu_s": round(candidate.build_cpu_s, 2),
        }
        for setting, candidate in candidates.items()
        if candidate.sha256 in figures
    ]
    rows.sort(key=lambda row: row["unpack_ms"])
    populate_ms = next(row["unpack_ms"] for row in rows if row["setting"] == "cat")
    assert populate_ms == rows[0]["unpack_ms"], "nothing can be faster than no decompression"
    return {"name": name, "source": source, "populate_ms": populate_ms, "rows": rows}


def write(tables: Sequence[dict[str, Any]]) -> None:
    """Put tables in place of those with the same names; a row stands on one line."""
    document = json.loads(TABLES.read_text("utf-8"))
    new = {table["name"]: table for table in tables}
    kept = [table for table in document["tables"] if table["name"] not in new]
    parts = [_as_text(table) for table in (*kept, *new.values())]
    text = (
        f'{{\n  "schema": {document["schema"]},\n  "tables": [\n' + ",\n".join(parts) + "\n  ]\n}\n"
    )
    json.loads(text)
    TABLES.write_text(text, "utf-8")


def _as_text(table: Mapping[str, Any]) -> str:
    head = "".join(
        f"      {json.dumps(key)}: {json.dumps(value)},\n"
        for key, value in table.items()
        if key != "rows"
    )
    rows = ",\n".join(f"        {json.dumps(row)}" for row in table["rows"])
    return f'    {{\n{head}      "rows": [\n{rows}\n      ]\n    }}'


def main() -> None:
    """Measure, print, and write if that is wanted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tries", type=int, default=2)
    parser.add_argument("names", nargs="*", metavar="IMAGE", choices=[*CONTENTS, []])
    arguments = parser.parse_args()
    for image in images(frozenset(arguments.names or CONTENTS)):
        spread, found = measured(image, arguments.rounds)
        for _ in range(arguments.tries - 1):
            if spread <= QUIET:
                break
            again = measured(image, arguments.rounds)
            spread, found = min((spread, found), again, key=itemgetter(0))
        print(_as_text(found), flush=True)
        if arguments.write and spread <= QUIET:
            write([found])
        elif arguments.write:
            print(f"{image.name}: samples differ by {spread:.1%}, not written", flush=True)


if __name__ == "__main__":
    main()
