"""Records of the boots in a journal that are not recorded yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from initadvisor.boots.machine_name import machine_name
from initadvisor.boots.record import Journalled, past_record
from initadvisor.records.boot import RecordSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from initadvisor.boots.journal import Journal
    from initadvisor.measure.known_images import KnownImages
    from initadvisor.records.boot import BootRecord
    from initadvisor.records.boot_class import BootClass
    from initadvisor.records.journal import BootEnd, BootSpan


@dataclass(slots=True, kw_only=True)
class PastBoots:
    """The boots of a journal; ``own``: this machine's name, ``today``: its class."""

    journal: Journal
    own: str | None
    today: BootClass
    images: KnownImages
    _ends: dict[str, BootEnd] = field(default_factory=dict)

    def records(
        self, spans: Sequence[BootSpan], recorded: Mapping[str, RecordSource]
    ) -> Iterator[BootRecord]:
        """Yield the records of these boots, which are in their order, but for ``recorded`` ones."""
        latest: dict[str | None, BootSpan] = {}
        for span in spans:
            before = latest.get(span.machine_id)
            latest[span.machine_id] = span
            source = self.source(span)
            if span.boot_id in recorded and recorded[span.boot_id].rank >= source.rank:
                continue
            yield past_record(
                Journalled(
                    boot=self.journal.read(span),
                    end=self._end(span),
                    before=before,
                    before_end=self._end(before) if before else None,
                ),
                source=source,
                today=self.today,
                attribute=self.images.attribute,
                own_words=self.images.extra_cmdline,
            )

    def source(self, span: BootSpan) -> RecordSource:
        """Return what the record of a boot will be: of this machine only where it is named."""
        return RecordSource.BACKFILL if self.is_own(span) else RecordSource.IMPORT

    def is_own(self, span: BootSpan) -> bool:
        """Tell whether a boot is this machine's."""
        return self.own is not None and machine_name(span.machine_id) == self.own

    def _end(self, span: BootSpan) -> BootEnd:
        if span.boot_id not in self._ends:
            self._ends[span.boot_id] = self.journal.end(span)
        return self._ends[span.boot_id]
