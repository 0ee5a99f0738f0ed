"""What is run on which sample, what follows of it, and what comes of compressors that fail."""

from __future__ import annotations

import errno
import lzma
import os
import tempfile
import threading
from contextlib import contextmanager
from functools import partial
from math import log
from typing import IO, TYPE_CHECKING, Any

import pytest
import zstandard

from initadvisor.candidates import estimates
from initadvisor.candidates.controls import Control
from initadvisor.candidates.estimates import sample_candidates
from initadvisor.candidates.plan import build_commands
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import ProgramError
from initadvisor.core.settings import Setting
from initadvisor.decide import sampling
from initadvisor.decide.sampling import BLOCK_BYTES
from initadvisor.generators import unknown
from initadvisor.host import Host
from initadvisor.host.load import OthersLoad
from initadvisor.host.run import Priority
from tests.fakes.compressors import COMPRESSORS, fake_compressors
from tests.fakes.observers import Steps
from tests.fixtures.content import mixed_content

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from initadvisor.candidates.estimates import Sampled, SampledCandidate
    from initadvisor.records.built_image import SkippedSetting
    from tests.fakes.runner import FakeRunner

CONTENT = mixed_content(1_500_000)
LARGE, SMALL, SMALLEST = 4 * BLOCK_BYTES, 2 * BLOCK_BYTES, BLOCK_BYTES
LZMA2 = ({"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 20},)
LZMA1 = ({"id": lzma.FILTER_LZMA1, "preset": 0, "dict_size": 1 << 20},)
FAST = {
    Codec.XZ: partial(lzma.compress, check=lzma.CHECK_CRC32, filters=LZMA2),
    Codec.LZMA: partial(lzma.compress, format=lzma.FORMAT_ALONE, filters=LZMA1),
}
"""In place of those of the same names, which take seconds."""

MADE_BY: Mapping[Codec, Callable[[bytes], bytes]] = {**COMPRESSORS, **FAST}
ALL = tuple(Setting(codec) for codec in COMPRESSORS)
SLOW = (Codec.XZ, Codec.LZMA)
ZSTD = Setting(Codec.ZSTD)


@pytest.fixture
def runner() -> FakeRunner:
    """Compressors that work."""
    runner = fake_compressors()
    for codec, compress in FAST.items():
        argv = unknown.compressor(Host(runner=runner), Setting(codec))
        runner.answer(argv[:-1], filter=compress, cpu_s=1.5, peak_bytes=12_000_000)
    return runner


@pytest.fixture
def host(tmp_path: Path, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine where small samples of smaller blocks are enough."""
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    monkeypatch.setattr(sampling, "BLOCK_BYTES", BLOCK_BYTES // 2)
    monkeypatch.setattr(estimates, "_LARGE_BYTES", LARGE)
    monkeypatch.setattr(estimates, "_SMALL_BYTES", SMALL)
    monkeypatch.setattr(estimates, "_SMALLEST_BYTES", SMALLEST)
    monkeypatch.setattr(estimates, "_SHORT_BYTES", 0)
    return Host(root=tmp_path, runner=runner)


@contextmanager
def a_file(content: bytes) -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        yield file


def sampled(
    host: Host, *settings: Setting, content: bytes = CONTENT, observer: Steps | None = None
) -> Sampled:
    wanted, gaps = build_commands(host, unknown, settings, image_sha256="an image")
    assert gaps == ()
    with a_file(content) as file:
        return sample_candidates(
            host,
            unknown,
            file,
            len(content),
            wanted,
            directory=host.root,
            observer=observer or Steps(),
        )


def one(host: Host, setting: Setting = ZSTD, *, content: bytes = CONTENT) -> SampledCandidate:
    found = sampled(host, setting, content=content)
    assert found.skipped == ()
    return found.candidates[0]


def the_gap(host: Host, setting: Setting = ZSTD) -> SkippedSetting:
    """Return the gap, and make sure that other settings do not suffer."""
    other = Setting(Codec.GZIP)
    found = sampled(host, setting, other)
    assert [candidate.setting for candidate in found.candidates] == [other]
    [gap] = found.skipped
    assert gap.setting == setting
    assert "\n" not in gap.reason
    return gap


def test_every_setting_is_estimated_in_the_order_given(host: Host) -> None:
    found = sampled(host, *ALL)
    assert found.skipped == ()
    assert tuple(candidate.setting for candidate in found.candidates) == ALL
    for candidate in found.candidates:
        assert candidate.whole_bytes == len(CONTENT)
        assert candidate.command == unknown.compressor(host, candidate.setting)


@pytest.mark.parametrize("codec", list(COMPRESSORS))
def test_what_is_estimated_is_near_what_would_be_built(host: Host, codec: Codec) -> None:
    found = one(host, Setting(codec))
    built = len(MADE_BY[codec](CONTENT))
    # So small samples leave more to chance than those of a real image.
    assert abs(log(found.main_bytes.median / built)) < 0.12
    assert (found.main_bytes.log_sd > 0) is (codec is not Codec.CAT)


@pytest.mark.parametrize("codec", [codec for codec in COMPRESSORS if codec is not Codec.CAT])
def test_slow_compressors_get_the_small_sample_and_fast_ones_the_large(
    host: Host, codec: Codec
) -> None:
    found = one(host, Setting(codec))
    assert found.sample_bytes == (SMALL if codec in SLOW else LARGE)
    assert found.decompress_ms
    assert all(ms > 0 for ms in found.decompress_ms)


def test_what_takes_time_is_scaled_to_the_whole(host: Host, runner: FakeRunner) -> None:
    found = one(host)
    assert found.build_cpu_s == pytest.approx(1.5 * len(CONTENT) / LARGE)
    assert found.build_s == pytest.approx(found.build_cpu_s)
    assert 12_000_000 < found.build_peak_bytes < 200_000_000
    assert {call.priority for call in runner.calls if "--version" not in call.argv} == {
        Priority.MEASURED
    }


def test_the_uncompressed_image_is_known_without_any_work(host: Host, runner: FakeRunner) -> None:
    found = one(host, Setting(Codec.CAT))
    assert (found.main_bytes.median, found.main_bytes.log_sd) == (len(CONTENT), 0)
    assert found.decompress_ms == ()
    assert runner.argvs == [("cat", "--version")]


@pytest.mark.parametrize("codec", list(COMPRESSORS))
@pytest.mark.parametrize("size_bytes", [1, 1000, BLOCK_BYTES + 1, 2 * LARGE - BLOCK_BYTES])
def test_a_short_content_is_compressed_completely_and_the_size_exact(
    host: Host, codec: Codec, size_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimates, "_SMALL_BYTES", LARGE)
    content = CONTENT[:size_bytes]
    found = one(host, Setting(codec), content=content)
    assert found.sample_bytes == size_bytes
    assert found.main_bytes.median == pytest.approx(len(MADE_BY[codec](content)))
    assert found.main_bytes.log_sd == 0


def test_each_compressor_runs_once_on_each_sample(host: Host, runner: FakeRunner) -> None:
    sampled(host, *ALL)
    programs = [argv[0] for argv in runner.argvs if "--version" not in argv]
    assert sorted(programs) == sorted(codec for codec in COMPRESSORS if codec is not Codec.CAT)


def test_each_control_runs_once_on_the_whole_and_on_each_sample_it_is_needed_on(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[Control, int]] = []
    honest = Control.compressed_bytes

    def counted(self: Control, pieces: Iterator[bytes], **named: Any) -> int:  # noqa: ANN401
        held = list(pieces)
        ran.append((self, sum(len(piece) for piece in held)))
        return honest(self, held, **named)

    monkeypatch.setattr(Control, "compressed_bytes", counted)
    sampled(host, *ALL)
    assert len(ran) == len(set(ran))
    wholes = [control for control, size_bytes in ran if size_bytes == len(CONTENT)]
    assert set(wholes) == {control for control, _ in ran}


@pytest.mark.parametrize(
    ("settings", "sample_bytes"),
    [("xz -6/xz -0", SMALL), ("zstd -19/zstd -9", SMALL), ("gzip -9/gzip -6", SMALLEST)],
)
def test_slow_settings_with_a_fast_relative_run_it_on_their_sample_as_well(
    host: Host, runner: FakeRunner, settings: str, sample_bytes: int
) -> None:
    slow, fast = map(Setting.parse, settings.split("/"))
    found = sampled(host, slow, fast)
    assert found.candidates[0].sample_bytes == sample_bytes
    argvs = [argv for argv in runner.argvs if "--version" not in argv]
    by_setting = {s: unknown.compressor(host, s) for s in (slow, fast)}
    assert argvs.count(by_setting[slow]) == 1
    assert argvs.count(by_setting[fast]) == 2


def test_a_relative_that_fails_is_done_without(host: Host, runner: FakeRunner) -> None:
    slow, fast = Setting.parse("xz -6"), Setting.parse("xz -0")
    runner.answer(unknown.compressor(host, fast), returncode=1)
    found = sampled(host, slow, fast)
    assert [candidate.setting for candidate in found.candidates] == [slow]
    assert found.candidates[0].main_bytes == one(host, slow).main_bytes


def test_it_is_told_how_far_it_is(host: Host) -> None:
    steps = Steps()
    sampled(host, *ALL, observer=steps)
    phases = {what: [(d, of) for w, d, of in steps.seen if w == what] for what, _, _ in steps.seen}
    assert list(phases) == [
        "compressing a sample with every setting",
        "timing decompression of the samples",
    ]
    for told in phases.values():
        assert len(told) > len(ALL)
        assert told == sorted(told)
        assert len({of for _, of in told}) == 1
    done, of = phases["compressing a sample with every setting"][-1]
    assert done == of


@pytest.mark.parametrize(
    ("used", "passes", "busy_part"), [((0.1,), 1, 0.0), ((0.6, 0.0), 2, 0.0), ((0.4, 0.6), 2, 0.4)]
)
def test_on_a_busy_machine_it_is_timed_once_more(
    host: Host,
    monkeypatch: pytest.MonkeyPatch,
    used: tuple[float, ...],
    passes: int,
    busy_part: float,
) -> None:
    quiet = sampled(host, *ALL)
    parts = iter(used)
    monkeypatch.setattr(OthersLoad, "part", lambda _: next(parts))
    steps = Steps()
    found = sampled(host, *ALL, observer=steps)
    assert len({what for what, _, _ in steps.seen if "timing" in what}) == passes
    timed = [candidate for candidate in found.candidates if candidate.decompress_ms]
    assert {candidate.busy_part for candidate in timed} == {busy_part}
    assert [len(c.decompress_ms) for c in found.candidates] == [
        len(c.decompress_ms) for c in quiet.candidates
    ]


def cut_short(data: bytes) -> bytes:
    return zstandard.compress(data)[: len(data) // 8]


def only_half(data: bytes) -> bytes:
    return zstandard.compress(data[: len(data) // 2])


def twice(data: bytes) -> bytes:
    return zstandard.compress(data + data)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (COMPRESSORS[Codec.GZIP], "not zstd"),
        (bytes, "not zstd"),
        (lambda _: b"", "not zstd"),
        (only_half, "something else than it was given"),
        (twice, "something else than it was given"),
        (cut_short, "cannot be unpacked"),
        (lambda data: b"\x28\xb5\x2f\xfd" + data[:5000], "cannot be unpacked"),
    ],
    ids=["another format", "no compression", "nothing", "half", "twice", "cut", "garbage"],
)
def test_a_compressor_that_writes_something_else_is_a_gap(
    host: Host, runner: FakeRunner, wrong: Callable[[bytes], bytes], said: str
) -> None:
    runner.answer("zstd", filter=wrong)
    runner.answer("zstd --version", "zstd 1.0")
    reason = the_gap(host).reason
    assert reason.startswith("zstd wrote ")
    assert said in reason


@pytest.mark.parametrize(
    "error",
    [
        ProgramError("zstd did not end within 600 s and was killed"),
        ProgramError("cannot run zstd: not installed"),
        ProgramError("zstd was killed by signal 9"),
    ],
)
def test_a_compressor_that_ends_badly_is_a_gap_in_the_runner_s_words(
    host: Host, runner: FakeRunner, error: ProgramError
) -> None:
    runner.answer(unknown.compressor(host, ZSTD), error=error)
    assert the_gap(host).reason == error.message


def test_a_compressor_that_says_why_it_fails_is_quoted(host: Host, runner: FakeRunner) -> None:
    runner.answer(unknown.compressor(host, ZSTD), returncode=1)
    assert "exited with status 1" in the_gap(host).reason


def test_every_compressor_has_a_time_limit(host: Host, runner: FakeRunner) -> None:
    sampled(host, *ALL)
    assert all(0 < call.timeout_s <= 600 for call in runner.calls)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("a bug")])
def test_interrupted_it_stops_the_compressors_and_ends(
    host: Host, runner: FakeRunner, error: BaseException
) -> None:
    with pytest.raises(type(error)):
        sampled(host, *ALL, observer=Steps(ends_with=error))
    assert runner.stopped
    assert not [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]


class FullDisk:
    """In place of temporary files, those on a file system with little room."""

    def __init__(self, *, room_bytes: int) -> None:
        self.room_bytes = room_bytes
        self.real: Callable[..., Any] = tempfile.TemporaryFile

    def __call__(self, **named: Any) -> Any:  # noqa: ANN401 - as untyped as what it stands for
        """Open one."""
        file = self.real(**named)
        write = file.write

        def write_within(data: bytes) -> Any:  # noqa: ANN401
            self.room_bytes -= len(data)
            if self.room_bytes < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return write(data)

        file.write = write_within
        return file


@pytest.mark.parametrize("room_bytes", [0, LARGE // 2, LARGE])
def test_without_room_for_the_samples_that_is_an_error(
    host: Host, monkeypatch: pytest.MonkeyPatch, room_bytes: int
) -> None:
    wanted, _ = build_commands(host, unknown, ALL, image_sha256="an image")
    with a_file(CONTENT) as file:
        monkeypatch.setattr(tempfile, "TemporaryFile", FullDisk(room_bytes=room_bytes))
        with pytest.raises(OSError, match="No space left on device"):
            sample_candidates(
                host,
                unknown,
                file,
                len(CONTENT),
                wanted,
                directory=host.root,
                observer=Steps(),
            )
