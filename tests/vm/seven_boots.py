"""Seven boots through one-shot entries, one of them corrupt: what a campaign of trials does."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.vm.boot import Boot, Then, boot
from tests.vm.candidates import corrupt, recompressed
from tests.vm.entries import add_trial_entry, arm, default_entry
from tests.vm.machine import Machine

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vm.guest import Guest

_COMPRESSORS = {
    "lz4": ("lz4", "-l", "-9", "-c"),
    "gzip": ("gzip", "-n", "-6", "-c"),
    "zstd": ("zstd", "-q", "-3", "-c"),
    "cat": (),
}
_CORRUPT = "corrupt"
_PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What a boot is to use; ``image`` is on this machine, as it was copied to the guest."""

    entry: str
    image: Path
    is_corrupt: bool = False

    @property
    def loaded_kib(self) -> int:
        """What the kernel will say it freed: whole pages."""
        return -(-self.image.stat().st_size // _PAGE_BYTES) * (_PAGE_BYTES // 1024)


def plan(guest: Guest, directory: Path) -> list[Planned]:
    """Add an entry for each candidate, and return which boot uses what: the default, four others,
    the corrupt one, and the default again, which nobody asked for.
    """
    images = {
        name: recompressed(guest.initrd, directory / f"{name}.img", *compressor)
        for name, compressor in _COMPRESSORS.items()
    }
    images[_CORRUPT] = corrupt(guest.initrd, directory / f"{_CORRUPT}.img")
    default = Planned(entry=default_entry(guest), image=guest.initrd)
    trials = [
        Planned(entry=add_trial_entry(guest, name, image), image=image, is_corrupt=name == _CORRUPT)
        for name, image in images.items()
    ]
    return [default, *trials, default]


def run(guest: Guest, planned: list[Planned], directory: Path) -> list[Boot]:
    """Boot once for each; every boot that gets that far arms the next one."""
    boots = []
    for number, current in enumerate(planned):
        following = planned[number + 1 :]
        # What follows a corrupt image is the default again, by itself.
        is_armed = following and not current.is_corrupt
        script = arm(following[0].entry) if is_armed else "ls /sys/firmware/efi/efivars"
        boots.append(
            boot(
                guest,
                Machine(bare_metal=True),
                script=script,
                then=Then.REBOOT if following else Then.POWER_OFF,
                log=directory / f"boot-{number + 1}.log",
            )
        )
    return boots


def freed_kib(messages: list[str]) -> int | None:
    """Return how large the loaded image was, by the kernel's own words."""
    found = (re.search(r"Freeing initrd memory: (\d+)K", message) for message in messages)
    return next((int(match[1]) for match in found if match), None)
