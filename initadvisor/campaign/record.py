"""The records of campaigns: one small file each, replaced whole with every step.

What is recorded is on the disk before it is acted on. Only the latest one may be on; the earlier
ones say which images their trials booted, and which of them did not boot: none of those is advised,
whatever it would save.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING

from initadvisor.campaign.campaign import MOST_UNEXPLAINED, Campaign
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.host.files import (
    PARTIAL_PREFIX,
    make_directory,
    remove_partial,
    sync_directory,
    whole_file,
    write_file,
)
from initadvisor.host.record_files import LATEST_S, PATH, RecordFiles
from initadvisor.records.trial_outcome import TrialOutcome
from initadvisor.transaction.log import read_records
from initadvisor.transaction.transaction import ArmedBoot, ProofStage, TransactionState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.transaction.transaction import Transaction

    _Booted = tuple[int, str, TrialOutcome | None, str]
    """When it was armed or begun (seconds since 1970), the setting, the outcome and its reason."""


_ACTIVE = "campaign-active"
_PARTIAL_ACTIVE = f"{PARTIAL_PREFIX}{_ACTIVE}-"
_STOP = "initadvisor trial stop takes back what may be armed, and sets the record aside"


def _require_sound(found: Campaign, number: int) -> None:
    """Raise ``ValueError`` for what this program has not written: it says what is to be removed."""
    if found.number != number:
        msg = f"it is numbered {found.number}"
        raise ValueError(msg)
    if late := [
        t for t in (found.began_at_s, *(a.at_s for a in found.trial_boots)) if t >= LATEST_S
    ]:
        msg = f"{late[0]} is no time"
        raise ValueError(msg)
    images = [found.default_boot.image] if found.default_boot else []
    images += [trial_boot.armed_boot.image for trial_boot in found.trial_boots]
    if bad := [image for image in images if not PATH.fullmatch(image)]:
        msg = f"{bad[0]!r} is no path of an image"
        raise ValueError(msg)
    if found.state.stands and not (found.default_boot and found.trial_boots):
        msg = f"it is {found.state}, and nothing was armed"
        raise ValueError(msg)


_CAMPAIGNS = RecordFiles(
    kind=Campaign,
    name="campaign",
    schema=3,
    check=_require_sound,
    if_damaged=_STOP,
    if_older=_STOP,
    if_newer="use that version to stop it",
    names=(ArmedBoot,),
)


def read_campaign(host: Host) -> Campaign:
    """Return the latest campaign, an idle one where there was none; a user sees root's.

    Raises ``UnsafeError`` for what a newer version has recorded, ``NeedsRootError`` where only root
    may look, ``DamagedRecordError`` for a record that cannot be read, and ``InitadvisorError``
    where the directory cannot.
    """
    for path in reversed(_CAMPAIGNS.paths(_directory(host))):
        found = _CAMPAIGNS.read(path)
        if isinstance(found, InitadvisorError):
            raise found
        if found is not None:
            return found
    return Campaign()


def read_campaigns(host: Host) -> tuple[Campaign | InitadvisorError, ...]:
    """Return all of them, the earliest first, with the error in the place of what cannot be read.

    Raises ``InitadvisorError`` where the directory cannot be read.
    """
    return _CAMPAIGNS.all(_directory(host))


def _directory(host: Host) -> Path | None:
    return host.state_file(_CAMPAIGNS.directory(host).name)


def campaign_stands(host: Host) -> bool:
    """Tell whether the trial's entry may be a campaign's; one that cannot be read may have one."""
    try:
        return read_campaign(host).state.stands
    except InitadvisorError:
        return True


def following_number(host: Host) -> int:
    """Return the number of the next campaign: above those that were set aside, too."""
    return _CAMPAIGNS.following_number(host)


def set_older_aside(host: Host) -> None:
    """Move campaigns of an older layout out of the way; see ``RecordFiles``."""
    _CAMPAIGNS.set_older_aside(_directory(host))


def require_no_campaign(host: Host) -> None:
    """Raise ``UnsafeError`` while a campaign has armed a boot: there is one selection only.

    Raises what ``read_campaign`` does besides.
    """
    if read_campaign(host).state.stands:
        msg = "a campaign has armed the next boot, or runs its trial now"
        raise UnsafeError(msg, hint="initadvisor trial pause takes it back")


def write_campaign(host: Host, campaign: Campaign) -> None:
    """Record a campaign so that it survives a power cut; raises ``InitadvisorError``.

    What a power cut has left of writing an earlier one goes: only with the lock of transactions
    held. After an error either the earlier record stands there or this one.
    """
    path = _CAMPAIGNS.path(host, campaign.number)
    try:
        missing = [d for d in (path.parent, *path.parent.parents) if not d.is_dir()]
        make_directory(path.parent)
        for directory in missing:
            sync_directory(directory.parent)
        remove_partial(path.parent)
        with whole_file(path, mode=0o600) as file:
            file.write(_CAMPAIGNS.text(campaign))
    except OSError as err:
        msg = f"cannot record the campaign in {path}: {err.strerror}"
        raise InitadvisorError(msg) from err


def note_active(host: Host) -> None:
    """Have the file there that systemd's units look for: there is something to do at a boot."""
    path = host.state_dir() / _ACTIVE
    if not path.exists():
        write_file(path, b"", prefix=_PARTIAL_ACTIVE)


