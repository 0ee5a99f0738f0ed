"""What a campaign of the daemon's policy may boot next, as configuration and records are now.

A campaign goes on for months, over kernels and what its user configures meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.campaign.campaign import CampaignEvent, CampaignEventKind, Quarantined
from initadvisor.campaign.record import failed_settings, readable_campaigns, trial_boots_of
from initadvisor.core.config import Policy
from initadvisor.core.errors import UsageError
from initadvisor.host.configuration import load_config
from initadvisor.host.power import on_battery
from initadvisor.transaction.log import own_transactions

if TYPE_CHECKING:
    from initadvisor.campaign.campaign import Campaign
    from initadvisor.host import Host

TURNED_OFF = "nothing is to be tried by itself any more"
"""The reason of a campaign that was ended with all that is done by itself."""


def turned_off(host: Host, campaign: Campaign) -> CampaignEvent | None:
    """Return the end of a policy's campaign where no policy is configured any more that tries.

    Raises ``UsageError`` for a configuration that cannot be meant.
    """
    if not campaign.by_policy or load_config(host).policy is not Policy.ADVISE:
        return None
    return CampaignEvent(kind=CampaignEventKind.STOP, reason=TURNED_OFF)


def against_next(host: Host, campaign: Campaign) -> CampaignEvent | None:
    """Return what is against another boot that nobody asks for now, None where nothing is."""
    if (campaign.by_policy or campaign.only_rehearsal) and on_battery(host):
        words = "the machine runs on its battery"
        return CampaignEvent(kind=CampaignEventKind.BLOCKED, reason=words)
    if not campaign.by_policy or campaign.default_boot is None:
        return None
    try:
        if end := turned_off(host, campaign):
            return end
        most = load_config(host).trial_boots_per_kernel
    except UsageError as err:
        return CampaignEvent(kind=CampaignEventKind.BLOCKED, reason=err.with_hint)
    release = campaign.default_boot.release
    if trial_boots_of(readable_campaigns(host), release) >= most:
        words = f"Linux {release} may have {most} trial boots, which are used up"
        return CampaignEvent(kind=CampaignEventKind.SETTLED, reason=words)
    return None


def failed_before(host: Host) -> tuple[Quarantined, ...]:
    """Return the settings that no policy tries again, whatever campaign and kernel it was with."""
    failed = failed_settings(readable_campaigns(host), own_transactions(host))
    return tuple(
        Quarantined(setting=setting, reason=f"it failed in a trial: {reason}")
        for setting, reason in failed.items()
    )
