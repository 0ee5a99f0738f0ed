"""What the checks of ``doctor`` look at, and the findings they make of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.model.diagnosis import Finding, Grade

if TYPE_CHECKING:
    from initadvisor.generators import Generator
    from initadvisor.host import Host
    from initadvisor.model.diagnosis import Topic
    from initadvisor.model.generator import InstalledImage


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A machine, its generator and default image, None where there is none or it is not known.

    ``try_engines``: virtual machines may be started to see whether they work.
    """

    host: Host
    generator: Generator | None
    image: InstalledImage | None
    try_engines: bool

    @property
    def release(self) -> str:
        """The kernel that the default image is for, or else the running one."""
        return self.image.kernel_release if self.image else self.host.kernel_release()


def fine(topic: Topic, text: str) -> Finding:
    """Return that something is as it should be."""
    return Finding(topic=topic, grade=Grade.OK, text=text)


def note(topic: Topic, text: str, advice: str | None = None) -> Finding:
    """Return something worth knowing."""
    return Finding(topic=topic, grade=Grade.NOTE, text=text, advice=advice)


def obstacle(topic: Topic, text: str, advice: str | None = None) -> Finding:
    """Return what stands in the way."""
    return Finding(topic=topic, grade=Grade.OBSTACLE, text=text, advice=advice)
