"""What is in an image, kept by the digest of the file, so that it is unpacked for that once."""

from __future__ import annotations

import dataclasses
import enum
import json
import logging
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

from initadvisor import __version__
from initadvisor.host.files import make_directory, whole_file
from initadvisor.image.scan import scan
from initadvisor.model import codec, image, stream
from initadvisor.model.errors import InitadvisorError

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.workflow.tee import Tee

log = logging.getLogger(__name__)

_TYPES: dict[str, type[Any]] = {
    name: kind
    for module in (codec, image, stream)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and kind.__module__ == module.__name__
}
"""The values that contents consist of, by name."""

_LIMIT_BYTES = 16 << 20


def known_contents(host: Host, sha256: str) -> image.ImageContents | None:
    """Return what an earlier run found in the file with this digest; what is unreadable is none."""
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        with _file(host, sha256).open("rb") as file:
            kept = json.loads(file.read(_LIMIT_BYTES))
        if kept["version"] == __version__:
            found = _value(kept["contents"])
            return found if isinstance(found, image.ImageContents) else None
    return None


def read_contents(host: Host, file: IO[bytes], *, sha256: str, tee: Tee) -> image.ImageContents:
    """Read what is in an image, through ``tee``; raises what ``scan`` does."""
    found = scan(file, tap=tee)
    path = _file(host, sha256)
    try:
        make_directory(path.parent)
        with whole_file(path, mode=0o600) as record:
            kept = {"version": __version__, "contents": _plain(found)}
            record.write(json.dumps(kept).encode())
    except (OSError, InitadvisorError) as err:
        log.info("cannot keep what is in an image in %s: %s", path, err)
    return found


def _file(host: Host, sha256: str) -> Path:
    return host.cache_dir() / "contents" / f"{sha256[:32]}.json"


def _plain(value: object) -> object:
    """Return a value as JSON has it; what is not a plain one has its type's name with it."""
    if isinstance(value, enum.Enum):
        return {"type": type(value).__name__, "value": value.value}
    if dataclasses.is_dataclass(value):
        fields = {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"type": type(value).__name__, "fields": fields}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _value(plain: object) -> object:
    """Return what ``_plain`` was given; raises ``KeyError`` or ``TypeError`` for other things."""
    if isinstance(plain, list):
        return tuple(_value(item) for item in plain)
    if not isinstance(plain, dict):
        return plain
    kind = _TYPES[plain["type"]]
    if "value" in plain:
        return kind(plain["value"])
    return kind(**{name: _value(item) for name, item in plain["fields"].items()})
