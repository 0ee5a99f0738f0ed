"""What was found in an image once is found again, and nothing else is taken for it."""

from __future__ import annotations

import copy
import errno
import hashlib
import io
import json
import os
import tempfile
from typing import TYPE_CHECKING, Any

import pytest

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import BadImageError
from initadvisor.host import Host
from initadvisor.image.scan import scan
from initadvisor.target import source as module
from initadvisor.target.source import ContentSpool, known_contents, open_source, read_contents
from tests.fakes.runner import FakeRunner
from tests.fixtures.small_images import archive, early_archive, uki, write_image
from tests.fixtures.variants import exhibits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from initadvisor.image.contents import ImageContents

DIGEST = "0123456789abcdef" * 4
Record = dict[str, Any]
Place = tuple[str | int, ...]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine that runs nothing."""
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    return Host(root=tmp_path, runner=FakeRunner())


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """An image with an early archive and a main one."""
    return write_image(tmp_path / "image", archive(), early=early_archive(), codec=Codec.XZ)


def record(host: Host) -> Path:
    [path] = (host.cache_dir() / "contents").iterdir()
    return path


def read(host: Host, data: bytes, *, sha256: str) -> ImageContents:
    tee = ContentSpool(host)
    try:
        return read_contents(host, io.BytesIO(data), sha256=sha256, spool=tee)
    finally:
        tee.close()


def contents_of(host: Host, image: Path) -> ImageContents:
    with open_source(image, host=host) as source:
        return source.contents


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every scan of an image, as it is made."""
    made: list[object] = []

    def counted(file: object, **named: Any) -> ImageContents:  # noqa: ANN401
        made.append(file)
        return scan(file, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "scan", counted)
    return made


def test_of_every_image_that_can_be_read_the_same_is_known_afterwards(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # hundreds of them take long on a busy disk
    readable = 0
    for exhibit in exhibits():
        digest = hashlib.sha256(exhibit.image).hexdigest()
        try:
            expected = scan(io.BytesIO(exhibit.image))
        except BadImageError:
            with pytest.raises(BadImageError):
                read(host, exhibit.image, sha256=digest)
            assert known_contents(host, digest, size_bytes=len(exhibit.image)) is None, exhibit.name
            continue
        assert read(host, exhibit.image, sha256=digest) == expected, exhibit.name
        assert known_contents(host, digest, size_bytes=len(exhibit.image)) == expected, exhibit.name
        readable += 1
    assert readable > 100


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.LZOP])
def test_an_image_is_read_once(
    host: Host, tmp_path: Path, scans: list[object], codec: Codec
) -> None:
    image = write_image(tmp_path / "image", archive(), early=early_archive(), codec=codec)
    first = contents_of(host, image)
    assert contents_of(host, image) == first
    image.rename(tmp_path / "moved")
    assert contents_of(host, tmp_path / "moved") == first
    assert len(scans) == 1


def test_a_unified_image_is_read_once(host: Host, tmp_path: Path, scans: list[object]) -> None:
    image = tmp_path / "linux.efi"
    image.write_bytes(uki(write_image(tmp_path / "i", archive()).read_bytes()))
    assert contents_of(host, image) == contents_of(host, image)
    assert len(scans) == 1


def test_another_image_at_the_same_place_is_read_anew(
    host: Host, image: Path, scans: list[object]
) -> None:
    first = contents_of(host, image)
    write_image(image, archive(seed=b"x"))
    assert contents_of(host, image) != first
    assert len(scans) == 2


def test_what_is_known_is_for_its_owner_only(host: Host, image: Path) -> None:
    """File names of an image that only root may read."""
    contents_of(host, image)
    assert record(host).stat().st_mode & 0o777 == 0o600


def test_without_a_host_nothing_is_kept(host: Host, image: Path) -> None:
    with open_source(image) as source:
        assert source.contents == scan(io.BytesIO(image.read_bytes()))
    assert not host.cache_dir().exists()


