"""Candidates are derived, verified, kept by content, and nothing half-built is taken for one."""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.candidates import build as module
from initadvisor.candidates.build import build_candidates, cached_candidates, kept_candidates
from initadvisor.candidates.plan import build_commands
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, ProgramError, UnsafeError
from initadvisor.core.settings import Setting
from initadvisor.generators import unknown
from initadvisor.host import Host
from initadvisor.host.lock import lock_file, locked
from initadvisor.host.run import Priority
from initadvisor.image.decompressors.decompress import decompress
from initadvisor.records.built_image import BuiltImage, SkippedSetting
from initadvisor.target.source import open_source
from tests.fakes.compressors import COMPRESSORS, fake_compressors
from tests.fixtures.payload import main_codec
from tests.fixtures.small_images import archive, early_archive, write_image

if TYPE_CHECKING:
    from collections.abc import Callable

    from initadvisor.candidates.build import BuildOutcome
    from tests.fakes.runner import FakeRunner

ALL = [Setting(codec) for codec in COMPRESSORS]
ZSTD, GZIP = Setting(Codec.ZSTD), Setting(Codec.GZIP)


@dataclass
class Witness:
    """Notes what it is told."""

    events: list[tuple[str, str]] = field(default_factory=list)
    progress: list[tuple[str, float]] = field(default_factory=list)

    def doing(self, what: str, *, done: int = 0, of: int = 0) -> None:
        """Note what is said to be done."""
        self.progress.append((what, done / of))

    def started(self, setting: Setting) -> None:
        """Note a start."""
        self.events.append(("started", str(setting)))

    def finished(self, candidate: BuiltImage, *, cached: bool) -> None:
        """Note a candidate."""
        self.events.append(("cached" if cached else "built", str(candidate.setting)))

    def skipped(self, gap: SkippedSetting) -> None:
        """Note a gap."""
        self.events.append(("gap", str(gap.setting)))


@pytest.fixture
def runner() -> FakeRunner:
    """Compressors that work."""
    return fake_compressors()


