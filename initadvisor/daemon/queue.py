"""Notes of hooks and the jobs that come of them, as files of the state directory.

Hooks write into ``queue``, which systemd watches: the daemon empties it first of all, so that it is
never started for the same note again. Jobs wait in ``tasks``, which only the daemon touches and
which is there only while there are any. A note is removed after its jobs are there, and a job after
it is done: a run that is killed loses neither.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from typing import TYPE_CHECKING

from initadvisor.core.text import shown
from initadvisor.daemon.notes import Job, Note, jobs_of
from initadvisor.host.files import (
    make_directory,
    os_failure,
    remove_whole,
    require_own_directory,
    sync_directory,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from initadvisor.host import Host


_log = logging.getLogger(__name__)


class Queue:
    """The files. All methods raise ``InitadvisorError`` where they cannot be used."""

    def __init__(self, host: Host) -> None:
        self._notes = host.state_dir() / "queue"
        self._jobs = host.state_dir() / "tasks"

    def take_in(self) -> tuple[Note, ...]:
        """Turn all notes into jobs, and return them.

        What is no note, or was not written by this user, is removed: left there, it would have the
        daemon started again and again.
        """
        with _told(self._notes):
            if not os.path.lexists(self._notes):
                return ()
            require_own_directory(self._notes, doing="working off")
            taken = {path: _note_in(path) for path in sorted(self._notes.iterdir())}
            notes = tuple(note for note in taken.values() if note)
            self.add(*notes)
            for path, note in taken.items():
                if note is None:
                    _log.warning("removing what no hook has written: %s", shown(str(path)))
                remove_whole(path)
            return notes

    def add(self, *notes: Note) -> None:
        """Have the jobs of notes done; those that are to be done already are the same."""
        jobs = (job for note in notes for job in jobs_of(note))
        self.put(*dict.fromkeys(jobs))

    def put(self, *jobs: Job) -> None:
        """Have jobs done; how often they have failed is forgotten."""
        if not jobs:
            return
        with _told(self._jobs):
            make_directory(self._jobs)
            for job in jobs:
                path = self._jobs / str(job)
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
                os.close(os.open(path, flags, 0o600))
            sync_directory(self._jobs)

    def jobs(self) -> tuple[Job, ...]:
        """Return all jobs that are to be done; what is none is removed."""
        with _told(self._jobs):
            if not os.path.lexists(self._jobs):
                return ()
            require_own_directory(self._jobs, doing="working off")
            found = []
            for path in sorted(self._jobs.iterdir()):
                job = Job.parse(path.name)
                if job and _is_ours(path.lstat()):
                    found.append(job)
                else:
                    _log.warning("removing what is no job: %s", shown(str(path)))
                    remove_whole(path)
            self._tidy()
            return tuple(found)

    @contextlib.contextmanager
    def attempt(self, job: Job) -> Iterator[int]:
        """Count an attempt at a job, of which the block gets the number, from 1.

        It is counted before, so that a job that takes the daemon with it counts, too. What is no
        ``Exception`` has cut it short, and it was no attempt.
        """
        path = self._jobs / str(job)
        with _told(path):
            # The size of the file is the number: nothing is ever read.
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            with _told(path):
                os.write(descriptor, b".")
                number = os.fstat(descriptor).st_size
            try:
                yield number
            except Exception:
                raise
            except BaseException:
                os.ftruncate(descriptor, number - 1)
                raise
        finally:
            os.close(descriptor)

    def done(self, job: Job) -> None:
        """Remove a job that is done, or given up."""
        with _told(self._jobs):
            (self._jobs / str(job)).unlink(missing_ok=True)
            self._tidy()

    def _tidy(self) -> None:
        """Remove the directory with its last job: a rule of udev's goes by that it is there."""
        with contextlib.suppress(OSError):
            self._jobs.rmdir()


def _note_in(path: Path) -> Note | None:
    note = Note.parse(path.name)
    return note if note and _is_ours(path.lstat()) else None


def _is_ours(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and stat.S_ISREG(status.st_mode)


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as err:
        raise os_failure(err, f"cannot use {err.filename or path}", only_root=True) from err