def forget_active(host: Host) -> None:
    """Remove it, and what a power cut has left of writing it or a record; with the lock held."""
    path = host.state_dir() / _ACTIVE
    try:
        path.unlink(missing_ok=True)
        remove_partial(path.parent, prefix=_PARTIAL_ACTIVE)
        remove_partial(_CAMPAIGNS.directory(host))
    except OSError as err:
        msg = f"cannot remove {path}: {err.strerror}"
        raise InitadvisorError(msg) from err


def is_noted_active(host: Host) -> bool:
    """Tell whether there is something to do for a campaign."""
    return (host.state_dir() / _ACTIVE).exists()


_log = logging.getLogger(__name__)

_BAD = frozenset({TrialOutcome.FAILED, TrialOutcome.UNEXPLAINED})


def readable_campaigns(host: Host) -> tuple[Campaign, ...]:
    """Return the campaigns that can be read, the earliest first; the others are a warning."""
    try:
        recorded = read_campaigns(host)
    except InitadvisorError as err:
        recorded = (err,)
    for each in recorded:
        if isinstance(each, InitadvisorError):
            _log.warning("it is not known what did not boot in trials: %s", each.message)
    return tuple(each for each in recorded if not isinstance(each, InitadvisorError))


def failed_in_trials(host: Host) -> Mapping[str, str]:
    """Return why images did not boot, by their SHA-256 and by their settings.

    See ``failures`` and ``failed_settings``; what cannot be read is left out.
    """
    campaigns = readable_campaigns(host)
    recorded = [r for r in read_records(host) if not isinstance(r, InitadvisorError)]
    return failures(campaigns) | failed_settings(campaigns, recorded)


def failed_settings(
    campaigns: Iterable[Campaign], recorded: Iterable[Transaction]
) -> dict[str, str]:
    """Return why settings are not booted again by themselves, whatever image they make.

    It is known what went wrong in a trial or a proving boot, or two left no sign. A boot that
    passes ends it.
    """
    found: dict[str, str] = {}
    silent: Counter[str] = Counter()
    boots = sorted((*_trials(campaigns), *_proofs(recorded)), key=lambda boot: boot[0])
    for _, setting, outcome, reason in boots:
        match outcome:
            case TrialOutcome.PASSED:
                found.pop(setting, None)
                silent.pop(setting, None)
            case TrialOutcome.FAILED:
                found[setting] = reason
            case TrialOutcome.UNEXPLAINED:
                silent[setting] += 1
                if silent[setting] >= MOST_UNEXPLAINED:
                    found[setting] = f"it did not come back, twice; {reason}"
            case _:
                pass
    return found


def _trials(campaigns: Iterable[Campaign]) -> Iterator[_Booted]:
    for trial_boot in (boot for each in campaigns for boot in each.trial_boots):
        if not trial_boot.is_rehearsal:
            yield trial_boot.at_s, trial_boot.setting, trial_boot.outcome, trial_boot.reason


def _proofs(recorded: Iterable[Transaction]) -> Iterator[_Booted]:
    for each in recorded:
        # A variant is about content: its boot tells nothing of the setting, which stays.
        if not each.setting or each.setting.variant or each.armed_boot is None:
            continue
        if each.armed_boot.stage is ProofStage.PROOF:
            passed = each.state is TransactionState.COMMITTED
            outcome = TrialOutcome.PASSED if passed else each.outcome
            yield each.began_at_s, each.setting.after, outcome, each.reason


def trial_boots_of(campaigns: Iterable[Campaign], release: str) -> int:
    """Return how many boots of a kernel release were trials or are armed, rehearsals included."""
    return sum(
        trial_boot.release == release and (trial_boot.rebooted or trial_boot.outcome is None)
        for campaign in campaigns
        for trial_boot in campaign.trial_boots
    )


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
