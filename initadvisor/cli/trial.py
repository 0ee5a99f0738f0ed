"""``initadvisor trial``: candidates boot one at a time, until it is known which one suits.

The subcommands, and a campaign as JSON and as text.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from initadvisor.campaign.campaign import CLASSICAL_BOOTS, CampaignState
from initadvisor.cli.options import Whole, refuse_if, settings_beginning_with
from initadvisor.cli.rendering.output import print_json
from initadvisor.cli.rendering.progress import Progress
from initadvisor.cli.rendering.text import print_list, print_paragraph
from initadvisor.core.errors import UnsafeError
from initadvisor.core.text import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.campaign.campaign import Campaign, TrialBoot, TrialCandidate
    from initadvisor.host import Host
    from initadvisor.trial.run import Advanced


_REBOOT = click.option(
    "--reboot",
    is_flag=True,
    help="Reboot for each boot, after a countdown that can be cancelled, until it is paused.",
)
_COUNTDOWN = click.option(
    "--countdown",
    type=Whole(min=1),
    default=30,
    show_default=True,
    metavar="SECONDS",
    help="How long the countdown on this terminal takes.",
)
_JSON = click.option(
    "--json", "as_json", is_flag=True, help="Print the campaign as JSON, and what was done."
)


@click.group(no_args_is_help=False)
def trial() -> None:
    """Boot candidates one at a time, each once, from an entry of their own.

    Each reboot that happens anyway tries one; the boot after one that fails is today's again, and
    the default entry is never touched. Candidates are unpacked by this machine's own kernel in a
    virtual machine before they may boot.
    """


@trial.command()
@click.option(
    "--only",
    multiple=True,
    metavar="SETTING",
    shell_complete=settings_beginning_with,
    help="Boot this setting, for example 'zstd -19', at least once; may be repeated.",
)
@click.option(
    "--max-boots",
    type=Whole(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="End after so many boots.",
)
@_REBOOT
@_COUNTDOWN
@click.option(
    "--ignore-unlocking", is_flag=True, help="Go on where a disk may ask for its passphrase."
)
@click.option("--yes", is_flag=True, help="Ask nothing.")
@_JSON
def start(
    *,
    only: tuple[str, ...],
    max_boots: int,
    reboot: bool,
    countdown: int,
    ignore_unlocking: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Begin a campaign: build, verify, and arm the first boot.

    The first one on a machine tries the boot loader with today's image.
    """
    from initadvisor.core.settings import Setting
    from initadvisor.host import Host
    from initadvisor.trial.campaigns import CampaignOptions, require_startable
    from initadvisor.trial.campaigns import start as start_campaign
    from initadvisor.trial.risks import risks

    refuse_if(as_json and not yes, "--json goes with --yes")
    host = Host()
    options = CampaignOptions(
        only=tuple(str(Setting.parse(text)) for text in only),
        most_boots=max_boots,
        reboots=reboot,
        ignore_unlocking=ignore_unlocking,
    )
    require_startable(host, options)
    accepted = risks(host)
    if not as_json:
        _require_consent(accepted, yes=yes)
    with Progress() as progress:
        done = start_campaign(host, options, observer=progress)
    _tell(host, done, countdown, as_json=as_json, risks=list(accepted))


@trial.command()
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def status(*, as_json: bool) -> None:
    """Show what has booted, what must not, and what is next."""
    from initadvisor.campaign.record import read_campaign
    from initadvisor.host import Host

    campaign = read_campaign(Host())
    if as_json:
        print_json(_document(campaign))
    else:
        print_campaign(campaign)


@trial.command()
@_JSON
def pause(*, as_json: bool) -> None:
    """Arm nothing until it is resumed, and clear the boot partition."""
    from initadvisor.host import Host
    from initadvisor.trial.campaigns import pause as pause_campaign

    host = Host()
    _tell(host, pause_campaign(host), as_json=as_json)


@trial.command()
@_REBOOT
@_COUNTDOWN
@_JSON
def resume(*, reboot: bool, countdown: int, as_json: bool) -> None:
    """Go on with a campaign: judge this boot, and arm the next.

    What is missing is built.
    """
    from initadvisor.host import Host
    from initadvisor.trial.campaigns import resume as resume_campaign

    host = Host()
    with Progress() as progress:
        done = resume_campaign(host, observer=progress, reboots=True if reboot else None)
    _tell(host, done, countdown, as_json=as_json)


@trial.command()
@_JSON
def stop(*, as_json: bool) -> None:
    """End the campaign, and leave the machine as it was."""
    from initadvisor.host import Host
    from initadvisor.trial.campaigns import stop as stop_campaign

    host = Host()
    _tell(host, stop_campaign(host), as_json=as_json)


