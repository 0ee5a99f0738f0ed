"""Hostile images end in an error that names an offset, after little work and in little memory."""

from __future__ import annotations

import bz2
import io
import lzma
import subprocess
import sys
import textwrap
import zlib
from typing import TYPE_CHECKING

import pytest
import zstandard

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import BadImageError
from initadvisor.image import inventory
from initadvisor.image.cpio import S_IFDIR, S_IFLNK, CpioWriter
from initadvisor.image.findings import Limits
from initadvisor.image.scan import scan
from tests.fixtures import images
from tests.fixtures.images import archive, compress, entry
from tests.fixtures.operations import grows_in_proportion, lines_run
from tests.fixtures.waiting import HANGS_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BOMB_BYTES = 160 << 20
UNPACKED_LIMIT_BYTES = 64 << 20
PEAK_BYTES = 100 << 20


def announcing(data: bytes) -> bytes:
    """Return an entry that announces 2 GiB of data, and the beginning of that."""
    head = entry(b"bomb\0")
    return head[:54] + b"7fffffff" + head[62:] + data


def zeros_in(compressor: object) -> bytes:
    """Return a lot of zeros in one compressed stream."""
    assert hasattr(compressor, "compress")
    assert hasattr(compressor, "flush")
    chunk = bytes(1 << 20)
    pieces = [compressor.compress(announcing(b""))]
    pieces += [compressor.compress(chunk) for _ in range(BOMB_BYTES >> 20)]
    return b"".join([*pieces, compressor.flush()])


def blocks_of_zeros(make: Callable[[bytes], bytes]) -> bytes:
    """Return a lot of zeros in streams one after the other."""
    return make(announcing(b"")) + make(bytes(8 << 20)) * (BOMB_BYTES >> 23)


BOMBS: dict[Codec, Callable[[], bytes]] = {
    Codec.CAT: lambda: announcing(b""),
    Codec.GZIP: lambda: zeros_in(zlib.compressobj(wbits=31)),
    Codec.BZIP2: lambda: zeros_in(bz2.BZ2Compressor()),
    Codec.LZMA: lambda: zeros_in(lzma.LZMACompressor(lzma.FORMAT_ALONE, preset=0)),
    Codec.XZ: lambda: zeros_in(lzma.LZMACompressor(lzma.FORMAT_XZ, check=1, preset=0)),
    Codec.LZOP: lambda: blocks_of_zeros(images.lzop_file),
    Codec.LZ4: lambda: blocks_of_zeros(images.lz4_legacy),
    Codec.ZSTD: lambda: zeros_in(zstandard.ZstdCompressor().compressobj()),
}