def places(value: object, path: Place = ()) -> Iterator[Place]:
    """Yield the way to everything in a record."""
    if path:
        yield path
    items = enumerate(value) if isinstance(value, list) else ()
    for step, item in value.items() if isinstance(value, dict) else items:
        yield from places(item, (*path, step))


def put(target: Any, place: Place, value: object) -> None:  # noqa: ANN401
    """Set another value at a place of a record."""
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value


WRONG: tuple[object, ...] = (
    {},
    {"type": "Codec"},
    {"type": []},
    1.5,
    -1,
    [["x"]],
    [None],
    "\0wrong",
)


def test_a_wrong_value_anywhere_has_the_image_read_anew(
    host: Host, image: Path, scans: list[object]
) -> None:
    expected = contents_of(host, image)
    path = record(host)
    kept = json.loads(path.read_bytes())
    digest = hashlib.sha256(image.read_bytes()).hexdigest()
    count = 0
    for place in places(kept):
        for value in WRONG:
            changed = copy.deepcopy(kept)
            put(changed, place, value)
            path.write_text(json.dumps(changed))
            found = known_contents(host, digest, size_bytes=image.stat().st_size)
            # A text may stand for another text; whatever is taken has the right types throughout.
            assert found is None or isinstance(value, str), (place, value)
            count += 1
    assert count > 500
    assert len(scans) == 1
    assert contents_of(host, image) == expected
    assert len(scans) == 2
    assert known_contents(host, digest, size_bytes=image.stat().st_size) == expected


def without_segments(kept: Record) -> Record:
    return {**kept, "contents": {**kept["contents"], "segments": []}}


def nested(_: Record) -> list[object]:
    value: list[object] = []
    for _number in range(900):
        value = [value]
    return value


HOSTILE: dict[str, Callable[[Record], object]] = {
    "another version": lambda kept: {**kept, "version": "0.0.1"},
    "no version": lambda kept: {"contents": kept["contents"]},
    "no contents": lambda kept: {"version": kept["version"]},
    "a part in place of the whole": lambda kept: {
        **kept,
        "contents": kept["contents"]["segments"][0],
    },
    "no segments": without_segments,
    "a list": lambda kept: [kept],
    "null": lambda _: None,
    "nested lists": lambda kept: {**kept, "contents": nested(kept)},
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_record_of_something_else_has_the_image_read_anew(
    host: Host, image: Path, scans: list[object], change: Callable[[Record], object]
) -> None:
    expected = contents_of(host, image)
    path = record(host)
    path.write_text(json.dumps(change(json.loads(path.read_bytes()))))
    assert contents_of(host, image) == expected
    assert contents_of(host, image) == expected
    assert len(scans) == 2


@pytest.mark.parametrize(
    "content",
    [b"", b"garbage", b"\xff" * 99, b"[" * 300_000, b'{"version": "0', b" " * (17 << 20)],
    ids=["empty", "garbage", "no text", "deep", "cut", "huge"],
)
def test_what_is_no_record_has_the_image_read_anew(
    host: Host, image: Path, scans: list[object], content: bytes
) -> None:
    expected = contents_of(host, image)
    record(host).write_bytes(content)
    assert contents_of(host, image) == expected
    assert len(scans) == 2


def test_where_nothing_can_be_kept_it_is_read_all_the_same(
    host: Host, image: Path, scans: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object, **_named: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    assert contents_of(host, image) == contents_of(host, image)
    assert len(scans) == 2
    assert list(host.cache_dir().rglob("*")) == [host.cache_dir() / "contents"]


def test_a_cache_that_is_no_directory_is_no_obstacle(
    host: Host, image: Path, scans: list[object]
) -> None:
    host.cache_dir().write_text("no directory")
    assert contents_of(host, image) == contents_of(host, image)
    assert len(scans) == 2
