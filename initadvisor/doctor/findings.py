"""What ``doctor`` looks at, and what it finds: what is there, what is missing, what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.generators import Generator, InstalledImage
    from initadvisor.host import Host


class Grade(StrEnum):
    """What a finding means for finding out and applying the best setting on this machine."""

    OK = "ok"
    NOTE = "worth-knowing"
    OBSTACLE = "in-the-way"


class Topic(StrEnum):
    """What a finding is about, in the order in which they are shown."""

    SYSTEM = "system"
    PYTHON = "python"
    CONFIGURATION = "configuration"
    GENERATOR = "generator"
    COMPRESSORS = "compressors"
    KERNEL = "kernel"
    BOOTS = "boots"
    ENGINES = "engines"
    LOADER = "boot loader"
    UNLOCKING = "unlocking"
    ROOM = "room"
    UNITS = "units"
    HOOKS = "hooks"
    PACKAGES = "packages"
    CHANGES = "changes"
    FILES = "files"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; ``advice``: what to do, a command where there is one."""

    grade: Grade
    text: str
    advice: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedMachine:
    """A machine, its generator and images; None and empty where there is none or it is not known.

    ``try_engines``: virtual machines may be started to see whether they work.
    """

    host: Host
    generator: Generator | None
    images: tuple[InstalledImage, ...]
    try_engines: bool

    @property
    def image(self) -> InstalledImage | None:
        """The default image."""
        return self.images[0] if self.images else None

    @property
    def release(self) -> str:
        """The kernel that the default image is for, or else the running one."""
        return self.image.kernel_release if self.image else self.host.kernel_release()


def fine(text: str) -> Finding:
    """Return that something is as it should be."""
    return Finding(Grade.OK, text)


def note(text: str, advice: str | None = None) -> Finding:
    """Return something worth knowing."""
    return Finding(Grade.NOTE, text, advice)


def obstacle(text: str, advice: str | None = None) -> Finding:
    """Return what stands in the way."""
    return Finding(Grade.OBSTACLE, text, advice)
