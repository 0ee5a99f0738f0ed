"""The records of campaigns: one small file each, replaced whole with every step.

What is recorded is on the disk before it is acted on. Only the latest one may be on; the earlier
ones say which images their trials booted.

The record of a campaign as text, and back; nothing that is read is trusted.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from initadvisor.campaign.campaign import Campaign
from initadvisor.core.errors import InitadvisorError, NeedsRootError, UnsafeError
from initadvisor.core.plain_values import shown
from initadvisor.core.serialisation import (
    NewerSchemaError,
    OlderSchemaError,
    from_document,
    to_document,
)
from initadvisor.host.files import (
    PARTIAL_PREFIX,
    make_directory,
    remove_partial,
    sync_directory,
    whole_file,
    write_file,
)
from initadvisor.transaction.armed_boot import ArmedBoot

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host


_DIRECTORY = "campaigns"
_ACTIVE = "campaign-active"
_PARTIAL_ACTIVE = f"{PARTIAL_PREFIX}{_ACTIVE}-"
_STOP = "initadvisor trial stop takes back what may be armed, and sets the record aside"
_NUMBER = re.compile(r"(\d{1,9})\.json")


class DamagedCampaignError(InitadvisorError):
    """A campaign's record that cannot be read; ``path`` is where it lies."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"cannot read the campaign in {path}: {shown(why)}", hint=_STOP)
        self.path = path


class OlderCampaignError(DamagedCampaignError):
    """A campaign's record that an earlier version has written, in a way that is not known here."""


def read_campaign(host: Host) -> Campaign:
    """Return the latest campaign, an idle one where there was none; a user sees root's.

    Raises ``UnsafeError`` for what a newer version has recorded, ``NeedsRootError`` where only root
    may look, ``DamagedCampaignError`` for a record that cannot be read, and ``InitadvisorError``
    where the directory cannot.
    """
    paths = _paths(host)
    return _read(paths[-1]) if paths else Campaign()


def read_campaigns(host: Host) -> tuple[Campaign | InitadvisorError, ...]:
    """Return all of them, the earliest first, with the error in the place of what cannot be read.

    Raises ``InitadvisorError`` where the directory cannot be read.
    """
    return tuple(_read_or_error(path) for path in _paths(host))


def campaign_stands(host: Host) -> bool:
    """Tell whether the trial's entry may be a campaign's; one that cannot be read may have one."""
    try:
        return read_campaign(host).state.stands
    except InitadvisorError:
        return True


def following_number(host: Host) -> int:
    """Return the number of the next campaign: above those that were set aside, too."""
    directory = host.state_dir() / _DIRECTORY
    names = os.listdir(directory) if directory.is_dir() else []  # noqa: PTH208 - names are enough
    return max((int(found[1]) for name in names if (found := _NUMBER.match(name))), default=0) + 1


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
    path = host.state_dir() / _DIRECTORY / f"{campaign.number:06}.json"
    try:
        missing = [d for d in (path.parent, *path.parent.parents) if not d.is_dir()]
        make_directory(path.parent)
        for directory in missing:
            sync_directory(directory.parent)
        remove_partial(path.parent)
        with whole_file(path) as file:
            file.write(to_document(campaign, schema=_SCHEMA))
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
        remove_partial(path.with_name(_DIRECTORY))
    except OSError as err:
        msg = f"cannot remove {path}: {err.strerror}"
        raise InitadvisorError(msg) from err


def is_noted_active(host: Host) -> bool:
    """Tell whether there is something to do for a campaign."""
    return (host.state_dir() / _ACTIVE).exists()


def _paths(host: Host) -> list[Path]:
    directory = host.state_file(_DIRECTORY)
    if directory is None:
        return []
    try:
        names = os.listdir(directory)  # noqa: PTH208 - glob takes a forbidden directory for empty
    except FileNotFoundError:
        return []
    except PermissionError as err:
        msg = f"cannot read {directory}: only root may"
        raise NeedsRootError(msg) from err
    except OSError as err:
        msg = f"cannot read {directory}: {err.strerror}"
        raise InitadvisorError(msg) from err
    return [directory / name for name in sorted(names) if name.endswith(".json")]


def _read_or_error(path: Path) -> Campaign | InitadvisorError:
    try:
        return _read(path)
    except InitadvisorError as err:
        return err


def _read(path: Path) -> Campaign:
    try:
        return from_text(path.read_bytes(), number=int(path.stem))
    except PermissionError as err:
        msg = f"cannot read {path}: only root may"
        raise NeedsRootError(msg) from err
    except NewerSchemaError as err:
        msg = f"not touching the campaign in {path}: a newer version has recorded it"
        raise UnsafeError(msg, hint="use that version to stop it") from err
    except OlderSchemaError as err:
        raise OlderCampaignError(path, "an earlier version has recorded it") from err
    except OSError as err:
        raise DamagedCampaignError(path, str(err.strerror)) from err
    except ValueError as err:
        raise DamagedCampaignError(path, str(err)) from err


_SCHEMA = 2
_LATEST_S = 1 << 36
"""In the year 4147: clocks that are farther off cannot be shown."""

_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[^/\0]+)+")
"""An absolute path without empty parts, ``.`` and ``..``."""


def from_text(text: bytes, *, number: int) -> Campaign:
    """Return the campaign that is kept as ``number``; raises what ``from_document`` does."""
    found = from_document(Campaign, text, schema=_SCHEMA, where="campaign", names=(ArmedBoot,))
    _require_sound(found, number)
    return found


def _require_sound(found: Campaign, number: int) -> None:
    """Raise ``ValueError`` for what this program has not written: it says what is to be removed."""
    if found.number != number:
        msg = f"it is numbered {found.number}"
        raise ValueError(msg)
    if late := [
        t for t in (found.began_at_s, *(a.at_s for a in found.trial_boots)) if t >= _LATEST_S
    ]:
        msg = f"{late[0]} is no time"
        raise ValueError(msg)
    images = [found.default_boot.image] if found.default_boot else []
    images += [arming.armed_boot.image for arming in found.trial_boots]
    if bad := [image for image in images if not _PATH.fullmatch(image)]:
        msg = f"{bad[0]!r} is no path of an image"
        raise ValueError(msg)
    if found.state.stands and not (found.default_boot and found.trial_boots):
        msg = f"it is {found.state}, and nothing was armed"
        raise ValueError(msg)
