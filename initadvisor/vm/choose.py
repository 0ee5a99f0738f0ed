"""The engine for a purpose: the best that works here, or why none does."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError, NeedsRootError
from initadvisor.records.lab import Engine
from initadvisor.vm.engines import NoEngineError, qemu_machine, uml_machine, why_not_kvm
from initadvisor.vm.kernel import bootable, find_kernel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.store.store import Store
    from initadvisor.vm.machine import VirtualMachine


FOR_TIMING = (Engine.KVM, Engine.UML)
FOR_VERIFYING = (Engine.KVM, Engine.TCG)
_INSTALL = "install qemu-system-x86 (Arch: qemu-base) or user-mode-linux"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the user asks for; None leaves it to what is found here.

    ``release`` is that of the kernel the image is for, ``kernel`` its file, ``uml`` the program.
    ``anew``: try also what is remembered to hang.
    """

    release: str | None = None
    kernel: Path | None = None
    engine: Engine | None = None
    uml: Path | None = None
    anew: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineState:
    """An engine, and why it cannot be used here, None where it works."""

    engine: Engine
    version: str | None
    problem: str | None


@contextlib.contextmanager
def machine_for(
    host: Host, store: Store, purpose: Sequence[Engine], wanted: Wanted
) -> Iterator[VirtualMachine]:
    """Give the first machine that works of those that serve the purpose.

    Raises ``NoEngineError`` where none does, with the reason for each, ``NeedsRootError`` where
    only root may read the kernel.
    """
    require_purpose(purpose, wanted.engine)
    failures: dict[Engine, InitadvisorError] = {}
    with contextlib.ExitStack() as stack:
        for engine in [wanted.engine] if wanted.engine else purpose:
            try:
                machine = _machine(host, store, engine, wanted, stack)
            except InitadvisorError as err:
                failures[engine] = err
                continue
            yield machine
            return
    raise _no_engine(failures)


def require_verifying(host: Host, wanted: Wanted) -> None:
    """Raise what ``machine_for`` would for ``FOR_VERIFYING``, and start nothing.

    Where QEMU and the kernel are there, emulation works, whatever becomes of KVM.
    """
    failures: dict[Engine, InitadvisorError] = {}
    for engine in FOR_VERIFYING:
        try:
            with contextlib.ExitStack() as stack:
                _qemu(host, engine, wanted, stack)
        except InitadvisorError as err:
            failures[engine] = err
        else:
            return
    raise _no_engine(failures)


def require_purpose(purpose: Sequence[Engine], engine: Engine | None) -> None:
    """Raise ``NoEngineError`` where the engine that is asked for cannot serve the purpose."""
    if engine and engine not in purpose:
        msg = f"{engine} cannot do this: it runs {engine.description}"
        raise NoEngineError(msg, hint=f"use {' or '.join(purpose)}")


def _no_engine(failures: Mapping[Engine, InitadvisorError]) -> InitadvisorError:
    """Put the reasons into one line; one that all engines have in common stands there once.

    Where root could do it, that is the reason.
    """
    for err in failures.values():
        if isinstance(err, NeedsRootError):
            return err
    common = {(err.message, err.hint) for err in failures.values()}
    if len(common) == 1:
        reason, hint = common.pop()
    else:
        reason = "; ".join(f"{engine}: {err.message}" for engine, err in failures.items())
        hints = {err.hint for err in failures.values()}
        hint = hints.pop() if len(hints) == 1 else _INSTALL
    return NoEngineError(f"no virtual machine can be used: {reason}", hint=hint)


def engine_states(host: Host, store: Store, wanted: Wanted) -> tuple[EngineState, ...]:
    """Look for every engine, try KVM, and return what came of it."""
    states = []
    for engine in Engine:
        with contextlib.ExitStack() as stack:
            try:
                machine = _machine(host, store, engine, wanted, stack)
            except InitadvisorError as err:
                states.append(EngineState(engine=engine, version=None, problem=err.with_hint))
            else:
                states.append(EngineState(engine=engine, version=machine.version, problem=None))
    return tuple(states)


def _machine(
    host: Host, store: Store, engine: Engine, wanted: Wanted, stack: contextlib.ExitStack
) -> VirtualMachine:
    if engine is Engine.UML:
        return uml_machine(host, wanted.uml)
    machine = _qemu(host, engine, wanted, stack)
    if engine is Engine.KVM and (problem := why_not_kvm(host, machine, store, anew=wanted.anew)):
        raise NoEngineError(problem)
    return machine


def _qemu(
    host: Host, engine: Engine, wanted: Wanted, stack: contextlib.ExitStack
) -> VirtualMachine:
    if wanted.kernel is None and wanted.release is None:
        msg = "the image does not tell which kernel it is for"
        raise InitadvisorError(msg, hint="initadvisor lab --kernel FILE names its file")
    path = wanted.kernel or find_kernel(host, wanted.release or "")
    return qemu_machine(host, engine, stack.enter_context(bootable(path)))
