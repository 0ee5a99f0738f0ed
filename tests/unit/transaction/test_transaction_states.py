"""What may be done about a transaction depends on what is recorded of it, and what is mounted."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.transaction import log as transaction_log
from initadvisor.transaction.log import (
    log_directory,
    own_transactions,
    read_transactions,
    write_transaction,
)
from initadvisor.transaction.plan import Replacement
from initadvisor.transaction.transaction import (
    FileRole,
    Transaction,
    TransactionEvent,
    TransactionState,
    next_state,
)
from initadvisor.transaction.transactions import Transactions, pending, transactions
from tests.faults.calls import Calls, KilledError
from tests.faults.machine import NEW, OLD, Machine, replacements
from tests.faults.runs import PROOF, Run, perform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from initadvisor.host import Host

IMAGE = "/boot/initrd.img"
METHODS: dict[TransactionEvent, Callable[[Transactions, Transaction], object]] = {
    TransactionEvent.VERIFY: lambda engine, found: engine.verify(found),
    TransactionEvent.PROVE: lambda engine, found: engine.prove(found, PROOF),
    TransactionEvent.COMMIT: lambda engine, found: engine.commit(found),
    TransactionEvent.UNDO: lambda engine, found: engine.undo(found, reason="test"),
}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return a machine with its images on a file system of their own, like vfat."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    made = Machine(root=tmp_path, esp=True)
    made.install()
    return made


def held(machine: Machine) -> dict[str, bytes]:
    """Return what is there, but for the lock."""
    return {str(p): p.read_bytes() for p in machine.files() if p.parent.name != "locks"}


def named(host: Host) -> dict[str, bytes]:
    """Return the files that are to be replaced."""
    return {path: host.path(path).read_bytes() for path in NEW if host.path(path).exists()}


@contextlib.contextmanager
def unmounted(machine: Machine) -> Iterator[None]:
    """Have the images' file system not be mounted: an empty directory is seen."""
    mountinfo, boot = machine.root / "proc/self/mountinfo", machine.root / "boot"
    text, aside = mountinfo.read_text(), machine.root / "aside"
    mountinfo.write_text("".join(line for line in text.splitlines(True) if "/boot" not in line))
    boot.rename(aside)
    boot.mkdir()
    yield
    boot.rmdir()
    aside.rename(boot)
    mountinfo.write_text(text)


def killed_while_committing(machine: Machine) -> None:
    """Kill a run right after it has recorded that it replaces files."""
    counted, at = Calls(root=machine.root), [-1]

    def write(host: Host, found: Transaction) -> None:
        write_transaction(host, found)
        if found.state is TransactionState.COMMITTING:
            at[0] = len(counted.calls)

    with pytest.MonkeyPatch.context() as patch, counted.installed():
        patch.setattr(transaction_log, "write_transaction", write)
        perform(machine.host, Run.APPLY)
    machine.install()
    with contextlib.suppress(KilledError), Calls(root=machine.root, at=at[0]).installed():
        perform(machine.host, Run.APPLY)
    assert read_transactions(machine.host)[-1].state is TransactionState.COMMITTING


@pytest.mark.parametrize(
    ("state", "event"),
    [(s, e) for s in TransactionState for e in METHODS if next_state(s, e) is None],
)
def test_what_cannot_be_done_changes_nothing_and_names_the_state(
    machine: Machine, state: TransactionState, event: TransactionEvent
) -> None:
    perform(machine.host, Run.APPLY)
    [done] = read_transactions(machine.host)
    found = replace(done, state=state)
    write_transaction(machine.host, found)
    before = held(machine)
    with (
        transactions(machine.host) as engine,
        pytest.raises(UnsafeError, match=f"cannot {event} transaction 1: it is {state}$"),
    ):
        METHODS[event](engine, found)
    assert held(machine) == before


@pytest.mark.parametrize("event", METHODS)
def test_what_has_gone_on_since_it_was_looked_at_is_not_undone(
    machine: Machine, event: TransactionEvent
) -> None:
    perform(machine.host, Run.PROVE)
    [waiting] = pending(machine.host)
    perform(machine.host, Run.SETTLE)
    before = held(machine)
    with transactions(machine.host) as engine, pytest.raises(UnsafeError, match="committed"):
        METHODS[event](engine, waiting)
    assert held(machine) == before
    assert named(machine.host) == NEW


def test_what_is_no_longer_recorded_is_not_touched(machine: Machine) -> None:
    perform(machine.host, Run.APPLY)
    [done] = read_transactions(machine.host)
    perform(machine.host, Run.PRUNE)
    with transactions(machine.host) as engine, pytest.raises(UnsafeError, match="no record of it"):
        engine.undo(done, reason="test")
    assert named(machine.host) == NEW


