"""What became of the boot that a campaign has armed, and what others have changed meanwhile."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.bootloaders.detect import loader_named
from initadvisor.campaign.campaign import CampaignEvent, CampaignEventKind, Change
from initadvisor.core.errors import UnsafeError, UsageError
from initadvisor.host.package_managers import busy_package_managers
from initadvisor.records.trial_outcome import TrialOutcome
from initadvisor.trial.binding import binding_fault
from initadvisor.trial.campaign_actions import armed_again
from initadvisor.trial.default_boot import NoDefaultBootError, default_boot
from initadvisor.trial.evaluation import ProofAction
from initadvisor.trial.one_boot import is_of_this_boot, judge
from initadvisor.trial.policy_limits import turned_off

if TYPE_CHECKING:
    from initadvisor.bootloaders import BootLoader
    from initadvisor.campaign.campaign import Campaign, TrialBoot
    from initadvisor.host import Host
    from initadvisor.transaction.transaction import ArmedBoot


_NOT_ITS_FAULT = frozenset({TrialOutcome.FAILED, TrialOutcome.UNEXPLAINED})


def judged(host: Host, campaign: Campaign) -> CampaignEvent | None:
    """Return what became of the armed boot, None where none is.

    A boot that went wrong after somebody had changed kernel, image or command line tells nothing of
    the candidate. Raises ``InitadvisorError`` where too little can be read to tell.
    """
    trial_boot = campaign.current
    if trial_boot is None:
        return None
    armed = trial_boot.armed_boot
    evaluation = judge(host, armed, trial_boot=trial_boot)
    outcome, reason = evaluation.outcome, evaluation.reason
    if outcome is TrialOutcome.RUNNING:
        return CampaignEvent(kind=CampaignEventKind.RUNNING, reason=reason)
    if evaluation.verdict is ProofAction.WAIT:
        return _pending(host, campaign, armed, reason)
    change = changed(host, campaign, loader_named(armed.loader))
    if outcome is TrialOutcome.TAKEN_BACK:
        return change or _armed_again(host, campaign, trial_boot, reason)
    if change and change.change and outcome in _NOT_ITS_FAULT:
        outcome, reason = TrialOutcome.NOT_TRIED, f"{reason}; meanwhile {change.change.words}"
    return CampaignEvent(
        kind=CampaignEventKind.ENDED,
        outcome=outcome,
        reason=reason,
        rebooted=not is_of_this_boot(host, armed),
    )


def _pending(host: Host, campaign: Campaign, armed: ArmedBoot, reason: str) -> CampaignEvent:
    """Return what is to become of a boot that is still to come: nothing, where all is as it was."""
    if busy := busy_package_managers(host):
        return CampaignEvent(kind=CampaignEventKind.TAKE_BACK, reason=str(busy[0]))
    with contextlib.suppress(UsageError):
        if end := turned_off(host, campaign):
            return end
    with contextlib.suppress(UnsafeError):  # what boots by default is not certain: a fault
        if change := changed(host, campaign, loader_named(armed.loader)):
            return change
    if fault := binding_fault(host, armed):
        return CampaignEvent(
            kind=CampaignEventKind.ENDED,
            outcome=TrialOutcome.NOT_TRIED,
            reason=f"{fault} since it was armed",
            rebooted=False,
        )
    return CampaignEvent(kind=CampaignEventKind.PENDING, reason=reason)


def changed(host: Host, campaign: Campaign, loader: BootLoader) -> CampaignEvent | None:
    """Return what others have changed of what a campaign rests on, None where nothing has.

    Raises ``UnsafeError`` where a package manager is at work on what is gone, and may bring it back
    changed.
    """
    before = campaign.default_boot
    if before is None:
        return None
    try:
        now = default_boot(host, loader)
    except NoDefaultBootError as err:
        if busy := busy_package_managers(host):
            msg = f"not going on with the campaign now: {err.message}, and {busy[0]}"
            raise UnsafeError(msg, hint="try again when it is done") from err
        return CampaignEvent(
            kind=CampaignEventKind.CHANGED, change=Change.GONE, default_boot=before
        )
    if change := before.change(now):
        return CampaignEvent(kind=CampaignEventKind.CHANGED, change=change, default_boot=now)
    if not all(found.today or _is_there(found.path) for found in campaign.ready):
        return CampaignEvent(
            kind=CampaignEventKind.CHANGED, change=Change.CANDIDATES, default_boot=now
        )
    return None


def _armed_again(
    host: Host, campaign: Campaign, trial_boot: TrialBoot, reason: str
) -> CampaignEvent:
    if busy := busy_package_managers(host):
        msg = f"not arming a boot now: {busy[0]}"
        raise UnsafeError(msg, hint="try again when it is done")
    again = armed_again(host, campaign, trial_boot)
    return CampaignEvent(kind=CampaignEventKind.ARM_AGAIN, trial_boot=again, reason=reason)


def _is_there(path: str) -> bool:
    return Path(path).is_file()
