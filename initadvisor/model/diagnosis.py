"""What was found out about a machine: what is there, what is missing, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at; ``advice``: what to do, a command where there is one."""

    topic: Topic
    grade: Grade
    text: str
    advice: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """All that was found, in the order of the topics."""

    findings: tuple[Finding, ...]

    def graded(self, grade: Grade) -> tuple[Finding, ...]:
        """Return the findings of a grade."""
        return tuple(finding for finding in self.findings if finding.grade is grade)
