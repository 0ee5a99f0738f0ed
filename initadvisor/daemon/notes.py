"""What hooks note for the daemon, and the jobs that come of it.

A note and a job are an empty file each, whose name says all: nothing that stands in a file has to
be understood, and the same noted twice is one. ``hooks/queue`` writes notes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

_NAME = re.compile(r"([a-z-]+)(?:@([0-9A-Za-z][0-9A-Za-z._+~-]{0,63}))?")
"""A word, and a release if it may be in a file's name; the kernel allows 64 bytes (uname(2))."""


class NoteReason(StrEnum):
    """What has happened."""

    KERNEL_ADDED = "kernel-added"
    KERNEL_REMOVED = "kernel-removed"
    IMAGE_REBUILT = "image-rebuilt"
    BOOTED = "booted"
    """The daemon finds by itself that the machine has booted since it ran last."""
    DISK_REPLACED = "disk-replaced"
    """And that the image is on another disk: what boots told of reading is of no more use."""


class Task(StrEnum):
    """What the daemon does, in the order in which it does it."""

    SETTLE = "settle"
    """Finish or undo transactions that were interrupted, judge what waits for a boot."""
    WATCH = "watch"
    """Go back where a setting that the policy has applied made boots slower."""
    PRUNE = "prune"
    """Remove candidates of images that are gone."""
    BUILD = "build"
    """Build the candidates of an image."""
    LAB = "lab"
    """Time them in a virtual machine."""
    ADVANCE = "advance"
    """Do what a campaign of trial boots can do next."""
    ADVISE = "advise"
    """Weigh what is known, and say what comes of it."""
    TRY = "try"
    """Begin a campaign where that is undecided; only where the policy says so."""
    APPLY = "apply"
    """Apply what was advised; only where the policy says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that has happened, to a kernel if ``release`` is not None."""

    reason: NoteReason
    release: str | None = None

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """Return what the name of a file says, None where that is nothing."""
        found = _NAME.fullmatch(name)
        if found is None or found[1] not in set(NoteReason):
            return None
        return cls(reason=NoteReason(found[1]), release=found[2])

    def __str__(self) -> str:
        """Return the name of its file."""
        return _joined(self.reason, self.release)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A task that is to be done, for the image of one kernel or (None) for the default image."""

    task: Task
    release: str | None = None

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """Return what the name of a file says, None where that is nothing."""
        found = _NAME.fullmatch(name)
        if found is None or found[1] not in set(Task):
            return None
        return cls(task=Task(found[1]), release=found[2])

    def __str__(self) -> str:
        """Return the name of its file."""
        return _joined(self.task, self.release)


def jobs_of(note: Note) -> tuple[Job, ...]:
    """Return what there is to do because of a note.

    All of it may be done twice, and none of it is needed to be safe. What was interrupted is looked
    after first, whatever has happened.
    """
    settle = Job(task=Task.SETTLE)
    image = tuple(Job(task=task, release=note.release) for task in (Task.BUILD, Task.LAB))
    advance, advise = Job(task=Task.ADVANCE), Job(task=Task.ADVISE)
    match note.reason:
        case NoteReason.KERNEL_ADDED | NoteReason.IMAGE_REBUILT:
            return (settle, *image, advance, advise)
        case NoteReason.KERNEL_REMOVED:
            return (settle, Job(task=Task.PRUNE), advance)
        case NoteReason.BOOTED:
            return (settle, Job(task=Task.WATCH), advance, advise)
        case NoteReason.DISK_REPLACED:
            return (settle, advance, advise)


def _joined(word: str, release: str | None) -> str:
    return word if release is None else f"{word}@{release}"
