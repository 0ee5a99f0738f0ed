"""Looks at all that is needed to find the best setting here and to apply it; changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError, NeedsRootError
from initadvisor.doctor import boots, lab, services, software
from initadvisor.doctor.findings import CheckedMachine, Diagnosis, Finding, Grade, Topic
from initadvisor.generators.detect import detect_generator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from initadvisor.host import Host


_AS_ROOT = "sudo initadvisor doctor"

_CHECKS: tuple[tuple[Topic, Callable[[CheckedMachine], Iterator[Finding]]], ...] = (
    (Topic.SYSTEM, software.system),
    (Topic.PYTHON, software.python),
    (Topic.CONFIGURATION, software.configuration),
    (Topic.GENERATOR, software.generator),
    (Topic.COMPRESSORS, software.compressors),
    (Topic.KERNEL, software.kernel),
    (Topic.BOOTS, boots.boots),
    (Topic.ENGINES, lab.engines),
    (Topic.LOADER, boots.loader),
    (Topic.UNLOCKING, boots.unlocking),
    (Topic.ROOM, lab.room),
    (Topic.UNITS, services.units),
    (Topic.HOOKS, services.hooks),
    (Topic.PACKAGES, services.package_managers),
    (Topic.CHANGES, boots.changes),
    (Topic.FILES, services.files),
)


def diagnose(host: Host, *, try_engines: bool = False) -> Diagnosis:
    """Return what was found; what cannot be looked at is a finding, too.

    Nothing is started that takes long, unless ``try_engines`` has virtual machines tried.
    """
    subject = _subject(host, try_engines=try_engines)
    return Diagnosis(
        findings=tuple(
            finding for topic, check in _CHECKS for finding in _guarded(topic, check, subject)
        )
    )


def _subject(host: Host, *, try_engines: bool) -> CheckedMachine:
    try:
        generator = detect_generator(host)
        images = generator.images(host) if generator else ()
    except InitadvisorError:  # ``doctor_software.generator`` comes upon it again, and says it
        generator, images = None, ()
    return CheckedMachine(
        host=host,
        generator=generator,
        image=images[0] if images else None,
        try_engines=try_engines,
    )


def _guarded(
    topic: Topic, check: Callable[[CheckedMachine], Iterator[Finding]], subject: CheckedMachine
) -> Iterator[Finding]:
    """Have one check fail for itself: what others can say is worth the more then."""
    try:
        yield from check(subject)
    except NeedsRootError as err:
        text = f"not looked at: {err.message}"
        yield Finding(topic=topic, grade=Grade.NOTE, text=text, advice=_AS_ROOT)
    except InitadvisorError as err:
        yield Finding(topic=topic, grade=Grade.OBSTACLE, text=err.message, advice=err.hint)
    except ModuleNotFoundError as err:
        text = f"not looked at: the Python module {err.name} is not installed"
        yield Finding(topic=topic, grade=Grade.NOTE, text=text)
    except OSError as err:
        text = f"not looked at: {err.filename or topic}: {err.strerror}"
        advice = _AS_ROOT if isinstance(err, PermissionError) else None
        yield Finding(topic=topic, grade=Grade.NOTE, text=text, advice=advice)
