"""What enabling changes, in which order, what it refuses, and that disabling undoes it."""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from initadvisor.apply import policy_trials
from initadvisor.apply.policy_trials import begin_trials
from initadvisor.apply.proving import settle
from initadvisor.campaign.campaign import CampaignState
from initadvisor.core.config import Policy, Restart
from initadvisor.core.errors import InitadvisorError, NeedsRootError, UnsafeError, UsageError
from initadvisor.core.refusals import Refusal, RefusalKind
from initadvisor.daemon import enable as module
from initadvisor.daemon.enable import disable, enable, plan_enable
from initadvisor.doctor.software import ENABLED_BY_USER
from initadvisor.host import Host
from initadvisor.host.configuration import load_config
from initadvisor.lab.observing import Unseen
from initadvisor.transaction.transaction import TransactionState
from initadvisor.transaction.transactions import transactions
from initadvisor.trial import campaigns
from initadvisor.trial.markers import note_rehearsed
from tests.fixtures.enabling_machine import (
    CONFIG,
    InterruptionError,
    UnitRunner,
    interrupted,
    make_enabling,
    snapshot,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fixtures.campaign_machine import Campaigning

ON = set(ENABLED_BY_USER)
OWN = "# mine\n[machine]\noverlap_ms = 300\n"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Campaigning, UnitRunner]:
    """A machine, and its programs."""
    return make_enabling(tmp_path, monkeypatch)


@pytest.fixture
def machine(made: tuple[Campaigning, UnitRunner]) -> Campaigning:
    """The machine."""
    return made[0]


@pytest.fixture
def runner(made: tuple[Campaigning, UnitRunner]) -> UnitRunner:
    """Its programs."""
    return made[1]


def turn_on(machine: Campaigning, policy: Policy | None = None) -> list[str]:
    return list(enable(machine.host, plan_enable(machine.host, policy)))


def configured(machine: Campaigning) -> tuple[Policy, bool]:
    config = load_config(machine.host)
    return config.policy, bool(config.person_resets)


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        *((policy, None) for policy in Policy),
        (Policy.TRY, ""),
        (Policy.TRY, OWN),
        (Policy.ADVISE, "[daemon]\npolicy = 'apply' # theirs\n"),
    ],
)
def test_units_and_policy_are_on_and_twice_is_once(
    machine: Campaigning, runner: UnitRunner, policy: Policy, text: str | None
) -> None:
    if text is not None:
        machine.provable.machine.write(CONFIG, text)
    before = snapshot(machine)
    turn_on(machine, policy)
    once = snapshot(machine)
    consent = policy is not Policy.ADVISE  # there is no watchdog
    assert configured(machine) == (policy, consent)
    assert (runner.enabled, runner.running) == (ON, ON)
    turn_on(machine, policy)
    assert snapshot(machine) == once
    list(disable(machine.host))
    assert snapshot(machine) == before
    assert (runner.enabled, runner.running) == (set(), set())
    list(disable(machine.host))
    assert snapshot(machine) == before


def test_without_a_policy_the_configured_one_stays(machine: Campaigning) -> None:
    turn_on(machine)
    assert configured(machine) == (Policy.ADVISE, False)
    assert not machine.host.path(CONFIG).exists()
    turn_on(machine, Policy.TRY)
    turn_on(machine)
    assert configured(machine) == (Policy.TRY, True)


def test_what_others_write_meanwhile_stays(machine: Campaigning) -> None:
    machine.provable.machine.write(CONFIG, OWN)
    turn_on(machine, Policy.TRY)
    path = machine.host.path(CONFIG)
    path.write_text(path.read_text().replace("300", "400"))
    turn_on(machine, Policy.APPLY)
    path.write_text(path.read_text() + "trial_boots_per_kernel = 3\n")
    list(disable(machine.host))
    config = load_config(machine.host)
    assert configured(machine) == (Policy.ADVISE, False)
    assert (config.overlap_ms, config.trial_boots_per_kernel) == (400, 3)


def test_a_policy_that_others_chose_stays_and_is_said(machine: Campaigning) -> None:
    machine.provable.machine.write(CONFIG, '[daemon]\npolicy = "try"\n')
    assert any(
        "policy try stays in /etc/initadvisor.toml" in line for line in disable(machine.host)
    )
    turn_on(machine, Policy.APPLY)
    machine.provable.machine.write(CONFIG, '[daemon]\npolicy = "advise"\n')
    list(disable(machine.host))
    assert configured(machine) == (Policy.ADVISE, False)
    machine.host.path(CONFIG).unlink()
    turn_on(machine, Policy.TRY)
    text = machine.host.path(CONFIG).read_text()
    machine.provable.machine.write(CONFIG, text.replace('"try"', '"apply"'))
    said = " ".join(disable(machine.host))
    assert configured(machine) == (Policy.APPLY, False), "only the consent was written by enable"
    assert "policy apply stays in /etc/initadvisor.toml" in said
    assert "as it was before" not in said


