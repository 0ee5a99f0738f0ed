"""The recorded boots before and since a transaction, compared."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from initadvisor.model.boot_record import RecordSource
from initadvisor.model.read_interval import ReadInterval
from initadvisor.model.setting import Setting
from initadvisor.stats.worsening import worsening
from initadvisor.store.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from initadvisor.host import Host
    from initadvisor.model.boot_record import BootRecord
    from initadvisor.model.config import Config
    from initadvisor.model.transaction import Transaction
    from initadvisor.stats.worsening import Worsening

_LATEST = 400
"""So many boots are looked at; what was long ago was another machine."""


def since_then(host: Host, config: Config, transaction: Transaction) -> Worsening:
    """Compare the boots of the setting that a transaction has replaced with those of the new one.

    Only boots that were measured while they ran, used the one or the other for certain, and are of
    the class of the latest: after another kernel is installed nothing is known any more.
    """
    with open_store(host, readonly=True) as store:
        boots = store.boots(source=RecordSource.UNIT, limit=_LATEST)
    before, since = split(boots, transaction)
    before_ms, since_ms = times_ms(before, since)
    typical_ms = min(before_ms, default=0.0)
    return worsening(
        before_ms,
        since_ms,
        tolerance_ms=max(config.tolerance_ms, config.tolerance_fraction * typical_ms),
        certainty=config.certainty,
    )


def split(
    boots: Sequence[BootRecord], transaction: Transaction
) -> tuple[tuple[BootRecord, ...], tuple[BootRecord, ...]]:
    """Return the comparable ``boots`` (the latest first) before a transaction and since."""
    change = transaction.setting
    if change is None:
        return (), ()
    began = datetime.fromtimestamp(transaction.began_at_s, UTC)
    old, new = Setting.parse(change.before), Setting.parse(change.after)
    counting = [boot for boot in boots if boot.kernel_counts and boot.begin_to_init_us is not None]
    since = [boot for boot in counting if boot.setting == new and boot.started_at >= began]
    if not since:
        return (), ()
    key = since[0].class_key
    before = (boot for boot in counting if boot.setting == old and boot.started_at < began)
    return _of_class(before, key), _of_class(since, key)


def times_ms(
    before: Sequence[BootRecord], since: Sequence[BootRecord]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return what these boots took, with the reading where that is told of both in the same way.

    Where no loader tells it, the kernel's part decides alone if the image has not become smaller:
    what is read faster since may well take longer to unpack, and be the better choice.
    """
    kinds = (_reading_kind(boot) for boot in (*since, *before))
    kind = next((kind for kind in kinds if kind is not None), None)
    if kind is not None:
        return (
            _sums((boot for boot in before if _reading_kind(boot) == kind), reading=True),
            _sums((boot for boot in since if _reading_kind(boot) == kind), reading=True),
        )
    if _loaded_bytes(since, min) < _loaded_bytes(before, max):
        return (), ()
    return _sums(before, reading=False), _sums(since, reading=False)


def _of_class(boots: Iterable[BootRecord], key: str) -> tuple[BootRecord, ...]:
    return tuple(boot for boot in boots if boot.class_key == key)


def _reading_kind(boot: BootRecord) -> tuple[object, ...] | None:
    """Return what is in a boot's interval of reading, and from which disk; None without one."""
    if not boot.loader_counts or not isinstance(boot.read, ReadInterval):
        return None
    return boot.read.source, boot.read.beside, boot.boot_class.hardware.boot_disk


def _sums(boots: Iterable[BootRecord], *, reading: bool) -> tuple[float, ...]:
    return tuple(
        ((boot.begin_to_init_us or 0) + ((boot.read_us or 0) if reading else 0)) / 1000
        for boot in boots
    )


def _loaded_bytes(boots: Sequence[BootRecord], pick: Callable[[list[int]], int]) -> int:
    return pick([boot.loaded_bytes or 0 for boot in boots] or [0])
