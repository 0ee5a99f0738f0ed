"""Notes and jobs as files: nothing is lost, nothing hostile is believed, nothing stays behind."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.daemon.notes import Job, Note, NoteReason, Task
from initadvisor.daemon.queue import Queue
from initadvisor.host import Host
from tests.fakes.runner import FakeRunner

if TYPE_CHECKING:
    from pathlib import Path

ADDED = Note(reason=NoteReason.KERNEL_ADDED, release="6.1.0")
BUILD = Job(task=Task.BUILD, release="6.1.0")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state directory, with an empty queue."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    (tmp_path / "queue").mkdir(mode=0o755)
    return tmp_path


@pytest.fixture
def queue(state: Path) -> Queue:
    """Its queue."""
    return Queue(Host(root=state, runner=FakeRunner()))


def note(state: Path, name: str, content: bytes = b"") -> Path:
    """Note something as a hook does."""
    path = state / "queue" / name
    path.write_bytes(content)
    return path


def test_notes_become_jobs_and_are_gone(queue: Queue, state: Path) -> None:
    note(state, str(ADDED))
    assert queue.take_in() == (ADDED,)
    assert list((state / "queue").iterdir()) == []
    assert BUILD in queue.jobs()
    assert queue.take_in() == ()


def test_the_same_twice_is_one(queue: Queue, state: Path) -> None:
    for _ in range(2):
        note(state, str(ADDED))
        queue.take_in()
    assert len(queue.jobs()) == len(set(queue.jobs())) == 5


def test_the_disk_is_waited_for_once_however_many_notes_there_are(
    queue: Queue, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each wait is some milliseconds, and notes are taken in before the daemon says a word."""
    notes = [Note(reason=NoteReason.KERNEL_ADDED, release=f"6.1.{n}") for n in range(100)]
    for each in notes:
        note(state, str(each))
    synced: list[Path] = []
    monkeypatch.setattr("initadvisor.daemon.queue.sync_directory", synced.append)
    assert {*queue.take_in()} == {*notes}
    assert synced == [state / "tasks"]
    assert {job.release for job in queue.jobs() if job.task is Task.BUILD} == {
        each.release for each in notes
    }


def test_a_job_is_there_before_its_note_is_gone(
    queue: Queue, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = note(state, str(ADDED))

    def cut(_path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("initadvisor.daemon.queue.remove_whole", cut)
    with pytest.raises(KeyboardInterrupt):
        queue.take_in()
    assert path.exists()
    assert BUILD in queue.jobs()


def hostile(state: Path) -> None:
    """Put into the queue what no hook writes."""
    note(state, "nonsense", b"x" * 1000)
    note(state, "kernel-added@" + "6" * 65)
    note(state, "kernel-added@6.1\nevil")
    (state / "queue/kernel-added@6.2").symlink_to("/etc/passwd")
    (state / "queue/kernel-added@6.3").mkdir()
    (state / "queue/kernel-added@6.3/within").touch()
    (state / "queue/link").symlink_to(state / "kept")
    os.mkfifo(state / "queue/kernel-added@6.4")


def test_what_no_hook_has_written_is_removed_and_not_followed(
    queue: Queue, state: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (state / "kept").mkdir()
    (state / "kept/file").touch()
    hostile(state)
    note(state, str(ADDED))
    assert queue.take_in() == (ADDED,)
    assert list((state / "queue").iterdir()) == []
    assert (state / "kept/file").exists()
    assert all("\n" not in record.getMessage() for record in caplog.records)
    assert len(caplog.records) == 7


def test_content_is_never_read(queue: Queue, state: Path) -> None:
    """A huge file is as good as an empty one."""
    with note(state, str(ADDED)).open("r+b") as file:
        file.truncate(1 << 40)
    assert queue.take_in() == (ADDED,)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_note_of_somebody_else_is_not_believed(queue: Queue, state: Path) -> None:
    os.chown(note(state, str(ADDED)), 65534, 65534)
    assert queue.take_in() == ()
    assert queue.jobs() == ()
    assert list((state / "queue").iterdir()) == []


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777])
def test_a_directory_that_others_may_write_to_is_not_worked_off(
    queue: Queue, state: Path, mode: int
) -> None:
    note(state, str(ADDED))
    (state / "queue").chmod(mode)
    with pytest.raises(UnsafeError, match="no directory that only root may write"):
        queue.take_in()


def test_a_file_in_its_place_is_not_taken_for_an_empty_queue(queue: Queue, state: Path) -> None:
    (state / "queue").rmdir()
    (state / "queue").touch()
    with pytest.raises(UnsafeError, match="no directory"):
        queue.take_in()


def test_without_a_directory_there_is_nothing_to_do(queue: Queue, state: Path) -> None:
    (state / "queue").rmdir()
    assert queue.take_in() == ()
    assert queue.jobs() == ()


def test_the_directory_of_jobs_goes_with_the_last_one(queue: Queue, state: Path) -> None:
    queue.put(BUILD)
    assert (state / "tasks").is_dir()
    queue.done(BUILD)
    assert not (state / "tasks").exists()
    queue.put(BUILD)
    (state / "tasks" / str(BUILD)).rename(state / "tasks/nonsense")
    assert queue.jobs() == ()
    assert not (state / "tasks").exists()


def test_attempts_are_counted_before_they_end(queue: Queue) -> None:
    queue.put(BUILD)
    for number in (1, 2, 3):
        with queue.attempt(BUILD) as counted:
            assert counted == number
    with pytest.raises(ValueError, match="a bug"), queue.attempt(BUILD) as counted:
        raise ValueError("a bug")  # noqa: EM101
    with queue.attempt(BUILD) as counted:
        assert counted == 5


def test_an_attempt_that_was_cut_short_is_none(queue: Queue) -> None:
    queue.put(BUILD)
    numbers = []

    def cut_short() -> None:
        with queue.attempt(BUILD) as number:
            numbers.append(number)
            raise KeyboardInterrupt

    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            cut_short()
    assert numbers == [1, 1, 1]


def test_a_new_note_begins_to_count_anew(queue: Queue, state: Path) -> None:
    queue.put(BUILD)
    with queue.attempt(BUILD):
        pass
    note(state, str(ADDED))
    queue.take_in()
    with queue.attempt(BUILD) as counted:
        assert counted == 1


def test_a_file_in_the_way_is_told_in_one_line(queue: Queue, state: Path) -> None:
    (state / "tasks").touch()
    note(state, str(ADDED))
    with pytest.raises(InitadvisorError, match=r"tasks: File exists"):
        queue.take_in()
    assert (state / "queue" / str(ADDED)).exists()