@pytest.mark.parametrize("text", ["daemon = {}\n", "daemon.policy = 'advise'\n"])
def test_a_configuration_that_cannot_be_edited_is_said_first(
    machine: Campaigning, text: str
) -> None:
    machine.provable.machine.write(CONFIG, text)
    with pytest.raises(UsageError, match=f"{CONFIG}: cannot change policy: "):
        plan_enable(machine.host, Policy.TRY)


def test_without_trial_boots_none_is_armed_to_rehearse_or_asked_for(machine: Campaigning) -> None:
    machine.provable.machine.write(CONFIG, "[daemon]\ntrial_boots_per_kernel = 0\n")
    plan = plan_enable(machine.host, Policy.TRY)
    assert (plan.risks, plan.rehearses) == ((), False)
    plan = plan_enable(machine.host, Policy.APPLY)  # has a proving boot nevertheless
    assert (bool(plan.risks), plan.rehearses) == (True, False)
    turn_on(machine, Policy.APPLY)
    machine.require_nothing()


def test_two_at_once_are_one_after_the_other(
    machine: Campaigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_WAIT_S", 0)
    plan = plan_enable(machine.host, Policy.TRY)
    first = enable(machine.host, plan)
    assert "policy try is written" in next(first)
    for other in (enable(machine.host, plan), disable(machine.host)):
        with pytest.raises(InitadvisorError, match="enable or disable is already running"):
            next(other)
    assert list(first)


def test_the_record_comes_first_and_units_last(machine: Campaigning, runner: UnitRunner) -> None:
    for step, line in enumerate(enable(machine.host, plan_enable(machine.host, Policy.APPLY))):
        assert (machine.host.state_dir() / "enabled.json").exists()
        assert configured(machine) == (Policy.APPLY, True)
        assert bool(runner.enabled) is (step > 0), line


def test_the_next_boot_is_a_rehearsal_where_something_is_to_be_tried(
    machine: Campaigning,
) -> None:
    loader = machine.provable.loader
    turn_on(machine, Policy.ADVISE)
    assert not loader.is_armed
    said = turn_on(machine, Policy.TRY)
    assert loader.is_armed
    assert said[-1] == "the next boot is of today's image, a rehearsal"
    assert turn_on(machine, Policy.APPLY)[-1] == "it is armed for the next boot"
    turn_on(machine, Policy.ADVISE)
    machine.require_nothing()
    turn_on(machine, Policy.TRY)
    machine.reboot()
    machine.settle()
    assert not plan_enable(machine.host, Policy.TRY).rehearses
    turn_on(machine, Policy.TRY)
    machine.require_nothing()


@pytest.mark.parametrize("by_command", [True, False])
def test_what_the_policy_has_armed_is_undone_where_it_applies_no_more(
    machine: Campaigning, by_command: bool
) -> None:
    note_rehearsed(machine.host, machine.provable.loader.NAME)
    turn_on(machine, Policy.APPLY)
    machine.provable.arm(by_policy=True)
    settle(machine.host)
    assert machine.provable.loader.is_armed
    if by_command:
        turn_on(machine, Policy.TRY)
    else:
        path = machine.host.path(CONFIG)
        path.write_text(path.read_text().replace("apply", "try"))
        settle(machine.host)
    assert machine.provable.latest().state is TransactionState.UNDONE
    assert machine.provable.latest().reason.endswith("does not apply anything any more")
    machine.require_nothing()


def test_what_is_against_a_rehearsal_is_said_and_no_error(machine: Campaigning) -> None:
    plan = plan_enable(machine.host, Policy.TRY)
    machine.provable.loader.against = (
        Refusal(kind=RefusalKind.UNCLEAR_DEFAULT, reason="it hides", remedy="look"),
    )
    *_, last = enable(machine.host, plan)
    assert "the first trial will try the boot loader" in last
    assert "it hides (look)" in last
    machine.require_nothing()
    machine.provable.loader.against = ()
    for name, text in (("type", "Battery"), ("status", "Discharging")):
        machine.provable.machine.write(f"/sys/class/power_supply/BAT0/{name}", f"{text}\n")
    *_, last = enable(machine.host, plan)
    assert "the machine runs on its battery" in last
    machine.require_nothing()


def test_disabling_stops_what_is_on_and_says_what_stays(machine: Campaigning) -> None:
    turn_on(machine, Policy.TRY)
    list(disable(machine.host))
    machine.require_nothing()
    machine.start()
    campaigns.pause(machine.host)
    list(disable(machine.host))
    assert machine.record.state is CampaignState.STOPPED
    turn_on(machine, Policy.ADVISE)
    armed = machine.provable.arm()
    assert machine.provable.loader.is_armed
    said = list(disable(machine.host))
    undone, off = (
        next(number for number, line in enumerate(said) if words in line)
        for words in (f"transaction {armed.number} (", "the units are off")
    )
    assert undone < off, said
    machine.require_nothing()
    assert machine.provable.latest().state is TransactionState.UNDONE
    staged = machine.provable.stage()
    with transactions(machine.host) as engine:
        engine.commit(staged)
    assert any("initadvisor rollback undoes it" in line for line in disable(machine.host))


def test_trials_that_disabling_has_ended_begin_again_once_it_is_enabled(
    machine: Campaigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy_trials, "require_verifying", lambda _host, _wanted: None)
    note_rehearsed(machine.host, machine.provable.loader.NAME)
    for end in (disable, lambda host: campaigns.stop(host).told):
        turn_on(machine, Policy.TRY)
        config = load_config(machine.host)
        assert begin_trials(machine.host, config, observer=Unseen()).told
        machine.boot()
        list(end(machine.host))
        assert machine.record.state is CampaignState.STOPPED
        machine.require_nothing()
    turn_on(machine, Policy.TRY)
    refused = begin_trials(machine.host, load_config(machine.host), observer=Unseen()).refused
    assert refused.startswith("campaign 2 is stopped"), "a person did that"


def test_how_a_campaign_has_ended_is_kept(machine: Campaigning) -> None:
    turn_on(machine, Policy.TRY)
    machine.boot()
    before = machine.record
    assert before.state is CampaignState.DONE
    list(disable(machine.host))
    assert machine.record == before


def test_a_run_that_was_interrupted_is_completed_or_undone(
    machine: Campaigning, runner: UnitRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.provable.machine.write(CONFIG, OWN)
    note_rehearsed(machine.host, machine.provable.loader.NAME)
    before, plan = snapshot(machine), plan_enable(machine.host, Policy.APPLY)
    for step in itertools.count(1):
        steps = 0
        for completed in (False, True):
            with interrupted(step, monkeypatch) as counted, suppress(InterruptionError):
                list(enable(machine.host, plan))
            steps = counted[0]
            if completed:
                list(enable(machine.host, plan))
                assert configured(machine) == (Policy.APPLY, True)
                assert runner.running == ON
            list(disable(machine.host))
            assert snapshot(machine) == before
            machine.require_nothing()
        if steps < step:
            break
    assert step > 3


def test_disabling_that_was_interrupted_is_completed(
    machine: Campaigning, runner: UnitRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    note_rehearsed(machine.host, machine.provable.loader.NAME)
    before, plan = snapshot(machine), plan_enable(machine.host, Policy.APPLY)
    for step in itertools.count(1):
        list(enable(machine.host, plan))
        machine.provable.arm()
        with interrupted(step, monkeypatch) as counted, suppress(InterruptionError):
            list(disable(machine.host))
        assert runner.enabled == ON or not machine.provable.loader.is_armed, step
        list(disable(machine.host))
        assert snapshot(machine) == before
        assert (runner.enabled, runner.running) == (set(), set())
        machine.require_nothing()
        if counted[0] < step:
            break
    assert step > 3


def test_a_rehearsal_that_was_interrupted_is_armed_or_withdrawn(
    machine: Campaigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, plan = snapshot(machine), plan_enable(machine.host, Policy.APPLY)
    for again in (enable, None):
        with interrupted(8, monkeypatch), pytest.raises(InterruptionError):
            list(enable(machine.host, plan))
        assert machine.record.state.is_active
        if again:
            list(again(machine.host, plan))
            assert machine.provable.loader.is_armed
        list(disable(machine.host))
        assert snapshot(machine) == before
        machine.require_nothing()


def test_in_an_image_that_is_being_built_units_are_enabled_only(
    machine: Campaigning, runner: UnitRunner
) -> None:
    (machine.host.path("/proc/1/root")).unlink()
    before = snapshot(machine)
    said = " ".join(turn_on(machine, Policy.TRY))
    assert "start with the first boot of this image" in said
    assert (runner.enabled, runner.running) == (ON, set())
    assert configured(machine) == (Policy.TRY, False)  # nobody was asked about any machine
    list(disable(machine.host))
    assert snapshot(machine) == before


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (("/run/systemd/container",), "this is a container"),
        (("/run/archiso",), "this is a live system"),
    ],
)
def test_elsewhere_nothing_is_turned_on_or_off(
    machine: Campaigning, files: tuple[str, ...], words: str
) -> None:
    for name in files:
        machine.provable.machine.write(name, "")
    refused(machine, Policy.ADVISE, words)
    with pytest.raises(UnsafeError, match=words):
        list(disable(machine.host))


def refused(machine: Campaigning, policy: Policy, *words: str) -> None:
    """Require that enabling is refused in these words, and changes nothing."""
    before = snapshot(machine)
    with pytest.raises(UnsafeError) as caught:
        plan_enable(machine.host, policy)
    assert all(word in caught.value.with_hint for word in words)
    assert snapshot(machine) == before
    assert not (machine.host.state_dir() / "enabled.json").exists()


def test_what_lacks_is_said_before_anything_is_changed(
    machine: Campaigning, runner: UnitRunner
) -> None:
    runner.programs = {*runner.programs} - {"qemu-system-x86_64"}
    lack, remedy = "qemu-system-x86_64 is not installed", "install qemu-system-x86"
    refused(machine, Policy.TRY, lack, f"({remedy}; --policy advise goes without)")
    assert plan_enable(machine.host, Policy.ADVISE).notes
    for unit in ("initadvisord.path", "initadvisord.service", "initadvisor-settle.service"):
        runner.lacking = {unit}
        refused(machine, Policy.ADVISE, f"{unit} is not installed", "make install")
    runner.programs = ()
    refused(machine, Policy.ADVISE, "does not run systemd")


def test_only_root_may(machine: Campaigning, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Host, "is_root", property(lambda _host: False))
    with pytest.raises(NeedsRootError):
        plan_enable(machine.host, None)
    with pytest.raises(NeedsRootError):
        list(disable(machine.host))


@pytest.mark.parametrize(
    ("files", "needed"),
    [
        ({}, True),
        ({"/sys/class/watchdog/watchdog0/identity": "iTCO_wdt\n"}, False),
        ({CONFIG: "[daemon]\nperson_resets = true\n"}, False),
    ],
)
def test_consent_is_needed_where_a_person_may_be(
    machine: Campaigning, files: dict[str, str], needed: bool
) -> None:
    for name, text in files.items():
        machine.provable.machine.write(name, text)
    assert not plan_enable(machine.host, Policy.ADVISE).risks
    risks = plan_enable(machine.host, Policy.TRY).risks
    assert bool(risks) is needed
    assert not needed or "somebody has to reset the machine" in " ".join(risks)


def test_consent_covers_what_was_said_and_no_more(machine: Campaigning) -> None:
    path = machine.host.path("/sys/class/watchdog/watchdog0/identity")
    machine.provable.loader.options += " rdinit=/mine"  # which no guard goes with
    machine.provable.machine.write("/sys/class/watchdog/watchdog0/identity", "iTCO_wdt\n")
    turn_on(machine, Policy.TRY)
    assert load_config(machine.host).person_resets == {Restart.GUARD}
    assert not plan_enable(machine.host, None).risks
    path.unlink()
    assert "no hardware watchdog" in " ".join(plan_enable(machine.host, None).risks)
    turn_on(machine)
    assert load_config(machine.host).person_resets == set(Restart)
    list(disable(machine.host))
    assert configured(machine) == (Policy.ADVISE, False)


def test_disabling_goes_on_where_a_step_fails(machine: Campaigning, runner: UnitRunner) -> None:
    turn_on(machine, Policy.APPLY)
    machine.provable.machine.write(CONFIG, "no TOML")
    with pytest.raises(InitadvisorError, match=CONFIG):
        list(disable(machine.host))
    assert (runner.enabled, runner.running) == (set(), set())
    (machine.host.state_dir() / "trial-entry").write_bytes(b"x" * 100_000)
    machine.provable.machine.write(CONFIG, "")
    with pytest.raises(InitadvisorError, match="the boot loader 'xx") as caught:
        list(disable(machine.host))
    assert len(caught.value.with_hint) < 2000, "a note is damaged, and no screens are filled by it"
