"""Builds one candidate and makes sure that it is one."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from initadvisor.candidates.cache import CachedCandidate
from initadvisor.candidates.payload import until_stopped
from initadvisor.candidates.plan import own_uncompressed_key
from initadvisor.candidates.run_times import keep_run
from initadvisor.core.codecs import Codec, codec_of_magic
from initadvisor.core.errors import BadImageError, InitadvisorError, ProgramError, UnsafeError
from initadvisor.generators.files import with_stream_size
from initadvisor.host.files import PARTIAL_PREFIX, append_range, open_regular, sha256_of, whole_file
from initadvisor.host.process import piped
from initadvisor.host.run import Priority
from initadvisor.image.decompressors.decompress import decompress
from initadvisor.image.scan import scan
from initadvisor.records.built_image import BuiltImage

if TYPE_CHECKING:
    import threading

    from initadvisor.candidates.cache import Cache
    from initadvisor.candidates.payload import LazyPayload, Payload
    from initadvisor.candidates.plan import BuildCommand
    from initadvisor.generators import Generator
    from initadvisor.host import Host
    from initadvisor.target.source import Source


_TIMEOUT_S = 3600.0
_MODE = 0o600
"""Images may hold keys: candidates are for their owner only."""

_CPIO_MAGICS = (b"070701", b"070702")
_CPIO_ALIGNMENT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """All that building candidates of one image takes; its methods may run in any thread."""

    host: Host
    generator: Generator
    source: Source
    cache: Cache
    payload: LazyPayload
    stop: threading.Event

    def build(self, command: BuildCommand) -> tuple[CachedCandidate, bool]:
        """Build and keep one candidate; tell whether it is new.

        It may be there already, when a generator that has to be asked first gave nothing new.
        Raises ``InitadvisorError`` when the compressor fails or writes something else than it
        should, and ``OSError`` when the file cannot be written.
        """
        notes: tuple[str, ...] = ()
        if command.setting.codec is Codec.CAT and self.generator.needs_own_uncompressed(self.host):
            try:
                return self._generated(command), True
            except InitadvisorError as err:
                notes = (f"not laid out as {self.generator.NAME} would: {err.message}",)
            if cached := self.cache.find(command.key):
                return cached, False
        return self._recompressed(command, notes), True

    def _recompressed(self, command: BuildCommand, notes: tuple[str, ...]) -> CachedCandidate:
        """Derive the candidate: what stands before the main segment as it is, then that anew."""
        payload = self.payload.get()
        path = self.cache.image_path(command.key)
        with whole_file(path, mode=_MODE) as file:
            prefix = self.source.prefix_bytes
            append_range(file, self.source.file, offset=self.source.start, size_bytes=prefix)
            if command.setting.codec is Codec.CAT:
                # The kernel takes a plain archive at a multiple of 4 only (init/initramfs.c).
                file.write(bytes(-prefix % _CPIO_ALIGNMENT))
                file.flush()
            main_offset = file.tell()
            argv = with_stream_size(command.argv, payload.size_bytes)
            with piped(payload.file) as pipe:
                completed = self.host.runner.run(
                    argv,
                    timeout_s=_TIMEOUT_S,
                    stdin=pipe,
                    stdout=file,
                    priority=Priority.IDLE,
                )
            self._verify(file, main_offset, command, payload)
            self.source.check_unchanged()
            size_bytes, digest = _size_and_digest(file)
        candidate = BuiltImage(
            setting=command.setting,
            path=str(path),
            size_bytes=size_bytes,
            sha256=digest,
            main_offset=main_offset,
            build_s=completed.wall_s,
            build_cpu_s=completed.cpu_s,
            build_peak_bytes=completed.peak_bytes,
            command=argv,
            notes=notes,
        )
        return self._kept(candidate)

    def _verify(
        self, file: IO[bytes], offset: int, command: BuildCommand, payload: Payload
    ) -> None:
        """Make sure that what the compressor wrote is what it was asked for.

        An exit status of 0 proves nothing: it may have written another format, or half of it.
        """
        wanted = command.setting.codec
        size_bytes = file.seek(0, os.SEEK_END) - offset
        file.seek(offset)
        head = file.read(len(_CPIO_MAGICS[0]))
        found = Codec.CAT if head in _CPIO_MAGICS else codec_of_magic(head)
        if found is not wanted:
            msg = f"{command.argv[0]} wrote {found or 'something'}, not {wanted}"
            raise InitadvisorError(msg)
        digest, left = hashlib.sha256(), payload.size_bytes
        try:
            for chunk in until_stopped(decompress(wanted, file, offset, size_bytes), self.stop):
                digest.update(chunk)
                left -= len(chunk)
                if left < 0:
                    msg = f"what {command.argv[0]} wrote unpacks to more than it was given"
                    raise InitadvisorError(msg)
        except BadImageError as err:
            msg = f"what {command.argv[0]} wrote cannot be unpacked: {err.message}"
            raise InitadvisorError(msg) from err
        if digest.hexdigest() != payload.sha256:
            msg = f"what {command.argv[0]} wrote unpacks to something else than it was given"
            raise InitadvisorError(msg)

    def _generated(self, command: BuildCommand) -> CachedCandidate:
        """Have the generator build its uncompressed image.

        Its work is the same for every setting, and there is no compressor: both count as nothing.
        """
        installed = self.source.installed
        if installed is None:
            msg = "the image is not one that it makes on this machine"
            raise UnsafeError(msg)
        key = own_uncompressed_key(self.host, self.generator, image_sha256=self.source.sha256)
        path = self.cache.image_path(key)
        with tempfile.TemporaryDirectory(
            prefix=PARTIAL_PREFIX, dir=self.cache.directory
        ) as directory:
            target = Path(directory) / "image"
            since_ns = self.host.clock.monotonic_ns()
            self.generator.build_uncompressed(self.host, installed, target)
            keep_run(self.host, installed.path, command.setting, since_ns=since_ns)
            with open_regular(target) as built, whole_file(path, mode=_MODE) as file:
                length = os.fstat(built.fileno()).st_size
                append_range(file, built, offset=0, size_bytes=length)
                main = scan(file).main
                if main.codec is not Codec.CAT:
                    msg = f"{self.generator.NAME} wrote {main.codec}, not cat"
                    raise ProgramError(msg)
                size_bytes, digest = _size_and_digest(file)
        candidate = BuiltImage(
            setting=command.setting,
            path=str(path),
            size_bytes=size_bytes,
            sha256=digest,
            main_offset=main.offset,
            build_s=0.0,
            build_cpu_s=0.0,
            build_peak_bytes=0,
            command=(),
            derived=False,
        )
        return self._kept(candidate)

    def _kept(self, candidate: BuiltImage) -> CachedCandidate:
        installed = self.source.installed
        cached = CachedCandidate(
            candidate=candidate,
            image=str(self.source.path.absolute()),
            image_sha256=self.source.sha256,
            kernel=installed.kernel_release if installed else None,
            built_at_ns=Path(candidate.path).stat().st_mtime_ns,
        )
        self.cache.keep(cached)
        return cached


def _size_and_digest(file: IO[bytes]) -> tuple[int, str]:
    return file.seek(0, os.SEEK_END), sha256_of(file)
