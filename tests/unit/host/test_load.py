"""What others use of the processors is told from the kernel's counters."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from initadvisor.host import Host, load
from initadvisor.host.load import OthersLoad, is_quiet, others_wait

if TYPE_CHECKING:
    from pathlib import Path

PER_S = os.sysconf("SC_CLK_TCK")


class Processors:
    """Writes the counters of all processors, in s."""

    def __init__(self, root: Path) -> None:
        self.host = Host(root=root)
        (root / "proc").mkdir()

    def have(
        self, *, user: float = 0, idle: float = 0, waiting: float = 0, stolen: float = 0
    ) -> None:
        ticks = [round(s * PER_S) for s in (1000 + user, 0, 0, 1000 + idle, waiting, 0, 0, stolen)]
        words = " ".join(map(str, ticks))
        (self.host.root / "proc/stat").write_text(f"cpu  {words} 0 0\ncpu0 1 2 3\n")


@pytest.fixture
def processors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Processors:
    """Counters that stand still, of a process that does nothing."""
    monkeypatch.setattr(load, "_COUNTERS", "/proc/stat")
    monkeypatch.setattr(os, "times", lambda: os.times_result((5.0, 1.0, 2.0, 1.0, 0.0)))
    return Processors(tmp_path)


@pytest.mark.parametrize(
    ("since", "part"),
    [
        ({"user": 30, "idle": 70}, 0.3),
        ({"stolen": 40, "idle": 60}, 0.4),
        ({"waiting": 50, "idle": 50}, 0.0),
        ({"idle": 100}, 0.0),
        ({"user": 0.01}, 0.0),  # too short to tell
        ({}, 0.0),
    ],
)
def test_the_part_of_others(processors: Processors, since: dict[str, float], part: float) -> None:
    processors.have()
    others = OthersLoad(processors.host)
    processors.have(**since)
    assert others.part() == pytest.approx(part)


def test_what_this_process_used_is_not_others(
    processors: Processors, monkeypatch: pytest.MonkeyPatch
) -> None:
    processors.have()
    others = OthersLoad(processors.host)
    processors.have(user=50, idle=50)
    monkeypatch.setattr(os, "times", lambda: os.times_result((35.0, 1.0, 12.0, 1.0, 0.0)))
    assert others.part() == pytest.approx(0.1)


@pytest.mark.parametrize(
    "text", ["", "cpu\n", "cpu 1 2\n", "intr 1 2 3 4 5 6 7 8 9\n", "cpu a b c d"]
)
def test_where_the_counters_cannot_be_read_nothing_is_told(
    processors: Processors, text: str
) -> None:
    (processors.host.root / "proc/stat").write_text(text)
    others = OthersLoad(processors.host)
    processors.have(user=100)
    assert others.part() == 0.0


@pytest.mark.parametrize(
    ("text", "quiet"), [("0.10 9 9 1/2 3\n", True), ("0.90 0 0 1/2 3\n", False), ("", False)]
)
def test_a_quiet_machine(processors: Processors, text: str, *, quiet: bool) -> None:
    (processors.host.root / "proc/loadavg").write_text(text)
    assert is_quiet(processors.host) is quiet


@pytest.mark.parametrize(("user", "quiet"), [(1, True), (20, False)])
def test_a_machine_that_was_busy_is_watched_for_a_moment(
    processors: Processors, monkeypatch: pytest.MonkeyPatch, *, user: float, quiet: bool
) -> None:
    (processors.host.root / "proc/loadavg").write_text("0.90 0 0 1/2 3\n")
    processors.have()
    monkeypatch.setattr(time, "sleep", lambda _: processors.have(user=user, idle=100 - user))
    assert is_quiet(processors.host) is quiet


@pytest.mark.parametrize(
    ("running", "blocked", "busy"),
    [(1, 0, False), (2, 0, False), (3, 0, True), (1, 1, True), (9, 4, True)],
)
def test_who_wants_all_processors_or_waits_for_a_disk_disturbs(
    processors: Processors,
    monkeypatch: pytest.MonkeyPatch,
    running: int,
    blocked: int,
    busy: bool,
) -> None:
    """One of those that run is who asks."""
    monkeypatch.setattr(Host, "cores", 2)
    counters = f"cpu  1 2\nctxt 5\nprocs_running {running}\nprocs_blocked {blocked}\n"
    (processors.host.root / "proc/stat").write_text(counters)
    assert others_wait(processors.host) is busy


@pytest.mark.parametrize("text", ["", "procs_running 9\n", "procs_running x\nprocs_blocked 1\n"])
def test_where_the_kernel_does_not_tell_nobody_waits(processors: Processors, text: str) -> None:
    (processors.host.root / "proc/stat").write_text(text)
    assert not others_wait(processors.host)
