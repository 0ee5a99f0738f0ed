"""The disk is read cold once per boot and file, and a kept speed has to be possible."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from initadvisor.core.estimates import Estimate
from initadvisor.host import Host
from initadvisor.records.storage import ColdRead, Device, DeviceKind, ReadWarning
from initadvisor.target import disk as module
from initadvisor.target.disk import known_cold_read
from tests.fakes.runner import FakeRunner

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DISK = Device(kind=DeviceKind.SATA, name="sda")
READ = ColdRead(
    speed_mb_s=Estimate(mean=500.0, low=480.0, high=520.0, source="3 cold reads"),
    samples_mb_s=(490.0, 500.0, 510.0),
    device=DISK,
    warnings=(ReadWarning.VIRTUAL,),
)
Record = dict[str, Any]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine that was booted, with a disk."""
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "device_of", lambda *_: DISK)
    machine = Host(root=tmp_path, runner=FakeRunner())
    booted(machine, "one")
    return machine


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What was read cold."""
    read: list[Path] = []

    def cold_read(_host: Host, path: Path) -> ColdRead:
        read.append(path)
        return READ

    monkeypatch.setattr(module, "cold_read", cold_read)
    return read


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A file."""
    path = tmp_path / "image"
    path.write_bytes(b"image")
    return path


def booted(host: Host, boot_id: str) -> None:
    path = host.path("/proc/sys/kernel/random/boot_id")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(boot_id)


def record(host: Host) -> Path:
    [path] = (host.cache_dir() / "read").iterdir()
    return path


def test_a_file_is_read_once_per_boot(host: Host, image: Path, reads: list[Path]) -> None:
    assert known_cold_read(host, image) == READ
    assert known_cold_read(host, image) == READ
    assert reads == [image]
    booted(host, "another")
    assert known_cold_read(host, image) == READ
    assert len(reads) == 2


def test_what_was_read_beside_other_work_is_read_once_more_when_the_machine_is_quiet(
    host: Host, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [READ, replace(READ, warnings=(ReadWarning.BUSY,))]
    monkeypatch.setattr(module, "cold_read", lambda *_: answers.pop())
    load = host.path("/proc/loadavg")
    load.write_text("3.00 2.00 1.00 3/200 99\n")
    for _ in range(2):
        assert known_cold_read(host, image).warnings == (ReadWarning.BUSY,)
    load.write_text("0.10 2.00 1.00 1/200 99\n")
    for _ in range(2):
        assert known_cold_read(host, image) == READ
    assert not answers


def test_a_file_that_changed_or_another_one_is_read(
    host: Host, image: Path, reads: list[Path], tmp_path: Path
) -> None:
    known_cold_read(host, image)
    image.write_bytes(b"longer image")
    known_cold_read(host, image)
    os.utime(image, ns=(1, 1))
    known_cold_read(host, image)
    (tmp_path / "other").write_bytes(b"image")
    known_cold_read(host, tmp_path / "other")
    assert len(reads) == 4


def test_the_device_is_the_one_behind_the_file_now(
    host: Host, image: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    known_cold_read(host, image)
    elsewhere = replace(DISK, name="sdb")
    monkeypatch.setattr(module, "device_of", lambda *_: elsewhere)
    assert known_cold_read(host, image) == replace(READ, device=elsewhere)
    assert len(reads) == 1


def test_where_no_boot_has_a_name_every_time_is_the_first(
    host: Host, image: Path, reads: list[Path]
) -> None:
    host.path("/proc/sys/kernel/random/boot_id").unlink()
    known_cold_read(host, image)
    known_cold_read(host, image)
    assert len(reads) == 2
    assert not host.cache_dir().exists()


def test_where_nothing_can_be_kept_it_is_read_each_time(
    host: Host, image: Path, reads: list[Path]
) -> None:
    host.cache_dir().write_text("no directory")
    assert known_cold_read(host, image) == known_cold_read(host, image) == READ
    assert len(reads) == 2


def speed(**values: object) -> Callable[[Record], object]:
    return lambda kept: {**kept, "speed_mb_s": {**kept["speed_mb_s"], **values}}


HOSTILE: dict[str, Callable[[Record], object]] = {
    "a list": lambda _: [],
    "null": lambda _: None,
    "no speed": lambda kept: {**kept, "speed_mb_s": None},
    "text": speed(mean="500"),
    "no number": speed(mean=float("nan")),
    "infinite": speed(high=float("inf")),
    "400 digits": speed(high=10**400),
    "nothing": speed(low=0),
    "negative": speed(low=-1.0),
    "true": speed(mean=True),
    "upside down": speed(low=510.0),
    "absurd": speed(high=1e12),
    "no samples": lambda kept: {**kept, "samples_mb_s": None},
    "a sample of nothing": lambda kept: {**kept, "samples_mb_s": [0.0]},
    "an unknown warning": lambda kept: {**kept, "warnings": ["beware"]},
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_record_that_cannot_be_true_counts_as_none(
    host: Host, image: Path, reads: list[Path], change: Callable[[Record], object]
) -> None:
    known_cold_read(host, image)
    path = record(host)
    path.write_text(json.dumps(change(json.loads(path.read_bytes()))))
    assert known_cold_read(host, image) == READ
    assert len(reads) == 2
    assert known_cold_read(host, image) == READ
    assert len(reads) == 2


@pytest.mark.parametrize("content", [b"", b"\xff", b"[" * 200_000, b"{"])
def test_what_is_no_record_counts_as_none(
    host: Host, image: Path, reads: list[Path], content: bytes
) -> None:
    known_cold_read(host, image)
    record(host).write_bytes(content)
    assert known_cold_read(host, image) == READ
    assert len(reads) == 2


def test_marks_that_command_a_terminal_are_shown_as_such(
    host: Host, image: Path, reads: list[Path]
) -> None:
    known_cold_read(host, image)
    path = record(host)
    kept = json.loads(path.read_bytes())
    path.write_text(json.dumps(speed(source="\x1b[2J")(kept)))
    assert known_cold_read(host, image).speed_mb_s.source == "\\x1b[2J"
    assert len(reads) == 1
