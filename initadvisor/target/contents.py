"""What is in an image, kept as JSON by the digest of the file: it is unpacked for that only once.

Nothing that is read back is trusted.
"""

from __future__ import annotations

import dataclasses
import json
import logging
from contextlib import suppress
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import IO, TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from initadvisor import __version__
from initadvisor.core import codecs
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.plain_values import from_json
from initadvisor.host.files import make_directory, whole_file
from initadvisor.image import contents, stream_facts
from initadvisor.image.scan import scan

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.target.content_spool import ContentSpool


log = logging.getLogger(__name__)

_LIMIT_BYTES = 16 << 20


def known_contents(host: Host, sha256: str, *, size_bytes: int) -> contents.ImageContents | None:
    """Return what an earlier run found in the file with this digest; what is unreadable is none."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        with _file(host, sha256).open("rb") as file:
            kept = from_json(file.read(_LIMIT_BYTES))
        if kept["version"] == __version__:
            found = from_plain(contents.ImageContents, kept["contents"])
            if isinstance(found, contents.ImageContents) and _fits(found, size_bytes):
                return found
    return None


def read_contents(
    host: Host, file: IO[bytes], *, sha256: str, tee: ContentSpool
) -> contents.ImageContents:
    """Read what is in an image, through ``tee``; raises what ``scan`` does."""
    found = scan(file, tap=tee)
    path = _file(host, sha256)
    try:
        make_directory(path.parent)
        with whole_file(path, mode=0o600) as record:
            kept = {"version": __version__, "contents": as_plain(found)}
            record.write(json.dumps(kept).encode())
    except (OSError, InitadvisorError) as err:
        log.info("cannot keep what is in an image in %s: %s", path, err)
    return found


def _fits(found: contents.ImageContents, size_bytes: int) -> bool:
    """Tell whether there are segments, in a row, within the initramfs, and that within the file."""
    initrd = found.initrd
    position = min(initrd.offset, *(s.offset for s in found.segments)) if found.segments else -1
    if position < 0 or initrd.offset + initrd.size_bytes > size_bytes:
        return False
    for segment in found.segments:
        if segment.offset < position:
            return False
        position = segment.offset + segment.size_bytes + segment.padding_bytes
    return position <= size_bytes and (found.main.offset >= initrd.offset or not initrd.size_bytes)


def _file(host: Host, sha256: str) -> Path:
    return host.cache_dir() / "contents" / f"{sha256[:32]}.json"


_TYPES = {**vars(codecs), **vars(contents), **vars(stream_facts)}
"""What the annotations of these modules may name."""


def as_plain(value: object) -> object:
    """Return a value as JSON has it: one with fields as an object that also names its type."""
    if dataclasses.is_dataclass(value):
        fields = {f.name: as_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"type": type(value).__name__, **fields}
    return [as_plain(item) for item in value] if isinstance(value, tuple) else value


def from_plain(hint: Any, plain: Any) -> Any:  # noqa: ANN401 - what both are is found out here
    """Return the value of a type that ``as_plain`` was given.

    Raises ``ValueError``, ``KeyError`` or ``TypeError`` for what is no value of that type.
    """
    if get_origin(hint) is tuple and isinstance(plain, list):
        return tuple(from_plain(get_args(hint)[0], item) for item in plain)
    kinds = get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
    if plain is None and NoneType in kinds:
        return None
    if isinstance(plain, dict):
        kind = {kind.__name__: kind for kind in kinds}[plain["type"]]
        return kind(**{name: from_plain(part, plain[name]) for name, part in _fields(kind)})
    kind = kinds[0]
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind(plain)
    if type(plain) is not kind or (kind is int and plain < 0):
        raise TypeError(plain)
    return plain


@cache
def _fields(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    """Return the fields of a type with theirs; raises ``TypeError`` for one that has none."""
    hints = get_type_hints(kind, localns=_TYPES)
    return tuple((field.name, hints[field.name]) for field in dataclasses.fields(kind))
