"""``doctor`` looks at boots and what they need: virtual machines, loader, keys, room."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from initadvisor.apply.plan_values import PlannedImage
from initadvisor.apply.room import room_needed, ways_to_make_room
from initadvisor.bootloaders.detect import default_entry, detect_boot_loader
from initadvisor.bootloaders.safety import open_devices, require_no_binding
from initadvisor.campaign.record import read_campaign
from initadvisor.candidates.cache import Cache
from initadvisor.core.errors import InitadvisorError, NeedsRootError, UnsafeError
from initadvisor.core.refusals import RefusedError
from initadvisor.doctor.findings import fine, note, obstacle
from initadvisor.doctor.kernels import more_kernels
from initadvisor.firmware.efi_variables import enforces_signatures
from initadvisor.host.files import free_bytes
from initadvisor.records.lab import Engine
from initadvisor.store.store import open_store
from initadvisor.target.packages import PROGRAMS, how_to_install
from initadvisor.transaction.log import read_transactions, unfinished
from initadvisor.transaction.transaction import Duty, ProofStage
from initadvisor.trial.beside import require_can_sign, require_can_unify
from initadvisor.trial.default_boot import NoDefaultBootError, image_of
from initadvisor.trial.markers import was_rehearsed
from initadvisor.trial.recovery import left_over
from initadvisor.trial.risks import watchdog_s
from initadvisor.trial.slot import SPARE_BYTES
from initadvisor.vm.engines import (
    FOR_VERIFYING,
    Wanted,
    engine_states,
    remembered_kvm,
    why_kvm_is_closed,
)
from initadvisor.vm.kernel import find_kernel
from initadvisor.vm.machine import QEMU, UML

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from initadvisor.bootloaders import BootLoader
    from initadvisor.doctor.findings import CheckedMachine, Finding
    from initadvisor.host import Host


_MB = 1e6
_NAMED = 3
"""So many damaged records are named."""
_TODO = {
    Duty.WAIT: ("waits for a boot", "reboot when it suits you, or: sudo initadvisor rollback"),
    Duty.REPLACE: ("was interrupted", "sudo initadvisor settle"),
    Duty.RESTORE: ("was interrupted", "sudo initadvisor settle"),
}


def boots(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell how many boots are recorded, and how many of them count."""
    with open_store(subject.host, readonly=True) as store:
        figures = store.boot_figures()
        damaged = store.damaged()
    if damaged:
        names = ", ".join(damaged[:_NAMED]) + (", ..." if len(damaged) > _NAMED else "")
        yield note(
            f"damaged records: {len(damaged)}, which are left out ({names})",
            "sudo initadvisor history --drop-damaged",
        )
    if not figures:
        yield note("no boot is recorded", "sudo initadvisor measure --backfill")
        return
    counting = sum(1 for boot in figures if boot.kind.kernel_counts)
    yield fine(f"boots recorded: {len(figures)}, of which the kernel's times count in {counting}")


