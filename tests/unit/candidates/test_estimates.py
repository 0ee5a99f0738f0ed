"""Estimates are kept by what they were made of, and what is kept is not believed blindly."""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import tempfile
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from initadvisor.candidates import estimates as module
from initadvisor.candidates.estimates import estimates
from initadvisor.candidates.plan import build_commands
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.settings import Setting
from initadvisor.generators import unknown
from initadvisor.host import Host
from initadvisor.host.load import OthersLoad
from initadvisor.target.source import open_source
from tests.fakes.compressors import fake_compressors
from tests.fakes.observers import Steps
from tests.fixtures.small_images import archive, early_archive, write_image

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from initadvisor.candidates.estimates import Sampled, SampledCandidate
    from tests.fakes.runner import FakeRunner

SETTINGS = tuple(Setting(codec) for codec in (Codec.GZIP, Codec.ZSTD, Codec.CAT))
ZSTD = Setting(Codec.ZSTD)
PROCESSOR = "model name\t: A Processor\n"


@pytest.fixture
def runner() -> FakeRunner:
    """Compressors that work."""
    return fake_compressors()


@pytest.fixture
def host(tmp_path: Path, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine with a processor."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(PROCESSOR)
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    return Host(root=tmp_path, runner=runner)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """An image with an early archive and a main one."""
    return write_image(tmp_path / "image", archive(), early=early_archive())


def estimated(
    host: Host, image: Path, *settings: Setting, observer: Steps | None = None
) -> Sampled:
    with open_source(image, host=host) as source:
        wanted, gaps = build_commands(
            host, unknown, settings or SETTINGS, image_sha256=source.sha256
        )
        assert gaps == ()
        return estimates(host, unknown, source, wanted, observer=observer or Steps())


def compressed(runner: FakeRunner) -> list[str]:
    """Return the programs that were run for more than their version, and forget them."""
    programs = [argv[0] for argv in runner.argvs if "--version" not in argv]
    runner.calls.clear()
    return programs


def kept(host: Host) -> list[Path]:
    return sorted((host.cache_dir() / "sampled").iterdir())


def kept_of(host: Host, setting: Setting) -> Path:
    [path] = [
        p for p in kept(host) if json.loads(p.read_bytes())["sampled"]["setting"] == str(setting)
    ]
    return path


def test_what_was_timed_on_a_busy_machine_is_timed_again_on_a_quiet_one(
    host: Host, image: Path, runner: FakeRunner
) -> None:
    with pytest.MonkeyPatch.context() as busy:
        busy.setattr(OthersLoad, "part", lambda _: 0.5)
        estimated(host, image)
    assert sorted(compressed(runner)) == ["gzip", "zstd"]
    load = host.root / "proc/loadavg"
    load.parent.mkdir(exist_ok=True)
    load.write_text("3.00 2.00 1.00 3/100 1\n")
    assert {c.busy_part for c in estimated(host, image).candidates if c.decompress_ms} == {0.5}
    assert compressed(runner) == []
    load.write_text("0.01 2.00 3.00 1/100 1\n")
    assert {c.busy_part for c in estimated(host, image).candidates} == {0.0}
    assert sorted(compressed(runner)) == ["gzip", "zstd"]


def test_the_second_time_no_compressor_runs_and_nothing_is_unpacked(
    host: Host, image: Path, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = estimated(host, image)
    assert sorted(compressed(runner)) == ["gzip", "zstd"]
    monkeypatch.setattr(module, "sample_candidates", None)
    monkeypatch.setattr(module, "LazyPayload", None)
    second = estimated(host, image)
    assert compressed(runner) == []
    assert second == first
    assert tuple(candidate.setting for candidate in second.candidates) == SETTINGS


def test_they_are_kept_by_the_content_wherever_it_is(
    host: Host, image: Path, runner: FakeRunner
) -> None:
    first = estimated(host, image)
    moved = image.with_name("moved")
    shutil.copy(image, moved)
    compressed(runner)
    assert estimated(host, moved) == first
    assert compressed(runner) == []


def test_another_content_is_sampled_anew(host: Host, image: Path, runner: FakeRunner) -> None:
    estimated(host, image)
    write_image(image, archive(seed=b"other"))
    compressed(runner)
    estimated(host, image)
    assert sorted(compressed(runner)) == ["gzip", "zstd"]


def test_another_version_of_a_compressor_is_sampled_anew_and_only_that(
    host: Host, image: Path, runner: FakeRunner
) -> None:
    estimated(host, image)
    compressed(runner)
    runner.answer("zstd --version", "zstd 2.0")
    estimated(host, image)
    assert compressed(runner) == ["zstd"]


def test_another_command_line_is_sampled_and_only_that(
    host: Host, image: Path, runner: FakeRunner
) -> None:
    estimated(host, image)
    compressed(runner)
    faster = Setting.parse("zstd -1")
    found = estimated(host, image, Setting(Codec.GZIP), faster, ZSTD)
    assert compressed(runner) == ["zstd"]
    assert tuple(candidate.setting for candidate in found.candidates) == (
        Setting(Codec.GZIP),
        faster,
        ZSTD,
    )


def test_another_processor_is_timed_anew(host: Host, image: Path, runner: FakeRunner) -> None:
    estimated(host, image)
    compressed(runner)
    (host.root / "proc/cpuinfo").write_text("model name\t: Another\n")
    estimated(host, image)
    assert sorted(compressed(runner)) == ["gzip", "zstd"]


def test_a_gap_is_not_kept(host: Host, image: Path, runner: FakeRunner) -> None:
    runner.answer(unknown.compressor(host, ZSTD), returncode=1)
    found = estimated(host, image)
    assert [gap.setting for gap in found.skipped] == [ZSTD]
    assert ZSTD not in {candidate.setting for candidate in found.candidates}
    runner.answers.pop()
    compressed(runner)
    assert estimated(host, image).skipped == ()
    assert compressed(runner) == ["zstd"]


def wrong(**values: object) -> Callable[[dict[str, Any]], object]:
    """Return what replaces values of an estimate."""
    return lambda record: {**record, "sampled": {**record["sampled"], **values}}


def wrong_size(**values: object) -> Callable[[dict[str, Any]], object]:
    return lambda record: wrong(main_bytes={**record["sampled"]["main_bytes"], **values})(record)


def without(name: str) -> Callable[[dict[str, Any]], object]:
    return lambda record: {
        **record,
        "sampled": {key: value for key, value in record["sampled"].items() if key != name},
    }


HOSTILE = {
    "no object": lambda _: [1, 2, 3],
    "text": lambda _: "sampled",
    "null": lambda _: None,
    "empty": lambda _: {},
    "another schema": lambda record: {**record, "schema": 0},
    "no schema": lambda record: {"cpu": record["cpu"], "sampled": record["sampled"]},
    "an estimate that is a list": lambda record: {**record, "sampled": []},
    "an estimate that is null": lambda record: {**record, "sampled": None},
    "no size": without("main_bytes"),
    "no times": without("decompress_ms"),
    "a size that is a number": wrong(main_bytes=5),
    "a size that is text": wrong_size(median="5"),
    "a size that is null": wrong_size(median=None),
    "a size that is true": wrong_size(median=True),
    "a negative size": wrong_size(median=-5.0),
    "a size of nothing": wrong_size(median=0),
    "a size that is no number": wrong_size(median=float("nan")),
    "an infinite size": wrong_size(median=float("inf")),
    "a size of 400 digits": wrong_size(median=10**400),
    "an absurd size": wrong_size(median=1e300),
    "an absurd spread": wrong_size(log_sd=1e300),
    "a negative spread": wrong_size(log_sd=-1),
    "an endless spread": wrong_size(log_sd=float("inf")),
    "a spread that is text": wrong_size(log_sd="wide"),
    "a source that is a number": wrong_size(source=3),
    "times that are text": wrong(decompress_ms="1234"),
    "no time at all": wrong(decompress_ms=[]),
    "a time of nothing": wrong(decompress_ms=[1.0, 0.0]),
    "a negative time": wrong(decompress_ms=[-1.0]),
    "a time that is no number": wrong(decompress_ms=[float("nan")]),
    "a time that is null": wrong(decompress_ms=[None]),
    "a build time that is text": wrong(build_s="long"),
    "a build time that is no number": wrong(build_cpu_s=float("nan")),
    "a negative peak": wrong(build_peak_bytes=-1),
    "a peak that is a list": wrong(build_peak_bytes=[]),
    "no facts": without("facts"),
    "facts that are text": wrong(facts="zstd"),
    "no fact at all": wrong(facts=[]),
    "a fact that is none": wrong(facts=[None]),
    "a fact of another kind": wrong(facts=[{"type": "Setting", "codec": "zstd", "options": []}]),
    "half a fact": wrong(facts=[{"type": "ZstdFacts", "window_bytes": 5}]),
    "a fact that is not true": wrong(
        facts=[
            {
                "type": "ZstdFacts",
                "window_bytes": -1,
                "checksum": True,
                "dictionary_id": 0,
                "skippable": False,
            }
        ]
    ),
    "a sample of nothing": wrong(sample_bytes=None),
}


def truth(found: Sampled) -> list[SampledCandidate]:
    """Return what does not differ from one measurement to the next."""
    return [replace(one, decompress_ms=(), build_s=0, build_cpu_s=0) for one in found.candidates]


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_record_with_something_wrong_in_it_counts_as_none_and_is_replaced(
    host: Host, image: Path, runner: FakeRunner, change: Callable[[dict[str, Any]], object]
) -> None:
    first = estimated(host, image)
    compressed(runner)
    path = kept_of(host, ZSTD)
    path.write_text(json.dumps(change(json.loads(path.read_bytes()))))
    assert truth(estimated(host, image)) == truth(first)
    assert compressed(runner) == ["zstd"]
    estimated(host, image)
    assert compressed(runner) == []


@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 100, b"\xff\xfe{}", b'{"schema": 1', b"[" * 200_000, b"{" * 5, b"0" * 5000],
    ids=["empty", "zeros", "no text", "cut", "nested", "braces", "a long number"],
)
def test_what_is_no_record_counts_as_none(
    host: Host, image: Path, runner: FakeRunner, content: bytes
) -> None:
    estimated(host, image)
    compressed(runner)
    for path in kept(host):
        path.write_bytes(content)
    assert len(estimated(host, image).candidates) == len(SETTINGS)
    assert sorted(compressed(runner)) == ["gzip", "zstd"]


