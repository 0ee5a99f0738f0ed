"""What was measured, kept: opened for one command, every addition on the disk when it returns.

What only some commands need is imported when it is: recording a boot must not take time.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from initadvisor.core.errors import UsageError
from initadvisor.store import boot_figures, seals
from initadvisor.store.connection import damaged, explained, transaction
from initadvisor.store.opening import FILE_NAME, opened_for_reading, opened_for_writing
from initadvisor.store.publish import keep_private, published_after

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
    from datetime import datetime

    from initadvisor.host import Host
    from initadvisor.records.attribution import KnownImage
    from initadvisor.records.boot import BootModules, BootRecord, RecordSource, UnfitRecordError
    from initadvisor.records.figures import BootFigures, BootGroup
    from initadvisor.records.lab import (
        Engine,
        EngineTrial,
        LabRun,
        LabSample,
        LostBoot,
        RecordedRun,
        RunEnd,
        Verification,
    )
    from initadvisor.store.opening import Opened


@contextlib.contextmanager
def open_store(host: Host, *, readonly: bool = False) -> Iterator[Store]:
    """Open what was measured, until the block ends.

    For writing it is made where it is not there yet; one that is damaged, or of another layout,
    is moved aside, with a word in the log. What root has written is published in the end.
    ``readonly`` reads the own one or, without that, root's copy (see ``Host.state_file``) and needs
    no right to write anywhere; where nothing was measured it is empty.

    Raises ``InitadvisorError`` where that cannot be.
    """
    path = host.state_dir() / FILE_NAME
    if readonly:
        with opened_for_reading(host.state_file(FILE_NAME) or path) as opened:
            yield Store(opened)
        return
    keep_private(host)
    with published_after(host), opened_for_writing(path) as opened:
        yield Store(opened)


class Store:
    """The measurements of one machine.

    Every method raises ``InitadvisorError`` where the data base cannot be read or written; what was
    there before is then still there.
    """

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._connection = opened.connection
        self.path = opened.path

    def begin_lab_run(self, run: LabRun) -> int:
        """Record that a run begins; return the number that its samples are added to."""
        from initadvisor.store import lab

        with self._writing():
            return lab.begin(self._connection, run)

    def add_sample(self, number: int, sample: LabSample) -> None:
        """Record one boot of a run."""
        from initadvisor.store import lab

        with self._writing():
            lab.add_sample(self._connection, number, sample)

    def add_lost(self, number: int, lost: LostBoot) -> None:
        """Record a boot of a run that gave no sample."""
        from initadvisor.store import lab

        with self._writing():
            lab.add_lost(self._connection, number, lost)

    def end_lab_run(self, number: int, end: RunEnd, warnings: tuple[str, ...]) -> None:
        """Record why a run ended, and what may have disturbed it."""
        from initadvisor.store import lab

        with self._writing():
            lab.finish(self._connection, number, end, warnings)

    def lab_runs(
        self,
        *,
        engine: Engine | None = None,
        limit: int | None = None,
        since: datetime | None = None,
    ) -> tuple[RecordedRun, ...]:
        """Return the runs, the newest first: at most ``limit``, begun at ``since`` or later.

        ``engine``: only those of this one.
        """
        from initadvisor.store import lab

        with self._reading():
            return lab.runs(self._connection, engine=engine, limit=limit, since=since)

    def unpack_samples(
        self, images: Iterable[str], *, engine: Engine, kernel_sha256: str, cpu_model: str
    ) -> Mapping[str, tuple[tuple[int, ...], ...]]:
        """Return the times to unpack (us) of images, by their SHA-256, run by run, oldest first.

        Only those of this engine, kernel and processor, with nothing beside the unpacking
        (``BootKind.UNPACK``). Images without any are left out.
        """
        from initadvisor.store import lab

        with self._reading():
            return lab.unpack_us(
                self._connection,
                images,
                engine=engine,
                kernel_sha256=kernel_sha256,
                cpu_model=cpu_model,
            )

    def lab_images(self) -> tuple[tuple[KnownImage, datetime], ...]:
        """Return the images that were timed, each with when it was for the first time."""
        from initadvisor.store import lab_images

        with self._reading():
            return lab_images.images(self._connection)

    def add_verification(self, verification: Verification) -> None:
        """Record what a kernel made of an image."""
        from initadvisor.store import lab

        with self._writing():
            lab.add_verification(self._connection, verification)

    def verifications(
        self,
        image_sha256: str | None = None,
        *,
        limit: int | None = None,
        since: datetime | None = None,
    ) -> tuple[Verification, ...]:
        """Return the verifications of an image, or of all, the newest first."""
        from initadvisor.store import lab

        with self._reading():
            return lab.verifications(self._connection, image_sha256, limit=limit, since=since)

    def remember_engine(self, trial: EngineTrial) -> None:
        """Record what came of trying an engine."""
        from initadvisor.store import lab

        with self._writing():
            lab.remember(self._connection, trial)

    def engine_trial(self, engine: Engine, circumstances: str) -> EngineTrial | None:
        """Return the trial of an engine in these very circumstances, None if there was none."""
        from initadvisor.store import lab

        with self._reading():
            return lab.trial_of(self._connection, engine, circumstances)

    def add_boots(
        self,
        records: Iterable[BootRecord],
        *,
        refused: Callable[[BootRecord, UnfitRecordError], None] | None = None,
    ) -> frozenset[str]:
        """Record boots in one transaction, each once; return the IDs of those that are new.

        A record of a boot that is there stays, unless the new one's source ranks higher. What is
        not fit to be kept goes to ``refused``, and the rest is recorded; without that it raises
        ``UnfitRecordError``, and nothing is.
        """
        from initadvisor.records.boot import UnfitRecordError
        from initadvisor.store import boots

        added = []
        with self._writing():
            for record in records:
                try:
                    if boots.add(self._connection, record):
                        added.append(record.boot_id)
                except UnfitRecordError as err:
                    if refused is None:
                        raise
                    refused(record, err)
        return frozenset(added)

    def new_boots(
        self,
        records: Iterable[BootRecord],
        *,
        refused: Callable[[BootRecord, UnfitRecordError], None],
    ) -> frozenset[str]:
        """Return the IDs of those that ``add_boots`` would record."""
        from initadvisor.records.boot import UnfitRecordError, as_text
        from initadvisor.store import boots

        new = []
        with self._reading():
            for record in records:
                if not boots.is_new(self._connection, record):
                    continue
                try:
                    as_text(record)
                except UnfitRecordError as err:
                    refused(record, err)
                else:
                    new.append(record.boot_id)
        return frozenset(new)

    def boots(
        self,
        *,
        since: datetime | None = None,
        limit: int | None = None,
        source: RecordSource | None = None,
    ) -> tuple[BootRecord, ...]:
        """Return the boots that started at ``since`` or later, of other machines, too.

        The latest come first, at most ``limit``, only those from a ``source`` if it is given.
        """
        return tuple(self.each_boot(since=since, limit=limit, source=source))

    def each_boot(
        self,
        *,
        since: datetime | None = None,
        limit: int | None = None,
        source: RecordSource | None = None,
    ) -> Generator[BootRecord, None, None]:
        """Yield what ``boots`` returns, one after the other; nothing else may be read meanwhile.

        Whoever does not take all of them has to close it before the store.
        """
        from initadvisor.store import boots

        with self._reading():
            yield from boots.recorded(self._connection, since=since, limit=limit, source=source)

    def boot(self, boot_id: str) -> BootRecord | None:
        """Return the record of one boot, None where there is none.

        To ask for the running one: it is not the latest where the clock has gone back.
        """
        from initadvisor.store import boots

        with self._reading():
            return boots.boot(self._connection, boot_id)

    def boots_of_images(self, images: Collection[str]) -> tuple[BootRecord, ...]:
        """Return this machine's boots that certainly used one of these images, the latest first.

        ``images``: their SHA-256.
        """
        from initadvisor.store import boots

        with self._reading():
            return tuple(boots.of_images(self._connection, images))

    def boot_modules(self, *, limit: int) -> tuple[BootModules, ...]:
        """Return what the latest of this machine's boots tell of modules, those that do."""
        from initadvisor.store import boots

        with self._reading():
            return tuple(boots.modules(self._connection, limit=limit))

    def known_boots(self) -> Mapping[str, RecordSource]:
        """Return the identifiers of all recorded boots, and where each record is from."""
        from initadvisor.store import boots

        with self._reading():
            return boots.known(self._connection)

    def boot_figures(
        self, *, since: datetime | None = None, limit: int | None = None
    ) -> tuple[BootFigures, ...]:
        """Return this machine's boots in figures, the latest first."""
        with self._reading():
            return boot_figures.figures(self._connection, since=since, limit=limit)

    def boot_groups(self, *, since: datetime | None = None) -> tuple[BootGroup, ...]:
        """Return what the boots of each machine, class and setting came to.

        This machine's come first, then the latest.
        """
        with self._reading():
            return boot_figures.groups(self._connection, since=since)

    def damaged(self) -> tuple[str, ...]:
        """Return the names of the records that are left out, because they are damaged.

        What is damaged but no record counts as one.
        """
        with self._reading():
            return seals.damage(self._connection)

    def drop_damaged(self) -> tuple[str, ...]:
        """Delete what is damaged and cannot be made again; return the names of what was damaged."""
        from initadvisor.store import boots

        self._connection.execute("PRAGMA foreign_keys = OFF")
        try:
            with self._writing():
                names = seals.damage(self._connection)
                if names:
                    seals.rewrite_whole_rows(self._connection)
                    boots.write_anew(self._connection)
        finally:
            self._connection.execute("PRAGMA foreign_keys = ON")
        return names

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        with explained("write", self.path), transaction(self._connection):
            yield

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            with explained("read", self.path), transaction(self._connection, write=False):
                yield
            self._opened.check()
        except (ValueError, TypeError, LookupError, UsageError) as err:
            raise damaged(self.path, err) from err