@pytest.fixture
def host(tmp_path: Path, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine of its own, whoever runs the tests."""
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    return Host(root=tmp_path, runner=runner)


@pytest.fixture
def payload() -> bytes:
    """The unpacked content of the image."""
    return archive()


@pytest.fixture
def image(tmp_path: Path, payload: bytes) -> Path:
    """An image with an early archive and a main one."""
    return write_image(tmp_path / "image", payload, early=early_archive())


def build(host: Host, image: Path, *settings: Setting, **options: object) -> BuildOutcome:
    """Build, one at a time unless told otherwise."""
    with open_source(image) as source:
        return build_candidates(host, unknown, source, settings, **{"jobs": 1, **options})  # type: ignore[arg-type]


def unpacked(candidate: BuiltImage) -> bytes:
    """Return all that the setting compressed."""
    with Path(candidate.path).open("rb") as file:
        size_bytes = candidate.size_bytes - candidate.main_offset
        pieces = decompress(candidate.setting.codec, file, candidate.main_offset, size_bytes)
        return b"".join(bytes(piece) for piece in pieces)


def directory(host: Host) -> Path:
    return host.cache_dir() / "candidates"


def remains(host: Host) -> list[str]:
    """Everything in the cache that belongs to no candidate."""
    kept = {Path(c.candidate.path).stem for c in cached_candidates(host)}
    return [p.name for p in directory(host).iterdir() if p.stem not in kept]


@pytest.mark.parametrize("codec", list(COMPRESSORS))
def test_a_candidate_has_the_same_payload_behind_the_same_early_archive(
    host: Host, image: Path, payload: bytes, codec: Codec
) -> None:
    early = image.read_bytes()[: -len(COMPRESSORS[Codec.ZSTD](payload))]
    (candidate,) = build(host, image, Setting(codec)).candidates
    data = Path(candidate.path).read_bytes()
    assert data[: len(early)] == early
    assert candidate.main_offset == len(early)
    assert main_codec(Path(candidate.path)) is codec
    assert unpacked(candidate) == payload
    assert candidate.size_bytes == len(data)
    assert candidate.sha256 == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("codec", list(COMPRESSORS))
def test_an_image_in_any_codec_can_be_the_source(
    host: Host, tmp_path: Path, payload: bytes, codec: Codec
) -> None:
    image = write_image(tmp_path / "source", payload, codec=codec, early=early_archive())
    (candidate,) = build(host, image, GZIP).candidates
    assert unpacked(candidate) == payload


@pytest.mark.parametrize("front", [b"", early_archive(), gzip.compress(archive())])
def test_of_a_segment_that_holds_nothing_no_candidate_is_derived(
    host: Host, tmp_path: Path, front: bytes
) -> None:
    image = write_image(tmp_path / "image", b"", early=front)
    with pytest.raises(InitadvisorError, match="its last segment holds nothing"):
        build(host, image, GZIP)
    with open_source(image) as source:
        wanted, _ = build_commands(host, unknown, [GZIP], image_sha256=source.sha256)
        with pytest.raises(InitadvisorError, match="its last segment holds nothing"):
            kept_candidates(host, unknown, source, wanted)


def test_an_uncompressed_archive_starts_where_the_kernel_looks_for_it(
    host: Host, tmp_path: Path, payload: bytes
) -> None:
    """The part in front is a compressed one here, which may end at any byte."""
    fronts = (gzip.compress(archive(seed=b"x" * number)) for number in range(50))
    front = next(front for front in fronts if len(front) % 4 == 1)
    image = tmp_path / "image"
    image.write_bytes(front + COMPRESSORS[Codec.XZ](payload))
    (candidate,) = build(host, image, Setting(Codec.CAT)).candidates
    data = Path(candidate.path).read_bytes()
    assert candidate.main_offset % 4 == 0
    assert data[candidate.main_offset :] == payload
    assert data[: len(front)] == front


def test_what_it_took_is_the_compressors_own(host: Host, image: Path, runner: FakeRunner) -> None:
    (candidate,) = build(host, image, ZSTD).candidates
    assert (candidate.build_cpu_s, candidate.build_peak_bytes) == (1.5, 12_000_000)
    assert candidate.command == unknown.compressor(host, ZSTD)
    calls = [call for call in runner.calls if call.argv == candidate.command]
    assert [call.priority for call in calls] == [Priority.IDLE]


def test_nothing_is_built_twice(host: Host, image: Path, runner: FakeRunner) -> None:
    first = build(host, image, *ALL)
    assert first.built == len(ALL)
    runner.calls.clear()
    second = build(host, image, *ALL)
    assert second.built == 0
    assert second.candidates == first.candidates
    assert all(call.argv[1:] == ("--version",) for call in runner.calls)


def test_a_copy_of_the_image_has_the_same_candidates(host: Host, image: Path) -> None:
    build(host, image, ZSTD)
    copy = image.with_name("copy")
    copy.write_bytes(image.read_bytes())
    assert build(host, copy, ZSTD).built == 0


@pytest.mark.parametrize("change", ["image", "version"])
def test_another_image_or_version_is_built_anew(
    host: Host, image: Path, payload: bytes, runner: FakeRunner, change: str
) -> None:
    build(host, image, GZIP)
    if change == "image":
        write_image(image, payload + bytes(512))
    else:
        runner.answer("gzip --version", "gzip 2.0\n")
    assert build(host, image, GZIP).built == 1


def test_a_setting_by_another_name_is_the_same_candidate(host: Host, image: Path) -> None:
    @dataclass(frozen=True)
    class Alias:
        """Writes both settings with one command."""

        def __getattr__(self, name: str) -> object:
            if name == "compressor":
                return lambda *_: ("zstd", "-c")
            return getattr(unknown, name)

    three = Setting(Codec.ZSTD, ("-3",))
    with open_source(image) as source:
        build_candidates(host, Alias(), source, [ZSTD])  # type: ignore[arg-type]
        result = build_candidates(host, Alias(), source, [three])  # type: ignore[arg-type]
    assert result.built == 0
    assert [candidate.setting for candidate in result.candidates] == [three]


def test_a_missing_compressor_is_a_gap_and_the_rest_is_built(
    host: Host, image: Path, runner: FakeRunner
) -> None:
    runner.programs = ["gzip"]
    result = build(host, image, ZSTD, GZIP)
    assert [c.setting for c in result.candidates] == [GZIP]
    assert result.skipped == (SkippedSetting(setting=ZSTD, reason="zstd is not installed"),)


def test_a_compressor_that_fails_is_a_gap_with_its_reason(
    host: Host, image: Path, runner: FakeRunner
) -> None:
    words = "zstd -q -T0 -c exited with status 1: No space left on device"
    runner.answer("zstd", error=ProgramError(words))
    runner.answer("zstd --version", "zstd 1.0\n")
    result = build(host, image, ZSTD, GZIP)
    assert result.skipped == (SkippedSetting(setting=ZSTD, reason=words),)
    assert [c.setting for c in result.candidates] == [GZIP]
    assert remains(host) == []


@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        (gzip.compress, "zstd wrote gzip, not zstd"),
        (lambda data: data, "zstd wrote cat, not zstd"),
        (lambda _: b"", "zstd wrote something, not zstd"),
        (lambda _: b"\x28\xb5", "cannot be unpacked"),
        (lambda data: COMPRESSORS[Codec.ZSTD](data)[:-10], "cannot be unpacked"),
        (lambda data: COMPRESSORS[Codec.ZSTD](data) + b"junk", "cannot be unpacked"),
        (lambda data: COMPRESSORS[Codec.ZSTD](data[:-512]), "something else"),
        (lambda data: COMPRESSORS[Codec.ZSTD](data + bytes(512)), "unpacks to more than"),
        (lambda _: COMPRESSORS[Codec.ZSTD](bytes(100 << 20)), "unpacks to more than"),
    ],
    ids=["other codec", "nothing done", "empty", "magic", "cut", "junk", "less", "more", "bomb"],
)
def test_a_compressor_that_lies_is_found_out(
    host: Host, image: Path, runner: FakeRunner, lie: Callable[[bytes], bytes], reason: str
) -> None:
    runner.answer("zstd", filter=lie)
    runner.answer("zstd --version", "zstd 1.0\n")
    result = build(host, image, ZSTD)
    assert result.candidates == ()
    assert reason in result.skipped[0].reason
    assert "\n" not in result.skipped[0].reason
    assert remains(host) == []


def test_the_observer_is_told(host: Host, image: Path, runner: FakeRunner) -> None:
    build(host, image, GZIP)
    runner.programs = ["zstd", "gzip"]
    witness = Witness()
    build(host, image, GZIP, ZSTD, Setting(Codec.XZ), observer=witness)
    assert witness.events == [
        ("gap", "xz"),
        ("cached", "gzip"),
        ("started", "zstd"),
        ("built", "zstd"),
    ]
    assert witness.progress == [("building candidates: zstd", 0.0)]


def test_progress_goes_by_the_work_that_is_expected(host: Host, image: Path) -> None:
    witness = Witness()
    build(host, image, GZIP, ZSTD, observer=witness, jobs=1)
    [first, then] = witness.progress
    assert first[1] == 0
    parts = {Codec.GZIP: 4.1, Codec.ZSTD: 0.5}  # by the table of costs, at their default levels
    of = parts[Codec(first[0].split()[-1])] / sum(parts.values())
    assert then[1] == pytest.approx(of, rel=0.01)


def test_several_are_built_at_once(host: Host, image: Path) -> None:
    result = build(host, image, *ALL, jobs=4)
    assert [c.setting for c in result.candidates] == ALL
    assert remains(host) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interruption_leaves_what_was_done_and_nothing_half_done(
    host: Host, image: Path, runner: FakeRunner, error: type[BaseException]
) -> None:
    class Impatient(Witness):
        def finished(self, candidate: BuiltImage, *, cached: bool) -> None:
            super().finished(candidate, cached=cached)
            raise error

    with pytest.raises(error):
        build(host, image, *ALL, observer=Impatient())
    assert runner.stopped
    assert remains(host) == []
    assert len(cached_candidates(host)) == 1


def test_only_one_build_runs(host: Host, image: Path) -> None:
    with (
        locked(lock_file(host.cache_dir(), "candidates"), what="another"),
        pytest.raises(InitadvisorError, match="already running"),
    ):
        build(host, image, ZSTD)


def test_what_is_cached_is_found_while_another_build_runs(host: Host, image: Path) -> None:
    build(host, image, ZSTD)
    with locked(lock_file(host.cache_dir(), "candidates"), what="another"):
        assert len(build(host, image, ZSTD).candidates) == 1


def test_remains_of_a_killed_build_are_no_candidates_and_go(host: Host, image: Path) -> None:
    build(host, image, ZSTD)
    (directory(host) / ".partial-abc").write_bytes(b"half")
    (directory(host) / "0123.img").write_bytes(b"without a record")
    (directory(host) / "4567.json").write_text("{}", encoding="ascii")
    (directory(host) / "89ab.img").write_bytes(b"with a bad record")
    (directory(host) / "89ab.json").write_text("{broken", encoding="ascii")
    assert len(cached_candidates(host)) == 1
    build(host, image, GZIP)
    assert remains(host) == []
    assert len(cached_candidates(host)) == 2


@pytest.mark.parametrize("how", ["content", "length", "removed", "record", "schema"])
def test_a_candidate_that_was_tampered_with_is_none(host: Host, image: Path, how: str) -> None:
    (candidate,) = build(host, image, ZSTD).candidates
    path = Path(candidate.path)
    record = path.with_suffix(".json")
    match how:
        case "content":
            path.write_bytes(bytes(candidate.size_bytes))
        case "length":
            path.write_bytes(path.read_bytes()[:-1])
        case "removed":
            path.unlink()
        case "record":
            record.write_text("[]", encoding="ascii")
        case _:
            text = json.dumps({**json.loads(record.read_text(encoding="utf-8")), "schema": 99})
            record.write_text(text, encoding="utf-8")
    assert cached_candidates(host) == ()
    again = build(host, image, ZSTD)
    assert again.built == 1
    assert again.candidates[0].sha256 == candidate.sha256


def test_candidates_are_for_their_owner_only(host: Host, image: Path) -> None:
    (candidate,) = build(host, image, ZSTD).candidates
    assert Path(candidate.path).stat().st_mode & 0o077 == 0


def test_without_room_nothing_is_begun(
    host: Host, image: Path, monkeypatch: pytest.MonkeyPatch, runner: FakeRunner
) -> None:
    monkeypatch.setattr(module, "free_bytes", lambda _: 50_000_000)
    with pytest.raises(InitadvisorError, match="50 MB are free"):
        build(host, image, ZSTD)
    assert all(call.argv[1:] == ("--version",) for call in runner.calls)


def test_when_the_room_runs_out_the_rest_are_gaps(
    host: Host, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def free(path: Path) -> int:
        return 80_000_000 if len(list(path.glob("*.json"))) < 2 else 60_000_000

    monkeypatch.setattr(module, "free_bytes", free)
    result = build(host, image, *ALL)
    assert len(result.candidates) == 2
    assert len(result.skipped) == len(ALL) - 2
    assert all("no room left" in gap.reason for gap in result.skipped)


def test_a_disk_that_fills_up_anyhow_is_a_gap(
    host: Host, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from initadvisor.candidates import builder as build_module

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(build_module, "append_range", full)
    result = build(host, image, ZSTD)
    assert result.skipped[0].reason == "cannot write the candidate: No space left on device"
    assert remains(host) == []


def test_an_image_with_a_boot_configuration_is_refused(host: Host, image: Path) -> None:
    """Its candidates would boot without it."""
    with open_source(image) as source:
        contents = replace(source.contents, bootconfig=source.contents.initrd)
        changed = replace(source, contents=contents)
        with pytest.raises(UnsafeError, match="boot configuration"):
            build_candidates(host, unknown, changed, [ZSTD])


def test_an_image_with_something_behind_its_last_segment_is_refused(
    host: Host, image: Path
) -> None:
    """With a destroyed main segment, the microcode in front would be taken for it."""
    with image.open("ab") as file:
        file.write(b"JUNKjunk")
    with (
        open_source(image) as source,
        pytest.raises(UnsafeError, match=r"8 bytes at offset .* are no segment"),
    ):
        build_candidates(host, unknown, source, [ZSTD])


def test_when_the_limit_is_exceeded_other_images_candidates_go_first(
    host: Host, image: Path, tmp_path: Path
) -> None:
    other = write_image(tmp_path / "other", archive(seed=b"other"))
    build(host, other, ZSTD, GZIP)
    result = build(host, image, ZSTD, GZIP, cache_limit_bytes=0)
    kept = [c.candidate for c in cached_candidates(host)]
    assert sorted(kept, key=str) == sorted(result.candidates, key=str)
