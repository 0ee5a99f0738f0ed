"""The built-in tables of candidates, measured anew: what a kernel takes to unpack real images.

    python -m benchmarks.truth_tables [--write] [--most 8] [--patience 600] [--uml FILE] [IMAGE...]

User-mode Linux, the kernel's own code as a process, unpacks every candidate of some images of the
corpus (``benchmarks.corpus --build`` makes them), in turns: at least three times and until the two
fastest boots agree within 3 %, ``--most`` times at most; twice where the format is out of the
question on any machine. The fastest counts, because whatever else a machine does makes a boot
longer, never shorter. Each boot waits until the machine is quiet, all of them together up to
``--patience`` seconds; ``--uml`` as for ``benchmarks.calibrate``.

User-mode Linux asks its host for every page of a decompressor's buffers, which no kernel on
hardware does. That is taken out of the times: the small image tells how long it takes, of which
lz4 is unpacked sooner than its 8 MB are mapped. It is timed first, whatever IMAGE names.

Prints each table; ``--write`` puts it into the package's ``data/truth_tables.json``, unless it is
impossible. Tables with other names, those of other people's measurements, stay as they are. A run
takes ten minutes on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import hypot, log
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from benchmarks.corpus import OwnCacheHost, images
from initadvisor.candidates.build import kept_candidates
from initadvisor.candidates.controls import buffer_bytes, window_log
from initadvisor.candidates.plan import build_commands
from initadvisor.candidates.search_space import SearchSpace, open_search_space
from initadvisor.core.codecs import Codec
from initadvisor.core.config import Config
from initadvisor.core.settings import Setting
from initadvisor.data.tables import shipped_calibration
from initadvisor.decide.repeats import BETWEEN_RUNS_LOG_SD
from initadvisor.host import Host
from initadvisor.host.hardware import cpu_model
from initadvisor.target.context import disturbances
from initadvisor.target.target import find_target
from initadvisor.vm.boot import boot
from initadvisor.vm.engines import uml_machine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.corpus import CorpusImage
    from initadvisor.records.built_image import BuiltImage

CONTENTS = {
    "dracut-bookworm-full": "dracut 059 with all modules it takes, Debian 12",
    "dracut-bookworm-laptop": "dracut 059 for one laptop, with microcode, Debian 12",
    "dracut-bookworm-minimal": "dracut 059 with a shell and four drivers, Debian 12",
    "tools-bookworm-laptop": "initramfs-tools 0.142 for one laptop, Debian 12",
    "tools-trixie-laptop": "initramfs-tools 0.148 for one laptop, Debian 13",
    "arch-trixie-laptop": "mkinitcpio's layout, modules compressed already, Debian 13's files",
    "arch-cloud": "mkinitcpio's layout, modules of a cloud kernel, Debian 12's files",
}
"""The images, each in words. They differ in size, and in what is in them compressed already."""

SMALL = "dracut-bookworm-minimal"
"""The image that tells what mapping buffers takes."""

TABLES = Path(__file__).parent.parent / "initadvisor/data/truth_tables.json"
AGREE = 1.03
LEAST = 3
TWICE = 2
PAUSE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchHost(OwnCacheHost):
    """The candidates of one image, and a state that is gone afterwards."""

    scratch: Path

    def state_dir(self) -> Path:
        return self.scratch


@dataclass(slots=True, kw_only=True)
class Timed:
    """A candidate, and how long its boots took to unpack it, in ms."""

    setting: Setting
    candidate: BuiltImage
    samples_ms: list[float] = field(default_factory=list)

    @property
    def apart(self) -> float:
        """How much longer the second fastest took than the fastest, as a factor."""
        fastest, second = sorted(self.samples_ms)[:TWICE]
        return second / fastest

    def is_settled(self, most: int) -> bool:
        """Tell whether no more boots are needed, or worth it."""
        count = len(self.samples_ms)
        if not self.setting.codec.spec.is_candidate:
            return count >= TWICE
        return count >= most or (count >= LEAST and self.apart <= AGREE)

    @property
    def buffer_mb(self) -> float:
        """How much memory its decompressor maps, in 10^6 bytes."""
        codec = self.setting.codec
        argv = (codec.value, *self.setting.options)
        return buffer_bytes(codec, window_log(codec, argv, level=None)) / 1e6

    def row(self, uml_buffer_ms_per_mb: float) -> dict[str, Any]:
        """Return its row of the table: buffers are mapped as fast as a kernel on hardware does."""
        slower_ms_per_mb = uml_buffer_ms_per_mb - shipped_calibration().buffer_ms_per_mb
        return {
            "setting": str(self.setting),
            "size_bytes": self.candidate.size_bytes,
            "unpack_ms": round(min(self.samples_ms) - slower_ms_per_mb * self.buffer_mb, 1),
            "log_sd": round(hypot(BETWEEN_RUNS_LOG_SD, log(self.apart)), 3),
            "build_cpu_s": round(self.candidate.build_cpu_s, 2),
        }


class Patience:
    """Waits for a quiet machine, as long as there is patience left; counts boots without it."""

    def __init__(self, host: Host, seconds: float) -> None:
        self._host = host
        self.left_s = seconds
        self.boots = self.disturbed = 0

    def wait(self) -> None:
        """Return when nothing else is at work, or when all patience is spent."""
        self.boots += 1
        while found := disturbances(self._host):
            if self.left_s <= 0:
                self.disturbed += 1
                return
            print(f"({found[0]}) ", end="", flush=True)
            time.sleep(PAUSE_S)
            self.left_s -= PAUSE_S


def built(host: ScratchHost, ground: SearchSpace) -> list[Timed]:
    """Return the candidates that are there, a generator's default named by its level."""
    wanted, _ = build_commands(
        host, ground.generator, ground.settings, image_sha256=ground.source.sha256
    )
    kept = kept_candidates(host, ground.generator, ground.source, wanted)
    found = []
    for setting, candidate in kept.items():
        level = ground.generator.default_level(host, setting)
        exact = Setting.at_level(setting.codec, level) if level is not None else setting
        named = setting if exact in kept else exact
        found.append(Timed(setting=named, candidate=candidate))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The candidates of one image, timed. ``refused``: what a kernel did not unpack, and why."""

    name: str
    kernel: str
    unpacked_mb: float
    timed: Sequence[Timed]
    refused: Sequence[str]
    boots: int
    disturbed: int

    def plain_ms(self) -> float:
        """Return the time that creating the files takes."""
        return next(min(t.samples_ms) for t in self.timed if t.setting.codec is Codec.CAT)

    def uml_buffer_ms_per_mb(self) -> float:
        """Return user-mode Linux' time to map buffers, per 10^6 bytes, by lz4 of a small image."""
        row = shipped_calibration().row(Codec.LZ4, far=False)
        decompress_ms = row.ratio * row.user_ms_per_mb * self.unpacked_mb
        return fmean(
            (min(one.samples_ms) - self.plain_ms() - decompress_ms) / one.buffer_mb
            for one in self.timed
            if one.setting.codec is Codec.LZ4
        )


