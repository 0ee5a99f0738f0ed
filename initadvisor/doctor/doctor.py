"""Looks at all that is needed to find the best setting here and to apply it; changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.core.errors import (
    LOADING_FAILURES,
    InitadvisorError,
    NeedsRootError,
    library_error,
)
from initadvisor.doctor import boots, software
from initadvisor.doctor.findings import CheckedMachine, Finding, Topic, note, obstacle
from initadvisor.generators.detect import detect_generator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from initadvisor.host import Host


_AS_ROOT = "sudo initadvisor doctor"

_CHECKS: dict[Topic, Callable[[CheckedMachine], Iterator[Finding]]] = {
    Topic.SYSTEM: software.system,
    Topic.PYTHON: software.python,
    Topic.CONFIGURATION: software.configuration,
    Topic.GENERATOR: software.generator,
    Topic.COMPRESSORS: software.compressors,
    Topic.KERNEL: software.kernel,
    Topic.BOOTS: boots.boots,
    Topic.ENGINES: boots.engines,
    Topic.LOADER: boots.loader,
    Topic.UNLOCKING: boots.unlocking,
    Topic.ROOM: boots.room,
    Topic.UNITS: software.units,
    Topic.HOOKS: software.hooks,
    Topic.PACKAGES: software.package_managers,
    Topic.CHANGES: boots.changes,
    Topic.FILES: software.files,
}


def diagnose(host: Host, *, try_engines: bool = False) -> dict[Topic, tuple[Finding, ...]]:
    """Return what was found; what cannot be looked at is a finding, too.

    Nothing is started that takes long, unless ``try_engines`` has virtual machines tried.
    """
    try:
        generator = detect_generator(host)
        images = generator.images(host) if generator else ()
    except InitadvisorError:  # ``software.generator`` comes upon it again, and says it
        generator, images = None, ()
    subject = CheckedMachine(
        host=host,
        generator=generator,
        images=images,
        try_engines=try_engines,
    )
    return {topic: tuple(_guarded(topic, subject)) for topic in _CHECKS}


def _guarded(topic: Topic, subject: CheckedMachine) -> Iterator[Finding]:
    """Have one check fail for itself: what others can say is worth the more then."""
    try:
        yield from _CHECKS[topic](subject)
    except NeedsRootError as err:
        yield note(f"not looked at: {err.message}", _AS_ROOT)
    except InitadvisorError as err:
        yield obstacle(err.message, err.hint)
    except LOADING_FAILURES as err:
        if lack := library_error(err):
            yield note(f"not looked at: {lack}")
        elif isinstance(err, OSError):
            yield note(
                f"not looked at: {err.filename or topic}: {err.strerror}",
                _AS_ROOT if isinstance(err, PermissionError) else None,
            )
        else:
            raise