def loader(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell whether the boot loader can boot a trial once; reasons against it are in words."""
    host = subject.host
    found = detect_boot_loader(host)
    with contextlib.suppress(InitadvisorError):  # which is among the refusals
        entry = found.default_entry(host)
        yield fine(f"{found.NAME} boots by default: {entry.words}")
        yield from (note(each, "mend or remove that file") for each in entry.damaged)
    refusals = [refusal for refusal in found.refusals(host) if not refusal.kind.may_be_overridden]
    for refusal in refusals:
        yield obstacle(refusal.reason, refusal.remedy)
    if refusals:
        return
    yield fine(f"{found.NAME} can boot an entry once")
    yield from _tried_image(host, found)
    if was_rehearsed(host, found.NAME):
        yield fine("that was rehearsed on this machine")
    else:
        yield note(
            "that was not rehearsed yet: the first trial begins with a boot of today's image"
        )
    if watchdog_s(host) is None:
        yield note(
            "there is no hardware watchdog: a trial that hangs without a word needs somebody"
        )
    else:
        yield fine("a hardware watchdog ends a trial that hangs once systemd runs")


def _tried_image(host: Host, found: BootLoader) -> Iterator[Finding]:
    """Tell where the default entry loads what no trial can stand in for.

    Unified images can be applied nevertheless.
    """
    try:
        default = found.default_entry(host)
        image_of(host, default)
        require_can_sign(host, default)
        require_can_unify(host, default)
    except NoDefaultBootError as err:
        yield obstacle(err.message, err.hint)
    except UnsafeError as err:
        yield note(err.message, err.hint)


def unlocking(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell what a trial's other image means for signatures and for keys in a TPM."""
    host = subject.host
    if enforces_signatures(host):
        yield note("Secure Boot is on: unified kernel images are trusted as a whole or not at all")
    else:
        yield fine("Secure Boot is off")
    devices = open_devices(host)
    if not devices:
        yield fine("no encrypted disk is open")
        return
    try:
        require_no_binding(host, default_entry)
    except RefusedError as err:
        yield note(err.refusal.reason, f"{err.refusal.remedy} (--ignore-unlocking)")
    else:
        names = ", ".join(devices)
        yield fine(f"{names}: no key of a TPM depends on what is booted")


def changes(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell what was begun and is not over."""
    pending = unfinished(read_transactions(subject.host))
    for transaction in pending:
        words, advice = _TODO[transaction.state.duty]
        armed = transaction.armed_boot
        if armed and armed.stage is ProofStage.REHEARSAL:
            words += " with today's image, a rehearsal"
        yield note(f"transaction {transaction.number}, {transaction.purpose}, {words}", advice)
    campaign = read_campaign(subject.host)
    if not campaign.state.is_over:
        yield note(f"a campaign of trial boots is {campaign.state}", "initadvisor trial status")
        return
    left = left_over(subject.host)
    for text in left:
        yield note(text, "sudo initadvisor trial stop")
    if not pending and not left:
        yield fine("nothing is pending")


def engines(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell which engines are there; without one that verifies, nothing is applied or booted."""
    if subject.try_engines:
        yield from _tried(subject)
        return
    problem = _why_not_qemu(subject)
    if problem:
        yield problem
    else:
        yield fine(f"{QEMU} can verify that Linux {subject.release} unpacks an image")
        yield _kvm(subject.host)
    yield _uml(subject.host)


def _tried(subject: CheckedMachine) -> Iterator[Finding]:
    with open_store(subject.host) as store:
        states = engine_states(subject.host, store, Wanted(release=subject.release, anew=True))
    verifying = [s for s in states if s.engine in FOR_VERIFYING and s.problem is None]
    for state in states:
        if state.problem is None:
            yield fine(f"{state.engine} works: {state.version}")
        elif verifying or state.engine is Engine.UML:
            yield note(f"{state.engine}: {state.problem}")
        else:
            yield obstacle(f"{state.engine}: {state.problem}")


def _why_not_qemu(subject: CheckedMachine) -> Finding | None:
    host = subject.host
    if host.machine() != "x86_64":
        return obstacle(
            f"no virtual machine verifies images on {host.machine()}: only x86-64 is supported",
            "sudo initadvisor apply --unverified",
        )
    if host.runner.which(QEMU) is None:
        return obstacle(
            f"{QEMU} is not installed: images cannot be verified before they are booted",
            how_to_install(host, PROGRAMS[QEMU]),
        )
    try:
        find_kernel(host, subject.release)
    except NeedsRootError:
        raise
    except InitadvisorError as err:
        return obstacle(err.message, "initadvisor lab --kernel FILE names it")
    return None


def _kvm(host: Host) -> Finding:
    if closed := why_kvm_is_closed(host):
        there = host.path("/dev/kvm").exists()
        return note(
            f"KVM cannot be used, so that the lab times nothing: {closed}",
            "sudo initadvisor doctor, or join the group kvm" if there else None,
        )
    with open_store(host, readonly=True) as store:
        remembered = remembered_kvm(host, store)
    if remembered and not remembered.works:
        return note(
            f"KVM did not work on {remembered.at:%Y-%m-%d}: {remembered.reason}",
            "initadvisor doctor --try-engines",
        )
    return fine("/dev/kvm may be used; whether it works is found out when needed")


def _uml(host: Host) -> Finding:
    if host.runner.which(UML):
        return fine(f"{UML} is installed, another kernel to time decompression with")
    return fine(f"{UML} is not installed; it is wanted where KVM is not to be had")


def room(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell whether there is room to build a candidate, and for it beside today's image."""
    host, image = subject.host, subject.image
    if subject.generator is None or image is None:
        yield note("without an image it is not known how much is needed")
        return
    size_bytes = image.path.stat().st_size
    planned = PlannedImage(
        image=image,
        rebuilt=True,
        after=subject.generator.configured(host, image.kernel_release),
        size_bytes=size_bytes,
        expected_bytes=None,
    )
    for needed in room_needed(host, [planned], unpacked_bytes=None, keep=True):
        text = (
            f"{needed.mount_point}: {needed.free_bytes / _MB:.0f} MB are free, up to "
            f"{needed.needed_bytes / _MB:.0f} MB are needed for {needed.purpose}"
        )
        if needed.enough:
            yield fine(text)
        else:
            yield obstacle(text, "remove old kernels, or initadvisor candidates prune")
    yield from _slot(host, image.path.parent, size_bytes)
    yield from _kernels(subject)


def _kernels(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell how many more kernels fit, before one does not."""
    found = more_kernels(subject.host, subject.images)
    if found is None:
        return
    if found.room.is_full:
        yield note(found.words, ways_to_make_room(subject.host, found.room.mount_point))
    else:
        yield fine(found.words)


def _slot(host: Host, directory: Path, size_bytes: int) -> Iterator[Finding]:
    """Tell how large a trial's image may be: it lies beside the default one while it is armed."""
    free = max(free_bytes(directory) - SPARE_BYTES, 0)
    sizes = [size_bytes, *(cached.candidate.size_bytes for cached in Cache(host).all())]
    text = f"a trial's image of up to {free / _MB:.0f} MB fits beside today's"
    if max(sizes) > free:
        text += f"; the largest that was built has {max(sizes) / _MB:.0f} MB"
        yield note(text)
    else:
        yield fine(f"{text}, {size_bytes / _MB:.0f} MB")
