"""The first answer is an estimate that says what a build could change; --build builds just that."""

from __future__ import annotations

import functools
import io
import lzma
import shutil
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import zstandard

from initadvisor.advise import recommend as evaluation
from initadvisor.advise import recommend as module
from initadvisor.advise.recommend import Request, recommend
from initadvisor.advise.recommendation import LIKE_TODAY
from initadvisor.candidates import decompression, estimates
from initadvisor.candidates.build import build_candidates, cached_candidates
from initadvisor.core.codecs import Codec
from initadvisor.core.config import Objective
from initadvisor.core.errors import InitadvisorError, ProgramError
from initadvisor.core.estimates import SizeSource
from initadvisor.core.settings import Setting
from initadvisor.decide.cost import Outcome
from initadvisor.decide.sampling import BLOCK_BYTES
from initadvisor.generators import ConfiguredSetting, InstalledImage, unknown
from initadvisor.host import Host
from initadvisor.host.load import OthersLoad
from initadvisor.image.contents import Verdict
from initadvisor.image.cpio import CpioWriter
from initadvisor.lab.observing import Unseen
from initadvisor.target.source import open_source
from initadvisor.target.target import Target
from tests.fakes.compressors import COMPRESSORS, fake_compressors
from tests.fixtures.content import mixed_content
from tests.fixtures.small_images import early_archive, write_image

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from initadvisor.advise.recommendation import Recommendation, Row
    from initadvisor.candidates.decompression import Stream
    from tests.fakes.runner import FakeRunner

RELEASE = "6.12.1-amd64"
CONTENT_BYTES = 800_000
CHOICE = tuple(Setting.parse(text) for text in ("zstd", "gzip", "lz4", "bzip2", "cat"))
SLOW_LOADER, FAST_LOADER = 1.0, 20_000.0
TODAY = Setting.parse("zstd")


@pytest.fixture
def runner() -> FakeRunner:
    """Compressors that work."""
    return fake_compressors()


