"""Notes and jobs: what a name says, and what follows from it."""

from __future__ import annotations

import pytest

from initadvisor.daemon.notes import Job, Note, NoteReason, Task, jobs_of

RELEASES = (None, "6.1.0-44-amd64", "6.9.1.arch1-1", "6.1_x+y~z", "6" * 64)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("word", [*NoteReason, *Task])
def test_a_name_says_all(word: NoteReason | Task, release: str | None) -> None:
    if isinstance(word, NoteReason):
        note = Note(reason=word, release=release)
        assert Note.parse(str(note)) == note
        assert Job.parse(str(note)) is None
    else:
        job = Job(task=word, release=release)
        assert Job.parse(str(job)) == job
        assert Note.parse(str(job)) is None


@pytest.mark.parametrize(
    "name",
    [
        "",
        "@",
        "@6.1",
        "kernel-added@",
        "kernel-added@6.1@6.2",
        "kernel-added@../6.1",
        "kernel-added@6.1\n",
        "kernel-added@6.1 ",
        "kernel-added@-6.1",
        "kernel-added@.6",
        "kernel-added@ü",
        "kernel-added@" + "6" * 65,
        "KERNEL-ADDED@6.1",
        "build@",
        "build@/",
        ".partial-x",
    ],
)
def test_any_other_name_says_nothing(name: str) -> None:
    assert Note.parse(name) is None
    assert Job.parse(name) is None


@pytest.mark.parametrize("reason", NoteReason)
@pytest.mark.parametrize("release", [None, "6.1"])
def test_what_was_interrupted_comes_first_and_only_a_decision_applies(
    reason: NoteReason, release: str | None
) -> None:
    jobs = jobs_of(Note(reason=reason, release=release))
    tasks = [job.task for job in jobs]
    assert tasks == sorted(set(tasks), key=list(Task).index)
    assert tasks[0] is Task.SETTLE
    assert not {Task.TRY, Task.APPLY} & set(tasks)


@pytest.mark.parametrize("reason", [NoteReason.KERNEL_ADDED, NoteReason.IMAGE_REBUILT])
def test_a_new_image_is_built_with_every_setting_and_weighed(reason: NoteReason) -> None:
    jobs = jobs_of(Note(reason=reason, release="6.1"))
    assert {str(job) for job in jobs} == {"settle", "build@6.1", "lab@6.1", "advance", "advise"}


def test_a_removed_kernel_leaves_nothing_to_build() -> None:
    jobs = jobs_of(Note(reason=NoteReason.KERNEL_REMOVED, release="6.1"))
    assert {str(job) for job in jobs} == {"settle", "prune", "advance"}


def test_after_each_boot_it_is_weighed_again() -> None:
    booted = jobs_of(Note(reason=NoteReason.BOOTED))
    assert [job.task for job in booted] == [Task.SETTLE, Task.WATCH, Task.ADVANCE, Task.ADVISE]
