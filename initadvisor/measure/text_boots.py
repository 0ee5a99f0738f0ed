"""Boots of which there is a text: what dmesg(1), journalctl(1), a syslog daemon or whoever logs a
serial console has written.

It may be of any machine, so its boots are kept apart from this one's.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from initadvisor.boots.journal import BootEnd, BootSpan, JournalBoot, Moment
from initadvisor.boots.journal_files import is_journal
from initadvisor.boots.record import Journalled, past_record
from initadvisor.boots.text_log import read_log
from initadvisor.core.estimates import Certainty
from initadvisor.host.files import open_regular
from initadvisor.records.attribution import Attribution
from initadvisor.records.boot import RecordSource
from initadvisor.records.boot_class import BootClass

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path
    from typing import IO

    from initadvisor.boots.text_log import TextBoot
    from initadvisor.records.attribution import ImageEvidence
    from initadvisor.records.boot import BootRecord


_MOST_BYTES = 256 << 20
_MOST_BOOTS = 1000
"""Of a longer file, or one with more boots, only the beginning is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLog:
    """A file's boots, and what was not read of it."""

    records: tuple[BootRecord, ...]
    warnings: tuple[str, ...] = ()


def read_text_log(path: Path) -> TextLog | None:
    """Return the records of a text's boots; None for a journal's file and for what tells of none.

    Raises ``InitadvisorError`` for what cannot be read.
    """
    with open_regular(path) as file:
        if is_journal(file):
            return None
        written_us = os.fstat(file.fileno()).st_mtime_ns // 1000
        beginning = _Beginning(file)
        telling = (boot for boot in read_log(beginning) if boot.tells_something)
        boots = list(islice(telling, _MOST_BOOTS + 1))
    if not boots:
        return None
    warnings = []
    if beginning.was_cut:
        warnings.append(f"{path}: only the first {_MOST_BYTES >> 20} MiB were read")
    if len(boots) > _MOST_BOOTS:
        warnings.append(f"{path}: only the first {_MOST_BOOTS} boots were read")
    records = (
        _record(boot, number=number, written_us=written_us)
        for number, boot in enumerate(boots[:_MOST_BOOTS])
    )
    return TextLog(records=tuple(records), warnings=tuple(warnings))


class _Beginning:
    """As much of a file as is read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._left = _MOST_BYTES
        self.was_cut = False

    def readline(self, size: int, /) -> bytes:
        """Return a line's beginning, nothing at the end."""
        if self._left <= 0:
            self.was_cut = self.was_cut or bool(self._file.read(1))
            return b""
        line = self._file.readline(size)
        self._left -= len(line)
        return line


def _record(boot: TextBoot, *, number: int, written_us: int) -> BootRecord:
    """Return the record of a boot; what the log does not tell is not made up.

    It has to have a time: where the log has none it is the file's, and the record says so.
    """
    started_us = written_us if boot.started_us is None else boot.started_us
    first = Moment(realtime_us=max(started_us, 0), monotonic_us=0)
    span = BootSpan(
        boot_id=boot.boot_id or _boot_id(boot, number), machine_id=None, first=first, last=first
    )
    record = past_record(
        Journalled(boot=JournalBoot(span=span, kernel=boot.kernel), end=BootEnd()),
        source=RecordSource.IMPORT,
        today=BootClass(),
        attribute=_unknown,
        extra_cmdline=lambda _trial: (),
    )
    if boot.started_us is not None:
        return record
    note = "the log does not tell when the machine was booted: the time is that of the file"
    return replace(record, notes=(*record.notes, note))


def _unknown(evidence: ImageEvidence, *, booted_at: datetime) -> Attribution:
    del evidence, booted_at
    return Attribution(certainty=Certainty.UNKNOWN, reason="a log does not tell of images")


def _boot_id(boot: TextBoot, number: int) -> str:
    """Return what takes the place of the kernel's boot ID: the same wherever the log is read again.

    A boot whose messages have no times is told from others by its place in the file alone.
    """
    marks = boot.kernel.timestamps
    times = (marks.begin_us, marks.end_us, marks.run_init_us)
    which = None if any(times) else number
    known = (marks.release, marks.version, marks.command_line, marks.loaded_kib, *times, which)
    return hashlib.sha256(repr((known, boot.started_us)).encode()).hexdigest()[:32]
