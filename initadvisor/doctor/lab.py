"""``doctor`` looks at virtual machines, and at the room that candidates need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.apply.plan_values import PlannedImage
from initadvisor.apply.room import room_needed
from initadvisor.candidates.cache import Cache
from initadvisor.core.errors import InitadvisorError, NeedsRootError
from initadvisor.doctor.findings import Topic, fine, note, obstacle
from initadvisor.host.files import free_bytes
from initadvisor.records.lab import Engine
from initadvisor.store.store import open_store
from initadvisor.target.packages import PROGRAMS, how_to_install
from initadvisor.vm.choose import FOR_VERIFYING, Wanted, engine_states
from initadvisor.vm.engines import remembered_kvm, why_kvm_is_closed
from initadvisor.vm.kernel import find_kernel
from initadvisor.vm.machine import QEMU, UML

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from initadvisor.doctor.findings import CheckedMachine, Finding
    from initadvisor.host import Host


_MB = 1e6
_TRY = "initadvisor doctor --try-engines"


def engines(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell which engines are there; without one that verifies, nothing is applied or booted."""
    if subject.try_engines:
        yield from _tried(subject)
        return
    problem = _why_not_qemu(subject)
    if problem:
        yield problem
    else:
        yield fine(
            Topic.ENGINES, f"{QEMU} can verify that Linux {subject.release} unpacks an image"
        )
        yield _kvm(subject.host)
    yield _uml(subject.host)


def _tried(subject: CheckedMachine) -> Iterator[Finding]:
    with open_store(subject.host) as store:
        states = engine_states(subject.host, store, Wanted(release=subject.release, anew=True))
    verifying = [s for s in states if s.engine in FOR_VERIFYING and s.problem is None]
    for state in states:
        if state.problem is None:
            yield fine(Topic.ENGINES, f"{state.engine} works: {state.version}")
        elif verifying or state.engine is Engine.UML:
            yield note(Topic.ENGINES, f"{state.engine}: {state.problem}")
        else:
            yield obstacle(Topic.ENGINES, f"{state.engine}: {state.problem}")


def _why_not_qemu(subject: CheckedMachine) -> Finding | None:
    host = subject.host
    if host.machine() != "x86_64":
        text = f"no virtual machine verifies images on {host.machine()}: only x86-64 is supported"
        return obstacle(Topic.ENGINES, text, "sudo initadvisor apply --unverified")
    if host.runner.which(QEMU) is None:
        text = f"{QEMU} is not installed: images cannot be verified before they are booted"
        return obstacle(Topic.ENGINES, text, how_to_install(host, PROGRAMS[QEMU]))
    try:
        find_kernel(host, subject.release)
    except NeedsRootError:
        raise
    except InitadvisorError as err:
        return obstacle(Topic.ENGINES, err.message, "initadvisor lab --kernel FILE names it")
    return None


def _kvm(host: Host) -> Finding:
    if closed := why_kvm_is_closed(host):
        text = f"KVM cannot be used, so that the lab times nothing: {closed}"
        advice = None
        if host.path("/dev/kvm").exists():
            advice = "sudo initadvisor doctor, or join the group kvm"
        return note(Topic.ENGINES, text, advice)
    with open_store(host, readonly=True) as store:
        remembered = remembered_kvm(host, store)
    if remembered and not remembered.works:
        text = f"KVM did not work on {remembered.at:%Y-%m-%d}: {remembered.reason}"
        return note(Topic.ENGINES, text, _TRY)
    return fine(Topic.ENGINES, "/dev/kvm may be used; whether it works is found out when needed")


def _uml(host: Host) -> Finding:
    if host.runner.which(UML):
        return fine(Topic.ENGINES, f"{UML} is installed, another kernel to time decompression with")
    return fine(Topic.ENGINES, f"{UML} is not installed; it is wanted where KVM is not to be had")


def room(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell whether there is room to build a candidate, and for it beside today's image."""
    host, image = subject.host, subject.image
    if subject.generator is None or image is None:
        yield note(Topic.ROOM, "without an image it is not known how much is needed")
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
            yield fine(Topic.ROOM, text)
        else:
            yield obstacle(Topic.ROOM, text, "remove old kernels, or initadvisor candidates prune")
    yield from _slot(host, image.path.parent, size_bytes)


def _slot(host: Host, directory: Path, size_bytes: int) -> Iterator[Finding]:
    """Tell how large a trial's image may be: it lies beside the default one while it is armed."""
    free = free_bytes(directory)
    sizes = [size_bytes, *(cached.candidate.size_bytes for cached in Cache(host).all())]
    text = f"a trial's image of up to {free / _MB:.0f} MB fits beside today's"
    if max(sizes) > free:
        text += f"; the largest that was built has {max(sizes) / _MB:.0f} MB"
        yield note(Topic.ROOM, text)
    else:
        yield fine(Topic.ROOM, f"{text}, {size_bytes / _MB:.0f} MB")
