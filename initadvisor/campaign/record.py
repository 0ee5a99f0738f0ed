"""The records of campaigns: one small file each, replaced whole with every step.

What is recorded is on the disk before it is acted on. Only the latest one may be on; the earlier
ones say which images their trials booted.

The record of a campaign as text, and back; nothing that is read is trusted.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import re
from typing import TYPE_CHECKING, Any

from initadvisor.campaign.campaign import (
    Campaign,
    CampaignState,
    DefaultBoot,
    Quarantined,
    TrialBoot,
    TrialCandidate,
)
from initadvisor.core.errors import InitadvisorError, NeedsRootError, UnsafeError
from initadvisor.core.plain_values import from_json, require_types, shown
from initadvisor.host.files import (
    PARTIAL_PREFIX,
    make_directory,
    remove_partial,
    sync_directory,
    whole_file,
)
from initadvisor.records.trial_outcome import TrialOutcome
from initadvisor.transaction.armed_boot import ArmedBoot, ProofStage

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host


_DIRECTORY = "campaigns"
_ACTIVE = "campaign-active"
_PARTIAL_ACTIVE = f"{PARTIAL_PREFIX}{_ACTIVE}-"
_STOP = "initadvisor trial stop takes back what may be armed, and sets the record aside"
_ASIDE = "damaged"
_NUMBER = re.compile(r"(\d{1,9})\.json")


class DamagedCampaignError(InitadvisorError):
    """A campaign's record that cannot be read; ``path`` is where it lies."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"cannot read the campaign in {path}: {shown(why)}", hint=_STOP)
        self.path = path


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


def set_aside(damaged: DamagedCampaignError) -> Path:
    """Have a record that cannot be read out of the way, and return where it is kept.

    Raises ``InitadvisorError`` where it cannot be renamed.
    """
    path = damaged.path
    times = itertools.count(2)
    aside = path.with_name(f"{path.name}.{_ASIDE}")
    while os.path.lexists(aside):
        aside = path.with_name(f"{path.name}.{_ASIDE}-{next(times)}")
    try:
        path.rename(aside)
        sync_directory(path.parent)
    except OSError as err:
        msg = f"cannot rename {path}: {err.strerror}"
        raise InitadvisorError(msg) from err
    return aside


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
            file.write(as_text(campaign))
    except OSError as err:
        msg = f"cannot record the campaign in {path}: {err.strerror}"
        raise InitadvisorError(msg) from err


def note_active(host: Host) -> None:
    """Have the file there that systemd's units look for: there is something to do at a boot."""
    path = host.state_dir() / _ACTIVE
    if not path.exists():
        make_directory(path.parent)
        try:
            remove_partial(path.parent, prefix=_PARTIAL_ACTIVE)
            with whole_file(path, prefix=_PARTIAL_ACTIVE):
                pass
        except OSError as err:
            msg = f"cannot write {path}: {err.strerror}"
            raise InitadvisorError(msg) from err


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
    except NewerRecordError as err:
        msg = f"not touching the campaign in {path}: a newer version has recorded it"
        raise UnsafeError(msg, hint="use that version to stop it") from err
    except OSError as err:
        raise DamagedCampaignError(path, str(err.strerror)) from err
    except ValueError as err:
        raise DamagedCampaignError(path, str(err)) from err


_SCHEMA = 2
_LATEST_S = 1 << 36
"""In the year 4147: clocks that are farther off cannot be shown."""

_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[^/\0]+)+")
"""An absolute path without empty parts, ``.`` and ``..``."""


class NewerRecordError(Exception):
    """A newer version has recorded it, in a way that this one does not know."""


def as_text(campaign: Campaign) -> bytes:
    """Return what is kept of a campaign."""
    record = {"schema": _SCHEMA, **dataclasses.asdict(campaign)}
    return json.dumps(record, indent=2).encode() + b"\n"


def from_text(text: bytes, *, number: int) -> Campaign:
    """Return the campaign that is kept as ``number``.

    Raises ``ValueError`` for what this program has not written, and ``NewerRecordError``.
    """
    record: Any = from_json(text)
    try:
        schema = record.pop("schema")
        if type(schema) is not int:
            msg = f"schema cannot be {schema!r}"
            raise ValueError(msg)
        if schema > _SCHEMA:
            raise NewerRecordError
        found = _campaign(record)
    except KeyError as err:
        msg = f"it has no {err}"
        raise ValueError(msg) from err
    except (TypeError, AttributeError) as err:
        raise ValueError(str(err)) from err
    _require_sound(found, number)
    return found


def _campaign(record: dict[str, Any]) -> Campaign:
    default_boot = record.pop("default_boot")
    return Campaign(
        state=CampaignState(record.pop("state")),
        only=_items(record, "only"),
        default_boot=default_boot and DefaultBoot(**default_boot),
        ready=tuple(TrialCandidate(**values) for values in _items(record, "ready")),
        quarantined=tuple(Quarantined(**values) for values in _items(record, "quarantined")),
        trial_boots=tuple(_trial_boot(values) for values in _items(record, "trial_boots")),
        **record,
    )


def _trial_boot(values: dict[str, Any]) -> TrialBoot:
    outcome, armed = values.pop("outcome"), values.pop("armed_boot")
    stage, extra = ProofStage(armed.pop("stage")), _items(armed, "extra_cmdline")
    known_panics = _items(values, "known_panics") if "known_panics" in values else ()
    return TrialBoot(
        armed_boot=ArmedBoot(stage=stage, extra_cmdline=extra, **armed),
        known_panics=known_panics,
        outcome=outcome and TrialOutcome(outcome),
        **values,
    )


def _items(record: dict[str, Any], name: str) -> tuple[Any, ...]:
    """Take what should be an array out of a record."""
    found = record.pop(name)
    if not isinstance(found, list):
        msg = f"{name} cannot be {type(found).__name__}"
        raise ValueError(msg)
    return tuple(found)


def _require_sound(found: Campaign, number: int) -> None:
    """Raise ``ValueError`` for what this program has not written: it says what is to be removed."""
    require_types(found, names={"ArmedBoot": ArmedBoot})
    if found.number != number:
        msg = f"it is numbered {found.number}"
        raise ValueError(msg)
    if late := [
        t for t in (found.began_at_s, *(a.at_s for a in found.trial_boots)) if t >= _LATEST_S
    ]:
        msg = f"{late[0]} is no time"
        raise ValueError(msg)
    images = [found.default_boot.image] if found.default_boot else []
    images += [trial_boot.armed_boot.image for trial_boot in found.trial_boots]
    if bad := [image for image in images if not _PATH.fullmatch(image)]:
        msg = f"{bad[0]!r} is no path of an image"
        raise ValueError(msg)
    if found.state.stands and not (found.default_boot and found.trial_boots):
        msg = f"it is {found.state}, and nothing was armed"
        raise ValueError(msg)
