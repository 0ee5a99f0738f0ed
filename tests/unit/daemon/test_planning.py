"""What the daemon does next, over all that may be lacking."""

from __future__ import annotations

import itertools

import pytest

from initadvisor.daemon.notes import Job, Task
from initadvisor.daemon.planning import (
    MOST_WAITING_S,
    TERMS,
    Do,
    Leave,
    Needs,
    Wait,
    Wake,
    decide,
    needed,
)

EVERYTHING = tuple(Job(task=task) for task in Task)
SINGLE = (Needs.MANAGERS, Needs.POWER, Needs.PROCESSORS)
LACKS = tuple(
    Needs(sum(need.value for need in chosen))
    for count in range(4)
    for chosen in itertools.combinations(SINGLE, count)
)
SETTLE, PRUNE, BUILD, ADVANCE, APPLY = (
    Job(task=task) for task in (Task.SETTLE, Task.PRUNE, Task.BUILD, Task.ADVANCE, Task.APPLY)
)


@pytest.mark.parametrize("lacking", LACKS, ids=str)
@pytest.mark.parametrize("task", Task)
@pytest.mark.parametrize("waited_s", [0.0, MOST_WAITING_S])
@pytest.mark.parametrize("failed", [0, 2])
def test_every_task_with_everything_that_may_be_lacking(
    task: Task, lacking: Needs, waited_s: float, failed: int
) -> None:
    found = decide([Job(task=task)], lacking, waited_s=waited_s, failed=failed)
    missing = TERMS[task].needs & lacking
    if not missing:
        assert found == Do(job=Job(task=task))
    elif Needs.POWER in missing:
        wake = Wake.RETRY if failed else Wake.POWER
        assert isinstance(found, Leave)
        assert found.wake is wake
    elif waited_s < MOST_WAITING_S:
        assert isinstance(found, Wait)
        assert 1 <= found.seconds <= 60
    else:
        assert isinstance(found, Leave)
        assert found.wake is Wake.RETRY
    if not isinstance(found, Do):
        assert found.why


@pytest.mark.parametrize(
    ("jobs", "lacking", "wanted"),
    [
        ([BUILD, SETTLE], Needs.NOTHING, Do(job=SETTLE)),
        ([BUILD, SETTLE], Needs.POWER, Do(job=SETTLE)),
        ([BUILD, PRUNE], Needs.MANAGERS, Do(job=PRUNE)),
        ([BUILD, APPLY], Needs.PROCESSORS, Do(job=APPLY)),
        ([BUILD, SETTLE], Needs.MANAGERS | Needs.POWER, Wait),
        ([BUILD, ADVANCE], Needs.MANAGERS | Needs.POWER, Leave),
    ],
)
def test_what_can_be_done_is_done_in_its_order_whatever_else_waits(
    jobs: list[Job], lacking: Needs, wanted: object
) -> None:
    found = decide(jobs, lacking)
    assert found == wanted or type(found) is wanted


def test_of_two_images_the_same_comes_first_every_time() -> None:
    jobs = [Job(task=Task.BUILD, release=release) for release in ("6.2", "6.1")]
    found = [decide(order, Needs.NOTHING) for order in itertools.permutations(jobs)]
    assert found == [Do(job=jobs[1])] * 2


def test_nothing_to_do_needs_no_waker() -> None:
    found = decide([], Needs.NOTHING)
    assert isinstance(found, Leave)
    assert found.wake is Wake.NEVER


def test_what_has_failed_is_tried_again_by_a_later_run() -> None:
    found = decide([], Needs.NOTHING, failed=1)
    assert isinstance(found, Leave)
    assert found.wake is Wake.RETRY


@pytest.mark.parametrize("lacking", LACKS, ids=str)
def test_it_ends(lacking: Needs) -> None:
    """Whatever stays as it is: each job is done once, and then it leaves."""
    jobs, waited_s = list(EVERYTHING), 0.0
    for _ in range(2000):
        found = decide(jobs, lacking, waited_s=waited_s)
        if isinstance(found, Leave):
            return
        if isinstance(found, Do):
            jobs.remove(found.job)
        else:
            waited_s += found.seconds
    pytest.fail("it never leaves")


def test_only_what_jobs_need_is_found_out() -> None:
    assert needed([]) == Needs.NOTHING
    assert needed([PRUNE]) == Needs.NOTHING
    assert needed([SETTLE, PRUNE]) == Needs.MANAGERS
    assert needed(EVERYTHING) == Needs.MANAGERS | Needs.POWER | Needs.PROCESSORS


def test_whatever_takes_long_or_touches_images_keeps_clear_of_package_managers() -> None:
    assert {task for task in Task if Needs.MANAGERS not in TERMS[task].needs} == {Task.PRUNE}
    assert all(terms.limit_s <= 6 * 3600 for terms in TERMS.values())
