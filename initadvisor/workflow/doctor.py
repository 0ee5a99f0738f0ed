"""Looks at all that is needed to find the best setting here and to apply it; changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.generators.detect import detect_generator
from initadvisor.model.diagnosis import Diagnosis, Finding, Grade, Topic
from initadvisor.model.errors import InitadvisorError, NeedsRootError
from initadvisor.workflow import doctor_boots, doctor_lab, doctor_services, doctor_software
from initadvisor.workflow.doctor_subject import Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from initadvisor.host import Host

_AS_ROOT = "sudo initadvisor doctor"

_CHECKS: tuple[tuple[Topic, Callable[[Subject], Iterator[Finding]]], ...] = (
    (Topic.SYSTEM, doctor_software.system),
    (Topic.PYTHON, doctor_software.python),
    (Topic.CONFIGURATION, doctor_software.configuration),
    (Topic.GENERATOR, doctor_software.generator),
    (Topic.COMPRESSORS, doctor_software.compressors),
    (Topic.KERNEL, doctor_software.kernel),
    (Topic.BOOTS, doctor_boots.boots),
    (Topic.ENGINES, doctor_lab.engines),
    (Topic.LOADER, doctor_boots.loader),
    (Topic.UNLOCKING, doctor_boots.unlocking),
    (Topic.ROOM, doctor_lab.room),
    (Topic.UNITS, doctor_services.units),
    (Topic.HOOKS, doctor_services.hooks),
    (Topic.PACKAGES, doctor_services.package_managers),
    (Topic.CHANGES, doctor_boots.changes),
    (Topic.FILES, doctor_services.files),
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


def _subject(host: Host, *, try_engines: bool) -> Subject:
    try:
        generator = detect_generator(host)
        images = generator.images(host) if generator else ()
    except InitadvisorError:  # ``doctor_software.generator`` comes upon it again, and says it
        generator, images = None, ()
    return Subject(
        host=host,
        generator=generator,
        image=images[0] if images else None,
        try_engines=try_engines,
    )


def _guarded(
    topic: Topic, check: Callable[[Subject], Iterator[Finding]], subject: Subject
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
