"""An image is unpacked once, whoever needs its content for what."""

from __future__ import annotations

import hashlib
import os
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from initadvisor.candidates import payload as module
from initadvisor.candidates.build import build_candidates
from initadvisor.candidates.estimates import estimates
from initadvisor.candidates.payload import LazyPayload
from initadvisor.candidates.plan import build_commands
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.settings import Setting
from initadvisor.generators import unknown
from initadvisor.host import Host
from initadvisor.image.decompressors.decompress import decompress, open_stream
from initadvisor.lab.observing import Unseen
from initadvisor.target import source as source_module
from initadvisor.target.source import open_source
from tests.fakes.compressors import COMPRESSORS, fake_compressors
from tests.fixtures.small_images import archive, early_archive, uki, write_image

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from initadvisor.target.source import Source

SETTINGS = [Setting(codec) for codec in (Codec.CAT, Codec.GZIP, Codec.ZSTD)]
AS_A_KERNEL_DOES = {Codec.XZ, Codec.LZ4, Codec.ZSTD}
COMPRESSED = [codec for codec in COMPRESSORS if codec is not Codec.CAT]
Unpackings = Counter[str]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine with working compressors and plenty of room."""
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    monkeypatch.setattr(source_module, "free_bytes", lambda _: 1 << 40)
    return Host(root=tmp_path, runner=fake_compressors())


@pytest.fixture
def payload() -> bytes:
    """The unpacked content of the image."""
    return archive()


@pytest.fixture
def unpackings(monkeypatch: pytest.MonkeyPatch) -> Unpackings:
    """How often the image was read through, and how often its main segment was unpacked again."""
    counts: Unpackings = Counter()

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **named: Any) -> Any:  # noqa: ANN401
            counts[name] += 1
            return function(*args, **named)

        return counted

    monkeypatch.setattr(module, "decompress", counting("again", decompress))
    monkeypatch.setattr("initadvisor.image.scan.open_stream", counting("streams read", open_stream))
    return counts


def work_through(host: Host, source: Source) -> None:
    """Estimate, then build."""

    wanted, _ = build_commands(host, unknown, SETTINGS, image_sha256=source.sha256)
    assert estimates(host, unknown, source, wanted, observer=Unseen()).skipped == ()
    assert build_candidates(host, unknown, source, SETTINGS).skipped == ()


@pytest.mark.parametrize("codec", COMPRESSED)
def test_estimates_and_builds_take_what_reading_the_image_unpacked(
    host: Host, tmp_path: Path, payload: bytes, unpackings: Unpackings, codec: Codec
) -> None:
    image = write_image(tmp_path / "image", payload, early=early_archive(), codec=codec)
    with open_source(image, host=host) as source:
        assert unpackings == {"streams read": 1}
        work_through(host, source)
    assert unpackings["again"] == 0


def test_an_image_that_is_known_is_unpacked_when_it_is_needed_and_not_before(
    host: Host, tmp_path: Path, payload: bytes, unpackings: Unpackings
) -> None:
    image = write_image(tmp_path / "image", payload)
    with open_source(image, host=host):
        pass
    unpackings.clear()
    with open_source(image, host=host) as source:
        assert source.unpacked is None
        assert source.unpack_cpu_ms is None
        assert unpackings == {}
        work_through(host, source)
        # Once for the estimates, once for the builds: nothing is kept of it between the two.
        assert unpackings["again"] == 2
    unpackings.clear()
    with open_source(image, host=host) as source:
        work_through(host, source)
    assert unpackings == {}


@pytest.mark.parametrize("codec", list(COMPRESSORS))
def test_the_payload_is_the_same_whichever_way_it_comes(
    host: Host, tmp_path: Path, payload: bytes, codec: Codec
) -> None:
    image = write_image(tmp_path / "image", payload, early=early_archive(), codec=codec)
    for with_host in (host, None):
        with (
            open_source(image, host=with_host) as source,
            LazyPayload(source, tmp_path, threading.Event()) as lazy,
        ):
            reused = with_host is not None and codec is not Codec.CAT
            assert (source.unpacked is not None) is reused
            assert lazy.missing_bytes == (0 if reused else source.contents.main.unpacked_bytes)
            found = lazy.get()
            assert lazy.get() is found
            assert lazy.missing_bytes == 0
            assert found.size_bytes == len(payload)
            assert found.sha256 == hashlib.sha256(payload).hexdigest()
            assert os.pread(found.file.fileno(), len(payload) + 1, 0) == payload


def test_what_the_source_unpacked_outlives_whoever_used_it(
    host: Host, tmp_path: Path, payload: bytes
) -> None:
    image = write_image(tmp_path / "image", payload)
    with open_source(image, host=host) as source:
        with LazyPayload(source, tmp_path, threading.Event()) as lazy:
            lazy.get()
        assert source.unpacked
        assert not source.unpacked.closed
        kept = source.unpacked
    assert kept.closed


@pytest.mark.parametrize("codec", list(COMPRESSORS))
def test_the_time_of_unpacking_is_told_where_it_is_what_a_kernel_does(
    host: Host, tmp_path: Path, payload: bytes, codec: Codec
) -> None:
    """For the other formats reading adds a checksum, of which kernels know nothing."""
    image = write_image(tmp_path / "image", payload, early=early_archive(), codec=codec)
    with open_source(image, host=host) as source:
        assert (source.unpack_cpu_ms is not None) is (codec in AS_A_KERNEL_DOES)
        assert source.unpack_cpu_ms is None or source.unpack_cpu_ms > 0
    with open_source(image) as source:
        assert source.unpack_cpu_ms is None


def test_a_unified_image_keeps_the_content_of_its_initramfs(
    host: Host, tmp_path: Path, payload: bytes
) -> None:
    initrd = early_archive() + COMPRESSORS[Codec.XZ](payload)
    image = tmp_path / "linux.efi"
    image.write_bytes(uki(initrd, ucode=early_archive()))
    with (
        open_source(image, host=host) as source,
        LazyPayload(source, tmp_path, threading.Event()) as lazy,
    ):
        assert lazy.get().file is source.unpacked
        assert lazy.get().sha256 == hashlib.sha256(payload).hexdigest()


def test_without_room_it_is_unpacked_when_it_is_needed(
    host: Host, tmp_path: Path, payload: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "free_bytes", lambda _: 0)
    image = write_image(tmp_path / "image", payload)
    with open_source(image, host=host) as source:
        assert source.unpacked is None
        assert source.unpack_cpu_ms
        with LazyPayload(source, tmp_path, threading.Event()) as lazy:
            assert lazy.get().size_bytes == len(payload)


def test_nothing_is_left_of_it(host: Host, tmp_path: Path, payload: bytes) -> None:
    image = write_image(tmp_path / "image", payload)
    with open_source(image, host=host) as source:
        assert source.unpacked
    files = [path.relative_to(host.cache_dir()) for path in host.cache_dir().rglob("*")]
    assert {str(path.parts[0]) for path in files} == {"contents"}


def test_told_to_stop_it_stops(tmp_path: Path, payload: bytes) -> None:
    image = write_image(tmp_path / "image", payload)
    stop = threading.Event()
    stop.set()
    with (
        open_source(image) as source,
        LazyPayload(source, tmp_path, stop) as lazy,
        pytest.raises(InitadvisorError, match="stopped"),
    ):
        lazy.get()
