"""What builds take: on the whole content, or on two samples where that is honest."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from initadvisor.candidates.build_times import BuildTimes, build_times
from initadvisor.candidates.plan import build_commands
from initadvisor.core.errors import InitadvisorError, ProgramError
from initadvisor.core.settings import Setting
from initadvisor.generators import unknown
from initadvisor.host import Host
from initadvisor.target.source import open_source
from tests.fakes.compressors import COMPRESSORS, fake_compressors
from tests.fakes.observers import Steps
from tests.fakes.runner import Answer, FakeRunner
from tests.fixtures.small_images import archive, write_image

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.core.estimates import Estimate

LONG_BYTES = 20_000_000
ONE, TWO, QUICK = (Setting.parse(f"zstd {words}") for words in ("-19 -T1", "-19 -T2", "-1"))


@pytest.fixture
def runner() -> FakeRunner:
    """A compressor that takes 3 s of processor time and 2 s in all, whatever it is given."""
    fake = fake_compressors()
    fake.answer("zstd", filter=COMPRESSORS[QUICK.codec], cpu_s=3.0, wall_s=2.0)
    fake.answer(["zstd", "--version"], "zstd 1.0\n")
    return fake


def timed(
    tmp_path: Path, runner: FakeRunner, *settings: Setting, whole: bool = False
) -> tuple[BuildTimes, int]:
    """Time builds of an image of ``LONG_BYTES`` and some; return how long that is, too."""
    padding = random.Random(1).randbytes(1000) * (LONG_BYTES // 1000)
    image = write_image(tmp_path / "image", archive(seed=padding))
    host = Host(root=tmp_path, runner=runner)
    with open_source(image, host=host) as source:
        commands, _ = build_commands(host, unknown, settings, image_sha256=source.sha256)
        found = build_times(host, unknown, source, commands, whole=whole, observer=Steps())
        return found, source.contents.main.unpacked_bytes


@pytest.fixture(autouse=True)
def _two_processors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    monkeypatch.setattr(Host, "cores", property(lambda _host: 2))


def factor(figure: Estimate) -> float:
    """Return how far the interval reaches, as a factor, which is the same to both sides."""
    assert figure.high / figure.mean == pytest.approx(figure.mean / figure.low)
    return figure.high / figure.mean


def test_only_what_one_thread_takes_long_for_is_sampled(tmp_path: Path, runner: FakeRunner) -> None:
    found, whole_bytes = timed(tmp_path, runner, ONE, TWO, QUICK)
    one, two, quick = found.times
    assert len([argv for argv in runner.argvs if "--version" not in argv]) == 2 * 3
    assert one.main_bytes is None
    assert two.main_bytes == quick.main_bytes
    assert two.main_bytes
    assert [two.cpu_s.mean, two.wall_s.mean] == pytest.approx([3, 2])
    scale = one.cpu_s.mean / 3
    assert scale == pytest.approx(whole_bytes / (3 << 20), rel=0.1)
    assert one.wall_s.mean == pytest.approx(2 * scale)
    assert factor(two.wall_s) == pytest.approx(1)
    assert factor(one.wall_s) >= math.exp(1.96 * 0.2) - 1e-9
    assert "extrapolated" in one.cpu_s.source
    assert "whole" in two.cpu_s.source
    on_all, _ = timed(tmp_path, runner, ONE, whole=True)
    assert on_all.times[0].main_bytes == two.main_bytes


class Slowing(FakeRunner):
    """Takes twice as long from start to end for what it has run before."""

    def _answer_to(self, words: tuple[str, ...]) -> Answer:
        answer = super()._answer_to(words)
        return replace(answer, wall_s=self.argvs.count(words) * answer.wall_s)


def test_the_interval_is_as_wide_as_repetitions_differ(tmp_path: Path, runner: FakeRunner) -> None:
    reached = []
    for most in (1, 5):
        slowing = Slowing(programs=runner.programs, answers=runner.answers)
        levels = [Setting.at_level(QUICK.codec, level) for level in range(1, most + 1)]
        found, _ = timed(tmp_path, slowing, *levels)
        assert [factor(time.cpu_s) for time in found.times] == [pytest.approx(1)] * most
        assert found.times[0].wall_s.mean == pytest.approx(math.sqrt(8))
        reached.append(factor(found.times[0].wall_s))
    alone, pooled = reached
    # Student's t of 1 and 5 degrees of freedom, times the standard error of the logarithm.
    assert alone == pytest.approx(math.exp(12.71 * math.log(2) / 2))
    assert pooled == pytest.approx(math.exp(2.57 * math.log(2) / 2))


def test_what_fails_is_left_out(tmp_path: Path, runner: FakeRunner) -> None:
    runner.answer("zstd -q -T0 -19", error=ProgramError("zstd is broken"))
    found, _ = timed(tmp_path, runner, TWO, QUICK)
    assert [time.command.setting for time in found.times] == [QUICK]
    assert [(one.setting, one.reason) for one in found.skipped] == [(TWO, "zstd is broken")]


def test_an_error_names_the_directory(
    tmp_path: Path, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "file"))
    with pytest.raises(InitadvisorError, match="file"):
        timed(tmp_path, runner, QUICK)
