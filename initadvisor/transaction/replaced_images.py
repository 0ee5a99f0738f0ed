"""The images that transactions have replaced and kept: the previous image's entry boots one."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from initadvisor.boots.loaded_files import beside, loaded_part
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.settings import Setting
from initadvisor.host.files import open_regular, sha256_of
from initadvisor.records.attribution import KnownImage
from initadvisor.transaction.log import read_records
from initadvisor.transaction.transaction import FileRole, TransactionState

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.transaction.transaction import FileChange, Transaction


_log = logging.getLogger(__name__)


def replaced_images(host: Host) -> Iterator[tuple[KnownImage, datetime]]:
    """Yield each once for each way of loading it, with when it was written.

    What cannot be read is left out, with a word in the log.
    """
    for record in read_records(host):
        if isinstance(record, InitadvisorError) or record.state is not TransactionState.COMMITTED:
            continue
        for change in record.files:
            if change.role is FileRole.IMAGE and change.backup is not None:
                try:
                    yield from _kept(host, record, change, host.path(change.backup))
                except (InitadvisorError, OSError) as err:
                    _log.info("%s is left out: %s", change.backup, err)


def _kept(
    host: Host, transaction: Transaction, change: FileChange, path: Path
) -> Iterator[tuple[KnownImage, datetime]]:
    is_uki = change.path.endswith(".efi")
    with open_regular(path) as file:
        part = loaded_part(file, is_uki=is_uki)
        sha256 = sha256_of(file, offset=part.offset, size_bytes=part.size_bytes, once=True)
    since = datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)
    setting = Setting.parse(transaction.setting.before) if transaction.setting else None
    ways = (part.with_bytes,) if is_uki else beside(host, path)
    for sizes in ways:
        image = KnownImage(
            path=str(path),
            size_bytes=part.size_bytes,
            sha256=sha256,
            setting=setting,
            is_uki=is_uki,
            beside_bytes=sizes,
        )
        yield image, since
