"""Each task calls the part of the advisor that it is about, with the image that it is about."""

from __future__ import annotations

import contextlib
import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from initadvisor.advise import recommend
from initadvisor.apply import policy, proving
from initadvisor.candidates import build, search_space
from initadvisor.core.errors import UsageError
from initadvisor.daemon.notes import Job, Task
from initadvisor.daemon.work import AdvisorsWork
from initadvisor.decide.cost import Outcome
from initadvisor.lab import timing
from initadvisor.trial import campaigns
from initadvisor.vm.engines import NoEngineError
from tests.fixtures.dracut_machine import OTHER, make_machine
from tests.fixtures.hosts import RELEASE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
    machine.path("/etc/initadvisor.toml").write_text(f"[daemon]\npolicy = {word!r}\n")


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

    monkeypatch.setattr(search_space, "build_candidate_set", gathered)
    do(machine, Task.BUILD, release)
    assert built == ([image] if image else [])


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


def advises(monkeypatch: pytest.MonkeyPatch, outcome: Outcome) -> None:
    """Have the advice be so."""

    def advice(_host: object, request: recommend.Request, *, observer: object) -> object:
        assert request.build
        assert observer is not None
        return SimpleNamespace(
            image="/boot/initrd.img",
            baseline="gzip",
            evidence="boots",
            decision=SimpleNamespace(
                setting="zstd", outcome=outcome, saving_ms=SimpleNamespace(middle=123.4)
            ),
        )

    monkeypatch.setattr(recommend, "recommend", advice)


@pytest.mark.parametrize("word", ["advise", "apply"])
@pytest.mark.parametrize("outcome", Outcome)
def test_only_the_policy_makes_more_of_an_advice_than_words(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    outcome: Outcome,
    word: str,
) -> None:
    configure(machine, word)
    advises(monkeypatch, outcome)
    following = do(machine, Task.ADVISE)
    acts = word == "apply" and outcome is Outcome.SWITCH
    assert following == ((Job(task=Task.APPLY),) if acts else ())
    [said] = caplog.messages
    assert said.startswith("/boot/initrd.img: ")
    assert said.endswith("(evidence: boots)")
    if outcome is Outcome.SWITCH:
        assert "switch from gzip to zstd, which saves 123 ms a boot" in said


def test_who_logs_in_is_shown_the_last_answer_where_the_user_wants_that(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    advises(monkeypatch, Outcome.SWITCH)
    monkeypatch.setattr(proving, "settle", lambda _host: ())
    shown = machine.cache_dir() / "motd"
    do(machine, Task.ADVISE)
    assert not shown.exists()
    machine.path("/etc/initadvisor.toml").write_text("[daemon]\nmotd = true\n")
    for task in Task.ADVISE, Task.ADVISE, Task.SETTLE:
        do(machine, task)
        assert "switch from gzip to zstd" in shown.read_text()
        assert shown.stat().st_mode & 0o777 == 0o644
    configure(machine, "apply")
    do(machine, Task.SETTLE)
    assert not shown.exists()


@pytest.mark.parametrize("word", ["advise", "apply"])
@pytest.mark.parametrize("task", [Task.APPLY, Task.WATCH])
def test_nothing_is_changed_unless_the_policy_says_so(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    task: Task,
    word: str,
) -> None:
    """Also where it said so when the job was made."""
    configure(machine, word)
    monkeypatch.setattr(policy, "apply_advice", lambda *_args, **_named: "done")
    monkeypatch.setattr(policy, "go_back_if_slower", lambda *_args, **_named: "done")
    do(machine, task)
    assert caplog.messages == (["done"] if word == "apply" else [])


@pytest.mark.parametrize("task", [Task.BUILD, Task.LAB, Task.ADVISE, Task.WATCH, Task.APPLY])
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
