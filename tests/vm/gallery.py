"""Write reports of real guests, for ``docs/gallery``:

    python -m tests.vm.gallery [NAME...]

boots each guest with today's image and with others, has it measure every boot and write its report
after the last; ``docs/gallery/report.png`` is how the first of them begins, in a browser.
"""

from __future__ import annotations

import argparse
import base64
import lzma
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import FloatRect

from tests.fixtures.browser import chromium, opened
from tests.vm.boot import Then, boot
from tests.vm.candidates import recompressed
from tests.vm.entries import add_trial_entry, arm
from tests.vm.guest import Generator, Loader, Recipe, guest
from tests.vm.installed import install
from tests.vm.machine import Machine

DIRECTORY = Path(__file__).parents[2] / "docs/gallery"
PICTURE = DIRECTORY / "report.png"

_PICTURE_PX = 1400
_ROUNDS = 2
_MEASURE = "initadvisor measure >/dev/null\n"
_REPORT = """
initadvisor report -o /tmp/report.html >/dev/null
echo report:
xz -c /tmp/report.html | base64 -w 700
"""
_COMPRESSORS = {
    "lz4": ("lz4", "-l", "-9", "-c"),
    "gzip": ("gzip", "-n", "-9", "-c"),
    "xz": ("xz", "--check=crc32", "-6", "-c"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A guest, its machine, and what its image is also compressed with."""

    recipe: Recipe = field(default_factory=Recipe)
    machine: Machine = field(default_factory=lambda: Machine(bare_metal=True))
    also: tuple[str, ...] = ()


GUESTS = {
    "systemd-boot": Shown(also=("lz4", "xz")),
    "slow-disk": Shown(
        recipe=Recipe(generator=Generator.DRACUT),
        machine=Machine(bare_metal=True, read_bytes_per_s=10_000_000),
        also=("lz4",),
    ),
    "grub": Shown(recipe=Recipe(loader=Loader.GRUB)),
}


def report(shown: Shown, directory: Path) -> bytes:
    """Boot a guest until all its images were booted, and return the page that it writes."""
    copy = guest(shown.recipe).copied_to(directory / "guest")
    install(copy)
    entries = [
        add_trial_entry(
            copy, name, recompressed(copy.initrd, directory / name, *_COMPRESSORS[name])
        )
        for name in shown.also
    ]
    for following in [*entries, None] * _ROUNDS:
        script = _MEASURE + (arm(following) if following else "")
        boot(copy, shown.machine, script=script, then=Then.POWER_OFF)
    last = boot(copy, shown.machine, script=_MEASURE + _REPORT, then=Then.POWER_OFF)
    encoded = last.output[last.output.index("report:") + 1 :]
    return lzma.decompress(base64.b64decode("".join(encoded)))


def main() -> None:
    """Write the reports that are asked for, or all, and the picture."""
    parser = argparse.ArgumentParser(prog="python -m tests.vm.gallery")
    parser.add_argument("names", nargs="*", default=[*GUESTS], metavar="NAME")
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    for name in parser.parse_args().names:
        with tempfile.TemporaryDirectory(prefix="gallery-") as scratch:
            (DIRECTORY / f"{name}.html").write_bytes(report(GUESTS[name], Path(scratch)))
    clip = FloatRect(x=0, y=0, width=1280, height=_PICTURE_PX)
    with chromium() as browser, opened(browser, DIRECTORY / f"{next(iter(GUESTS))}.html") as found:
        found.page.screenshot(path=PICTURE, full_page=True, clip=clip)


if __name__ == "__main__":
    main()
