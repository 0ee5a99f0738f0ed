"""What a scan unpacks on the way is what unpacking it again would give, or nothing."""

from __future__ import annotations

import errno
import io
import os
import tempfile
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import pytest

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import BadImageError
from initadvisor.host import Host
from initadvisor.image.decompressors.decompress import decompress
from initadvisor.image.scan import scan
from initadvisor.target import source as module
from initadvisor.target.source import ContentSpool
from tests.fakes.runner import FakeRunner
from tests.fixtures.images import archive, compress, padded
from tests.fixtures.variants import exhibits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from initadvisor.image.contents import ImageContents

PLENTY = 1 << 40
COMPRESSED = [codec for codec in Codec if codec is not Codec.CAT]
CONTENT = archive({"d/first": b"text " * 5000, "noise": bytes(range(256)) * 40, "last": b"x"})


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine that runs nothing, with plenty of room."""
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "free_bytes", lambda _: PLENTY)
    return Host(root=tmp_path, runner=FakeRunner())


@contextmanager
def teed(host: Host, image: bytes) -> Iterator[tuple[ContentSpool, ImageContents]]:
    """Scan an image through a tee."""
    tee = ContentSpool(host)
    try:
        yield tee, scan(io.BytesIO(image), tap=tee)
    finally:
        tee.close()


def content(file: IO[bytes] | None) -> bytes:
    """Return what is in a file, the way that whoever compresses it reads it."""
    assert file
    file.seek(0, os.SEEK_END)
    return os.pread(file.fileno(), file.tell() + 1, 0)


def unpacked(image: bytes, contents: ImageContents) -> bytes:
    main = contents.main
    pieces = decompress(main.codec, io.BytesIO(image), main.offset, main.size_bytes)
    return b"".join(bytes(piece) for piece in pieces)


def left(host: Host) -> list[Path]:
    return list(host.cache_dir().rglob("*"))


def test_of_every_image_the_main_segment_is_what_decompressing_it_gives(host: Host) -> None:
    compared = 0
    for exhibit in exhibits():
        expected = _scanned(exhibit.image)
        if expected is None:
            continue
        with teed(host, exhibit.image) as (tee, contents):
            assert contents == expected, exhibit.name
            if contents.main.codec is Codec.CAT:
                assert tee.offset != contents.main.offset, exhibit.name
            else:
                assert tee.offset == contents.main.offset, exhibit.name
                assert content(tee.file) == unpacked(exhibit.image, contents), exhibit.name
                compared += 1
    assert compared > 100
    assert left(host) == []


def _scanned(image: bytes) -> ImageContents | None:
    try:
        return scan(io.BytesIO(image))
    except BadImageError:
        return None


@pytest.mark.parametrize("last", COMPRESSED)
@pytest.mark.parametrize("first", COMPRESSED)
def test_of_several_segments_only_the_last_is_kept(host: Host, first: Codec, last: Codec) -> None:
    image = padded(compress(first, archive({"large": b"1" * 90_000})) + bytes(4), 4)
    image += compress(last, CONTENT)
    with teed(host, image) as (tee, contents):
        assert len(contents.segments) == 2
        assert tee.offset == contents.main.offset > 0
        assert content(tee.file) == CONTENT


def test_a_plain_last_segment_is_not_taken_for_the_compressed_one_before_it(host: Host) -> None:
    image = padded(compress(Codec.GZIP, CONTENT) + bytes(4), 4) + archive({"plain": b"x"})
    with teed(host, image) as (tee, contents):
        assert contents.main.codec is Codec.CAT
        assert tee.offset != contents.main.offset


def test_streams_of_one_segment_are_kept_in_a_row(host: Host) -> None:
    """As bgzip and pbzip2 write them."""
    half = len(CONTENT) // 2
    image = compress(Codec.BZIP2, CONTENT[:half]) + compress(Codec.BZIP2, CONTENT[half:])
    with teed(host, image) as (tee, contents):
        assert contents.main.streams == 2
        assert content(tee.file) == CONTENT


def test_the_time_is_that_of_unpacking_the_last_segment(host: Host) -> None:
    class Clock:
        now_ns = 0

        def thread_cpu_ns(self) -> int:
            """Return a millisecond more each time."""
            self.now_ns += 1_000_000
            return self.now_ns

        def monotonic_ns(self) -> int:
            raise AssertionError

    on_a_clock = Host(root=host.root, runner=FakeRunner(), clock=Clock())
    image = padded(compress(Codec.GZIP, CONTENT) + bytes(4), 4) + compress(Codec.XZ, CONTENT)
    with (
        teed(on_a_clock, image) as (both, _),
        teed(on_a_clock, compress(Codec.XZ, CONTENT)) as (
            one,
            _,
        ),
    ):
        assert both.cpu_ms == one.cpu_ms > 0


def small_room(monkeypatch: pytest.MonkeyPatch, room_bytes: int) -> None:
    headroom = module._HEADROOM_BYTES
    monkeypatch.setattr(module, "free_bytes", lambda _: headroom + room_bytes)


def test_what_just_fits_is_kept_and_what_does_not_is_given_up(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = compress(Codec.ZSTD, CONTENT)
    small_room(monkeypatch, len(CONTENT))
    with teed(host, image) as (tee, _):
        assert content(tee.file) == CONTENT
    for room_bytes in (len(CONTENT) - 1, 1, 0, -1, -PLENTY):
        small_room(monkeypatch, room_bytes)
        with teed(host, image) as (tee, contents):
            assert tee.file is None
            assert tee.cpu_ms > 0
            assert contents == scan(io.BytesIO(image))
    assert left(host) == []


def test_a_segment_that_is_too_long_does_not_stand_for_a_later_one(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = compress(Codec.GZIP, archive({"large": b"1" * 500_000}))
    image = padded(large + bytes(4), 4) + compress(Codec.GZIP, CONTENT)
    small_room(monkeypatch, len(CONTENT) + 10)
    with teed(host, image) as (tee, contents):
        assert len(contents.segments) == 2
        assert tee.file is None


def cannot_write(error: int) -> Callable[..., Any]:
    """Return what opens temporary files that cannot be written after the first few bytes."""
    real: Callable[..., Any] = tempfile.TemporaryFile

    def opened(**named: Any) -> Any:  # noqa: ANN401
        file = real(**named)

        def write(_: object) -> None:
            raise OSError(error, os.strerror(error))

        file.write = write
        return file

    return opened


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_disk_that_fills_up_meanwhile_is_no_obstacle(
    host: Host, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", cannot_write(error))
    image = compress(Codec.ZSTD, CONTENT)
    with teed(host, image) as (tee, contents):
        assert tee.file is None
        assert contents == scan(io.BytesIO(image))
    assert left(host) == []


def test_a_cache_that_is_no_directory_is_no_obstacle(host: Host) -> None:
    host.cache_dir().write_text("no directory")
    with teed(host, compress(Codec.ZSTD, CONTENT)) as (tee, contents):
        assert tee.file is None
        assert contents.main.unpacked_bytes == len(CONTENT)


def test_an_image_that_turns_out_damaged_leaves_nothing(host: Host) -> None:
    image = compress(Codec.ZSTD, CONTENT)
    with pytest.raises(BadImageError), teed(host, image[: len(image) // 2]):
        pass
    assert left(host) == []


def test_what_is_closed_is_gone(host: Host) -> None:
    with teed(host, compress(Codec.ZSTD, CONTENT)) as (tee, _):
        file = tee.file
        assert file
    assert tee.file is None
    assert file.closed
    tee.close()
    assert left(host) == []
