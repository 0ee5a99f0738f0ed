"""The thread beside the jobs: systemd's watchdog, the power, and the disk."""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from initadvisor.daemon import watchdog as module
from initadvisor.daemon.manager import watchdog_s
from initadvisor.daemon.watchdog import Interruption, JobPreempted, WatchdogThread
from initadvisor.host import Host
from tests.fakes.runner import FakeRunner
from tests.fixtures.waiting import HANGS_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(slots=True)
class Kernel:
    """What the kernel says, one device after the other."""

    devices: list[SimpleNamespace] = field(default_factory=list)
    ends: tuple[int, int] = field(default_factory=os.pipe)
    heard: threading.Event = field(default_factory=threading.Event)

    def fileno(self) -> int:
        """Return what may be waited for."""
        return self.ends[0]

    def poll(self, timeout: float) -> SimpleNamespace | None:
        """Return the next device."""
        assert timeout == 0
        if not self.devices:
            self.heard.set()
            return None
        os.read(self.ends[0], 1)
        return self.devices.pop(0)

    def say(self, subsystem: str) -> None:
        """Say that something of a subsystem has changed, and wait until it was acted upon."""
        self.heard.clear()
        device = SimpleNamespace(subsystem=subsystem, action="change", sys_name="x")
        self.devices.append(device)
        os.write(self.ends[1], b".")
        assert self.heard.wait(HANGS_S)
        os.getppid()  # a signal that was sent meanwhile is here after any system call


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """The kernel."""
    found = Kernel()
    monkeypatch.setattr(module, "_monitor", lambda: found)
    return found


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A laptop that is plugged in."""
    supply(tmp_path, online=True)
    return Host(root=tmp_path, runner=FakeRunner())


def supply(root: Path, *, online: bool) -> None:
    directory = root / "sys/class/power_supply"
    for name, attributes in {
        "AC": {"type": "Mains", "online": str(int(online))},
        "BAT0": {"type": "Battery", "status": "Charging" if online else "Discharging"},
    }.items():
        (directory / name).mkdir(parents=True, exist_ok=True)
        for attribute, value in attributes.items():
            (directory / name / attribute).write_text(f"{value}\n")


def put_off(host: Host, kernel: Kernel, subsystem: str, *, needs_power: bool = True) -> bool:
    """Tell whether a job is put off when the kernel says that something has changed."""
    interruption = Interruption()
    with interruption.listening(), WatchdogThread(host) as attendant:
        try:
            with (
                attendant.watching(limit_s=HANGS_S, needs_power=needs_power),
                interruption.may_be_put_off(),
            ):
                kernel.say(subsystem)
        except JobPreempted:
            return True
    return False


def test_a_job_is_put_off_when_the_power_goes(host: Host, kernel: Kernel, tmp_path: Path) -> None:
    assert not put_off(host, kernel, "power_supply"), "it is plugged in still"
    supply(tmp_path, online=False)
    assert put_off(host, kernel, "power_supply")
    assert not put_off(host, kernel, "power_supply", needs_power=False)


def test_a_job_is_put_off_when_the_image_is_on_another_disk(
    host: Host, kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    disks = ["a", "a"]
    monkeypatch.setattr(module, "image_disk", lambda _host: disks.pop(0))
    assert not put_off(host, kernel, "block"), "it is another disk that came"
    disks += ["a", "b"]
    assert put_off(host, kernel, "block")


def test_a_disturbance_between_jobs_is_none(host: Host, kernel: Kernel, tmp_path: Path) -> None:
    supply(tmp_path, online=False)
    with Interruption().listening(), WatchdogThread(host):
        kernel.say("power_supply")
    assert kernel.devices == []


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """Where systemd listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield listening


def heard(listening: socket.socket) -> int:
    """Return how often systemd was told that the daemon lives."""
    count = 0
    while select.select([listening], [], [], 0)[0]:
        count += listening.recv(4096).count(b"WATCHDOG=1")
    return count


@dataclass(slots=True)
class Looks:
    """A clock that counts how often the thread has looked at it."""

    count: int = 0

    def monotonic(self) -> float:
        """Return the time."""
        self.count += threading.current_thread() is not threading.main_thread()
        return time.monotonic()

    def wait(self, count: int) -> None:
        """Wait until the thread has looked so often again."""
        until = self.count + count
        assert wait_until(lambda: self.count >= until)


def test_systemd_hears_of_a_job_only_within_its_time(
    host: Host, kernel: Kernel, manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    del kernel
    looks = Looks()
    monkeypatch.setattr(module, "time", looks)
    monkeypatch.setenv("WATCHDOG_USEC", "30000")
    with WatchdogThread(host) as attendant:
        with attendant.watching(limit_s=0.0, needs_power=False):
            looks.wait(1)  # what it had seen before has been told
            heard(manager)
            looks.wait(3)
            assert heard(manager) == 0
        with attendant.watching(limit_s=HANGS_S, needs_power=False):
            looks.wait(3)
            assert heard(manager) >= 2


def test_who_is_not_watched_says_nothing(
    host: Host, kernel: Kernel, manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WATCHDOG_USEC", raising=False)
    with WatchdogThread(host):
        for _ in range(3):  # it has something to do
            kernel.say("block")
    assert heard(manager) == 0


@pytest.mark.parametrize(
    ("usec", "pid", "wanted"),
    [
        ("180000000", None, 180.0),
        ("180000000", "this", 180.0),
        ("180000000", "1", None),
        ("0", None, None),
        ("", None, None),
        ("-1", None, None),
        ("x", None, None),
    ],
)
def test_whom_systemd_watches(
    monkeypatch: pytest.MonkeyPatch, usec: str, pid: str | None, wanted: float | None
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", usec)
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    if pid is not None:
        monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()) if pid == "this" else pid)
    assert watchdog_s() == wanted