def measured(image: CorpusImage, most: int, patience: Patience, uml: Path | None) -> Measured:
    """Time all candidates of an image."""
    patience.boots = patience.disturbed = 0
    with tempfile.TemporaryDirectory() as scratch:
        host = ScratchHost(name=image.name, kind="built", scratch=Path(scratch))
        with open_search_space(
            host, find_target(host, image.path), Config(), only=(), everything=True
        ) as ground:
            timed = built(host, ground)
            contents = ground.source.contents
        room = contents.room_bytes
        machine = uml_machine(host, uml)
        first = timed[0]  # its first boot finds nothing in memory and does not count
        boot(host, machine, Path(first.candidate.path), unpacked_bytes=room)
        refused: list[str] = []
        while waiting := [one for one in timed if not one.is_settled(most)]:
            random.shuffle(waiting)
            for one in waiting:
                patience.wait()
                result = boot(host, machine, Path(one.candidate.path), unpacked_bytes=room)
                if result.refusal is None:
                    one.samples_ms.append(result.unpack_us / 1000)
                else:
                    refused.append(f"{one.setting} is left out, the kernel: {result.refusal}")
                    timed.remove(one)
            print(f"{len(waiting)} ", end="", flush=True)
    print()
    return Measured(
        name=image.name,
        kernel=machine.version,
        unpacked_mb=contents.unpacked_bytes / 1e6,
        timed=timed,
        refused=refused,
        boots=patience.boots,
        disturbed=patience.disturbed,
    )


