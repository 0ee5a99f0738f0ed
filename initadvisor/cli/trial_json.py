"""A campaign for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from initadvisor.model.campaign import Campaign
    from initadvisor.workflow.campaign_choice import Choice

_SCHEMA = 1


def print_campaign(campaign: Campaign) -> None:
    """Print all of it as one object."""
    document = {
        "schema": _SCHEMA,
        "number": campaign.number,
        "state": campaign.state.value,
        "reason": campaign.reason or None,
        "boots": campaign.boots,
        "most_boots": campaign.most_boots,
        "only": list(campaign.only),
        "reboots": campaign.reboots,
        "candidates": [
            {
                "setting": candidate.setting,
                "size_bytes": candidate.size_bytes,
                "sha256": candidate.sha256,
                "today": candidate.today,
                "verified": candidate.verified or None,
                "booted": campaign.booted(candidate.setting),
            }
            for candidate in campaign.eligible
        ],
        "quarantined": [
            {"setting": found.setting, "reason": found.reason} for found in campaign.quarantined
        ],
        "armed": [
            {
                "trial": arming.proof.trial,
                "stage": arming.proof.stage.value,
                "setting": arming.setting,
                "sha256": arming.sha256,
                "at_s": arming.at_s,
                "fate": arming.fate and arming.fate.value,
                "reason": arming.words or None,
            }
            for arming in campaign.armings
        ],
    }
    click.echo(json.dumps(document, indent=2, allow_nan=False))


def print_next(found: Choice | None) -> None:
    """Print which boot would be next; what is null is not known, or not needed any more."""
    candidate = found.candidate if found else None
    document = {
        "schema": _SCHEMA,
        "next": candidate and {"setting": candidate.setting, "today": candidate.today},
        "reason": found and found.words,
    }
    click.echo(json.dumps(document, indent=2, allow_nan=False))
