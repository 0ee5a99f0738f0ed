"""A campaign that could not be started is over: nothing of it arms a boot later."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.campaign.campaign import CampaignState
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.trial import candidates
from initadvisor.trial.campaigns import advance
from initadvisor.trial.markers import note_rehearsed
from tests.fixtures.campaign_machine import (
    Campaigning,
    PowerCutError,
    make_campaigning,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.fixtures.booted import Booted

NO_SPACE = InitadvisorError("cannot build: no space left on device")


@pytest.fixture
def ready(machine: Booted, monkeypatch: pytest.MonkeyPatch) -> Campaigning:
    """A machine whose loader was tried."""
    made = make_campaigning(machine, monkeypatch)
    note_rehearsed(made.host, made.provable.loader.NAME)
    return made


def failing(error: BaseException) -> Callable[..., Iterator[object]]:
    """Return what is done in place of preparing, or of choosing."""

    def fail(*_arguments: object, **_named: object) -> Iterator[object]:
        raise error

    return fail


@pytest.mark.parametrize("error", [NO_SPACE, KeyboardInterrupt(), SystemExit(143), OSError("gone")])
@pytest.mark.parametrize("what", ["prepared", "next_trial"])
def test_one_that_fails_or_is_interrupted_is_over(
    ready: Campaigning, monkeypatch: pytest.MonkeyPatch, error: BaseException, what: str
) -> None:
    module = {"prepared": candidates, "next_trial": candidates}[what]
    with monkeypatch.context() as patched:
        patched.setattr(module, what, failing(error))
        with pytest.raises(type(error)) as raised:
            ready.start(reboots=True)
    assert raised.value is error
    assert ready.record.state is CampaignState.STOPPED
    assert ready.record.reason.startswith("it could not be started: ")
    ready.require_nothing()
    for _ in range(2):
        ready.boot()
        ready.require_nothing()
    ready.start()
    assert (ready.record.number, ready.record.state) == (2, CampaignState.ARMED)


@pytest.mark.parametrize("step", ["write", "arm"])
@pytest.mark.parametrize("error", [NO_SPACE, KeyboardInterrupt()])
def test_one_that_cannot_arm_its_first_boot_is_over(
    ready: Campaigning, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    expected = UnsafeError if isinstance(error, InitadvisorError) else KeyboardInterrupt
    with monkeypatch.context() as patched:
        patched.setattr(type(ready.provable.loader), step, failing(error))
        with pytest.raises(expected):
            ready.start()
    assert ready.record.state is CampaignState.STOPPED
    ready.require_nothing()
    ready.boot()
    assert ready.booted == []


def test_the_error_is_told_where_it_cannot_be_ended_either(
    ready: Campaigning, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loader = ready.provable.loader
    with monkeypatch.context() as patched:
        patched.setattr(type(loader), "arm", failing(KeyboardInterrupt()))
        loader.unremovable = InitadvisorError("cannot remove the entry")
        with pytest.raises(KeyboardInterrupt):
            ready.start()
    assert "campaign 1 is not ended yet: cannot remove the entry" in caplog.text
    loader.unremovable = None
    advance(ready.host)
    ready.require_nothing()


def test_the_power_may_go_while_it_is_started_and_it_goes_on(
    ready: Campaigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(candidates, "prepared", failing(PowerCutError()))
        with pytest.raises(PowerCutError):
            ready.start()
    begun = ready.record
    assert begun.state is CampaignState.PREPARING
    ready.boot()
    assert ready.record.state is CampaignState.ARMED