def test_one_that_cannot_be_read_keeps_no_other_from_being_recovered(machine: Machine) -> None:
    killed_while_committing(machine)
    log = log_directory(machine.host)
    (log / "000000.json").write_text("{")
    with transactions(machine.host) as engine, pytest.raises(InitadvisorError, match=r"000000\.js"):
        engine.recover()
    (log / "000000.json").unlink()
    assert named(machine.host) == NEW
    assert [t.state for t in own_transactions(machine.host)] == [TransactionState.COMMITTED]


def test_all_that_cannot_be_recovered_is_said_at_once(machine: Machine) -> None:
    killed_while_committing(machine)
    log = log_directory(machine.host)
    (log / "000000.json").write_text("{")
    with (
        unmounted(machine),
        transactions(machine.host) as engine,
        pytest.raises(InitadvisorError, match=r"000000\.json.*; .*mounted on /boot") as raised,
    ):
        engine.recover()
    assert "move the file away" in str(raised.value.hint)
    assert "mount it" in str(raised.value.hint)


def test_a_record_that_goes_while_all_are_read_hides_no_other(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    perform(machine.host, Run.PROVE)
    names = [*os.listdir(log_directory(machine.host)), "000009.json"]  # noqa: PTH208
    monkeypatch.setattr(os, "listdir", lambda _: names)
    assert [t.number for t in pending(machine.host)] == [1]


def test_nothing_is_decided_about_files_that_are_not_mounted(machine: Machine) -> None:
    killed_while_committing(machine)
    before = held(machine)
    with unmounted(machine), transactions(machine.host) as engine:
        with pytest.raises(UnsafeError, match="nothing is mounted on /boot"):
            engine.recover()
        with pytest.raises(UnsafeError, match="nothing is mounted on /boot"):
            engine.undo(pending(machine.host)[0], reason="test")
    assert held(machine) == before
    with transactions(machine.host) as engine:
        assert [t.state for t in engine.recover()] == [TransactionState.COMMITTED]
    assert named(machine.host) == NEW


def test_what_was_proven_waits_for_its_file_system(machine: Machine) -> None:
    perform(machine.host, Run.PROVE)
    with (
        unmounted(machine),
        transactions(machine.host) as engine,
        pytest.raises(UnsafeError, match="nothing is mounted on /boot"),
    ):
        engine.commit(pending(machine.host)[0])
    perform(machine.host, Run.SETTLE)
    assert named(machine.host) == NEW


def test_what_is_kept_on_a_file_system_that_is_not_mounted_stays_known(machine: Machine) -> None:
    perform(machine.host, Run.APPLY)
    with unmounted(machine), transactions(machine.host) as engine:
        assert engine.prune() == ()
    with transactions(machine.host) as engine:
        assert [t.number for t in engine.prune()] == [1]
    assert held(machine) == {str(machine.host.path(path)): text for path, text in NEW.items()}


def test_what_a_sandbox_mounts_again_is_no_file_system_of_its_own(machine: Machine) -> None:
    mountinfo = machine.root / "proc/self/mountinfo"
    text = mountinfo.read_text()
    again = "30 22 8:2 /etc /etc rw - ext4 /dev/sda2 rw\n"
    again += "31 23 8:1 /entries /boot/entries rw - vfat /dev/sda1 rw\n"
    mountinfo.write_text(text + again)
    perform(machine.host, Run.PROVE)
    mountinfo.write_text(text)
    points = {c.path: c.mount_point for t in pending(machine.host) for c in t.files}
    assert points == {path: "/boot" if path.startswith("/boot") else "" for path in NEW}
    perform(machine.host, Run.SETTLE)
    assert named(machine.host) == NEW


def test_what_was_staged_is_read_again_before_anything_is_replaced(machine: Machine) -> None:
    perform(machine.host, Run.PROVE)
    [waiting] = pending(machine.host)
    staged = machine.host.path(waiting.files[1].staged)
    staged.write_bytes(staged.read_bytes()[:-1])
    with transactions(machine.host) as engine, pytest.raises(UnsafeError, match="not what was wr"):
        engine.commit(waiting)
    assert named(machine.host) == OLD
    [undone] = read_transactions(machine.host)
    assert undone.state is TransactionState.UNDONE
    assert not list(machine.host.path("/boot").glob(".*"))


def test_what_a_builder_makes_beside_its_file_goes_with_it(machine: Machine) -> None:
    def build(path: Path) -> None:
        beside = path.with_name(f"{path.name}.d")
        beside.mkdir()
        (beside / "part").write_bytes(b"half")
        msg = "no more"
        raise InitadvisorError(msg)

    item = Replacement(path=IMAGE, role=FileRole.IMAGE, new=build, size_bytes=100)
    with transactions(machine.host) as engine, pytest.raises(InitadvisorError, match="no more"):
        engine.begin([item], purpose="test")
    assert not list(machine.host.path("/boot").glob(".*"))


def test_nothing_is_begun_while_another_one_waits(machine: Machine) -> None:
    perform(machine.host, Run.PROVE)
    before = held(machine)
    with transactions(machine.host) as engine, pytest.raises(UnsafeError, match="1 is proving"):
        engine.begin(replacements(), purpose="test")
    assert held(machine) == before
