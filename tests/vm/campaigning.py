"""A guest that goes through a campaign of trials, each of its boots recorded from power on.

The boot that starts the campaign, the rehearsal, and the boot of the first candidate, which ends
the campaign. Kernels are asked by the host's QEMU whether they unpack the candidates.
"""

from __future__ import annotations

import json
import struct
import tempfile
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.vm.applying import applying_guest, wait_for
from tests.vm.boot import Then, running
from tests.vm.campaign_standing import standing
from tests.vm.disk import sparse_copy
from tests.vm.filesystems import read
from tests.vm.guest import Loader
from tests.vm.installed import ENABLE, install
from tests.vm.machine import Machine
from tests.vm.outside_engine import put_engine, with_engine
from tests.vm.recording import record
from tests.vm.timeline import watched

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.vm.campaign_standing import Standing
    from tests.vm.guest import Guest
    from tests.vm.recording import Write
    from tests.vm.timeline import Timeline

SETTINGS = ("lz4 -1", "gzip -1")
RECORD = "/var/lib/initadvisor/campaigns/000001.json"

BY_HAND = "systemctl stop initadvisor-settle.timer initadvisor-measure.timer"
"""For a script that judges the boot itself: nothing else is to do so while it works."""
JUDGE = "systemctl start initadvisor-settle.service"


_FAT32 = struct.Struct("<11xHxHB19xI")
"""Of its first sector: bytes in a sector, reserved sectors, how many FATs, sectors in each."""


class Word(StrEnum):
    """What the guest says when something is over, or begins."""

    STARTING = "starting"
    ARMED = "armed"
    JUDGING = "judging"
    PAUSED = "paused"
    RESUMED = "resumed"
    STOPPED = "stopped"


_START = f"""
{ENABLE}
echo {Word.STARTING}
initadvisor trial start --yes {" ".join(f"--only '{setting}'" for setting in SETTINGS)}
echo {Word.ARMED}
sync
"""
_GO_ON = f"""
{BY_HAND}
echo {Word.JUDGING}
{JUDGE}
echo {Word.ARMED}
sync
"""
_GIVE_UP = f"""
{_GO_ON}
initadvisor trial pause
echo {Word.PAUSED}
initadvisor trial resume
echo {Word.RESUMED}
initadvisor trial stop
echo {Word.STOPPED}
sync
"""
_SCRIPTS = (
    (_START, (Word.STARTING, Word.ARMED)),
    (_GO_ON, (Word.JUDGING, Word.ARMED)),
    (_GIVE_UP, (Word.JUDGING, Word.ARMED, Word.PAUSED, Word.RESUMED, Word.STOPPED)),
)


@dataclass(frozen=True, kw_only=True)
class Leg:
    """One boot of the campaign, from power on to power off.

    ``words``: the number of the moment of ``timeline`` at which a word had been heard. ``record``:
    what the campaign had recorded at the end. ``entry``: the identifier of what was booted.
    """

    guest: Guest
    timeline: Timeline
    words: Mapping[Word, int]
    entry: str
    record: dict[str, Any]

    @cached_property
    def writes(self) -> tuple[Write, ...]:
        """All that was written."""
        return tuple(self.timeline.recording.writes())

    @cached_property
    def allocations(self) -> tuple[int, ...]:
        """How much had been written when room on the ESP was taken or given back, each time.

        Those are writes to its FAT; directories are also written to where they are only read.
        """
        offset_bytes = self.guest.disk.partition("/boot").offset_bytes
        with self.timeline.recording.base.open("rb") as disk:
            disk.seek(offset_bytes)
            fields = _FAT32.unpack(disk.read(_FAT32.size))
        sector_bytes, reserved, fats, fat_sectors = fields
        start = offset_bytes + reserved * sector_bytes
        inside = range(start, start + fats * fat_sectors * sector_bytes)
        numbered = enumerate(self.writes, 1)
        return tuple(
            n for n, write in numbered if write.size_bytes and write.offset_bytes in inside
        )


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """The campaign, boot by boot.

    ``before``: what there was when it had not begun. ``verified``: the digests of the images that
    may be booted, today's and those that a kernel has unpacked.
    """

    legs: tuple[Leg, ...]
    before: Standing
    verified: frozenset[str]


def recorded_campaign(directory: Path) -> Campaign:
    """Go through the campaign; ``directory`` does not exist yet."""
    directory.mkdir()
    guest = applying_guest(Loader.SYSTEMD_BOOT).copied_to(directory / "guest")
    install(guest)
    put_engine(guest)
    legs = tuple(
        _leg(guest, script, words, directory / f"leg-{number}")
        for number, (script, words) in enumerate(_SCRIPTS)
    )
    ready = [found for leg in legs for found in leg.record["ready"]]
    return Campaign(
        legs=legs,
        before=_before(legs[0]),
        verified=frozenset(found["sha256"] for found in ready),
    )


def _before(start: Leg) -> Standing:
    """Return what there was when the first boot was complete."""
    moment = start.timeline.moments[start.words[Word.STARTING]]
    with tempfile.TemporaryDirectory(prefix="before-") as directory:
        guest = replace(start.guest, directory=Path(directory))
        sparse_copy(start.timeline.recording.base, guest.disk.path)
        guest.variables.write_bytes(moment.variables)
        return standing(guest)


def _leg(guest: Guest, script: str, words: tuple[Word, ...], directory: Path) -> Leg:
    directory.mkdir()
    recording = record(guest.disk.path, directory)
    machine = with_engine(Machine(recording=recording))
    heard = {}
    with (
        running(guest, machine, script=script, then=Then.POWER_OFF) as started,
        watched(recording, guest.variables) as timeline,
    ):
        ready = started.wait_for(r"guest: ready boot=\w+ entry=(\S+) state=running")
        for word in words:
            wait_for(started, word)
            heard[word] = len(timeline.moments) - 1
        started.wait_for_end()
    return Leg(
        guest=guest,
        timeline=timeline,
        words=heard,
        entry=ready[1],
        record=json.loads(read(guest.disk.root, RECORD)),
    )
