"""What the daemon does next: a job, waiting, or nothing more until something wakes it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Flag, StrEnum, auto
from typing import TYPE_CHECKING

from initadvisor.daemon.notes import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from initadvisor.daemon.notes import Job


class Needs(Flag):
    """What has to hold before a task is begun."""

    NOTHING = 0
    MANAGERS = auto()
    """No package manager is at work: images and configuration are what they will be."""
    POWER = auto()
    """The machine does not run on its battery; also while the task goes on."""
    PROCESSORS = auto()
    """Most processors are idle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a task needs, and the time it is given before it counts as hanging."""

    needs: Needs
    limit_s: float


_IDLE = Needs.MANAGERS | Needs.POWER | Needs.PROCESSORS

TERMS = {
    Task.SETTLE: Terms(needs=Needs.MANAGERS, limit_s=1800),
    Task.WATCH: Terms(needs=Needs.MANAGERS, limit_s=2 * 3600),
    Task.PRUNE: Terms(needs=Needs.NOTHING, limit_s=600),
    Task.BUILD: Terms(needs=_IDLE, limit_s=6 * 3600),
    Task.LAB: Terms(needs=_IDLE, limit_s=6 * 3600),
    Task.ADVANCE: Terms(needs=_IDLE, limit_s=6 * 3600),
    Task.ADVISE: Terms(needs=_IDLE, limit_s=6 * 3600),
    Task.TRY: Terms(needs=_IDLE, limit_s=6 * 3600),
    Task.APPLY: Terms(needs=Needs.MANAGERS | Needs.POWER, limit_s=4 * 3600),
}
"""By task. Going back from what made boots slower does not wait for power; a campaign is advanced
without building by what runs at each boot, and here with it."""

MOST_WAITING_S = 1800.0
"""So long the daemon stays for what is likely to pass; then a timer has it look again."""

_POLL_S = {Needs.MANAGERS: 5.0, Needs.PROCESSORS: 60.0}


class Wake(StrEnum):
    """What makes the daemon go on with what it leaves."""

    NEVER = "never"
    """Nothing is left."""
    POWER = "power"
    """The adapter is plugged in: a rule of udev's starts it."""
    RETRY = "retry"
    """A timer starts it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Do:
    """Do this job now."""

    job: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Look again so many seconds later; ``why`` is for people."""

    seconds: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """End; ``why`` is for people."""

    wake: Wake
    why: str


def needed(jobs: Iterable[Job]) -> Needs:
    """Return what is worth finding out before it is decided about these jobs."""
    needs = Needs.NOTHING
    for job in jobs:
        needs |= TERMS[job.task].needs
    return needs


def decide(
    jobs: Sequence[Job], lacking: Needs, *, failed: int = 0, waited_s: float = 0.0
) -> Do | Wait | Leave:
    """Return what to do about ``jobs``.

    ``lacking``: what does not hold now. ``failed``: how many others have failed in this run and are
    to be tried by a later one. ``waited_s``: for how long nothing could be done already.
    """
    order = list(Task)
    for job in sorted(jobs, key=lambda job: (order.index(job.task), job.release or "")):
        if not TERMS[job.task].needs & lacking:
            return Do(job=job)
    # What waits for power has a waker; it is no reason to stay.
    passing = [need for need in _POLL_S if _some_wait_only_for(jobs, lacking, need)]
    if passing and waited_s < MOST_WAITING_S:
        return Wait(seconds=min(_POLL_S[need] for need in passing), why=_why(passing))
    if passing:
        return Leave(wake=Wake.RETRY, why=f"{_why(passing)} for too long")
    if failed:
        return Leave(wake=Wake.RETRY, why=f"{failed} jobs are to be tried again")
    if jobs:
        return Leave(wake=Wake.POWER, why="waits for mains power")
    return Leave(wake=Wake.NEVER, why="nothing is left to do")


def _some_wait_only_for(jobs: Sequence[Job], lacking: Needs, need: Needs) -> bool:
    """Tell whether a job waits for this and not for power."""
    missing = (TERMS[job.task].needs & lacking for job in jobs)
    return any(need in lack and Needs.POWER not in lack for lack in missing)


def _why(needs: Sequence[Needs]) -> str:
    words = {
        Needs.MANAGERS: "a package manager is at work",
        Needs.PROCESSORS: "the processors are busy",
    }
    return " and ".join(words[need] for need in needs)
