"""The engine for a purpose: the best that works here, or why none does.

Which engines work is found out by trying them, a hang being remembered.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError, NeedsRootError, ProgramError, UnsafeError
from initadvisor.core.text import shown
from initadvisor.host.files import open_regular, sha256_of
from initadvisor.host.hardware import cpu_model
from initadvisor.host.process import Ending
from initadvisor.records.kernel_log import KernelEvent, read_line
from initadvisor.records.lab import BootKind, Engine, EngineTrial, LabKernel
from initadvisor.vm.kernel import bootable, find_kernel, scratch_directory
from initadvisor.vm.machine import DIES_WITH_US, QEMU, UML, VirtualMachine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.store.store import Store
    from initadvisor.vm.kernel import BootableKernel


KVM_TRIAL_S = 5.0
"""A kernel says its first word within a second under KVM, and within two or three under TCG."""

_EMULATED_TRIAL_S = 15.0

_VERSION_S = 10.0
_TRIAL_MB = 256
_DEVICE = "/dev/kvm"
_UML_PACKAGE = "user-mode-linux (with apt --no-install-recommends)"
_QEMU_PACKAGE = "qemu-system-x86 (with apt --no-install-recommends; Arch: qemu-base)"


class NoEngineError(InitadvisorError):
    """No engine can do what is asked; that nothing could be verified is a refusal."""

    exit_code = UnsafeError.exit_code


def uml_machine(host: Host, program: Path | None = None) -> VirtualMachine:
    """Return user-mode Linux, ``linux.uml`` or the given file.

    Raises ``NoEngineError`` where it is not installed or does not tell its release.
    """
    # With a directory in its name, a program is never looked for elsewhere.
    found = host.runner.which(str(program.absolute()) if program else UML)
    if found is None:
        msg = f"cannot use user-mode Linux: {program or UML} is not installed"
        raise NoEngineError(msg, hint=f"install {_UML_PACKAGE}, or name one with --uml FILE")
    release = _first_line(host, [str(found), "--version"])
    with open_regular(found) as file:
        kernel = LabKernel(path=str(found), sha256=sha256_of(file), release=release)
    return VirtualMachine(
        engine=Engine.UML,
        program=str(found),
        version=f"user-mode Linux {release}",
        kernel=kernel,
        kernel_file=found,
    )


def qemu_machine(host: Host, engine: Engine, kernel: BootableKernel) -> VirtualMachine:
    """Return QEMU with this machine's kernel, on the real processor or on an emulated one.

    Raises ``NoEngineError`` where QEMU is not installed or this is no x86-64 machine.
    """
    found = host.runner.which(QEMU)
    if found is None:
        msg = f"cannot use {engine}: {QEMU} is not installed"
        raise NoEngineError(msg, hint=f"install {_QEMU_PACKAGE}")
    if host.machine() != "x86_64":
        msg = f"cannot use {engine} on {host.machine()}: only x86-64 is supported"
        raise NoEngineError(msg)
    return VirtualMachine(
        engine=engine,
        program=str(found),
        version=_first_line(host, [str(found), "--version"]),
        kernel=kernel.kernel,
        kernel_file=kernel.file,
        cores=min(2, host.cores) if engine is Engine.KVM else 1,
    )


def why_not_kvm(host: Host, machine: VirtualMachine, store: Store, *, anew: bool) -> str | None:
    """Try KVM and return why it cannot be used, None where it works.

    A ``/dev/kvm`` that opens but hangs costs one trial; it is tried again only when the kernel, the
    processor or QEMU is another, or ``anew`` asks for it.
    """
    if closed := why_kvm_is_closed(host):
        return closed
    circumstances = _circumstances(host, machine.version)
    known = store.engine_trial(Engine.KVM, circumstances)
    if known and not known.works and not anew:
        return f"{known.reason} ({known.at:%Y-%m-%d}; try again with lab --engines)"
    reason, hung = _try(host, machine)
    if hung or known:
        store.remember_engine(
            EngineTrial(
                engine=Engine.KVM,
                circumstances=circumstances,
                works=reason is None,
                reason=reason or "",
                at=datetime.now(UTC),
            )
        )
    return reason


def why_kvm_is_closed(host: Host) -> str | None:
    """Return why KVM's device cannot even be opened, None where it can."""
    device = host.path(_DEVICE)
    if not device.exists():
        return f"there is no {_DEVICE}"
    if not os.access(device, os.R_OK | os.W_OK):
        return f"{_DEVICE} may not be used by this user"
    return None


def remembered_kvm(host: Host, store: Store) -> EngineTrial | None:
    """Return what came of trying KVM with this QEMU, kernel and processor, None if nothing did.

    Raises ``NoEngineError`` where QEMU is not installed or does not tell its version.
    """
    version = _first_line(host, [QEMU, "--version"])
    return store.engine_trial(Engine.KVM, _circumstances(host, version))


def _circumstances(host: Host, version: str) -> str:
    return f"{version}; Linux {host.kernel_release()}; {cpu_model(host)}"


def _try(host: Host, machine: VirtualMachine) -> tuple[str | None, bool]:
    """Boot the kernel up to its first word; return why it came to none, and whether KVM hung.

    A KVM may well run the firmware, which greets, and hang only later. So where a kernel says
    nothing under KVM, whether it says anything under emulation tells whose fault that is.
    """
    spoke, ending, tail = _first_word(host, machine, KVM_TRIAL_S)
    if spoke:
        return None, False
    if ending is not Ending.TIME_OUT:
        return f"it does not work: {shown(tail[:200]) or 'QEMU ended without a word'}", False
    emulated = replace(machine, engine=Engine.TCG, cores=1)
    if _first_word(host, emulated, _EMULATED_TRIAL_S)[0]:
        return f"it hangs: no word from a kernel within {KVM_TRIAL_S:g} s", True
    return f"no word from {machine.kernel.path} (has it a serial console?)", False


def _first_word(host: Host, machine: VirtualMachine, limit_s: float) -> tuple[bool, Ending, str]:
    """Return whether the kernel spoke, how it ended, and the last line of whoever spoke."""
    tail = ""
    spoke = False

    def on_line(raw: bytes) -> bool:
        nonlocal tail, spoke
        tail = raw.decode(errors="replace").strip() or tail
        line = read_line(tail)
        spoke = line is not None and line.event is KernelEvent.VERSION
        return spoke

    with scratch_directory(0) as scratch:
        command = machine.command(None, BootKind.UNPACK, memory_mb=_TRIAL_MB, scratch=scratch)
        ending = host.runner.watch([*DIES_WITH_US, *command], timeout_s=limit_s, on_line=on_line)
    return spoke, ending, tail


def _first_line(host: Host, command: list[str]) -> str:
    try:
        said = host.runner.run(command, timeout_s=_VERSION_S).stdout.decode(errors="replace")
    except ProgramError as err:
        raise NoEngineError(err.message) from err
    return next(
        (shown(line.strip()[:200]) for line in said.splitlines() if line.strip()), "unknown"
    )


FOR_TIMING = (Engine.KVM, Engine.UML)
FOR_VERIFYING = (Engine.KVM, Engine.TCG)
_INSTALL = f"install {_QEMU_PACKAGE} or user-mode-linux"


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
            else:
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
