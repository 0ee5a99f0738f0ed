"""A cold read is measured within bounds, without emptying anybody else's memory."""

from __future__ import annotations

import fcntl
import os
import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from initadvisor.core.errors import InitadvisorError, NeedsRootError
from initadvisor.host import Host
from initadvisor.host.storage import cold_read as cold_read_module
from initadvisor.host.storage.cold_read import cold_read, resident_fraction
from initadvisor.records.storage import ReadWarning


@dataclass
class SlowClock:
    """A clock that is later by the same time at each look."""

    step_s: float
    now_ns: int = 0

    def monotonic_ns(self) -> int:
        """Return the next time."""
        self.now_ns += int(self.step_s * 1e9)
        return self.now_ns

    def thread_cpu_ns(self) -> int:
        """Return the same."""
        return self.now_ns


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A file of 9 MB."""
    path = tmp_path / "image"
    path.write_bytes(random.Random(1).randbytes(9_000_000))
    return path


@pytest.fixture
def no_direct_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that refuses O_DIRECT, as tmpfs did up to Linux 6.5."""
    real_fcntl = fcntl.fcntl

    def refuse(descriptor: int, command: int, argument: int = 0) -> int:
        if command == fcntl.F_SETFL and argument & os.O_DIRECT:
            raise OSError(22, "Invalid argument")
        return real_fcntl(descriptor, command, argument)

    monkeypatch.setattr(fcntl, "fcntl", refuse)


def test_a_file_is_read_as_often_as_asked_and_the_source_says_how(image: Path) -> None:
    result = cold_read(Host(), image, repeats=3)
    speed = result.speed_mb_s
    assert len(result.samples_mb_s) == 3
    assert 0 < speed.low <= speed.mean <= speed.high
    assert f"3 cold reads of {image} (9.0 MB)" in speed.source
    assert result.device.describe() in speed.source


@pytest.mark.usefixtures("no_direct_reads")
def test_without_direct_reads_the_files_pages_are_dropped(image: Path) -> None:
    assert "after dropping its pages" in cold_read(Host(), image).speed_mb_s.source


def test_pages_in_memory_are_counted(image: Path) -> None:
    with image.open("rb") as file:
        file.read()
        assert resident_fraction(file) == 1.0


def test_pages_of_another_users_file_are_not_counted(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel calls all of them resident then, which would be believed."""
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with image.open("rb") as file:
        file.read()
        assert resident_fraction(file) == 0.0


def test_the_content_does_not_change(image: Path) -> None:
    before = image.read_bytes()
    cold_read(Host(), image, repeats=2)
    assert image.read_bytes() == before


def test_a_slow_device_is_read_once_only(image: Path) -> None:
    """Every look at the clock finds it 8 s later: one read takes longer than all may."""
    result = cold_read(Host(clock=SlowClock(8.0)), image, repeats=5)
    assert len(result.samples_mb_s) == 1
    assert "1 cold read of" in result.speed_mb_s.source


def test_a_read_that_takes_too_long_is_cut_short(image: Path) -> None:
    result = cold_read(Host(clock=SlowClock(30.0)), image, repeats=5)
    # One block of 4 MiB, timed from one look at the clock to the second after it.
    assert result.samples_mb_s[0] == pytest.approx((4 << 20) / 1e6 / 60)


def test_the_speed_is_what_was_read_by_the_time_it_took(image: Path) -> None:
    """9 MB in three blocks, one look at the clock before, one after each full block and the end."""
    result = cold_read(Host(clock=SlowClock(0.5)), image, repeats=1)
    assert result.samples_mb_s[0] == pytest.approx(9.0 / 1.5)


def test_an_empty_file_has_no_speed(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(InitadvisorError, match="it is empty"):
        cold_read(Host(), tmp_path / "empty")


@pytest.mark.parametrize("path", ["/dev/zero", "/", "/no-such-file"])
def test_what_is_no_ordinary_file_is_refused(path: str) -> None:
    with pytest.raises(InitadvisorError, match=f"cannot read {path}"):
        cold_read(Host(), Path(path))


def test_a_file_that_only_root_may_read_is_for_root(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *_: object) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(NeedsRootError, match=str(image)):
        cold_read(Host(), image)


def test_a_failing_disk_is_an_error(image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "preadv", fail)
    with pytest.raises(InitadvisorError, match="Input/output error"):
        cold_read(Host(), image)


@pytest.mark.parametrize(("waits", "busy"), [((1, 1, 0), True), ((1, 0, 0), False)])
def test_what_is_read_beside_other_work_is_said_to_be(
    image: Path, monkeypatch: pytest.MonkeyPatch, waits: tuple[int, ...], busy: bool
) -> None:
    told = iter(waits)
    monkeypatch.setattr(cold_read_module, "others_wait", lambda _host: bool(next(told)))
    found = cold_read(Host(), image, repeats=3)
    assert (ReadWarning.BUSY in found.warnings) is busy
    assert found.speed_mb_s.source.endswith(", beside other work") is busy
