"""The policies ``try`` and ``apply``: begin a campaign where an answer is undecided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.bootloaders.detect import detect_boot_loader
from initadvisor.campaign.campaign import CampaignState
from initadvisor.campaign.record import readable_campaigns, trial_boots_of
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.host.package_managers import busy_package_managers
from initadvisor.trial.campaign_actions import needs_rehearsal
from initadvisor.trial.campaigns import (
    NOT_STARTED,
    CampaignOptions,
    require_startable,
    start,
)
from initadvisor.trial.default_boot import default_boot
from initadvisor.trial.policy_limits import TURNED_OFF, failed_before
from initadvisor.trial.risks import without_consent
from initadvisor.vm.engines import NoEngineError, Wanted, require_verifying

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.campaign.campaign import Campaign, DefaultBoot
    from initadvisor.core.config import Config
    from initadvisor.host import Host
    from initadvisor.trial.candidates import CampaignObserver


_MOST_STARTS = 2
"""After so many campaigns that could not be started, none is begun for the same kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What came of an undecided answer: what was done, in lines, or why no campaign was begun."""

    told: tuple[str, ...] = ()
    refused: str = ""


def begin_trials(host: Host, config: Config, *, observer: CampaignObserver) -> Begun:
    """Begin a campaign with reboots that happen anyway, where nothing is against it.

    What would be refused to a user is refused here, too, and is no error. Raises
    ``InitadvisorError`` for what may pass: a package manager is at work, something cannot be built.
    """
    if busy := busy_package_managers(host):
        raise InitadvisorError(str(busy[0]), hint="it is tried again later")
    try:
        return _begun(host, config, observer)
    except UnsafeError as err:
        return Begun(refused=err.with_hint)


def _begun(host: Host, config: Config, observer: CampaignObserver) -> Begun:
    options = CampaignOptions(by_policy=True)
    require_startable(host, options)
    default = default_boot(host, detect_boot_loader(host))
    if (running := host.kernel_release()) != default.release:
        msg = f"Linux {default.release} boots by default, but {running} runs: not before a reboot"
        return Begun(refused=msg)
    campaigns = readable_campaigns(host)
    if reason := past_objection(campaigns, default):
        return Begun(refused=reason)
    left = config.trial_boots_per_kernel - trial_boots_of(campaigns, default.release)
    if left - needs_rehearsal(host) < 1:
        most = config.trial_boots_per_kernel
        return Begun(
            refused=f"Linux {default.release} may have {most} trial boots, {left} are left"
        )
    if reason := without_consent(host, config):
        return Begun(refused=reason)
    try:
        require_verifying(host, Wanted(release=default.release))
    except NoEngineError as err:
        return Begun(refused=f"no kernel could be asked whether it unpacks candidates: {err}")
    options = CampaignOptions(
        most_boots=left - needs_rehearsal(host), by_policy=True, without=failed_before(host)
    )
    return Begun(told=start(host, options, observer=observer).told)


def past_objection(campaigns: Sequence[Campaign], default: DefaultBoot) -> str | None:
    """Return what earlier campaigns have against another one on what boots by default now.

    A person who has stopped one of this kernel's is not overruled, but by one who has the policy
    try again; what booting could find out of this very image was found out.
    """
    own = [
        (found, found.default_boot.image_sha256)
        for found in campaigns
        if found.by_policy and found.default_boot and found.default_boot.release == default.release
    ]
    stopped = [found for found, _ in own if found.state is CampaignState.STOPPED]
    in_vain = [found for found in stopped if found.reason.startswith(NOT_STARTED)]
    against = [found for found in stopped if found not in in_vain and found.reason != TURNED_OFF]
    against += [
        found for found, image in own if found not in stopped and image == default.image_sha256
    ]
    if len(in_vain) >= _MOST_STARTS:
        against += in_vain
    if not against:
        return None
    return f"campaign {against[-1].number} is {against[-1].state}: {against[-1].reason}"
