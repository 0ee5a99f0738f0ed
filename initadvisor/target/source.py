"""The image that candidates are derived from, and what is in it.

What is in it is kept as JSON by the digest of the file: it is unpacked for that only once. Nothing
that is read back is trusted. What a scan unpacks is kept while the image is open, so that nothing
has to be unpacked again to be compressed anew.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Protocol

from initadvisor import __version__
from initadvisor.core import codecs
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import BadImageError, InitadvisorError, NeedsRootError
from initadvisor.host.cached import keep, read_cached
from initadvisor.host.files import append_range, free_bytes, make_directory, open_regular, sha256_of
from initadvisor.host.load import BUSY_PART, OthersLoad
from initadvisor.image import contents as image_contents
from initadvisor.image import modules as image_modules
from initadvisor.image import stream_facts
from initadvisor.image.contents import LARGEST_BYTES, too_large
from initadvisor.image.modules import ModuleListing
from initadvisor.image.scan import scan
from initadvisor.vm.kernel import scratch_directory

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from initadvisor.generators import InstalledImage
    from initadvisor.host import Host
    from initadvisor.image.contents import ImageContents
    from initadvisor.image.modules import ImageModule
    from initadvisor.image.stream_facts import StreamFacts


_MORE_THAN_A_KERNEL_DOES = frozenset({Codec.GZIP, Codec.LZOP, Codec.LZMA, Codec.BZIP2})
"""Formats in which reading an image verifies more than the kernel does, which takes its time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An image, open for reading, and what is in it.

    ``sha256`` is that of the whole file, ``initrd_sha256`` that of the initramfs in it, which
    starts at ``start``: the same unless the file is a unified kernel image. ``mtime_ns`` is the
    file's time stamp from before it was read. ``installed`` tells that this machine's generator
    made it, and for which kernel. ``unpacked`` holds the content of the main segment, and
    ``unpack_cpu_ms`` is the processor time that took, where reading the image unpacked it and did
    nothing on the way that a kernel does not, on a machine that was not busy. ``modules``: modules
    and firmware in it, where they were asked for.
    """

    path: Path
    file: IO[bytes]
    contents: ImageContents
    sha256: str
    initrd_sha256: str
    start: int
    mtime_ns: int
    installed: InstalledImage | None = None
    unpacked: IO[bytes] | None = None
    unpack_cpu_ms: float | None = None
    modules: tuple[ImageModule, ...] = ()

    @property
    def prefix_bytes(self) -> int:
        """How much of the initramfs stands before the main segment, padding included."""
        return self.contents.main.offset - self.start

    @property
    def main_bytes(self) -> int:
        """The length of the main segment in the file.

        The padding behind a plain archive belongs to it: generators pad before they compress.
        """
        main = self.contents.main
        return main.size_bytes + (main.padding_bytes if main.codec is Codec.CAT else 0)

    def check_unchanged(self) -> None:
        """Raise ``InitadvisorError`` if the file was written to since; some generators do that."""
        if os.fstat(self.file.fileno()).st_mtime_ns != self.mtime_ns:
            msg = f"{self.path} was changed while it was read"
            raise InitadvisorError(msg, hint="try again")


class ReadObserver(Protocol):
    """Receives progress events of reading an image."""

    def doing(self, what: str, *, done: int = 0, of: int = 0) -> None:
        """Something goes on, in words: ``done`` of its ``of`` steps, where they can be counted."""
        ...


@contextlib.contextmanager
def open_source(
    path: Path,
    *,
    installed: InstalledImage | None = None,
    host: Host | None = None,
    observer: ReadObserver | None = None,
    to_compress: bool = True,
    with_modules: bool = False,
) -> Iterator[Source]:
    """Open the image ``path`` and read what is in it.

    With ``host`` its cache is used: what is known of these bytes is not read again, and otherwise
    what is unpacked is kept as long as the source is open, if it is ``to_compress``.
    ``with_modules`` tells its modules and firmware, too.

    Raises ``NeedsRootError`` where only root may read it and ``InitadvisorError`` for what is no
    ordinary file or no initramfs.
    """
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open_regular(path))
        mtime_ns = os.fstat(file.fileno()).st_mtime_ns
        _require_plausible_size(file, path)
        sha256 = sha256_of(file)
        spool = (
            stack.enter_context(contextlib.closing(ContentSpool(host, file, observer)))
            if host
            else None
        )
        if spool and not to_compress:
            spool.close()
        others = OthersLoad(host) if host else None
        try:
            contents, modules = _contents(host, file, sha256, spool, with_modules=with_modules)
        except BadImageError as err:
            msg = f"cannot read {path} as an initramfs: {err.message}"
            raise InitadvisorError(msg) from err
        busy = others is not None and others.part() > BUSY_PART
        initrd = contents.initrd
        kept = spool if spool and spool.offset == contents.main.offset else None
        whole = initrd.offset == 0 and initrd.size_bytes == os.fstat(file.fileno()).st_size
        if contents.main.offset < initrd.offset:
            msg = f"cannot read {path} as an initramfs: its .initrd section is empty"
            raise InitadvisorError(msg)
        yield Source(
            path=path,
            file=file,
            contents=contents,
            sha256=sha256,
            initrd_sha256=sha256
            if whole
            else sha256_of(file, offset=initrd.offset, size_bytes=initrd.size_bytes),
            start=initrd.offset,
            mtime_ns=mtime_ns,
            installed=installed,
            unpacked=kept.file if kept else None,
            unpack_cpu_ms=kept.cpu_ms
            if kept and not busy and contents.main.codec not in _MORE_THAN_A_KERNEL_DOES
            else None,
            modules=modules,
        )


def _require_plausible_size(file: IO[bytes], path: Path) -> None:
    size_bytes = os.fstat(file.fileno()).st_size
    if size_bytes > LARGEST_BYTES:
        msg = f"cannot read {path} as an initramfs: {too_large(size_bytes)}"
        raise InitadvisorError(msg)


def _contents(
    host: Host | None,
    file: IO[bytes],
    sha256: str,
    spool: ContentSpool | None,
    *,
    with_modules: bool,
) -> tuple[ImageContents, tuple[ImageModule, ...]]:
    size_bytes = os.fstat(file.fileno()).st_size
    listing = ModuleListing() if with_modules else None
    if host is None or spool is None:
        contents = scan(file, listing=listing)
    else:
        known = known_contents(host, sha256, size_bytes=size_bytes)
        modules = known_modules(host, sha256) if with_modules else ()
        if known and modules is not None:
            return known, modules
        contents = read_contents(host, file, sha256=sha256, spool=spool, listing=listing)
    return contents, listing.modules() if listing else ()


def is_current(path: Path, *, sha256: str) -> bool:
    """Tell whether ``path`` has this digest still; what may not be read is taken to have it."""
    try:
        with open_regular(path) as file:
            return sha256_of(file) == sha256
    except NeedsRootError:
        return True
    except InitadvisorError:
        return False


def initramfs_alone(
    path: Path, file: IO[bytes], contents: ImageContents | None, stack: contextlib.ExitStack
) -> Path:
    """Return a file that holds the initramfs and nothing else, as virtual machines want it.

    That is ``path`` itself, unless it is a unified kernel image; then ``stack`` removes the copy.
    Raises ``InitadvisorError`` where there is no room for that.
    """
    if contents is None or not contents.uki:
        return path
    initrd = contents.initrd
    taken_out = stack.enter_context(scratch_directory(initrd.size_bytes)) / "initrd"
    try:
        with taken_out.open("wb") as target:
            append_range(target, file, offset=initrd.offset, size_bytes=initrd.size_bytes)
    except OSError as err:
        msg = f"cannot take the initramfs out of {path} into {taken_out}: {err.strerror}"
        raise InitadvisorError(msg) from err
    return taken_out


_HEADROOM_BYTES = 256 << 20
"""What is left free on the file system, for what is to be built there."""


class ContentSpool:
    """Writes the segment that is being unpacked to a file without a name; the last one stays.

    ``file`` is None where there is no room or no directory: then it has to be unpacked again.
    ``cpu_ms``: the processor time that unpacking alone took, checksums included.
    """

    def __init__(
        self, host: Host, image: IO[bytes] | None = None, observer: ReadObserver | None = None
    ) -> None:
        self._image, self._observer = image, observer
        self._image_bytes = os.fstat(image.fileno()).st_size if image else 0
        self.file: IO[bytes] | None = None
        self.offset = -1
        self.cpu_ms = 0.0
        self._host = host
        self._room = 0
        directory = host.cache_dir()
        try:
            make_directory(directory)
            self.file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115 - closed by close()
            self._room = free_bytes(directory) - _HEADROOM_BYTES
        except (OSError, InitadvisorError):
            self.close()

    def close(self) -> None:
        """Give the room back."""
        if self.file:
            self.file.close()
        self.file = None

    def __call__(
        self, offset: int, stream: Generator[bytes | memoryview, None, StreamFacts]
    ) -> Generator[bytes | memoryview, None, StreamFacts]:
        """Hand a stream on, of the segment that starts at ``offset`` in the image."""
        if offset != self.offset:
            self.offset, self.cpu_ms = offset, 0.0
            self._write(None)
        while True:
            started = self._host.clock.thread_cpu_ns()
            try:
                piece = next(stream)
            except StopIteration as end:
                facts: StreamFacts = end.value
                return facts
            finally:
                self.cpu_ms += (self._host.clock.thread_cpu_ns() - started) / 1e6
            self._write(piece)
            if self._observer and self._image:
                done = min(self._image.tell(), self._image_bytes)
                self._observer.doing("reading the image", done=done, of=self._image_bytes)
            yield piece

    def _write(self, piece: bytes | memoryview | None) -> None:
        if self.file is None:
            return
        try:
            if piece is None:
                self.file.seek(0)
                self.file.truncate()
            elif self.file.tell() + len(piece) > self._room:
                self.close()
            else:
                self.file.write(piece)
        except OSError:
            self.close()


_NAMES = (codecs, image_contents, image_modules, stream_facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptContents:
    """``version``: of this program, which may read images otherwise than another one."""

    version: str
    contents: ImageContents


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptModules:
    """See ``_KeptContents``."""

    version: str
    modules: tuple[ImageModule, ...]


def known_contents(host: Host, sha256: str, *, size_bytes: int) -> ImageContents | None:
    """Return what an earlier run found in the file with this digest; what is unreadable is none."""
    kept = read_cached(_file(host, sha256), _KeptContents, names=_NAMES)
    fits = kept and kept.version == __version__ and _fits(kept.contents, size_bytes)
    return kept.contents if kept and fits else None


def known_modules(host: Host, sha256: str) -> tuple[ImageModule, ...] | None:
    """Return the modules that an earlier run found in the file with this digest, if one did."""
    kept = read_cached(_modules_file(host, sha256), _KeptModules, names=_NAMES)
    if kept is None or kept.version != __version__:
        return None
    fits = all(one.names or one.release is None for one in kept.modules)
    return kept.modules if fits and all(one.size_bytes >= 0 for one in kept.modules) else None


def read_contents(
    host: Host,
    file: IO[bytes],
    *,
    sha256: str,
    spool: ContentSpool,
    listing: ModuleListing | None = None,
) -> ImageContents:
    """Read what is in an image, through ``spool``; raises what ``scan`` does."""
    found = scan(file, tap=spool, listing=listing)
    kept = _KeptContents(version=__version__, contents=found)
    keep(_file(host, sha256), kept, what="what is in an image")
    if listing:
        modules = _KeptModules(version=__version__, modules=listing.modules())
        keep(_modules_file(host, sha256), modules, what="the modules of an image")
    return found


def _fits(found: ImageContents, size_bytes: int) -> bool:
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


def _modules_file(host: Host, sha256: str) -> Path:
    return host.cache_dir() / "modules" / f"{sha256[:32]}.json"
