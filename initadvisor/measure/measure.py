"""Measure boots: the running one while it runs, earlier ones by what the journal has of them.

The running one is measured at each boot, so what that does not need is imported when it is needed.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from initadvisor.boots.announce import announce
from initadvisor.boots.journal import opened_journal
from initadvisor.boots.journal_files import JournalSource
from initadvisor.boots.machine_name import machine_name
from initadvisor.boots.record import Journalled, past_record, running_boot_id, running_record
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.text import shown
from initadvisor.host.storage.boot_partition import boot_disk
from initadvisor.records.boot import RecordSource
from initadvisor.records.boot_class import BootClass
from initadvisor.store.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from initadvisor.boots.journal import BootSpan, Journal
    from initadvisor.host import Host
    from initadvisor.measure.known_images import KnownImages
    from initadvisor.records.boot import BootRecord, UnfitRecordError
    from initadvisor.store.store import Store


_log = logging.getLogger(__name__)

_AT_ONCE = 50
"""How many boots are read before they are recorded: an interrupted run loses no more."""

_LATEST_FILES = 2
"""So many of a journal's files hold the running boot and the one before it; others take time and
memory to open."""


class MeasureObserver(Protocol):
    """Receives progress events."""

    def doing(self, what: str, *, done: int = 0, of: int = 0) -> None:
        """Something goes on, in words: ``done`` of its ``of`` steps, where they can be counted."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What came of it: the ``records``, and the ``new`` ones of them, by boot ID.

    ``known``: how many boots of the journal were recorded before and not read again. ``left``: how
    many there was no time for. ``warnings``: what could not be read, or not be kept. ``path``:
    where records are kept.
    """

    records: tuple[BootRecord, ...]
    new: frozenset[str]
    known: int
    left: int = 0
    warnings: tuple[str, ...]
    path: Path


def measure(
    host: Host,
    *,
    observer: MeasureObserver,
    backfill: bool = False,
    dry_run: bool = False,
    budget_s: float | None = None,
) -> Measured:
    """Record the running boot, with ``backfill`` also all that the journal has of earlier ones.

    A boot that is recorded stays as it is; ``dry_run`` records nothing. After ``budget_s`` seconds
    no further boot is read; the newest come first. Raises ``NeedsRootError`` where too little may
    be read, ``InitadvisorError`` where nothing can be kept.
    """
    now_ns = host.clock.monotonic_ns
    ends_ns = None if budget_s is None else now_ns() + round(budget_s * 1e9)
    with open_store(host, readonly=dry_run) as store:
        work = _Work(store=store, dry_run=dry_run)
        work.in_time = lambda: ends_ns is None or now_ns() < ends_ns
        running, images = _running(host, work)
        work.keep([running])
        if backfill:
            with opened_journal(host, JournalSource()) as journal:
                work.warnings = journal.warnings
                past = PastBoots(
                    journal=journal, own=running.machine, today=running.boot_class, images=images
                )
                spans = [span for span in journal.spans() if past.is_own(span)]
                work.keep_past(past, spans, observer, but=running.boot_id)
        return work.result()


def measure_journal(
    host: Host, source: JournalSource, *, observer: MeasureObserver, dry_run: bool = False
) -> Measured:
    """Record all boots in other machines' journals; this one's are recognised where they are there.

    Files may be text, too: whatever has a kernel's log in it. Raises ``InitadvisorError`` where
    nothing can be read.
    """
    from initadvisor.measure.text_boots import read_text_log

    logs = {path: read_text_log(path) for path in source.files if path.exists()}
    texts = [log for log in logs.values() if log is not None]
    source = replace(source, files=tuple(path for path in source.files if not logs.get(path)))
    with open_store(host, readonly=dry_run) as store:
        work = _Work(store=store, dry_run=dry_run)
        for log in texts:
            observer.doing("reading what the kernel has said")
            work.warnings += log.warnings
            work.keep_texts(log.records)
        if source.is_named or not texts:
            _keep_journal(host, source, work, observer)
        return work.result()


def _keep_journal(
    host: Host, source: JournalSource, work: _Work, observer: MeasureObserver
) -> None:
    from initadvisor.measure.known_images import KnownImages

    store = work.store
    with opened_journal(host, source) as journal:
        work.warnings += journal.warnings
        latest = _latest(store)
        past = PastBoots(
            journal=journal,
            own=machine_name((host.read_text("/etc/machine-id") or "").strip()),
            today=latest.boot_class if latest else BootClass(),
            images=KnownImages(host, others=store.lab_images()),
        )
        work.keep_past(past, journal.spans(), observer)


@dataclass(slots=True, kw_only=True)
class _Work:
    """What has been done so far."""

    store: Store
    dry_run: bool
    in_time: Callable[[], bool] = lambda: True
    records: list[BootRecord] = field(default_factory=list)
    new: set[str] = field(default_factory=set)
    known: int = 0
    left: int = 0
    warnings: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    def keep(self, records: Sequence[BootRecord]) -> None:
        """Record boots, and tell the journal of those of this machine that are new."""
        refused: dict[str, str] = {}

        def leave_out(record: BootRecord, err: UnfitRecordError) -> None:
            refused[record.boot_id] = str(err)

        if self.dry_run:
            new = self.store.new_boots(records, refused=leave_out)
        else:
            new = self.store.add_boots(records, refused=leave_out)
            for record in records:
                if record.boot_id in new and record.source is not RecordSource.IMPORT:
                    announce(record)
        self.records += [record for record in records if record.boot_id not in refused]
        self.left_out |= refused
        self.new |= new

    def keep_past(
        self,
        past: PastBoots,
        spans: Sequence[BootSpan],
        observer: MeasureObserver,
        *,
        but: str | None = None,
    ) -> None:
        """Record boots of a journal, but for the running one, whose record is made already.

        The newest come first; those that there is no time for are counted, but for one at least.
        """
        recorded = dict(self.store.known_boots())
        if but is not None:
            recorded[but] = RecordSource.UNIT
        missing = [span for span in spans if past.is_missing(span, recorded)]
        self.known += sum(span.boot_id != but for span in spans) - len(missing)
        records = self._in_time(past.records(missing, spans), observer, of=len(missing))
        start = len(self.records)
        while batch := list(islice(records, _AT_ONCE)):
            self.keep(batch)
        self.records[start:] = reversed(self.records[start:])

    def _in_time(
        self, records: Iterator[BootRecord], observer: MeasureObserver, *, of: int
    ) -> Iterator[BootRecord]:
        self.left += of
        for done, record in enumerate(records, 1):
            self.left -= 1
            observer.doing("reading the journal's boots", done=done, of=of)
            yield record
            if not self.in_time():
                return

    def keep_texts(self, records: Sequence[BootRecord]) -> None:
        """Record boots of a text but for those that are recorded."""
        recorded = self.store.known_boots()
        new = [record for record in records if record.boot_id not in recorded]
        self.known += len(records) - len(new)
        self.keep(new)

    def result(self) -> Measured:
        """Return all of it; raises ``InitadvisorError`` where nothing of it could be kept."""
        left_out = [f"boot {boot[:8]} was left out: {why}" for boot, why in self.left_out.items()]
        if left_out and not self.records and not self.known:
            *others, last = left_out
            for line in others:
                _log.error("%s", shown(line))
            raise InitadvisorError(last)
        return Measured(
            records=tuple(self.records),
            new=frozenset(self.new),
            known=self.known,
            left=self.left,
            warnings=(*self.warnings, *left_out),
            path=self.store.path,
        )


def _running(host: Host, work: _Work) -> tuple[BootRecord, KnownImages]:
    """Return the running boot's record, and the images it was compared with.

    The journal is closed before those are looked at: both take memory.
    """
    boot_id = running_boot_id(host)
    journalled = _journalled(host, boot_id, work)
    from initadvisor.measure.known_images import KnownImages

    images = KnownImages(host, others=work.store.lab_images())
    before = _latest(work.store, but=boot_id)
    image = images.default_path
    record = running_record(
        host,
        journalled,
        attribute=images.attribute,
        extra_cmdline=images.extra_cmdline,
        boot_disk=boot_disk(host, image) if image else None,
        previous=before.times if before else None,
    )
    return record, images


def _journalled(host: Host, boot_id: str, work: _Work) -> Journalled | None:
    """Return what the journal has of a boot; of the running one something is told without it."""
    try:
        with opened_journal(host, JournalSource(latest=_LATEST_FILES)) as journal:
            work.warnings += journal.warnings
            span = journal.span(boot_id)
            if span is None:
                return None
            before = journal.before(span)
            return Journalled(
                boot=journal.read(span),
                end=journal.end(span),
                before=before,
                before_end=journal.end(before) if before else None,
            )
    except InitadvisorError as err:
        work.warnings.append(err.message)
        return None


def _latest(store: Store, *, but: str | None = None) -> BootRecord | None:
    """Return the record of the latest boot that was measured while it ran."""
    latest = store.boots(source=RecordSource.UNIT, limit=2)
    return next((record for record in latest if record.boot_id != but), None)


@dataclass(slots=True, kw_only=True)
class PastBoots:
    """The boots of a journal; ``own``: this machine's name, ``today``: its class."""

    journal: Journal
    own: str | None
    today: BootClass
    images: KnownImages

    def records(
        self, wanted: Sequence[BootSpan], spans: Sequence[BootSpan]
    ) -> Iterator[BootRecord]:
        """Yield the records of boots, the newest first; ``spans`` are all, in their order."""
        before: dict[str, BootSpan | None] = {}
        latest: dict[str | None, BootSpan] = {}
        for span in spans:
            before[span.boot_id] = latest.get(span.machine_id)
            latest[span.machine_id] = span
        end_of = cache(self.journal.end)
        for span in reversed(wanted):
            previous = before[span.boot_id]
            yield past_record(
                Journalled(
                    boot=self.journal.read(span),
                    end=end_of(span),
                    before=previous,
                    before_end=end_of(previous) if previous else None,
                ),
                source=self.source(span),
                today=self.today,
                attribute=self.images.attribute,
                extra_cmdline=self.images.extra_cmdline,
            )

    def is_missing(self, span: BootSpan, recorded: Mapping[str, RecordSource]) -> bool:
        """Tell whether a boot is not recorded, or by a source that knows less."""
        known = recorded.get(span.boot_id)
        return known is None or known.rank < self.source(span).rank

    def source(self, span: BootSpan) -> RecordSource:
        """Return what the record of a boot will be: of this machine only where it is named."""
        return RecordSource.BACKFILL if self.is_own(span) else RecordSource.IMPORT

    def is_own(self, span: BootSpan) -> bool:
        """Tell whether a boot is this machine's."""
        return self.own is not None and machine_name(span.machine_id) == self.own
