"""Feeds events to a campaign: records what they make of it, then does what follows from that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.bootloaders.detect import detect_boot_loader
from initadvisor.campaign.campaign import (
    CLASSICAL_BOOTS,
    Campaign,
    CampaignAction,
    CampaignEvent,
    CampaignEventKind,
    CampaignState,
)
from initadvisor.campaign.record import forget_active, note_active, read_campaign, write_campaign
from initadvisor.campaign.step import quarantine, step
from initadvisor.core.errors import InitadvisorError, ProgramError, UnsafeError
from initadvisor.host.package_managers import busy_package_managers
from initadvisor.transaction.transactions import transactions
from initadvisor.trial.campaign_actions import (
    ActionExecutor,
    needs_rehearsal,
    trial_boot_of,
)
from initadvisor.trial.campaign_judge import changed, judged
from initadvisor.trial.policy_limits import against_next, failed_before
from initadvisor.trial.reboot import arrange_reboot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from initadvisor.host import Host
    from initadvisor.trial.candidates import CampaignObserver


REHEARSAL_WORDS = "the boot loader is tried with today's image first"

_MOST_EVENTS = 200
"""Far more than there are candidates: what takes more is changed as fast as it is prepared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advanced:
    """The campaign as it is now, and what was done, in lines.

    ``reboot``: a boot is armed, and whoever looks on is to reboot the machine for it.
    """

    campaign: Campaign
    told: tuple[str, ...] = ()
    reboot: bool = False