def provenance(found: Measured, uml_buffer_ms_per_mb: float) -> str:
    """Say who measured what, with what, and how far samples of one image were apart."""
    apart = sorted(one.apart - 1 for one in found.timed)
    boots = sorted(len(one.samples_ms) for one in found.timed)
    parts = [
        f"measured for this package (benchmarks/truth_tables.py): {CONTENTS[found.name]}",
        f"unpacked by {found.kernel}, another kernel than any machine's own, and without what only "
        f"that takes to map buffers ({uml_buffer_ms_per_mb:.2f} ms per MB)",
        f"the fastest of {boots[0]} to {boots[-1]} boots, the second fastest of which took "
        f"{apart[len(apart) // 2]:.1%} longer (median of the settings; at most {apart[-1]:.1%})",
        f"{cpu_model(Host())}, {datetime.now(UTC):%Y-%m-%d}",
        *found.refused,
    ]
    if found.disturbed:
        parts.append(f"{found.disturbed} of {found.boots} boots began while other programs ran")
    return "; ".join(parts)


def table(found: Measured, uml_buffer_ms_per_mb: float) -> dict[str, Any]:
    """Return the document of one table, the fastest first."""
    rows = sorted(
        (one.row(uml_buffer_ms_per_mb) for one in found.timed), key=lambda row: row["unpack_ms"]
    )
    return {
        "name": found.name,
        "source": provenance(found, uml_buffer_ms_per_mb),
        "populate_ms": round(found.plain_ms(), 1),
        "rows": rows,
    }


def write(tables: Sequence[dict[str, Any]]) -> None:
    """Put tables in place of those with the same names; a row stands on one line."""
    document = json.loads(TABLES.read_text("utf-8"))
    new = {table["name"]: table for table in tables}
    kept = [table for table in document["tables"] if table["name"] not in new]
    parts = [as_text(table) for table in (*kept, *new.values())]
    head = f'{{\n  "schema": {document["schema"]},\n  "tables": [\n'
    TABLES.write_text(head + ",\n".join(parts) + "\n  ]\n}\n", "utf-8")


def as_text(table: Mapping[str, Any]) -> str:
    """Return a table as JSON, a row on one line."""
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
    parser.add_argument("--most", type=int, default=8)
    parser.add_argument("--patience", type=float, default=600.0, metavar="S")
    parser.add_argument("--uml", type=Path, metavar="FILE", help="instead of linux.uml")
    parser.add_argument("names", nargs="*", metavar="IMAGE")
    arguments = parser.parse_args()
    if unknown := {*arguments.names} - {*CONTENTS}:
        parser.error(f"no such image: {', '.join(sorted(unknown))}")
    wanted = frozenset(arguments.names or CONTENTS)
    patience = Patience(Host(), arguments.patience)
    [small] = images(frozenset({SMALL}))
    first = measured(small, arguments.most, patience, arguments.uml)
    buffer_ms_per_mb = first.uml_buffer_ms_per_mb()
    for image in images(wanted):
        result = (
            first
            if image.name == SMALL
            else measured(image, arguments.most, patience, arguments.uml)
        )
        found = table(result, buffer_ms_per_mb)
        print(as_text(found), flush=True)
        if found["rows"][0]["setting"] != Codec.CAT:
            print(f"{image.name}: too disturbed, nothing is faster than no decompression")
        elif arguments.write:
            write([found])


if __name__ == "__main__":
    main()
