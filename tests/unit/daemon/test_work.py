"""Each task calls the part of the advisor that it is about, with the image that it is about."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from initadvisor.advise import recommend
from initadvisor.advise.recommendation import Plan, PlannedBoots
from initadvisor.apply import policy, policy_trials, proving
from initadvisor.apply.policy_log import policy_log
from initadvisor.apply.policy_trials import Begun
from initadvisor.campaign.record import note_active
from initadvisor.candidates import build, considered, search_space
from initadvisor.core.config import Policy
from initadvisor.core.errors import UnsafeError, UsageError
from initadvisor.daemon.notes import Job, Task
from initadvisor.daemon.work import AdvisorsWork
from initadvisor.decide.cost import Outcome
from initadvisor.decide.next_boot import Purpose
from initadvisor.lab import timing
from initadvisor.transaction import transactions
from initadvisor.trial import campaigns
from initadvisor.vm.engines import NoEngineError
from tests.fixtures.answers import LZ4, answer, contrast, decision, figure
from tests.fixtures.dracut_machine import OTHER, make_machine
from tests.fixtures.hosts import RELEASE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from initadvisor.advise.recommendation import Recommendation
    from initadvisor.host import Host
    from initadvisor.target.target import Target
    from tests.fixtures.hosts import Machine


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with two kernels, whose policy is to apply."""
    made = make_machine(tmp_path, monkeypatch)
    configure(made, "apply")
    return made


@pytest.fixture(autouse=True)
def loud(caplog: pytest.LogCaptureFixture) -> None:
    """Have everything logged."""
    caplog.set_level(logging.INFO)


def configure(machine: Machine, word: str) -> None:
    machine.path("/etc/initadvisor.toml").write_text(f"[daemon]\npolicy = '{word}'\n")


def do(machine: Machine, task: Task, release: str | None = None) -> tuple[Job, ...]:
    return AdvisorsWork(host=machine).do(Job(task=task, release=release))


