"""How fast the image is read cold, measured once for each file and boot of this machine."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from initadvisor.host.files import make_directory, whole_file
from initadvisor.model.errors import InitadvisorError
from initadvisor.model.estimate import Estimate
from initadvisor.model.nested_text import from_json
from initadvisor.model.number import number, positive
from initadvisor.model.storage import ColdRead, ReadWarning
from initadvisor.model.text import shown
from initadvisor.storage.cold_read import cold_read
from initadvisor.storage.device import device_of

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host

log = logging.getLogger(__name__)

_LIMIT_BYTES = 1 << 20
_LEAST_MB_S, _MOST_MB_S = 1e-4, 1e6
"""No device is slower or faster."""


def known_cold_read(host: Host, image: Path) -> ColdRead:
    """Return what cold reads of this file gave since the machine was booted, or read it now.

    Raises what ``cold_read`` does.
    """
    record = _record(host, image)
    if record and (known := _load(host, image, record)):
        return known
    read = cold_read(host, image)
    if record:
        _keep(record, read)
    return read


def _record(host: Host, image: Path) -> Path | None:
    """Return where the figures of the file as it is now are kept, None where that cannot be."""
    boot_id = host.read_text("/proc/sys/kernel/random/boot_id")
    try:
        stat = image.stat()
    except OSError:
        return None
    if boot_id is None:
        return None
    made_of = (boot_id, str(image), stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)
    key = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:32]
    return host.cache_dir() / "read" / f"{key}.json"


def _load(host: Host, image: Path, record: Path) -> ColdRead | None:
    with suppress(OSError, ValueError, KeyError, TypeError):
        with record.open("rb") as file:
            kept = from_json(file.read(_LIMIT_BYTES))
        speed = kept["speed_mb_s"]
        low, mean, high = (
            number(speed[name], least=_LEAST_MB_S, most=_MOST_MB_S)
            for name in ("low", "mean", "high")
        )
        if not low <= mean <= high:
            raise ValueError(speed)
        return ColdRead(
            speed_mb_s=Estimate(mean=mean, low=low, high=high, source=shown(speed["source"])),
            samples_mb_s=tuple(positive(sample) for sample in kept["samples_mb_s"]),
            device=device_of(host, image),
            warnings=tuple(ReadWarning(text) for text in kept["warnings"]),
        )
    return None


def _keep(record: Path, read: ColdRead) -> None:
    values = dataclasses.asdict(read)
    kept = {name: values[name] for name in ("speed_mb_s", "samples_mb_s", "warnings")}
    try:
        make_directory(record.parent)
        with whole_file(record) as file:
            file.write(json.dumps(kept).encode())
    except (OSError, InitadvisorError) as err:
        log.info("cannot keep the read speed in %s: %s", record, err)