class CampaignRun:
    """Feeds events to the campaign and does what follows from them."""

    def __init__(
        self,
        host: Host,
        observer: CampaignObserver,
        *,
        may_build: bool = True,
        attended: bool = False,
    ) -> None:
        self._host = host
        self._observer = observer
        self._may_build = may_build
        self._attended = attended
        self._executor = ActionExecutor(host, attended=attended)
        self._number: int | None = None
        self._told: list[str] = []

    def feed(self, event: CampaignEvent) -> Advanced:
        """Take an event and all that follows; return what has become of the campaign."""
        waiting = [event]
        for _ in range(_MOST_EVENTS):
            if not waiting:
                break
            for action in self._taken(waiting.pop(0)):
                waiting += self._at_length(action)
        else:
            msg = f"the campaign goes in circles: {read_campaign(self._host).reason}"
            raise InitadvisorError(msg, hint="initadvisor trial stop ends it")
        campaign = read_campaign(self._host)
        armed = campaign.state is CampaignState.ARMED
        return Advanced(
            campaign=campaign,
            told=tuple(dict.fromkeys(self._told)),
            reboot=self._attended and campaign.reboots and armed,
        )

    def _taken(self, event: CampaignEvent) -> tuple[CampaignAction, ...]:
        """Record what an event makes of it, do what is quickly done and return what is not.

        What another run has begun meanwhile is left alone.
        """
        at_length: list[CampaignAction] = []
        with transactions(self._host):
            campaign = read_campaign(self._host)
            if self._number not in {None, campaign.number}:
                return ()
            following: CampaignEvent | None = event
            while following is not None:
                result = step(campaign, following)
                campaign = self._recorded(campaign, result.campaign)
                following = None
                for action in result.actions:
                    if action.takes_long:
                        at_length.append(action)
                    elif (following := self._done(action, campaign)) is not None:
                        break  # what is left belongs to what was before
            if not campaign.state.is_active:
                forget_active(self._host)
        self._number = campaign.number
        return tuple(at_length)

    def _recorded(self, before: Campaign, after: Campaign) -> Campaign:
        if after != before:
            if after.state.is_active:
                note_active(self._host)
            write_campaign(self._host, after)
        return after

    def _done(self, action: CampaignAction, campaign: Campaign) -> CampaignEvent | None:
        match action:
            case CampaignAction.JUDGE:
                found = judged(self._host, campaign)
                if found and found.kind in {CampaignEventKind.PENDING, CampaignEventKind.RUNNING}:
                    self._told.append(found.reason)
                return found
            case CampaignAction.REPORT:
                self._told.append(campaign.reason)
                if campaign.state is CampaignState.DONE and campaign.boots:
                    self._told += _few(campaign)
                return None
            case _:
                return self._executor.do(action, campaign)

    def _at_length(self, action: CampaignAction) -> Iterable[CampaignEvent]:
        campaign = read_campaign(self._host)
        match action:
            case CampaignAction.PREPARE if campaign.state is CampaignState.PREPARING:
                return self._prepared(campaign)
            case CampaignAction.CHOOSE if campaign.state is CampaignState.CHOOSING:
                return self._chosen_of_allowed(campaign)
            case CampaignAction.REBOOT if (
                campaign.state is CampaignState.ARMED and not self._attended
            ):
                self._told.append(self._arranged_reboot())
            case _:  # whoever looks on reboots; or another run has paused or stopped it meanwhile
                pass
        return ()

    def _arranged_reboot(self) -> str:
        try:
            return arrange_reboot(self._host)
        except ProgramError as err:  # the boot stays armed for whoever reboots the machine
            return f"the machine does not reboot by itself: {err.message}"

    def _prepared(self, campaign: Campaign) -> Iterator[CampaignEvent]:
        loader = detect_boot_loader(self._host)
        if change := changed(self._host, campaign, loader):
            yield change
            return
        if campaign.only_rehearsal:
            from initadvisor.trial.candidates import todays_image

            ready = (todays_image(self._host),)
            yield CampaignEvent(kind=CampaignEventKind.PREPARED, ready=ready)
            return
        if not self._may_build:
            self._told.append("the candidates have to be built: initadvisor trial resume does it")
            return
        default = campaign.default_boot
        if default and default.release != self._host.kernel_release():
            words = f"Linux {default.release} boots by default, but another kernel runs"
            yield CampaignEvent(
                kind=CampaignEventKind.BLOCKED, reason=f"{words}: it goes on after a reboot"
            )
            return
        from initadvisor.trial.candidates import prepared

        yield from prepared(self._host, campaign, observer=self._observer)

    def _chosen_of_allowed(self, campaign: Campaign) -> Iterator[CampaignEvent]:
        """Choose; what has failed since a policy's campaign began, elsewhere too, is left out."""
        eligible = {found.setting for found in campaign.eligible if not found.today}
        for found in failed_before(self._host) if campaign.by_policy else ():
            if found.setting in eligible:
                yield CampaignEvent(kind=CampaignEventKind.REFUSED, refused=found)
                campaign = quarantine(campaign, found)
        yield self._chosen(campaign)

    def _chosen(self, campaign: Campaign) -> CampaignEvent:
        loader = detect_boot_loader(self._host)
        if change := changed(self._host, campaign, loader):
            return change
        if busy := busy_package_managers(self._host):
            msg = f"not arming a boot now: {busy[0]}"
            raise UnsafeError(msg, hint="try again when it is done")
        if event := against_next(self._host, campaign):
            return event
        candidate, words = None, REHEARSAL_WORDS
        if not needs_rehearsal(self._host):
            if campaign.only_rehearsal:
                words = "the boot loader has booted an entry once, and forgotten it"
                return CampaignEvent(kind=CampaignEventKind.SETTLED, reason=words)
            from initadvisor.trial.candidates import next_trial

            found = next_trial(self._host, campaign, observer=self._observer)
            candidate, words = found.candidate, found.reason
            if candidate is None:
                return CampaignEvent(kind=CampaignEventKind.SETTLED, reason=words)
        trial_boot = trial_boot_of(self._host, campaign, candidate)
        return CampaignEvent(kind=CampaignEventKind.CHOSEN, trial_boot=trial_boot, reason=words)


def _few(campaign: Campaign) -> Iterator[str]:
    boots = "one boot" if campaign.boots == 1 else f"{campaign.boots} boots"
    if campaign.classical_boots:
        yield (
            f"campaign {campaign.number} took {boots}; {CLASSICAL_BOOTS} of each setting would "
            f"have been {campaign.classical_boots}"
        )
