"""What is in an image, kept by the digest of the file, so that it is unpacked for that once."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from initadvisor import __version__
from initadvisor.host.files import make_directory, whole_file
from initadvisor.image.scan import scan
from initadvisor.model import image
from initadvisor.model.errors import InitadvisorError
from initadvisor.model.nested_text import from_json
from initadvisor.workflow.plain import as_plain, from_plain

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.workflow.tee import Tee

log = logging.getLogger(__name__)

_LIMIT_BYTES = 16 << 20


def known_contents(host: Host, sha256: str, *, size_bytes: int) -> image.ImageContents | None:
    """Return what an earlier run found in the file with this digest; what is unreadable is none."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        with _file(host, sha256).open("rb") as file:
            kept = from_json(file.read(_LIMIT_BYTES))
        if kept["version"] == __version__:
            found = from_plain(image.ImageContents, kept["contents"])
            if isinstance(found, image.ImageContents) and _fits(found, size_bytes):
                return found
    return None


def read_contents(host: Host, file: IO[bytes], *, sha256: str, tee: Tee) -> image.ImageContents:
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


def _fits(found: image.ImageContents, size_bytes: int) -> bool:
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
