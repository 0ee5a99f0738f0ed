"""What is in an image, kept as JSON by the digest of the file: it is unpacked for that only once.

Nothing that is read back is trusted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from initadvisor import __version__
from initadvisor.core import codecs
from initadvisor.host.cached import keep, read_cached
from initadvisor.image import contents, stream_facts
from initadvisor.image.scan import scan

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.target.content_spool import ContentSpool


_NAMES = (codecs, contents, stream_facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptContents:
    """``version``: of this program, which may read images otherwise than another one."""

    version: str
    contents: contents.ImageContents


def known_contents(host: Host, sha256: str, *, size_bytes: int) -> contents.ImageContents | None:
    """Return what an earlier run found in the file with this digest; what is unreadable is none."""
    kept = read_cached(_file(host, sha256), _KeptContents, names=_NAMES)
    fits = kept and kept.version == __version__ and _fits(kept.contents, size_bytes)
    return kept.contents if kept and fits else None


def read_contents(
    host: Host, file: IO[bytes], *, sha256: str, spool: ContentSpool
) -> contents.ImageContents:
    """Read what is in an image, through ``spool``; raises what ``scan`` does."""
    found = scan(file, tap=spool)
    kept = _KeptContents(version=__version__, contents=found)
    keep(_file(host, sha256), kept, what="what is in an image", mode=0o600)
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
