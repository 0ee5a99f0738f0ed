"""What a machine's disk and firmware held together, from moment to moment.

The disk's writes are recorded in order; the firmware's variables are in a file that QEMU writes
through (hw/block/pflash_cfi01.c). So both are looked at, time and again, while the machine runs.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.vm.recording import FIRST_ENTRY_AT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.vm.recording import Recording

_POLL_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A moment at which the power may be cut.

    ``writes``: how many the disk had been given, ``variables``: the firmware's store then.
    """

    writes: int
    variables: bytes


class Timeline:
    """Moments as they were seen, the earliest first; made by ``watched``."""

    def __init__(self, recording: Recording, variables: Path) -> None:
        self.recording = recording
        self._variables = variables
        self._moments: list[Moment] = []
        self._writes = 0
        self._position = FIRST_ENTRY_AT

    @property
    def moments(self) -> Sequence[Moment]:
        """What was seen."""
        return self._moments

    def look(self) -> None:
        """Take note of what there is now, unless the disk is written to meanwhile."""
        before = self._count()
        variables = self._variables.read_bytes()
        if self._count() != before:
            return
        latest = self._moments[-1] if self._moments else None
        if latest and latest.variables == variables:
            variables = latest.variables  # hundreds of kilobytes, mostly the same
        self._moments.append(Moment(writes=before, variables=variables))

    def _count(self) -> int:
        for _, following in self.recording.writes_from(self._position):
            self._writes += 1
            self._position = following
        return self._writes


@contextlib.contextmanager
def watched(recording: Recording, variables: Path) -> Iterator[Timeline]:
    """Watch a machine that has been started, as long as the context is."""
    timeline = Timeline(recording, variables)
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(_POLL_S):
            timeline.look()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield timeline
    finally:
        is_over.set()
        thread.join()
