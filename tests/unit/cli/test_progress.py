"""The line that tells what is going on is for terminals only."""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.candidates.decompression import Stream
from initadvisor.cli.rendering.progress import Progress, _Phase
from initadvisor.core.codecs import Codec
from initadvisor.core.settings import Setting
from initadvisor.records.built_image import BuiltImage, SkippedSetting

if TYPE_CHECKING:
    import pytest

ZSTD, XZ = Setting(Codec.ZSTD, ("-19",)), Setting(Codec.XZ)
CANDIDATE = BuiltImage(
    setting=ZSTD,
    path="/x",
    size_bytes=1,
    sha256="0",
    main_offset=0,
    build_s=0.0,
    build_cpu_s=0.0,
    build_peak_bytes=0,
    command=("zstd",),
)


class Terminal(io.StringIO):
    """Text that calls itself a terminal."""

    def isatty(self) -> bool:
        """Tell that it is one."""
        return True


def work(progress: Progress) -> None:
    """Go through what a command does."""
    with progress:
        progress.started(ZSTD)
        progress.started(XZ)
        progress.finished(CANDIDATE, cached=False)
        progress.skipped(SkippedSetting(setting=XZ, reason="xz is not installed"))
        stream = Stream(path=Path("/x"), offset=0, size_bytes=1, codec=Codec.ZSTD, sha256="0")
        progress.timed(stream, 12.3)
        progress.doing("reading the image", done=1, of=4)


def test_elsewhere_nothing_is_shown_but_how_long_it_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    work(Progress())
    assert capsys.readouterr() == ("", "")
    work(Progress(elsewhere="this takes minutes"))
    assert capsys.readouterr() == ("", "initadvisor: this takes minutes\n")


def test_what_is_refused_before_it_begins_is_not_said_to_take_long(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Progress(elsewhere="this takes minutes") as progress:
        progress.doing("reading the image", done=1, of=4)
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_one_line_is_shown_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    work(Progress())
    shown = terminal.getvalue()
    assert "reading the image [#####...............]  25 %" in shown
    assert "timing decompression: zstd took 12 ms" in shown
    assert shown.endswith("\x1b[2K")  # the line is erased


def test_how_long_a_phase_takes_is_said_once_that_can_be_told() -> None:
    phase = _Phase(what="reading", began_s=100.0, done=1, of=4)
    assert phase.line(100.5) == "reading [#####...............]  25 %"
    assert phase.line(110.0) == "reading [#####...............]  25 %, 30 s left"
    phase = _Phase(what="building candidates: zstd, xz", began_s=100.0, done=3, of=6)
    assert phase.line(110.0) == (
        "building candidates: zstd, xz [##########..........]  50 %, 10 s left"
    )
    phase = _Phase(what="weighing", began_s=100.0)
    assert (phase.line(100.0), phase.line(103.0)) == ("weighing", "weighing (3 s)")


def test_a_phase_lasts_until_another_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    with Progress() as progress:
        progress.doing("building candidates: zstd", done=0, of=4)
        now_s = 110.0
        progress.doing("building candidates: xz", done=1, of=4)
        assert progress._phase.line(now_s).endswith(" 25 %, 30 s left")
        progress.doing("weighing", done=0, of=4)
        assert progress._phase.line(now_s).endswith("  0 %")
