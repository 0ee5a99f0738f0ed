"""Boots in figures: read from columns alone, because a data base may hold many thousands."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from initadvisor.core.estimates import Certainty
from initadvisor.core.plain_values import from_json
from initadvisor.core.settings import Setting
from initadvisor.records.boot_start import BootMethod
from initadvisor.records.figures import BootFigures, BootGroup, BootGroupKey
from initadvisor.records.marks import Waiting
from initadvisor.records.read_interval import Beside, IntervalSource
from initadvisor.store.rows import OWN, number, since_text, text, utc_time

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    Row = tuple[int, str, Sequence[int | None]]


def figures(
    connection: sqlite3.Connection, *, since: datetime | None, limit: int | None
) -> tuple[BootFigures, ...]:
    """Return this machine's boots in figures, the latest first."""
    kinds = _kinds(connection)
    rows = _rows(
        connection,
        """
        SELECT kind, started_at, unpack_us, begin_to_init_us, shadow_us, shadow_min_us,
            shadow_max_us, rest_us, loaded_bytes, read_us, reboot_gap_us
        FROM boot
        WHERE started_at >= ? AND kind IN (SELECT number FROM boot_kind WHERE owner = ?)
        ORDER BY started_at DESC, number DESC LIMIT ?
        """,
        (since_text(since), OWN, -1 if limit is None else limit),
    )
    return tuple(
        BootFigures(
            kind=kinds[kind],
            started_at=utc_time(at),
            unpack_us=unpack_us,
            begin_to_init_us=begin_to_init_us,
            shadow_us=shadow_us,
            shadow_min_us=shadow_min_us,
            shadow_max_us=shadow_max_us,
            rest_us=rest_us,
            loaded_bytes=loaded_bytes,
            read_us=read_us,
            reboot_gap_us=reboot_gap_us,
        )
        for kind, at, (
            unpack_us,
            begin_to_init_us,
            shadow_us,
            shadow_min_us,
            shadow_max_us,
            rest_us,
            loaded_bytes,
            read_us,
            reboot_gap_us,
        ) in rows
    )


def groups(connection: sqlite3.Connection, *, since: datetime | None) -> tuple[BootGroup, ...]:
    """Return the groups, this machine's first, and those with the latest boots first."""
    kinds = _kinds(connection)
    found: dict[tuple[object, ...], _Gathered] = {}
    of_kind = {}
    for own, kind in kinds.items():
        # A name tells images apart, and is no proof that two are the same.
        named = None if kind.image_sha256 else kind.initrd
        image = (kind.setting, kind.certainty, kind.image_sha256, named)
        same = (kind.machine, kind.class_key, image)
        of_kind[own] = found.setdefault(same, _Gathered(kind=kind))
    elsewhere = _from_other_disks(connection, kinds, since)
    for own, at, (unpack_us, read_us) in _rows(
        connection,
        "SELECT kind, started_at, unpack_us, read_us FROM boot "
        "WHERE started_at >= ? AND kind IN (SELECT number FROM boot_kind)",
        (since_text(since),),
    ):
        of_kind[own].add(kinds[own], at, unpack_us, None if own in elsewhere else read_us)
    there = [gathered.group() for gathered in found.values() if gathered.boots]
    there.sort(key=lambda group: group.latest_at, reverse=True)
    return tuple(sorted(there, key=lambda group: group.machine or ""))


def _from_other_disks(
    connection: sqlite3.Connection, kinds: Mapping[int, BootGroupKey], since: datetime | None
) -> set[int]:
    """Return the kinds of boots from another disk than the latest known one of their class."""
    latest: dict[tuple[str | None, str], tuple[str, str]] = {}
    for own, at, _ in _rows(
        connection,
        "SELECT kind, max(started_at) FROM boot "
        "WHERE started_at >= ? AND kind IN (SELECT number FROM boot_kind) GROUP BY kind",
        (since_text(since),),
    ):
        kind = kinds[own]
        if kind.boot_disk is not None:
            same = kind.machine, kind.class_key
            latest[same] = max(latest.get(same, ("", "")), (at, kind.boot_disk))
    return {
        own
        for own, kind in kinds.items()
        if kind.boot_disk is not None
        and kind.boot_disk != latest.get((kind.machine, kind.class_key), ("", ""))[1]
    }


@dataclass(slots=True)
class _Gathered:
    """What has been found of a group so far; ``kind`` is any of its boots'."""

    kind: BootGroupKey
    boots: int = 0
    latest_at: str = ""
    unpack_us: list[int] = field(default_factory=list)
    read_us: defaultdict[IntervalSource, list[int]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def add(self, kind: BootGroupKey, at: str, unpack_us: int | None, read_us: int | None) -> None:
        """Count a boot; a time of 0 is no sample."""
        self.boots += 1
        self.latest_at = max(self.latest_at, at)
        if unpack_us is not None and unpack_us > 0 and kind.kernel_counts:
            self.unpack_us.append(unpack_us)
        if read_us is not None and read_us > 0 and kind.loader_counts and kind.read_source:
            self.read_us[kind.read_source].append(read_us)

    def group(self) -> BootGroup:
        """Return what was found."""
        source = max(self.read_us, key=lambda source: len(self.read_us[source]), default=None)
        comparable = self.kind.image_sha256 is not None or self.boots == 1
        return BootGroup(
            image_sha256=self.kind.image_sha256,
            initrd=self.kind.initrd,
            machine=self.kind.machine,
            kernel=self.kind.kernel,
            class_key=self.kind.class_key,
            setting=self.kind.setting,
            certainty=self.kind.certainty,
            boots=self.boots,
            latest_at=utc_time(self.latest_at),
            unpack_us=tuple(sorted(self.unpack_us)) if comparable else (),
            read_us=tuple(sorted(self.read_us[source])) if source and comparable else (),
            read_source=source if comparable else None,
        )


def _rows(
    connection: sqlite3.Connection, statement: str, parameters: Sequence[str | int]
) -> Iterator[Row]:
    """Yield kind, time and numbers of rows; raises ``TypeError`` where one is damaged.

    The columns' types are enforced when they are written, not when they are read.
    """
    cursor = connection.cursor()
    cursor.row_factory = None
    for kind, at, *numbers in cursor.execute(statement, parameters):
        if type(kind) is not int or type(at) is not str:
            raise TypeError(kind)
        for value in numbers:
            if value is not None and type(value) is not int:
                raise TypeError(value)
        yield kind, at, numbers


def _kinds(connection: sqlite3.Connection) -> dict[int, BootGroupKey]:
    rows = connection.execute("SELECT * FROM boot_kind")
    return {number(row, "number"): _kind(row) for row in rows}


def _kind(row: sqlite3.Row) -> BootGroupKey:
    source, setting = text(row, "read_source"), text(row, "setting")
    return BootGroupKey(
        machine=text(row, "owner") or None,
        method=BootMethod(text(row, "way")),
        kernel=text(row, "kernel") or None,
        class_key=text(row, "class_key"),
        hardware_key=text(row, "hardware_key"),
        boot_disk=text(row, "boot_disk") or None,
        kernel_counts=bool(number(row, "kernel_counts")),
        loader_counts=bool(number(row, "loader_counts")),
        waiting=Waiting(text(row, "waiting")),
        read_source=IntervalSource(source) if source else None,
        read_beside=tuple(Beside(word) for word in from_json(text(row, "read_beside"))),
        certainty=Certainty(text(row, "certainty")),
        image_sha256=text(row, "image_sha256") or None,
        setting=Setting.parse(setting) if setting else None,
        initrd=text(row, "initrd") or None,
    )