def test_settling_says_what_was_done(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(proving, "settle", lambda _host: ("transaction 1 is done",))
    assert do(machine, Task.SETTLE) == ()
    assert "transaction 1 is done" in caplog.messages


def test_a_campaign_is_advanced_with_all_it_takes(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def advance(_host: object, *, observer: object) -> object:
        assert observer is not None
        return SimpleNamespace(told=("zstd is armed",))

    monkeypatch.setattr(campaigns, "advance", advance)
    do(machine, Task.ADVANCE)
    assert "zstd is armed" in caplog.messages


def test_candidates_of_what_is_gone_are_removed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    pruned = []

    def prune(host: Host) -> object:
        pruned.append(host)
        return SimpleNamespace(removed=2)

    monkeypatch.setattr(build, "prune", prune)
    do(machine, Task.PRUNE)
    assert pruned == [machine]


@pytest.mark.parametrize(
    ("release", "image"),
    [
        (None, f"initramfs-{RELEASE}.img"),
        (RELEASE, f"initramfs-{RELEASE}.img"),
        (OTHER, f"initramfs-{OTHER}.img"),
        ("6.99-gone", None),
    ],
)
def test_it_builds_for_the_kernel_it_is_about(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, release: str | None, image: str | None
) -> None:
    built = []

    @contextlib.contextmanager
    def gathered(
        _host: object, target: Target, *_args: object, **named: object
    ) -> Iterator[object]:
        assert named["only"] == ()
        assert target.installed is not None
        built.append(target.path.name)
        yield SimpleNamespace(candidates=())

    def estimated(_host: object, target: Target, *_args: object, **_named: object) -> None:
        estimates.append(target.path.name)
        msg = "it cannot be read"
        raise UnsafeError(msg)

    estimates: list[str] = []
    monkeypatch.setattr(search_space, "build_candidate_set", gathered)
    monkeypatch.setattr(considered, "considered_image", estimated)
    do(machine, Task.BUILD, release)
    assert built == estimates == ([image] if image else [])


@pytest.mark.parametrize(("release", "named"), [(None, None), (RELEASE, None), (OTHER, OTHER)])
def test_the_lab_takes_the_image_that_boots_by_default_for_what_it_is(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, release: str | None, named: str | None
) -> None:
    asked = []

    def run(_host: object, request: timing.LabRequest, *, observer: object) -> object:
        assert observer is not None
        asked.append(request.image)
        return SimpleNamespace(recorded=SimpleNamespace(samples=()))

    monkeypatch.setattr(timing, "run_lab", run)
    do(machine, Task.LAB, release)
    assert asked == [machine.path(f"/boot/initramfs-{named}.img") if named else None]


def test_a_machine_without_a_lab_is_none_that_fails(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def none(*_args: object, **_named: object) -> object:
        msg = "no virtual machine works"
        raise NoEngineError(msg)

    monkeypatch.setattr(timing, "run_lab", none)
    assert do(machine, Task.LAB) == ()
    assert "no lab: no virtual machine works" in caplog.messages


def advises(monkeypatch: pytest.MonkeyPatch, found: Recommendation) -> None:
    """Have the advice be so."""

    def advice(_host: object, request: recommend.Request, *, observer: object) -> object:
        assert request.build
        assert observer is not None
        return found

    monkeypatch.setattr(recommend, "recommend", advice)


def advised(outcome: Outcome, loss_ms: float = 0.0, boots: Purpose | None = None) -> Recommendation:
    """Return an answer where so much may be gained, by boots with a purpose."""
    chosen = replace(decision(outcome, saving=figure(123.4, 90, 150)), loss_ms=loss_ms)
    if boots is None:
        return answer(chosen)
    plan = Plan(
        purpose=boots,
        boots=(PlannedBoots(setting=LZ4, boots=2),),
        chance=0.8,
        enough=True,
        contrast=contrast(),
        loader_seen=True,
        unbuilt=(),
    )
    return replace(answer(chosen), plan=plan)


TRIES, APPLIES = (Job(task=Task.TRY),), (Job(task=Task.APPLY),)


@pytest.mark.parametrize(
    ("found", "follows"),
    [
        (advised(Outcome.SWITCH, 5.1, Purpose.LEARN), {"apply": APPLIES}),
        (advised(Outcome.KEEP), {}),
        (advised(Outcome.EVEN), {}),
        (advised(Outcome.UNDECIDED, 5.1, Purpose.LEARN), {"try": TRIES, "apply": TRIES}),
        (advised(Outcome.UNDECIDED, 4.9, Purpose.LEARN), {}),
        (advised(Outcome.UNDECIDED, 5.1, Purpose.TODAY), {}),
        (advised(Outcome.UNDECIDED, 5.1), {}),
    ],
)
def test_only_the_policy_makes_more_of_an_advice_than_words(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    found: Recommendation,
    follows: dict[str, tuple[Job, ...]],
) -> None:
    advises(monkeypatch, found)
    for word in Policy:
        configure(machine, word)
        assert do(machine, Task.ADVISE) == follows.get(word, ()), word
    said, *again = caplog.records
    assert said.getMessage().startswith(f"{found.image}: ")
    assert said.getMessage().endswith(f"(evidence: {found.evidence})")
    if found.decision.outcome is Outcome.SWITCH:
        assert "switch from zstd to lz4 -9, which saves 123 ms a boot" in said.getMessage()
    levels = [record.levelname for record in (said, *again)]
    assert levels == ["WARNING", "INFO", "INFO"], "it is news once"
    assert policy_log(machine).advice is not None


def test_who_logs_in_is_shown_the_last_answer_where_the_user_wants_that(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    advises(monkeypatch, advised(Outcome.SWITCH))
    monkeypatch.setattr(proving, "settle", lambda _host: ())
    shown = machine.cache_dir() / "motd"
    do(machine, Task.ADVISE)
    assert not shown.exists()
    machine.path("/etc/initadvisor.toml").write_text("[daemon]\nmotd = true\n")
    for task in Task.ADVISE, Task.ADVISE, Task.SETTLE:
        do(machine, task)
        assert "switch from zstd to lz4 -9" in shown.read_text()
        assert shown.stat().st_mode & 0o777 == 0o644
    configure(machine, "apply")
    do(machine, Task.SETTLE)
    assert not shown.exists()


@pytest.mark.parametrize("waits", ["campaign", "transaction"])
def test_nothing_follows_while_something_waits_for_a_boot(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, waits: str
) -> None:
    advises(monkeypatch, advised(Outcome.SWITCH))
    if waits == "campaign":
        note_active(machine)
    else:
        monkeypatch.setattr(transactions, "pending", lambda _host: (object(),))
    assert do(machine, Task.ADVISE) == ()


def test_why_a_policy_does_nothing_is_said_once_and_kept(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reasons = ["no room", "no room", "no watchdog", ""]
    told = iter(Begun(refused=reason) for reason in reasons)
    monkeypatch.setattr(policy_trials, "begin_trials", lambda *_args, **_named: next(told))
    kept = []
    for _ in reasons:
        do(machine, Task.TRY)
        refusal = policy_log(machine).refusal(Policy.TRY)
        kept.append(refusal.reason if refusal else "")
    assert kept == reasons
    assert caplog.messages == [
        f'the policy "try" does nothing: {reason}' for reason in ("no room", "no watchdog")
    ]
    caplog.clear()

    def refuses(*_args: object, **_named: object) -> str:
        msg = "not applying zstd: it was undone"
        raise UnsafeError(msg)

    monkeypatch.setattr(policy, "apply_advice", refuses)
    for _ in range(2):
        do(machine, Task.APPLY)
    assert caplog.messages == ['the policy "apply" does nothing: not applying zstd: it was undone']
    advises(monkeypatch, advised(Outcome.KEEP))
    monkeypatch.setattr(policy_trials, "begin_trials", lambda *_a, **_n: Begun(refused="no room"))
    do(machine, Task.TRY)
    do(machine, Task.ADVISE)
    assert policy_log(machine).refusal(Policy.TRY) is None, "there is nothing to gain any more"


@pytest.mark.parametrize("word", Policy)
@pytest.mark.parametrize("task", [Task.TRY, Task.APPLY, Task.WATCH])
def test_nothing_is_changed_unless_the_policy_says_so(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    task: Task,
    word: Policy,
) -> None:
    """Also where it said so when the job was made."""
    configure(machine, word)
    monkeypatch.setattr(policy, "apply_advice", lambda *_args, **_named: "done")
    monkeypatch.setattr(policy, "go_back_if_slower", lambda *_args, **_named: "done")
    begun = Begun(told=("done",))
    monkeypatch.setattr(policy_trials, "begin_trials", lambda *_args, **_named: begun)
    do(machine, task)
    acts = word is Policy.APPLY or (word is Policy.TRY and task is Task.TRY)
    assert caplog.messages == (["done"] if acts else [])


@pytest.mark.parametrize(
    "task", [Task.BUILD, Task.LAB, Task.ADVISE, Task.WATCH, Task.TRY, Task.APPLY]
)
def test_a_configuration_that_cannot_be_meant_keeps_from_what_it_is_about(
    machine: Machine, task: Task
) -> None:
    configure(machine, "always")
    with pytest.raises(UsageError, match="policy"):
        do(machine, task)


@pytest.mark.parametrize("task", [Task.SETTLE, Task.PRUNE, Task.ADVANCE])
def test_it_does_not_keep_from_finishing_what_was_begun(machine: Machine, task: Task) -> None:
    configure(machine, "always")
    do(machine, task)
