"""Transactions and what comes after them, to be interrupted at any call; and what is demanded."""

from __future__ import annotations

import contextlib
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from initadvisor.transaction.log import read_transactions
from initadvisor.transaction.transaction import ArmedBoot, Duty, ProofStage, TransactionState
from initadvisor.transaction.transactions import pending, transactions
from tests.faults.calls import Calls, KilledError
from tests.faults.machine import (
    CONFIGURATION,
    CONFIGURATION_MODE,
    NEW,
    OLD,
    Machine,
    attributes_of,
    replacements,
)
from tests.fixtures.owners import OWNER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from initadvisor.host import Host
    from initadvisor.transaction.transaction import Transaction

PROOF = ArmedBoot(
    stage=ProofStage.PROOF,
    loader="systemd-boot",
    trial="apply-1",
    armed_in_boot="0" * 32,
    image=f"/boot/.initadvisor-{OWNER}-1-0.new",
    sha256="0" * 64,
)


class Run(StrEnum):
    """What is interrupted."""

    APPLY = "apply"
    WITHOUT_COPIES = "without-copies"
    PROVE = "prove"
    """Everything is made ready, and waits for a boot."""
    SETTLE = "settle"
    """The boot has come, and the files are replaced."""
    UNDO = "undo"
    WITHDRAW = "withdraw"
    """What waits for a boot is undone."""
    RECOVER_FORTH = "recover-forth"
    """An earlier run was killed after it had replaced one of the files."""
    RECOVER_BACK = "recover-back"
    """An earlier run was killed after it had given one of the files its old content back."""
    RECOVER_STAGED = "recover-staged"
    """An earlier run was killed while it wrote the new contents."""
    PRUNE = "prune"


def calls_about(machine: Machine, **more: Any) -> Calls:  # noqa: ANN401
    """Return the calls about a machine; ``more`` is what else ``Calls`` takes."""
    return Calls(root=machine.root, as_vfat=machine.as_vfat, exchanges=machine.exchanges, **more)


def prepare(machine: Machine, run: Run) -> None:
    """Bring the machine to where the run begins, and have it remember that; see ``start_again``."""
    machine.install()
    match run:
        case Run.APPLY | Run.WITHOUT_COPIES | Run.PROVE | Run.SETTLE:
            pass
        case Run.WITHDRAW:
            perform(machine.host, Run.PROVE)
        case Run.UNDO | Run.PRUNE:
            perform(machine.host, Run.APPLY)
        case Run.RECOVER_FORTH:
            _interrupt(machine, Run.APPLY, TransactionState.COMMITTING)
        case Run.RECOVER_BACK:
            _interrupt(machine, Run.UNDO, TransactionState.ROLLING_BACK)
        case Run.RECOVER_STAGED:
            _interrupt(machine, Run.APPLY, TransactionState.PLANNED)
    machine.save()


def start_again(machine: Machine, run: Run) -> None:
    """Bring the machine back to where the run begins."""
    machine.restore()
    if run is Run.SETTLE:  # files that were put there anew are no longer those that it is about
        perform(machine.host, Run.PROVE)


def perform(host: Host, run: Run) -> None:
    """Do what is interrupted."""
    with transactions(host) as engine:
        match run:
            case Run.APPLY | Run.WITHOUT_COPIES:
                items = replacements(keep=run is Run.APPLY)
                engine.commit(engine.verify(engine.begin(items, purpose="test")))
            case Run.PROVE:
                ready = engine.verify(engine.begin(replacements(), purpose="test"))
                engine.prove(ready, PROOF)
            case Run.SETTLE:
                engine.recover()
                engine.commit(pending(host)[0])
            case Run.UNDO | Run.WITHDRAW:
                engine.undo(read_transactions(host)[-1], reason="test")
            case Run.RECOVER_FORTH | Run.RECOVER_BACK | Run.RECOVER_STAGED:
                engine.recover()
            case Run.PRUNE:
                engine.prune()


def wrong_now(machine: Machine) -> str:
    """Say what is not whole, whatever has happened; and that the log can be read."""
    host = machine.host
    read_transactions(host)
    bad = [p for p in NEW if not _is(host, p, OLD) and not _is(host, p, NEW)]
    return f"neither old nor new: {bad}" if bad else ""


def wrong_after_recovery(machine: Machine, run: Run) -> str:
    """Recover as the next run does, and say what is not as one then."""
    host = machine.host
    with transactions(host) as engine:
        engine.recover()
    recorded = read_transactions(host)
    last = recorded[-1] if recorded else None
    if last and last.state.duty not in {Duty.NOTHING, Duty.WAIT}:
        return f"still {last.state}"
    is_new = run is Run.PRUNE or (last and last.state is TransactionState.COMMITTED)
    bad = [path for path in NEW if not _is(host, path, NEW if is_new else OLD)]
    if bad:
        return f"{last.state if last else 'nothing recorded'}, but not so: {bad}"
    return _wrong_files(machine, run, last) or _wrong_attributes(machine)


def _wrong_files(machine: Machine, run: Run, last: Transaction | None) -> str:
    """Compare all files with those that are known by name; what is pruned may be partly gone."""
    kept = set()
    for change in last.files if last else ():
        if last and last.state is TransactionState.COMMITTED and change.backup and change.before:
            kept.add(change.backup)
        if last and last.state is TransactionState.PROVING:
            kept.add(change.staged)
    found = {f"/{path.relative_to(machine.root)}" for path in machine.files()}
    found -= {*NEW, "/state/locks/transactions"}
    found -= {f"/state/transactions/{last.number:06}.json"} if last else set()
    if litter := found - kept:
        return f"left: {sorted(litter)}"
    if run is not Run.PRUNE and (gone := kept - found):
        return f"gone: {sorted(gone)}"
    return ""


def _wrong_attributes(machine: Machine) -> str:
    path = machine.host.path(CONFIGURATION)
    mode, attributes = path.stat().st_mode & 0o7777, attributes_of(path)
    if mode != CONFIGURATION_MODE or attributes != machine.attributes:
        return f"mode {mode:o} and attributes {attributes}"
    return ""


def _is(host: Host, path: str, contents: Mapping[str, bytes]) -> bool:
    try:
        return host.path(path).read_bytes() == contents.get(path)
    except FileNotFoundError:
        return path not in contents


def _interrupt(machine: Machine, run: Run, wanted: TransactionState) -> None:
    """Kill a run in the middle of a state, where some files are new, or staged: found by trying."""
    prepare(machine, run)
    counted = calls_about(machine)
    with counted.installed():
        perform(machine.host, run)
    for at, before in enumerate(counted.calls, start=1):
        if before not in {"fsync", "rename", "unlink"}:
            continue
        machine.restore()
        calls = calls_about(machine, at=at)
        with contextlib.suppress(KilledError), calls.installed():
            perform(machine.host, run)
        found = read_transactions(machine.host)
        if found and found[-1].state is wanted and _is_half_done(machine, wanted):
            return
    msg = f"{run} was never {wanted} and half done"
    raise AssertionError(msg)


def _is_half_done(machine: Machine, state: TransactionState) -> bool:
    if state is TransactionState.PLANNED:
        return sum(path.name.endswith(".new") for path in machine.files()) > 1
    return len({_is(machine.host, path, NEW) for path in NEW}) > 1
