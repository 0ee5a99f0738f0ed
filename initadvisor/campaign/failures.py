"""Images that did not boot in a trial: none of them is advised, whatever it would save."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from initadvisor.campaign.record import read_campaigns
from initadvisor.core.errors import InitadvisorError
from initadvisor.records.trial_outcome import TrialOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from initadvisor.campaign.campaign import Campaign
    from initadvisor.host import Host


_log = logging.getLogger(__name__)

_BAD = frozenset({TrialOutcome.FAILED, TrialOutcome.UNEXPLAINED})


def failed_in_trials(host: Host) -> Mapping[str, str]:
    """Return why images did not boot, by their SHA-256, as far as that can be read."""
    try:
        recorded = read_campaigns(host)
    except InitadvisorError as err:
        recorded = (err,)
    for each in recorded:
        if isinstance(each, InitadvisorError):
            _log.warning("it is not known what did not boot in trials: %s", each.message)
    return failures(each for each in recorded if not isinstance(each, InitadvisorError))


def failures(campaigns: Iterable[Campaign]) -> dict[str, str]:
    """Return the same of campaigns, the earliest first.

    What was quarantined without a boot, for want of room, say, is not among it; and what has
    booted since, because somebody has named it, is not any more.
    """
    found: dict[str, str] = {}
    for campaign in campaigns:
        for trial_boot in campaign.trial_boots:
            if trial_boot.outcome is TrialOutcome.PASSED:
                found.pop(trial_boot.sha256, None)
        bad = {
            trial_boot.sha256 for trial_boot in campaign.trial_boots if trial_boot.outcome in _BAD
        }
        found |= {out.sha256: out.reason for out in campaign.quarantined if out.sha256 in bad}
    return found
