"""A campaign for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from initadvisor.cli.paragraphs import print_item, print_paragraph
from initadvisor.model.campaign import CampaignState
from initadvisor.model.text import shown

if TYPE_CHECKING:
    from initadvisor.model.campaign import Arming, Campaign

_LATEST = 10

_AT_A_BOOT = "It goes on after the next boot, or with initadvisor trial resume"
_FOLLOWING = {
    CampaignState.PREPARING: _AT_A_BOOT,
    CampaignState.CHOOSING: _AT_A_BOOT,
    CampaignState.PAUSED: "It goes on with initadvisor trial resume",
}
"""What has one go on that has nothing armed."""


def print_campaign(campaign: Campaign) -> None:
    """Print where it stands to stdout."""
    if not campaign.number:
        click.echo("No campaign was started yet.")
        return
    _print_state(campaign)
    if campaign.eligible:
        click.echo("\nMay be booted:")
        for candidate in campaign.eligible:
            how = "today's image" if candidate.today else f"unpacked by {candidate.verified}"
            times = campaign.booted(candidate.setting)
            booted = f"; booted well: {times}" if times else ""
            size = f"{candidate.size_bytes / 1e6:.1f} MB"
            print_item(f"{candidate.setting}: {size}, {how}{booted}")
    if campaign.quarantined:
        click.echo("\nNot booted any more:")
        for quarantined in campaign.quarantined:
            print_item(f"{quarantined.setting}: {quarantined.reason}")
    if campaign.armings:
        click.echo("\nThe latest boots:")
        for arming in campaign.armings[-_LATEST:]:
            print_item(_said(arming))


def _print_state(campaign: Campaign) -> None:
    print_paragraph(shown(f"Campaign {campaign.number} is {campaign.state}: {campaign.reason}."))
    if (following := _FOLLOWING.get(campaign.state)) is not None:
        print_paragraph(f"{following}; initadvisor trial stop ends it.")
    click.echo(f"Boots: {campaign.boots} of at most {campaign.most_boots}.")
    if campaign.only:
        click.echo(shown(f"Only: {', '.join(campaign.only)}."))
    if campaign.state.is_active and campaign.reboots:
        click.echo("The machine reboots by itself, a minute after each boot was judged.")


def _said(arming: Arming) -> str:
    what = "rehearsal with today's image" if arming.is_rehearsal else arming.setting
    if arming.fate is None:
        return f"{what}: not judged yet"
    return f"{what}: {arming.fate.replace('-', ' ')} ({arming.words})"