@trial.command("next")
@click.option("--dry-run", is_flag=True, help="Only say which boot would be next, and why.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the campaign as JSON, and what was done; with --dry-run, what would be next.",
)
@_COUNTDOWN
def next_(*, dry_run: bool, as_json: bool, countdown: int) -> None:
    """Arm the next boot, if it is to be armed now.

    --reboot of the campaign holds here, too.
    """
    from initadvisor.host import Host
    from initadvisor.trial.campaigns import arm_next, next_choice

    host = Host()
    if not dry_run:
        with Progress() as progress:
            done = arm_next(host, observer=progress)
        _tell(host, done, countdown, as_json=as_json)
        return
    with Progress() as progress:
        found = next_choice(host, observer=progress)
    if as_json:
        candidate = found.candidate if found else None
        print_json(  # what is null is not known, or not needed any more
            {
                "next": candidate and {"setting": candidate.setting, "today": candidate.today},
                "reason": found and found.reason,
            }
        )
    elif found is None:
        click.echo("No boot can be chosen yet: no candidates are prepared.")
    elif found.candidate is None:
        click.echo(shown(f"No boot is next: {found.reason}."))
    else:
        click.echo(shown(f"The next boot would be of {found.candidate.setting}: {found.reason}."))


def _require_consent(risks: Sequence[str], *, yes: bool) -> None:
    """Say when a person may be needed, and go on only if that is accepted."""
    for sentence in risks:
        print_paragraph(shown(sentence))
    if yes:
        return
    if not sys.stdin.isatty():
        msg = "no campaign was started: nobody could be asked whether that is accepted"
        raise UnsafeError(msg, hint="--yes accepts it")
    click.confirm("Begin?", abort=True)


def _tell(
    host: Host, done: Advanced, countdown_s: int = 0, *, as_json: bool, **more: object
) -> None:
    if as_json:
        print_json({**_document(done.campaign), **more, "done": list(done.told)})
    else:
        for line in done.told or (f"The campaign is {done.campaign.state}.",):
            click.echo(shown(line))
    if done.reboot:
        _count_down(host, countdown_s)


def _count_down(host: Host, seconds: int) -> None:
    """Reboot when the time is up; interrupted, the boot stays armed for any later reboot."""
    from initadvisor.trial.reboot import reboot

    try:
        for left in range(seconds, 0, -1):
            click.echo(f"\rRebooting in {left} s; Ctrl-C cancels. ", nl=False, err=True)
            time.sleep(1)
    except KeyboardInterrupt:
        click.echo(err=True)
        click.echo("Not rebooted: the next reboot, whenever it comes, boots the trial.", err=True)
        return
    click.echo(err=True)
    if not reboot(host, attended=True):
        click.echo("Not rebooted: the campaign has no boot armed any more.", err=True)


def _document(campaign: Campaign) -> dict[str, Any]:
    return {
        "number": campaign.number,
        "state": campaign.state.value,
        "reason": campaign.reason or None,
        "boots": campaign.boots,
        "most_boots": campaign.most_boots,
        "classical_boots": campaign.classical_boots,
        "by_policy": campaign.by_policy,
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
                "trial": trial_boot.armed_boot.trial,
                "stage": trial_boot.armed_boot.stage.value,
                "setting": trial_boot.setting,
                "sha256": trial_boot.sha256,
                "at_s": trial_boot.at_s,
                "outcome": trial_boot.outcome and trial_boot.outcome.value,
                "reason": trial_boot.reason or None,
            }
            for trial_boot in campaign.trial_boots
        ],
    }


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
    print_list("May be booted", [_bootable(campaign, found) for found in campaign.eligible])
    print_list("Not booted any more", [f"{q.setting}: {q.reason}" for q in campaign.quarantined])
    print_list("The latest boots", [_said(boot) for boot in campaign.trial_boots[-_LATEST:]])


def _print_state(campaign: Campaign) -> None:
    print_paragraph(shown(f"Campaign {campaign.number} is {campaign.state}: {campaign.reason}."))
    if (following := _FOLLOWING.get(campaign.state)) is not None:
        print_paragraph(f"{following}; initadvisor trial stop ends it.")
    classical = campaign.classical_boots
    others = f"; {CLASSICAL_BOOTS} of each setting would be {classical}" if classical else ""
    click.echo(f"Boots: {campaign.boots} of at most {campaign.most_boots}{others}.")
    if campaign.by_policy:
        click.echo("The daemon's policy has begun it.")
    if campaign.only:
        click.echo(shown(f"Only: {', '.join(campaign.only)}."))
    if campaign.state.is_active and campaign.reboots:
        from initadvisor.trial.reboot import UNIT

        print_paragraph(
            "The machine reboots by itself when a boot was judged and nothing is against it; what "
            f"is, journalctl -u {UNIT} says."
        )


def _bootable(campaign: Campaign, candidate: TrialCandidate) -> str:
    how = "today's image" if candidate.today else f"unpacked by {candidate.verified}"
    times = campaign.booted(candidate.setting)
    booted = f"; booted well: {times}" if times else ""
    return f"{candidate.setting}: {candidate.size_bytes / 1e6:.1f} MB, {how}{booted}"


def _said(trial_boot: TrialBoot) -> str:
    what = "rehearsal with today's image" if trial_boot.is_rehearsal else trial_boot.setting
    if trial_boot.outcome is None:
        return f"{what}: not judged yet"
    return f"{what}: {trial_boot.outcome.replace('-', ' ')} ({trial_boot.reason})"
