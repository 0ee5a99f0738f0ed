"""The built-in tables of candidates, measured anew: what a kernel takes to unpack real images.

    python -m benchmarks.truth_tables [--write] [--most 8] [--patience 600] [IMAGE...]

User-mode Linux, the kernel's own code as a process, unpacks every candidate of some images of the
corpus (``benchmarks.corpus --build`` makes them), in turns: at least three times and until the two
fastest boots agree within 3 %, ``--most`` times at most; twice where the format is out of the
question on any machine. The fastest counts, because whatever else a machine does makes a boot
longer, never shorter. Each boot waits until the machine is quiet, all of them together up to
``--patience`` seconds.

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
from typing import TYPE_CHECKING, Any

from benchmarks.corpus import OwnCacheHost, images
from initadvisor.candidates.build import kept_candidates
from initadvisor.candidates.plan import build_commands
from initadvisor.candidates.search_space import SearchSpace, open_search_space
from initadvisor.core.codecs import Codec
from initadvisor.core.config import Config
from initadvisor.core.settings import Setting
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
    from initadvisor.vm.machine import VirtualMachine

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

    def row(self) -> dict[str, Any]:
        """Return its row of the table."""
        return {
            "setting": str(self.setting),
            "size_bytes": self.candidate.size_bytes,
            "unpack_ms": round(min(self.samples_ms), 1),
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


def measured(image: CorpusImage, most: int, patience: Patience) -> dict[str, Any]:
    """Time all candidates of an image and return its table."""
    with tempfile.TemporaryDirectory() as scratch:
        host = ScratchHost(name=image.name, kind="built", scratch=Path(scratch))
        with open_search_space(
            host, find_target(host, image.path), Config(), only=(), everything=True
        ) as ground:
            timed = built(host, ground)
            room = ground.source.contents.room_bytes
        machine = uml_machine(host)
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
    source = "; ".join((provenance(host, image.name, machine, timed, patience), *refused))
    return table(image.name, source, timed)


def provenance(
    host: ScratchHost,
    name: str,
    machine: VirtualMachine,
    timed: Sequence[Timed],
    patience: Patience,
) -> str:
    """Say who measured what, with what, and how far samples of one image were apart."""
    apart = sorted(one.apart - 1 for one in timed)
    boots = sorted(len(one.samples_ms) for one in timed)
    return (
        f"measured for this package (benchmarks/truth_tables.py): {CONTENTS[name]}; unpacked by "
        f"{machine.version}, another kernel than any machine's own; the fastest of {boots[0]} to "
        f"{boots[-1]} boots, the second fastest of which took {apart[len(apart) // 2]:.1%} longer "
        f"(median of the settings; at most {apart[-1]:.1%}); {cpu_model(host)}, "
        f"{datetime.now(UTC):%Y-%m-%d}"
        + (
            f"; {patience.disturbed} of {patience.boots} boots began while other programs ran"
            if patience.disturbed
            else ""
        )
    )


def table(name: str, source: str, timed: Sequence[Timed]) -> dict[str, Any]:
    """Return the document of one table, the fastest first."""
    rows = sorted((one.row() for one in timed), key=lambda row: row["unpack_ms"])
    plain = next(row for row in rows if row["setting"] == Codec.CAT)
    return {"name": name, "source": source, "populate_ms": plain["unpack_ms"], "rows": rows}


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
    parser.add_argument("names", nargs="*", metavar="IMAGE")
    arguments = parser.parse_args()
    if unknown := {*arguments.names} - {*CONTENTS}:
        parser.error(f"no such image: {', '.join(sorted(unknown))}")
    for image in images(frozenset(arguments.names or CONTENTS)):
        patience = Patience(Host(), arguments.patience)
        found = measured(image, arguments.most, patience)
        arguments.patience = patience.left_s
        print(as_text(found), flush=True)
        if found["rows"][0]["setting"] != Codec.CAT:
            print(f"{image.name}: too disturbed, nothing is faster than no decompression")
        elif arguments.write:
            write([found])


if __name__ == "__main__":
    main()