@pytest.fixture
def host(tmp_path: Path, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine where samples of a few blocks are enough, and nothing was measured yet."""
    for name, content in (
        ("proc/cpuinfo", "model name\t: A Processor\n"),
        ("proc/self/mountinfo", "22 1 0:22 / / rw - tmpfs tmpfs rw\n"),
        ("proc/sys/kernel/random/boot_id", "a boot\n"),
        (f"boot/config-{RELEASE}", "CONFIG_BLK_DEV_INITRD=y\n" + every_codec(but="")),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setattr(estimates, "_LARGE_BYTES", 3 * BLOCK_BYTES)
    monkeypatch.setattr(estimates, "_SMALL_BYTES", 2 * BLOCK_BYTES)
    monkeypatch.setattr(estimates, "_SHORT_BYTES", 0)
    return Host(root=tmp_path, runner=runner)


def every_codec(*, but: str) -> str:
    options = {codec.spec.kernel_option for codec in COMPRESSORS} - {None, but}
    return "".join(f"{option}=y\n" for option in sorted(map(str, options)))


@functools.cache
def content() -> bytes:
    file = io.BytesIO()
    with CpioWriter(file) as writer:
        for directory in ("lib", "lib/modules", f"lib/modules/{RELEASE}"):
            writer.directory(directory)
        writer.file(f"lib/modules/{RELEASE}/modules.dep", mixed_content(CONTENT_BYTES))
    return file.getvalue()


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """An image for that kernel."""
    return write_image(tmp_path / "image", content(), early=early_archive())


def asked(host: Host, image: Path, *, loader: float = FAST_LOADER, **named: Any) -> Recommendation:  # noqa: ANN401
    request = Request(
        **{"image": image, "only": CHOICE, "read_speed_mb_s": loader, "overlap_ms": 0.0, **named}
    )
    return recommend(host, request, observer=Unseen())


def row(answer: Recommendation, setting: str) -> Row:
    return next(row for row in answer.rows if str(row.setting) == setting)


def built(host: Host) -> list[Setting]:
    return sorted(cached.candidate.setting for cached in cached_candidates(host))


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Setting, ...]]:
    """What was asked to be built, round by round."""
    asked_for: list[tuple[Setting, ...]] = []

    def noting(*args: Any, **named: Any) -> object:  # noqa: ANN401
        asked_for.append(tuple(args[3]))
        return build_candidates(*args, **named)

    monkeypatch.setattr(evaluation, "build_candidates", noting)
    return asked_for


def test_the_first_answer_is_sampled_but_for_todays_image(
    host: Host, image: Path, rounds: list[object]
) -> None:
    answer = asked(host, image)
    today = row(answer, str(answer.baseline))
    assert today.size_source is SizeSource.BUILT
    assert (today.size_bytes, today.size_log_sd) == (image.stat().st_size, 0)
    others = [found for found in answer.rows if found is not today]
    assert len(others) == len(CHOICE)
    assert {found.size_source for found in others} == {SizeSource.SAMPLED}
    assert {str(f.setting) for f in others if f.size_log_sd == 0} == {"cat"}
    assert all(found.build_cpu_s is not None for found in others)
    assert rounds == []
    assert built(host) == []


def test_a_busy_machine_is_said_and_makes_times_less_certain(
    host: Host, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet = asked(host, image)
    shutil.rmtree(host.cache_dir())
    monkeypatch.setattr(OthersLoad, "part", lambda _: 0.9)
    busy = asked(host, image)
    said = "other programs used 90 % of the processors: times are less certain"
    assert said not in quiet.warnings
    assert busy.warnings[0] == said

    def spread(answer: Recommendation) -> float:
        unpack = row(answer, "gzip").unpack_ms
        return unpack.high / unpack.low

    assert spread(busy) > 1.2 * spread(quiet)

    timed: list[str] = []
    honest = decompression.time_once

    def noting(host: Host, stream: Stream) -> float:
        timed.append(stream.sha256)
        return honest(host, stream)

    monkeypatch.setattr(decompression, "time_once", noting)
    assert asked(host, image).warnings == busy.warnings
    assert timed == []
    (host.root / "proc/loadavg").write_text("0.10 2.00 3.00 1/100 1\n")
    monkeypatch.setattr(OthersLoad, "part", lambda _: 0.0)
    assert said not in asked(host, image).warnings
    assert len(timed) == 1


def test_sampled_sizes_are_those_of_whole_images(host: Host, image: Path) -> None:
    estimated = asked(host, image)
    with open_source(image) as source:
        real = build_candidates(host, unknown, source, CHOICE)
    assert real.skipped == ()
    for candidate in real.candidates:
        [found] = [
            r
            for r in estimated.rows
            if r.setting.codec is candidate.setting.codec and r.size_source is SizeSource.SAMPLED
        ]
        assert found.size_bytes == pytest.approx(candidate.size_bytes, rel=0.12)


def test_it_names_what_a_build_could_change(host: Host, image: Path) -> None:
    for loader in (SLOW_LOADER, FAST_LOADER):
        answer = asked(host, image, loader=loader)
        assert answer.decision.leader in answer.unbuilt
        assert answer.baseline not in answer.unbuilt
        assert len(set(answer.unbuilt)) == len(answer.unbuilt)
        for setting in answer.unbuilt:
            assert row(answer, str(setting)).size_source is SizeSource.SAMPLED


@pytest.mark.parametrize("loader", [SLOW_LOADER, FAST_LOADER])
def test_build_builds_exactly_that(
    host: Host, image: Path, rounds: list[tuple[Setting, ...]], loader: float
) -> None:
    first = asked(host, image, loader=loader)
    answer = asked(host, image, loader=loader, build=True)
    assert rounds == [first.unbuilt]
    assert not set(answer.unbuilt) & set(first.unbuilt)
    assert built(host) == sorted(first.unbuilt)
    assert len(built(host)) < len(CHOICE)
    sources = {str(found.setting): found.size_source for found in answer.rows}
    for setting in first.unbuilt:
        assert sources[str(setting)] is SizeSource.BUILT
    assert SizeSource.SAMPLED in sources.values()
    if not answer.unbuilt:
        assert asked(host, image, loader=loader, build=True).decision == answer.decision
        assert len(rounds) == 1


def test_what_a_row_names_by_its_level_is_built_as_it_was_planned(
    host: Host, image: Path, rounds: list[tuple[Setting, ...]]
) -> None:
    """Of today's image only the codec is known, so the default level is a row of its own."""
    faster = functools.partial(zstandard.compress, level=-7)
    image.write_bytes(early_archive() + faster(content()))
    choice = (TODAY, Setting.parse("lz4"))
    first = asked(host, image, only=choice, objective=Objective.SIZE)
    assert [str(setting) for setting in first.unbuilt] == ["zstd -3"]
    answer = asked(host, image, only=choice, objective=Objective.SIZE, build=True)
    assert rounds == [(TODAY,)]
    assert built(host) == [TODAY]
    assert row(answer, "zstd -3").size_source is SizeSource.BUILT
    assert str(answer.decision.setting) == "zstd -3"


def test_an_estimate_of_what_may_be_todays_image_is_no_gain(
    host: Host, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As near as an estimate of a real image comes; what three blocks give is farther off.
    monkeypatch.setattr(estimates, "_LARGE_BYTES", CONTENT_BYTES)
    for only in ((TODAY,), CHOICE):
        for objective in Objective:
            answer = asked(host, image, only=only, objective=objective, build=True)
            [today, like] = (row(answer, name) for name in ("zstd", "zstd -3"))
            assert like.unusable == LIKE_TODAY
            assert (like.saving_ms.low, like.saving_ms.high) == (0, 0)
            assert (like.unpack_ms, like.total_ms) == (today.unpack_ms, today.total_ms)
            assert like.setting not in {answer.decision.setting, answer.decision.leader}
            assert TODAY not in built(host)
    with open_source(image) as source:
        build_candidates(host, unknown, source, [TODAY])
    answer = asked(host, image)
    assert "same bytes" in answer.baseline_source
    assert "zstd -3" not in {str(found.setting) for found in answer.rows}


def test_what_was_built_once_is_not_an_estimate_any_more(host: Host, image: Path) -> None:
    unbuilt = asked(host, image, build=True).unbuilt
    answer = asked(host, image)
    assert answer.unbuilt == unbuilt
    for setting in built(host):
        found = row(answer, str(setting))
        assert (found.size_source, found.size_log_sd) == (SizeSource.BUILT, 0)


@pytest.mark.parametrize("build", [False, True])
def test_the_second_time_no_program_is_run_but_for_its_version(
    host: Host, image: Path, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch, build: bool
) -> None:
    first = asked(host, image, build=build)
    runner.calls.clear()
    read: Counter[str] = Counter()
    for name in ("scan.open_stream", "decompressors.decompress.open_stream"):
        monkeypatch.setattr(
            f"initadvisor.image.{name}", lambda *_args, _name=name, **_named: read.update([_name])
        )
    second = asked(host, image, build=build)
    assert {argv[1:] for argv in runner.argvs} == {("--version",)}
    assert read == {}
    assert [r.size_bytes for r in second.rows] == [r.size_bytes for r in first.rows]
    assert second.decision == first.decision
    assert second.unbuilt == first.unbuilt


@dataclass
class Configured:
    """A generator that is configured for what made the image."""

    NAME: str = "dracut"
    detect = staticmethod(unknown.detect)
    images = staticmethod(unknown.images)
    affected = staticmethod(unknown.affected)
    build = staticmethod(unknown.build)
    noted_inside = staticmethod(unknown.noted_inside)
    content_variants = staticmethod(unknown.content_variants)
    compressor = staticmethod(unknown.compressor)
    default_level = staticmethod(unknown.default_level)
    unusable = staticmethod(unknown.unusable)
    context = staticmethod(unknown.context)
    version = staticmethod(unknown.version)
    needs_own_uncompressed = staticmethod(unknown.needs_own_uncompressed)
    build_uncompressed = staticmethod(unknown.build_uncompressed)
    rewritten = staticmethod(unknown.rewritten)

    def configured(
        self,
        host: Host,
        kernel_release: str,
        *,
        texts: Mapping[Path, str] | None = None,
        image: InstalledImage | None = None,
    ) -> ConfiguredSetting:
        """Return today's setting."""
        del host, kernel_release, texts, image
        return ConfiguredSetting(setting=TODAY, source="a test")


def test_todays_setting_has_one_row_with_the_estimated_cost_of_building_it(
    host: Host, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Target(
        path=image,
        generator=Configured(),
        installed=InstalledImage(path=image, kernel_release=RELEASE),
    )
    monkeypatch.setattr(module, "find_target", lambda *_: target)
    answer = asked(host, image)
    assert answer.baseline == TODAY
    assert [found.setting for found in answer.rows].count(TODAY) == 1
    today = row(answer, str(TODAY))
    assert (today.size_source, today.size_bytes) == (SizeSource.BUILT, image.stat().st_size)
    assert today.saving_ms.mean == 0
    assert today.build_cpu_s == pytest.approx(1.5 * CONTENT_BYTES / (3 * BLOCK_BYTES), rel=0.01)
    assert TODAY not in answer.unbuilt


def test_the_smallest_image_may_be_an_estimate_and_then_is_to_be_built(
    host: Host, image: Path
) -> None:
    answer = asked(host, image, objective=Objective.SIZE)
    smallest = min(answer.rows, key=lambda found: found.size_bytes)
    assert answer.unbuilt[0] == smallest.setting
    certain = asked(host, image, objective=Objective.SIZE, build=True)
    assert certain.unbuilt == ()
    assert smallest.setting in built(host)
    assert certain.decision.outcome is Outcome.SWITCH
    chosen = row(certain, str(certain.decision.setting))
    assert chosen.size_source is SizeSource.BUILT


def test_what_the_kernel_cannot_unpack_is_refused_unbuilt(host: Host, image: Path) -> None:
    config = host.path(f"/boot/config-{RELEASE}")
    config.write_text("CONFIG_BLK_DEV_INITRD=y\n" + every_codec(but="CONFIG_RD_XZ"))
    only = tuple(Setting.parse(text) for text in ("xz", "gzip"))
    for objective in Objective:
        answer = asked(host, image, only=only, objective=objective, build=True)
        found = row(answer, "xz")
        assert found.lint.verdict is Verdict.REFUSED
        assert "CONFIG_RD_XZ" in found.lint.reasons[0]
        assert str(answer.decision.leader) != "xz"
        assert Setting.parse("xz") not in built(host)


def test_a_stream_that_no_kernel_unpacks_is_refused_unbuilt(
    host: Host, image: Path, runner: FakeRunner
) -> None:
    only = tuple(Setting.parse(text) for text in ("xz", "gzip"))
    runner.answer(
        unknown.compressor(host, only[0]), filter=functools.partial(lzma.compress, preset=0)
    )
    for _first_and_second in range(2):
        answer = asked(host, image, only=only, objective=Objective.SIZE)
        found = row(answer, "xz")
        assert found.size_source is SizeSource.SAMPLED
        assert found.lint.verdict is Verdict.REFUSED
        assert "xz check CRC64" in found.lint.reasons[0]
        assert str(answer.decision.leader) != "xz"
        assert "xz" not in {str(setting) for setting in answer.unbuilt}


def fails_on(size_bytes: range, compress: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """Return a compressor that does not work on contents of some length."""

    def run(data: bytes) -> bytes:
        if len(data) in size_bytes:
            msg = "cat was killed by signal 9"
            raise ProgramError(msg)
        return compress(data)

    return run


WHOLE, PART = range(CONTENT_BYTES, 1 << 40), range(CONTENT_BYTES)


def test_a_setting_that_cannot_be_sampled_is_a_gap(
    host: Host, image: Path, runner: FakeRunner
) -> None:
    runner.answer(
        unknown.compressor(host, Setting.parse("gzip")),
        filter=fails_on(PART, COMPRESSORS[Codec.GZIP]),
    )
    answer = asked(host, image)
    assert [(str(gap.setting), gap.reason) for gap in answer.skipped] == [
        ("gzip", "cat was killed by signal 9")
    ]
    assert "gzip" not in {str(found.setting) for found in answer.rows}


def test_a_setting_that_cannot_be_built_is_a_gap_and_no_estimate_any_more(
    host: Host, image: Path, runner: FakeRunner
) -> None:
    runner.answer(["cat"], filter=fails_on(WHOLE, bytes))
    runner.answer(["cat", "--version"], "cat 1.0")
    assert str(asked(host, image).decision.leader) == "cat"
    answer = asked(host, image, build=True)
    assert [(str(gap.setting), gap.reason) for gap in answer.skipped] == [
        ("cat", "cat was killed by signal 9")
    ]
    assert "cat" not in {str(found.setting) for found in answer.rows}
    assert str(answer.decision.leader) != "cat"
    assert "cat" not in {str(setting) for setting in answer.unbuilt}


def test_where_the_only_other_setting_cannot_be_built_the_reason_is_said(
    host: Host, image: Path, runner: FakeRunner
) -> None:
    runner.answer(["cat"], filter=fails_on(WHOLE, bytes))
    runner.answer(["cat", "--version"], "cat 1.0")
    with pytest.raises(InitadvisorError, match=r"nothing to compare .*: cat: cat was killed"):
        asked(host, image, only=(Setting.parse("cat"),), build=True)


def test_where_no_compressor_works_there_is_nothing_to_compare(
    host: Host, image: Path, runner: FakeRunner
) -> None:
    names: Sequence[str] = ("zstd", "gzip")
    for name in names:
        runner.answer(unknown.compressor(host, Setting.parse(name)), returncode=1)
    with pytest.raises(InitadvisorError, match="nothing to compare") as caught:
        asked(host, image, only=tuple(Setting.parse(name) for name in names))
    assert "exited with status 1" in caught.value.message
