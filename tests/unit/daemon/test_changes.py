"""A boot or another disk since the last run is news, once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from initadvisor.daemon import changes as module
from initadvisor.daemon.changes import SystemSnapshot, changes, notice
from initadvisor.daemon.notes import Note, NoteReason
from initadvisor.daemon.queue import Queue
from initadvisor.generators import InstalledImage
from initadvisor.host import Host
from tests.fakes.runner import FakeRunner
from tests.fixtures.dracut_machine import OTHER, make_machine
from tests.fixtures.hosts import RELEASE

if TYPE_CHECKING:
    from pathlib import Path

ONE, TWO = "1" * 32, "2" * 32
BOOTED, REPLACED, REBUILT = NoteReason.BOOTED, NoteReason.DISK_REPLACED, NoteReason.IMAGE_REBUILT


@pytest.mark.parametrize(
    ("before", "now", "wanted"),
    [
        (SystemSnapshot(), SystemSnapshot(), []),
        (SystemSnapshot(), SystemSnapshot(boot_id=ONE, disk="a"), [BOOTED]),
        (SystemSnapshot(boot_id=ONE, disk="a"), SystemSnapshot(boot_id=ONE, disk="a"), []),
        (SystemSnapshot(boot_id=ONE, disk="a"), SystemSnapshot(boot_id=TWO, disk="a"), [BOOTED]),
        (
            SystemSnapshot(boot_id=ONE, disk="a"),
            SystemSnapshot(boot_id=TWO, disk="b"),
            [BOOTED, REPLACED],
        ),
        (SystemSnapshot(boot_id=ONE, disk="a"), SystemSnapshot(boot_id=ONE, disk="b"), [REPLACED]),
        (SystemSnapshot(boot_id=ONE, disk="a"), SystemSnapshot(boot_id=ONE, disk=None), []),
        (SystemSnapshot(boot_id=ONE, disk=None), SystemSnapshot(boot_id=ONE, disk="b"), []),
        (SystemSnapshot(boot_id=ONE), SystemSnapshot(boot_id=None), []),
        (SystemSnapshot(boot_id=ONE), SystemSnapshot(boot_id=ONE, image="a"), [REBUILT]),
        (
            SystemSnapshot(image="a", release="6.1"),
            SystemSnapshot(image="b", release="6.1"),
            [REBUILT],
        ),
        (SystemSnapshot(image="a"), SystemSnapshot(image="a"), []),
        (SystemSnapshot(image="a"), SystemSnapshot(image=None), []),
        (
            SystemSnapshot(image="a", disk="x"),
            SystemSnapshot(image="b", disk="y"),
            [REBUILT, REPLACED],
        ),
    ],
)
def test_what_two_looks_tell(
    before: SystemSnapshot, now: SystemSnapshot, wanted: list[NoteReason]
) -> None:
    assert [note.reason for note in changes(before, now)] == wanted


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine that has booted."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    boot(tmp_path, ONE)
    return Host(root=tmp_path, runner=FakeRunner())


def boot(root: Path, boot_id: str) -> None:
    path = root / "proc/sys/kernel/random/boot_id"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{boot_id}\n")


def noted(host: Host) -> list[NoteReason]:
    return [note.reason for note in notice(host, Queue(host))]


def test_each_boot_is_news_once(host: Host, tmp_path: Path) -> None:
    assert noted(host) == [BOOTED]
    assert noted(host) == []
    boot(tmp_path, TWO)
    assert noted(host) == [BOOTED]
    assert Queue(host).jobs()


def test_a_disk_that_was_away_for_a_while_is_remembered(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for disk in ("a", None, "a", None, "b", "b"):
        look = SystemSnapshot(boot_id=ONE, image=disk and "an image", disk=disk)
        monkeypatch.setattr(module, "look", lambda _host, look=look: look)
        found.append(noted(host))
    assert found == [[BOOTED, REBUILT], [], [], [], [REPLACED], []]


@pytest.mark.parametrize("release", [RELEASE, "6.1 odd"])
def test_an_image_that_was_made_by_hand_is_news(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str
) -> None:
    machine = make_machine(tmp_path, monkeypatch)
    for name in (OTHER, "0-rescue-1"):
        (tmp_path / f"boot/initramfs-{name}.img").unlink()
    image = tmp_path / f"boot/initramfs-{RELEASE}.img"
    found = InstalledImage(path=image, kernel_release=release)
    monkeypatch.setattr(module, "_default_image", lambda _host: found)
    queue = Queue(machine)
    wanted = Note(reason=REBUILT, release=release if release == RELEASE else None)
    assert notice(machine, queue) == (wanted,)
    assert notice(machine, queue) == ()
    os.utime(image, ns=(0, 1))
    assert notice(machine, queue) == (wanted,)
    image.unlink()
    assert notice(machine, queue) == ()


def test_the_image_that_boots_by_default_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = module.look(make_machine(tmp_path, monkeypatch))
    assert found.image is not None
    assert found.release is not None
    assert found.image.startswith(f"{tmp_path}/boot/initramfs-{found.release}.img ")


def test_systemd_watches_the_image_unless_it_is_mounted_only_while_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = make_machine(tmp_path, monkeypatch)
    link = machine.state_dir() / "image"
    mounts = tmp_path / "proc/self/mountinfo"
    root = mounts.read_text()
    boot = "30 22 8:1 / /boot rw - vfat /dev/sda1 rw\n"
    queue = Queue(machine)
    link.mkdir(parents=True)
    for _ in range(2):
        notice(machine, queue)
        assert str(link.readlink()) == str(module.look(machine).path)
        assert link.read_bytes()
    mounts.write_text(f"{root}25 22 0:44 / /boot rw - autofs systemd-1 rw\n{boot}")
    notice(machine, queue)
    assert not link.is_symlink()
    mounts.write_text(root + boot)
    notice(machine, queue)
    assert link.is_symlink()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"boot_id": 3}', b"\xff\x00", b"9" * 9999, b"[" * 4000]
)
def test_what_cannot_be_read_makes_everything_news(host: Host, content: bytes) -> None:
    noted(host)
    (host.state_dir() / "seen").write_bytes(content)
    assert noted(host) == [BOOTED]
    assert noted(host) == []


def test_news_are_noted_before_they_are_remembered(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(_host: Host, _seen: SystemSnapshot) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module, "_write", cut)
        with pytest.raises(KeyboardInterrupt):
            noted(host)
    assert Queue(host).jobs()
    assert noted(host) == [BOOTED]
