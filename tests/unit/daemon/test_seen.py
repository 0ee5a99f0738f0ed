"""A boot or another disk since the last run is news, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.daemon import seen as module
from initadvisor.daemon.queue import Queue
from initadvisor.daemon.seen import Seen, changes, notice
from initadvisor.host import Host
from initadvisor.model.policy import Policy
from initadvisor.model.queue import Reason
from tests.fakes.runner import FakeRunner

if TYPE_CHECKING:
    from pathlib import Path

ONE, TWO = "1" * 32, "2" * 32
BOOTED, REPLACED = Reason.BOOTED, Reason.DISK_REPLACED


@pytest.mark.parametrize(
    ("before", "now", "wanted"),
    [
        (Seen(), Seen(), []),
        (Seen(), Seen(boot_id=ONE, disk="a"), [BOOTED]),
        (Seen(boot_id=ONE, disk="a"), Seen(boot_id=ONE, disk="a"), []),
        (Seen(boot_id=ONE, disk="a"), Seen(boot_id=TWO, disk="a"), [BOOTED]),
        (Seen(boot_id=ONE, disk="a"), Seen(boot_id=TWO, disk="b"), [BOOTED, REPLACED]),
        (Seen(boot_id=ONE, disk="a"), Seen(boot_id=ONE, disk="b"), [REPLACED]),
        (Seen(boot_id=ONE, disk="a"), Seen(boot_id=ONE, disk=None), []),
        (Seen(boot_id=ONE, disk=None), Seen(boot_id=ONE, disk="b"), []),
        (Seen(boot_id=ONE), Seen(boot_id=None), []),
    ],
)
def test_what_two_looks_tell(before: Seen, now: Seen, wanted: list[Reason]) -> None:
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


def noted(host: Host) -> list[Reason]:
    return [note.reason for note in notice(host, Queue(host, Policy.ADVISE))]


def test_each_boot_is_news_once(host: Host, tmp_path: Path) -> None:
    assert noted(host) == [BOOTED]
    assert noted(host) == []
    boot(tmp_path, TWO)
    assert noted(host) == [BOOTED]
    assert Queue(host, Policy.ADVISE).jobs()


def test_a_disk_that_was_away_for_a_while_is_remembered(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for disk in ("a", None, "a", None, "b", "b"):
        monkeypatch.setattr(module, "image_disk", lambda _host, disk=disk: disk)
        found.append(noted(host))
    assert found == [[BOOTED], [], [], [], [REPLACED], []]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"boot_id": 3}', b"\xff\x00", b"9" * 9999])
def test_what_cannot_be_read_makes_everything_news(host: Host, content: bytes) -> None:
    noted(host)
    (host.state_dir() / "seen").write_bytes(content)
    assert noted(host) == [BOOTED]
    assert noted(host) == []


def test_news_are_noted_before_they_are_remembered(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(_host: Host, _seen: Seen) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module, "_write", cut)
        with pytest.raises(KeyboardInterrupt):
            noted(host)
    assert Queue(host, Policy.ADVISE).jobs()
    assert noted(host) == [BOOTED]