def peak_of_scan(path: Path) -> tuple[str, int]:
    """Scan a file in a process of its own; return what it said and its peak memory in bytes.

    The peak is what the kernel has noted of it by its end.
    """
    code = f"""
        import sys
        from initadvisor.image.findings import Limits
        from initadvisor.image.scan import scan
        from initadvisor.core.errors import BadImageError
        try:
            with open(sys.argv[1], "rb") as file:
                scan(file, limits=Limits(unpacked_bytes={UNPACKED_LIMIT_BYTES}))
        except BadImageError as err:
            print(err.message)
        with open("/proc/self/status") as status:
            print(next(line.split()[1] for line in status if line.startswith("VmHWM:")))
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=HANGS_S)
    *said, peak = done.stdout.splitlines()
    return "".join(said), int(peak) * 1024


@pytest.mark.parametrize("codec", Codec)
def test_a_bomb_is_stopped_in_little_memory(codec: Codec, tmp_path: Path) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(BOMBS[codec]())
    said, peak = peak_of_scan(path)
    assert "offset 0" in said or "truncated" in said, said
    assert peak < PEAK_BYTES


@pytest.mark.parametrize("head", [b"", archive()], ids=["nothing", "archive"])
def test_padding_without_end_is_not_read_to_its_end(head: bytes, tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    path.write_bytes(head)
    with path.open("r+b") as file:
        file.truncate(1 << 40)
        with pytest.raises(BadImageError, match="zero padding at offset"):
            scan(file)
        assert file.tell() < 1 << 30


def test_padding_inside_a_compressed_archive_counts_as_content() -> None:
    image = images.gzip_member(archive() + bytes(4 << 20))
    assert scan(io.BytesIO(image)).main.entries == 3
    with pytest.raises(BadImageError, match="bomb"):
        scan(io.BytesIO(image), limits=Limits(unpacked_bytes=2 << 20))


EMPTY_ENTRIES = {
    "files": entry(b"a\0"),
    "trailers": entry(b"TRAILER!!!\0", mode=0),
    "nameless": entry(b""),
}


@pytest.mark.parametrize("one", EMPTY_ENTRIES.values(), ids=EMPTY_ENTRIES)
def test_headers_are_counted(one: bytes) -> None:
    data, limits = one * 20_000, Limits(headers=10_000)
    with pytest.raises(BadImageError, match="10000 cpio headers"):
        scan(io.BytesIO(images.gzip_member(data)), limits=limits)
    with pytest.raises(BadImageError, match=r"10000 cpio headers|4096 segments"):
        scan(io.BytesIO(data), limits=limits)


def test_many_headers_take_work_in_proportion() -> None:
    def scan_of(headers: int) -> Callable[[], object]:
        data = images.zstd_frame(b"".join(entry(b"%08x\0" % n) for n in range(headers)))
        return lambda: scan(io.BytesIO(data))

    assert grows_in_proportion(scan_of, few=2000)


def test_many_segments_are_stopped() -> None:
    image = images.gzip_member(b"") * 5000
    with pytest.raises(BadImageError, match="4096 segments"):
        scan(io.BytesIO(image))


def test_many_streams_are_stopped() -> None:
    data = archive()
    image = b"".join(images.gzip_member(data[n : n + 1]) for n in range(len(data)))
    with pytest.raises(BadImageError, match="100 compressed streams"):
        scan(io.BytesIO(image), limits=Limits(streams=100))


def test_names_take_bounded_memory() -> None:
    file = io.BytesIO()
    with CpioWriter(file) as writer:
        for number in range(400):
            writer.entry(f"{number:04000}", S_IFDIR | 0o755)
    with pytest.raises(BadImageError, match="more names"):
        scan(io.BytesIO(file.getvalue()), limits=Limits(names_bytes=1 << 20))


def test_hard_links_take_bounded_memory() -> None:
    file = io.BytesIO()
    with CpioWriter(file) as writer:
        for number in range(20_000):
            writer.entry("a", 0o100644, links=2, inode=number)
    with pytest.raises(BadImageError, match="more names"):
        scan(io.BytesIO(file.getvalue()), limits=Limits(names_bytes=1 << 20))


def test_links_in_links_end(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 1 << 17
    monkeypatch.setattr(inventory, "_STEPS_MAX", steps)
    file = io.BytesIO()
    with CpioWriter(file) as writer:
        writer.directory("d")
        for number in range(39):
            target = f"{number + 1}/" + "./" * 1900
            writer.entry(f"d/{number}", S_IFLNK | 0o777, target.encode())
        for _ in range(5000):
            writer.entry("d/0/lost", 0o100644)

    def scan_them() -> None:
        with pytest.raises(BadImageError, match="symbolic links"):
            scan(io.BytesIO(file.getvalue()))

    assert lines_run(scan_them) < 5 * steps


@pytest.mark.parametrize("window_log", [28, 31])
def test_a_large_window_takes_no_memory_that_is_not_used(window_log: int, tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(images.zstd_frame(archive(), window_log=window_log, known_size=False))
    said, peak = peak_of_scan(path)
    assert not said
    assert peak < PEAK_BYTES


@pytest.mark.parametrize("codec", [Codec.LZMA, Codec.XZ])
def test_a_large_dictionary_takes_no_memory_that_is_not_used(codec: Codec, tmp_path: Path) -> None:
    path = tmp_path / "image"
    if codec is Codec.XZ:
        path.write_bytes(images.xz_stream([(bytes([0x21, 1, 39]), archive())]))
    else:
        data = compress(codec, archive())
        path.write_bytes(data[:1] + b"\x00\x00\x00\xc0" + data[5:])
    said, peak = peak_of_scan(path)
    assert not said or "memory" in said
    assert peak < PEAK_BYTES
