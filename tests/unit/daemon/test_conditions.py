"""Each condition is found out where it matters, and only there."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from typing import TYPE_CHECKING

import psutil
import pytest

from initadvisor.daemon.loop import lacking
from initadvisor.daemon.planning import Needs
from initadvisor.host import Host
from tests.fakes.runner import FakeRunner

if TYPE_CHECKING:
    from pathlib import Path

EVERYTHING = Needs.MANAGERS | Needs.POWER | Needs.PROCESSORS

LOCKING = """
import fcntl, sys
with open(sys.argv[1], "w") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine without anything."""
    return Host(root=tmp_path, runner=FakeRunner())


@pytest.fixture(autouse=True)
def busy(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How busy the processors are; each look takes one away."""
    percent: list[float] = []

    def looked(interval: float) -> float:
        assert interval > 0
        return percent.pop()

    monkeypatch.setattr(psutil, "cpu_percent", looked)
    return percent


def supply(root: Path, name: str, **attributes: str) -> None:
    directory = root / "sys/class/power_supply" / name
    directory.mkdir(parents=True, exist_ok=True)
    for attribute, value in attributes.items():
        (directory / attribute).write_text(f"{value}\n")


@pytest.mark.parametrize(("percent", "wanted"), [(0, False), (49, False), (80, True)])
def test_processors(host: Host, busy: list[float], percent: float, *, wanted: bool) -> None:
    busy.append(percent)
    assert (Needs.PROCESSORS in lacking(host, EVERYTHING)) is wanted


@pytest.mark.parametrize(("online", "wanted"), [("1", False), ("0", True)])
def test_power(host: Host, busy: list[float], tmp_path: Path, online: str, *, wanted: bool) -> None:
    supply(tmp_path, "BAT0", type="Battery", status="Discharging")
    supply(tmp_path, "AC", type="Mains", online=online)
    busy.append(0)
    assert lacking(host, EVERYTHING) == (Needs.POWER if wanted else Needs.NOTHING)
    # Where there is no power, nobody looks at the processors.
    assert bool(busy) is wanted


def test_a_package_manager(host: Host, busy: list[float], tmp_path: Path) -> None:
    lock = tmp_path / "var/lib/dpkg/lock"
    lock.parent.mkdir(parents=True)
    with subprocess.Popen(
        [sys.executable, "-c", LOCKING, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as manager:
        assert manager.stdout
        assert manager.stdout.readline() == b"locked\n"
        assert lacking(host, EVERYTHING) == Needs.MANAGERS
        assert lacking(host, Needs.POWER) == Needs.NOTHING
        manager.communicate()
    busy.append(0)
    assert lacking(host, EVERYTHING) == Needs.NOTHING
    with lock.open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        assert lacking(host, Needs.MANAGERS) == Needs.NOTHING, "our own lock is no reason"


def test_what_nobody_needs_is_not_looked_at(host: Host, busy: list[float]) -> None:
    assert lacking(host, Needs.NOTHING) == Needs.NOTHING
    assert busy == []
