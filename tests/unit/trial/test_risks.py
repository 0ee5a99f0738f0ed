"""A trial that fails comes back without a person, or is armed only for one who is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.apply.proving import arm_proof, settle
from initadvisor.campaign.campaign import CampaignState
from initadvisor.core.errors import UnsafeError
from initadvisor.host import Host
from initadvisor.lab.observing import Unseen
from initadvisor.records.trial_outcome import TrialOutcome
from initadvisor.transaction.transaction import ProofStage, TransactionState
from initadvisor.transaction.transactions import transactions
from initadvisor.trial.campaigns import arm_next, resume
from initadvisor.trial.markers import was_rehearsed
from initadvisor.trial.risks import require_return, risks, watchdog_s
from tests.fixtures.campaign_machine import Campaigning, make_campaigning
from tests.fixtures.provable_machine import OLD, OLD_TEXT
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fixtures.booted import Booted

PERSON = "may wait for"


@pytest.fixture
def ready(machine: Booted, monkeypatch: pytest.MonkeyPatch) -> Campaigning:
    """A machine on which every failed trial comes back."""
    return make_campaigning(machine, monkeypatch)


@pytest.fixture
def lost(ready: Campaigning) -> Campaigning:
    """One on which nothing but a panic does: something else is started first."""
    ready.provable.loader.options += " rdinit=/mine"
    return ready


@pytest.mark.parametrize(
    ("identity", "limit_s"), [("iTCO_wdt\n", 600), ("Software Watchdog\n", None), ("\n", None)]
)
def test_only_a_watchdog_of_the_hardware_restarts_what_hangs(
    tmp_path: Path, identity: str, limit_s: int | None
) -> None:
    write(tmp_path, "sys/class/watchdog/watchdog0/identity", identity)
    assert watchdog_s(Host(root=tmp_path)) == limit_s


def test_it_is_said_what_a_person_is_needed_for(ready: Campaigning) -> None:
    panic, before, later = risks(ready.host)
    assert "after 30 s" in panic
    assert "restarts by itself 10 min after" in before
    assert "no hardware watchdog" in later
    assert "reset the machine" in later
    write(ready.host.root, "sys/class/watchdog/watchdog0/identity", "iTCO_wdt\n")
    assert "hardware's watchdog" in risks(ready.host)[-1]
    require_return(ready.host)


def test_it_is_said_why_nothing_brings_it_back(lost: Campaigning) -> None:
    _, before, _ = risks(lost.host)
    assert PERSON in before
    assert "rdinit=" in before
    with pytest.raises(UnsafeError, match="rdinit="):
        require_return(lost.host)


def test_a_campaign_that_reboots_by_itself_is_refused(lost: Campaigning) -> None:
    with pytest.raises(UnsafeError, match=PERSON):
        lost.start(reboots=True)
    lost.require_nothing()
    lost.start()
    assert lost.provable.loader.is_armed
    with pytest.raises(UnsafeError, match=PERSON):
        resume(lost.host, observer=Unseen(), reboots=True)
    assert not lost.record.reboots


def test_a_campaign_arms_one_boot_for_each_time_a_person_asks(lost: Campaigning) -> None:
    lost.start()
    for _ in range(2):
        lost.boot()
        assert lost.record.state is CampaignState.CHOOSING
        assert PERSON in lost.record.reason
        lost.require_nothing_armed()
        arm_next(lost.host, observer=Unseen())
        assert lost.provable.loader.is_armed
    lost.require_default()


def test_a_campaign_that_reboots_stops_arming_where_nothing_brings_it_back_any_more(
    ready: Campaigning,
) -> None:
    ready.start(reboots=True)
    ready.reboot()
    ready.provable.loader.options += " -- single"
    assert not any("reboots" in line for line in ready.settle())
    ready.require_nothing_armed()


def test_a_proof_is_armed_for_a_person_only(lost: Campaigning) -> None:
    provable = lost.provable
    staged = provable.stage(by_policy=True)
    with (
        pytest.raises(UnsafeError, match=PERSON),
        transactions(lost.host) as engine,
    ):
        arm_proof(lost.host, engine, staged)
    assert provable.latest().state is TransactionState.UNDONE
    lost.require_nothing_armed()
    assert provable.installed() == (OLD, OLD_TEXT)


@pytest.mark.parametrize("consent", [False, True])
def test_a_proof_after_the_rehearsal_waits_for_a_person_to_ask_again(
    lost: Campaigning, consent: bool
) -> None:
    """Consent is to what the policy does, not to what a person has asked for once."""
    provable = lost.provable
    configure(lost, str(consent).lower())
    provable.arm()
    provable.reboot()
    provable.measure()
    with pytest.raises(UnsafeError, match=PERSON):
        settle(lost.host)
    assert provable.latest().state is TransactionState.UNDONE
    assert provable.latest().outcome is TrialOutcome.NOT_TRIED, "nothing is held against it"
    assert was_rehearsed(lost.host, provable.loader.NAME)
    lost.require_nothing_armed()
    armed = provable.arm().armed_boot
    assert armed is not None
    assert armed.stage is ProofStage.PROOF


def test_a_proof_has_the_words_and_the_watchdog_of_a_campaigns_trial(ready: Campaigning) -> None:
    write(ready.host.root, "sys/class/watchdog/watchdog0/identity", "iTCO_wdt\n")
    proof = ready.provable.arm().armed_boot
    assert proof is not None
    settled = {word for word in proof.extra_cmdline if not word.startswith("initadvisor.trial=")}
    assert {"systemd.watchdog_sec=600", "rdinit=/bin/sh"} < settled
    ready.provable.loader.remove(ready.host)
    with transactions(ready.host) as engine:
        engine.undo(ready.provable.latest(), reason="done")
    ready.start()
    assert ready.record.current is not None
    assert settled < set(ready.record.current.armed_boot.extra_cmdline)


def configure(machine: Campaigning, consent: str) -> None:
    machine.provable.machine.write(
        "/etc/initadvisor.toml", f'[daemon]\npolicy = "apply"\nperson_resets = {consent}\n'
    )


@pytest.mark.parametrize("by_policy", [False, True])
@pytest.mark.parametrize("vanishes", [False, True])
def test_a_watchdog_that_vanishes_after_the_rehearsal_is_asked_for_again(
    ready: Campaigning, by_policy: bool, vanishes: bool
) -> None:
    """Nobody was told that a boot without one follows."""
    provable = ready.provable
    provable.machine.write("/sys/class/watchdog/watchdog0/identity", "iTCO_wdt\n")
    configure(ready, '["guard"]')
    assert not provable.arm(by_policy=by_policy).reason
    if vanishes:
        ready.host.path("/sys/class/watchdog/watchdog0/identity").unlink()
    provable.reboot()
    provable.measure()
    if not vanishes:
        settle(ready.host)
        assert provable.loader.is_armed
        return
    with pytest.raises(UnsafeError, match="no hardware watchdog"):
        settle(ready.host)
    assert provable.latest().outcome is TrialOutcome.NOT_TRIED
    ready.require_nothing_armed()
    if by_policy:
        with pytest.raises(UnsafeError, match="no hardware watchdog"):
            provable.arm(by_policy=True)
        configure(ready, '["watchdog"]')
    assert provable.arm(by_policy=by_policy).state is TransactionState.PROVING


def test_a_policy_s_proof_goes_on_after_the_rehearsal_with_consent(lost: Campaigning) -> None:
    provable = lost.provable
    configure(lost, "true")
    provable.arm(by_policy=True)
    provable.reboot()
    provable.measure()
    settle(lost.host)
    assert provable.loader.is_armed
    assert provable.latest().state is TransactionState.PROVING


def test_a_campaign_goes_on_with_the_watchdog_that_was_there(ready: Campaigning) -> None:
    provable = ready.provable
    provable.machine.write("/sys/class/watchdog/watchdog0/identity", "iTCO_wdt\n")
    ready.start()
    ready.boot()
    assert provable.loader.is_armed
    ready.host.path("/sys/class/watchdog/watchdog0/identity").unlink()
    ready.boot()
    assert ready.record.state is CampaignState.CHOOSING
    assert "no hardware watchdog" in ready.record.reason
    ready.require_nothing_armed()
    arm_next(ready.host, observer=Unseen())
    ready.boot()
    assert provable.loader.is_armed, "a person has gone on without it"