@pytest.mark.parametrize("cut_at", [1, 50, 100, -30, -1])
def test_a_record_that_was_cut_counts_as_none(
    host: Host, image: Path, runner: FakeRunner, cut_at: int
) -> None:
    estimated(host, image)
    compressed(runner)
    path = kept_of(host, ZSTD)
    path.write_bytes(path.read_bytes()[:cut_at])
    estimated(host, image)
    assert compressed(runner) == ["zstd"]


def test_where_nothing_can_be_kept_the_answer_is_there_all_the_same(
    host: Host, image: Path, runner: FakeRunner, caplog: pytest.LogCaptureFixture
) -> None:
    host.cache_dir().mkdir()
    (host.cache_dir() / "sampled").write_text("no directory")
    with caplog.at_level(logging.WARNING):
        assert len(estimated(host, image).candidates) == len(SETTINGS)
    assert caplog.text.count("cannot keep an estimate") == 1  # of a directory
    compressed(runner)
    estimated(host, image)
    assert sorted(compressed(runner)) == ["gzip", "zstd"]


def test_a_file_system_that_turns_read_only_keeps_nothing_and_breaks_nothing(
    host: Host, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object, **_named: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as patched:
        patched.setattr(tempfile, "mkstemp", refuse)
        assert len(estimated(host, image).candidates) == len(SETTINGS)
    assert kept(host) == []


def test_where_nothing_can_be_kept_there_are_estimates(host: Host, image: Path) -> None:
    host.cache_dir().write_text("no directory")
    assert len(estimated(host, image).candidates) == len(SETTINGS)


def test_a_full_disk_is_said_in_one_line_with_what_to_do(
    host: Host, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_args: object, **_named: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(InitadvisorError, match="No space left on device") as caught:
        estimated(host, image)
    assert str(host.cache_dir()) in caught.value.message
    assert "CACHE_DIRECTORY" in (caught.value.hint or "")
    assert "\n" not in caught.value.message
    assert not (host.cache_dir() / "sampled").exists()


def test_all_temporary_files_are_where_the_message_says(
    host: Host, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = []
    real: Callable[..., Any] = tempfile.TemporaryFile

    def noted(**named: object) -> Any:  # noqa: ANN401
        places.append(named.get("dir"))
        return real(**named)

    monkeypatch.setattr(tempfile, "TemporaryFile", noted)
    estimated(host, image)
    assert len(places) > len(SETTINGS)
    assert set(places) == {host.cache_dir()}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("a bug")])
def test_interrupted_nothing_is_left(
    host: Host, image: Path, runner: FakeRunner, error: BaseException
) -> None:
    with pytest.raises(type(error)):
        estimated(host, image, observer=Steps(ends_with=error))
    assert runner.stopped
    left = [path for path in host.cache_dir().rglob("*") if path.is_file()]
    assert {path.parent.name for path in left} <= {"contents"}


def test_an_image_that_is_rewritten_meanwhile_gives_no_estimate(host: Host, image: Path) -> None:
    """Some generators truncate the image and write it in place."""

    class Rewriting(Steps):
        def doing(self, what: str, *, done: int = 0, of: int = 0) -> None:
            super().doing(what, done=done, of=of)
            image.write_bytes(bytes(1000))
            os.utime(image, ns=(1, 1))

    with pytest.raises(InitadvisorError, match="was changed while it was read"):
        estimated(host, image, observer=Rewriting())
    assert not (host.cache_dir() / "sampled").exists()
