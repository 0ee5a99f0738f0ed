"""The policy begins a campaign by itself, or says why it does not; it is never more daring."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from initadvisor.apply import policy_trials as module
from initadvisor.apply.policy_trials import Begun, begin_trials, past_objection
from initadvisor.campaign.campaign import Campaign, CampaignState
from initadvisor.core.config import Config, Policy, Restart
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.core.refusals import Refusal, RefusalKind
from initadvisor.lab.observing import Unseen
from initadvisor.trial.campaigns import pause, stop
from initadvisor.trial.markers import note_rehearsed
from initadvisor.trial.policy_limits import TURNED_OFF
from initadvisor.vm.engines import NoEngineError
from tests.fixtures.campaign_machine import FOUR, Campaigning, content, make_campaigning
from tests.fixtures.campaigns import GROUND
from tests.fixtures.provable_machine import IMAGE

if TYPE_CHECKING:
    from collections.abc import Callable

    from initadvisor.campaign.campaign import DefaultBoot
    from tests.fixtures.booted import Booted

CONFIG = Config(policy=Policy.TRY)


@pytest.fixture
def ready(machine: Booted, monkeypatch: pytest.MonkeyPatch) -> Campaigning:
    """A machine whose loader was tried, with a watchdog."""
    made = make_campaigning(machine, monkeypatch)
    monkeypatch.setattr(module, "require_verifying", lambda _host, _wanted: None)
    monkeypatch.setattr(module, "busy_package_managers", lambda _host: made.busy)
    machine.write("/sys/class/watchdog/watchdog0/identity", "iTCO_wdt\n")
    note_rehearsed(made.host, made.provable.loader.NAME)
    configure(made)
    return made


def begin(ready: Campaigning, config: Config = CONFIG) -> Begun:
    return begin_trials(ready.host, config, observer=Unseen())


def configure(ready: Campaigning, *lines: str, policy: Policy = Policy.TRY) -> None:
    text = "\n".join(("[daemon]", f'policy = "{policy}"', *lines, ""))
    ready.provable.machine.write("/etc/initadvisor.toml", text)


def test_it_begins_with_reboots_that_happen_anyway_and_ends_at_the_limit(
    ready: Campaigning,
) -> None:
    assert begin(ready, replace(CONFIG, trial_boots_per_kernel=3)).told == (
        "the next boot is of lz4 -9",
    )
    record = ready.record
    assert (record.by_policy, record.reboots, record.most_boots) == (True, False, 3)
    told: tuple[str, ...] = ()
    while ready.record.state is not CampaignState.DONE:
        ready.reboot()
        told = ready.settle()
    assert told[-1] == "campaign 1 took 3 boots; 20 of each setting would have been 100"
    assert len(ready.booted) == 3
    refused = begin(ready, replace(CONFIG, trial_boots_per_kernel=3)).refused
    assert refused.startswith("campaign 1 is done: ")
    assert refused.endswith("all 3 boots are used up")
    ready.require_nothing()


def test_the_boots_of_a_kernel_are_counted_over_all_campaigns_and_rehearsals(
    ready: Campaigning,
) -> None:
    (ready.host.state_dir() / "rehearsed").unlink()
    ready.start(most_boots=2)
    ready.run()
    assert ready.booted == ["zstd -19", "lz4 -9", "gzip"], "the first is the rehearsal"
    few = replace(CONFIG, trial_boots_per_kernel=3)
    assert begin(ready, few).refused.endswith("may have 3 trial boots, 0 are left")
    assert ready.record.number == 1
    begin(ready, replace(CONFIG, trial_boots_per_kernel=4))
    assert (ready.record.number, ready.record.most_boots) == (2, 1)


def test_what_failed_is_not_tried_again_whatever_its_image_is_like(ready: Campaigning) -> None:
    ready.start()
    ready.run()
    assert ready.booted.count("gzip") == 1, "it panicked"
    assert ready.booted.count("xz") == 2, "it left no sign, twice"
    ready.candidates = {
        setting: (image + bytes(4), manner) for setting, (image, manner) in ready.candidates.items()
    }
    configure(ready, "trial_boots_per_kernel = 20")
    begin(ready, replace(CONFIG, trial_boots_per_kernel=20))
    assert {found.setting for found in ready.record.quarantined} == {"gzip", "xz"}
    ready.run()
    assert ready.booted.count("gzip") + ready.booted.count("xz") == 3


@pytest.mark.parametrize(
    ("options", "watchdog", "refused"),
    [
        ("", True, ""),
        ("", False, "this machine has no hardware watchdog"),
        (" rdinit=/mine", True, "rdinit="),
    ],
)
def test_what_may_need_a_person_needs_consent(
    ready: Campaigning, options: str, watchdog: bool, refused: str
) -> None:
    ready.provable.loader.options += options
    if not watchdog:
        ready.host.path("/sys/class/watchdog/watchdog0/identity").unlink()
    found = begin(ready)
    assert bool(found.refused) is bool(refused)
    if refused:
        assert refused in found.refused
        assert "sudo initadvisor enable" in found.refused
        assert not ready.record.number
        configure(ready, "person_resets = true")
        assert begin(ready, replace(CONFIG, person_resets=frozenset(Restart))).told
    assert ready.record.state is CampaignState.ARMED
    ready.boot()
    assert ready.record.state is CampaignState.ARMED, "as are those that a unit arms"
    configure(ready, "person_resets = false")
    ready.boot()
    assert ready.record.state is (CampaignState.CHOOSING if refused else CampaignState.ARMED)


def test_a_watchdog_that_vanishes_is_not_among_what_was_consented_to(ready: Campaigning) -> None:
    ready.provable.loader.options += " rdinit=/mine"
    consent = 'person_resets = ["guard"]'
    configure(ready, consent)
    assert begin(ready, replace(CONFIG, person_resets=frozenset({Restart.GUARD}))).told
    ready.host.path("/sys/class/watchdog/watchdog0/identity").unlink()
    ready.boot()
    assert ready.record.state is CampaignState.CHOOSING
    assert "no hardware watchdog" in ready.record.reason
    ready.require_nothing_armed()
    configure(ready, "person_resets = true")
    ready.settle()
    assert ready.provable.loader.is_armed


def rebuild(ready: Campaigning) -> None:
    """Have another installed image, and other candidates of the same settings."""
    ready.host.path(IMAGE).write_bytes(content("rebuilt", 380))
    ready.candidates = {
        setting: (image + bytes(4), manner) for setting, (image, manner) in ready.candidates.items()
    }


@pytest.mark.parametrize("goes_on", [True, False])
def test_what_left_no_sign_is_repeated_once_also_with_another_image(
    ready: Campaigning, goes_on: bool
) -> None:
    ready.candidates = {"xz": FOUR["xz"], "lzop": FOUR["lzop"]}
    begin(ready, CONFIG if goes_on else replace(CONFIG, trial_boots_per_kernel=1))
    ready.boot()
    assert ready.record.state.is_over is not goes_on
    rebuild(ready)
    if goes_on:
        ready.settle()
    else:
        begun = begin(ready)
        assert begun.told, begun
    while not ready.record.state.is_over:
        ready.boot()
    assert ready.booted == ["xz", "xz", "lzop"]
    assert "it did not come back, twice" in ready.verdicts()["xz"]


def test_configured_meanwhile_counts_from_the_next_boot_that_would_be_armed(
    ready: Campaigning,
) -> None:
    begin(ready)
    ready.boot()
    configure(ready, "trial_boots_per_kernel = 2")
    ready.boot()
    assert ready.booted == ["lz4 -9", "gzip"]
    assert ready.record.state is CampaignState.DONE
    assert ready.record.reason.endswith("may have 2 trial boots, which are used up")
    ready.require_nothing()


def test_a_policy_that_is_configured_no_more_has_nothing_armed_and_keeps_what_failed(
    ready: Campaigning,
) -> None:
    begin(ready)
    configure(ready, "trial_boots_per_kernel = 'many'")
    ready.settle()
    assert ready.provable.loader.is_armed, "what cannot be read tells nothing"
    configure(ready, policy=Policy.ADVISE)
    ready.settle()
    assert (ready.record.state, ready.record.reason) == (CampaignState.STOPPED, TURNED_OFF)
    ready.require_nothing()
    configure(ready)
    assert begin(ready).told
    ready.boot()
    ready.reboot()
    configure(ready, policy=Policy.ADVISE)
    ready.settle()
    assert ready.record.state is CampaignState.STOPPED
    assert set(ready.verdicts()) == {"gzip"}, "it panicked before anybody knew of the change"
    ready.require_nothing()


def other_selection(ready: Campaigning) -> None:
    refusal = Refusal(kind=RefusalKind.PENDING_ONE_SHOT, reason="fwupd's is next", remedy="reboot")
    ready.provable.loader.against = (refusal,)


def transaction(ready: Campaigning) -> None:
    ready.provable.stage()


def paused(ready: Campaigning) -> None:
    ready.start()
    pause(ready.host)


def stopped(ready: Campaigning) -> None:
    begin(ready)
    stop(ready.host)


def upgraded(ready: Campaigning, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(ready.host), "kernel_release", lambda _host: "6.0.0")


def no_engine(ready: Campaigning, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_host: object, _wanted: object) -> None:
        msg = "no virtual machine works"
        raise NoEngineError(msg)

    del ready
    monkeypatch.setattr(module, "require_verifying", none)


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (other_selection, "fwupd's is next"),
        (transaction, "transaction 1"),
        (paused, "campaign 1 is paused"),
        (stopped, "campaign 1 is stopped: it was stopped"),
        (upgraded, "not before a reboot"),
        (no_engine, "no virtual machine works"),
    ],
)
def test_nothing_is_begun_while_something_is_against_it(
    ready: Campaigning,
    monkeypatch: pytest.MonkeyPatch,
    prepare: Callable[..., None],
    reason: str,
) -> None:
    prepare(ready, *((monkeypatch,) if prepare in {upgraded, no_engine} else ()))
    before = ready.record
    assert reason in begin(ready).refused
    assert ready.record == before
    assert not ready.provable.loader.is_armed


def test_a_package_manager_at_work_is_waited_for(ready: Campaigning) -> None:
    ready.busy = ("pacman is at work",)
    with pytest.raises(InitadvisorError, match="pacman") as caught:
        begin(ready)
    assert not isinstance(caught.value, UnsafeError)
    assert not ready.record.number


def test_nothing_is_armed_on_battery(ready: Campaigning, machine: Booted) -> None:
    begin(ready)
    for name, text in (("type", "Battery"), ("status", "Discharging")):
        machine.write(f"/sys/class/power_supply/BAT0/{name}", f"{text}\n")
    ready.boot()
    assert (ready.record.state, ready.record.reason) == (
        CampaignState.CHOOSING,
        "the machine runs on its battery",
    )
    ready.require_nothing_armed()
    machine.write("/sys/class/power_supply/BAT0/status", "Charging\n")
    ready.boot()
    assert ready.record.state is CampaignState.ARMED


def earlier(state: CampaignState, reason: str = "it is settled", **changes: object) -> Campaign:
    """Return a campaign that the policy has begun."""
    made = Campaign(number=7, state=state, by_policy=True, default_boot=GROUND, reason=reason)
    return replace(made, **changes)  # type: ignore[arg-type]


REBUILT, UPGRADED = replace(GROUND, image_sha256="1" * 64), replace(GROUND, release="6.2.0")
VAIN = earlier(CampaignState.STOPPED, "it could not be started: no room")


@pytest.mark.parametrize(
    ("campaigns", "again_for"),
    [
        ([], [GROUND, REBUILT, UPGRADED]),
        ([earlier(CampaignState.DONE)], [REBUILT, UPGRADED]),
        ([earlier(CampaignState.DONE, by_policy=False)], [GROUND, REBUILT, UPGRADED]),
        ([earlier(CampaignState.STOPPED)], [UPGRADED]),
        ([earlier(CampaignState.STOPPED, TURNED_OFF)], [GROUND, REBUILT, UPGRADED]),
        ([VAIN], [GROUND, REBUILT, UPGRADED]),
        ([VAIN, VAIN], [UPGRADED]),
        ([VAIN, earlier(CampaignState.STOPPED)], [UPGRADED]),
    ],
)
def test_what_was_ended_is_not_begun_again_for_the_same(
    campaigns: list[Campaign], again_for: list[DefaultBoot]
) -> None:
    found = [now for now in (GROUND, REBUILT, UPGRADED) if not past_objection(campaigns, now)]
    assert found == again_for
