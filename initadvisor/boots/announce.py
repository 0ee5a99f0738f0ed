"""Tell the journal what was measured."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from initadvisor.core.errors import LOADING_FAILURES
from initadvisor.records.boot import as_plain

if TYPE_CHECKING:
    from initadvisor.records.boot import BootRecord


_log = logging.getLogger(__name__)

MESSAGE_ID = "b0237f0a3102480c9e2f97e5ef3d9609"
"""What marks a boot's record in the journal; part of the interface (initadvisor-measure(1))."""

_PRIORITY_INFO = 6


def announce(record: BootRecord) -> None:
    """Add an entry with the record to the journal; where there is none, that is no error."""
    try:
        from systemd import journal

        journal.send(
            described(record),
            MESSAGE_ID=MESSAGE_ID,
            PRIORITY=_PRIORITY_INFO,
            SYSLOG_IDENTIFIER="initadvisor",
            INITADVISOR_BOOT_ID=record.boot_id,
            INITADVISOR_SOURCE=record.source.value,
            INITADVISOR_RECORD=json.dumps(as_plain(record)),
            **_figures(record),
        )
    except LOADING_FAILURES as err:
        _log.info("the journal was not told: %s", err)


def described(record: BootRecord) -> str:
    """Return a record in a sentence."""
    if record.unpack_us is None or not record.kernel_counts:
        reason = next((reason.explanation for reason in record.rejections), "nothing was measured")
        return f"Boot {record.boot_id[:8]} is no sample: {reason}"
    words = f"Boot {record.boot_id[:8]} unpacked its initramfs in {record.unpack_us / 1000:.3f} ms"
    if record.begin_to_init_us is not None:
        words += f" and ran /init {record.begin_to_init_us / 1000:.3f} ms after it began to"
    return words


def _figures(record: BootRecord) -> dict[str, str]:
    figures = {
        "INITADVISOR_UNPACK_US": record.unpack_us,
        "INITADVISOR_BEGIN_TO_INIT_US": record.begin_to_init_us,
        "INITADVISOR_READ_US": record.read_us,
        "INITADVISOR_LOADED_BYTES": record.loaded_bytes,
        "INITADVISOR_SETTING": record.setting,
    }
    return {name: str(value) for name, value in figures.items() if value is not None}
