"""What a record has removed is looked at first; a bad one keeps nobody from the others."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.host import Host, renames
from initadvisor.host.record_files import OlderRecordError
from initadvisor.transaction.log import (
    log_directory,
    own_records,
    read_records,
    read_transactions,
    readable_transactions,
    write_transaction,
)
from initadvisor.transaction.plan import Replacement
from initadvisor.transaction.transaction import FileRole, TransactionState
from initadvisor.transaction.transactions import transactions
from tests.fixtures.owners import OWNER, identify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

IMAGE = "/boot/initrd.img"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Return a machine with a transaction that was killed when its content was staged."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    machine = Host(root=tmp_path / "root")
    identify(machine.root)
    machine.path("/boot").mkdir(parents=True)
    machine.path("/proc/self").mkdir(parents=True)
    machine.path("/proc/self/mountinfo").write_text("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
    machine.path(IMAGE).write_bytes(b"old")
    machine.path("/boot/vmlinuz").write_bytes(b"kernel")
    with transactions(machine) as engine:
        engine.begin([Replacement(path=IMAGE, role=FileRole.IMAGE, new=b"new")], purpose="test")
    return machine


def file_of(record: dict[str, Any]) -> dict[str, Any]:
    """Return the first file of a record."""
    found: dict[str, Any] = record["files"][0]
    return found


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "the directory": lambda r: file_of(r).update(staged="/boot/"),
    "all images": lambda r: file_of(r).update(staged="/boot/initrd"),
    "the root": lambda r: file_of(r).update(staged="/"),
    "another directory": lambda r: file_of(r).update(staged=f"/etc/.initadvisor-{OWNER}-1-0.new"),
    "another's": lambda r: file_of(r).update(staged=f"/boot/.initadvisor-{OWNER}-2-0.new"),
    "the kernel": lambda r: file_of(r).update(backup="/boot/vmlinuz"),
    "above": lambda r: file_of(r).update(
        path="/boot/../etc/x", staged=f"/boot/../etc/.initadvisor-{OWNER}-1-0.new", backup=None
    ),
    "a number": lambda r: file_of(r).update(path=7),
    "NUL": lambda r: file_of(r).update(path="/boot/\0"),
    "long": lambda r: file_of(r).update(path="/" + 5000 * "x"),
    "another number": lambda r: r.update(number=2),
    "no number": lambda r: r.update(number="1"),
    "long ago": lambda r: r.update(began_at_s=-5_000_000_000_000),
    "far away": lambda r: r.update(began_at_s=10**30),
    "no time": lambda r: r.update(began_at_s="yesterday"),
    "no text": lambda r: r.update(purpose=None),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_this_program_has_not_written_removes_nothing(
    host: Host, change: Callable[[dict[str, Any]], object]
) -> None:
    (path,) = log_directory(host).glob("*.json")
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))
    before = sorted(host.path("/boot").iterdir())
    with transactions(host) as engine, pytest.raises(InitadvisorError, match="cannot read the"):
        engine.recover()
    assert sorted(host.path("/boot").iterdir()) == before
    assert readable_transactions(host) == ()


@pytest.mark.parametrize("text", ["", "[" * 100_000, "null", '{"schema": 99}'])
def test_a_bad_record_keeps_nobody_from_the_others(host: Host, text: str) -> None:
    (log_directory(host) / "000009.json").write_text(text)
    assert isinstance(own_records(host)[1], InitadvisorError)
    with transactions(host) as engine:
        with pytest.raises(InitadvisorError, match=r"000009\.json"):
            engine.recover()
        with pytest.raises(InitadvisorError, match=r"000009\.json"):
            engine.begin([], purpose="not while nobody knows what that is")
    (found,) = readable_transactions(host)
    assert found.state is TransactionState.UNDONE
    assert sorted(path.name for path in host.path("/boot").iterdir()) == ["initrd.img", "vmlinuz"]


@pytest.fixture
def older(host: Host) -> str:
    """Return what an earlier version has recorded of the transaction."""
    path = log_directory(host) / "000001.json"
    text = json.dumps({**json.loads(path.read_text()), "schema": 1, "proof": None})
    path.write_text(text)
    return text


def test_what_an_earlier_version_has_recorded_is_set_aside_and_not_followed(
    host: Host, older: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = sorted(host.path("/boot").iterdir())
    with transactions(host) as engine:
        assert engine.recover() == ()
    assert [(r.levelname, "000001.json" in r.getMessage()) for r in caplog.records] == [
        ("WARNING", True)
    ]
    assert "000001.json.aside-1" in caplog.text
    assert "look for .initadvisor-* beside images and configuration" in caplog.text
    assert (log_directory(host) / "000001.json.aside-1").read_text() == older
    assert own_records(host) == ()
    assert sorted(host.path("/boot").iterdir()) == before


def test_the_number_of_what_was_set_aside_is_not_used_again(host: Host, older: str) -> None:
    assert older
    with transactions(host) as engine:
        begun = engine.begin(
            [Replacement(path=IMAGE, role=FileRole.IMAGE, new=b"newer")], purpose="test"
        )
    assert begun.number == 2
    assert host.path(f"/boot/.initadvisor-{OWNER}-1-0.new").read_bytes() == b"new"


def test_who_only_reads_is_told_and_moves_nothing(host: Host, older: str) -> None:
    [found] = read_records(host)
    assert isinstance(found, OlderRecordError)
    assert "an earlier version has recorded it" in found.message
    assert read_transactions(host) == ()
    assert (log_directory(host) / "000001.json").read_text() == older


def test_what_a_newer_version_has_recorded_stays_where_it_is(host: Host) -> None:
    path = log_directory(host) / "000001.json"
    path.write_text(path.read_text().replace('"schema": 4', '"schema": 5'))
    with transactions(host) as engine, pytest.raises(UnsafeError, match="a newer version"):
        engine.recover()
    assert path.exists()


def test_what_cannot_be_set_aside_keeps_everybody_out(
    host: Host, older: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(renames, "renameat2", refuse)
    with pytest.raises(InitadvisorError, match="cannot rename"), transactions(host):
        pass
    assert (log_directory(host) / "000001.json").read_text() == older


def test_numbers_of_files_may_be_as_file_systems_have_them(host: Host) -> None:
    [found] = read_transactions(host)
    [change] = found.files
    assert change.before is not None
    odd = replace(change.before, inode=(1 << 64) - 1, mtime_ns=-1)
    changed = replace(found, files=(replace(change, before=odd),))
    write_transaction(host, changed)
    assert read_transactions(host) == (changed,)
