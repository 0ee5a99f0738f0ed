"""The records of campaigns: one small file each, replaced whole with every step.

What is recorded is on the disk before it is acted on. Only the latest one may be on; the earlier
ones say which images their trials booted.
"""

from __future__ import annotations

import dataclasses
import json
import os
from typing import TYPE_CHECKING, Any

from initadvisor.host.files import (
    PARTIAL_PREFIX,
    make_directory,
    remove_partial,
    sync_directory,
    whole_file,
)
from initadvisor.model.campaign import (
    Arming,
    Campaign,
    CampaignState,
    Ground,
    Quarantined,
    TrialCandidate,
)
from initadvisor.model.errors import InitadvisorError, NeedsRootError, UnsafeError
from initadvisor.model.fate import Fate
from initadvisor.model.nested_text import from_json
from initadvisor.model.proof import Proof, ProofStage
from initadvisor.model.text import shown

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host

_SCHEMA = 1
_DIRECTORY = "campaigns"
_ACTIVE = "campaign-active"
_PARTIAL_ACTIVE = f"{PARTIAL_PREFIX}{_ACTIVE}-"


def read_campaign(host: Host) -> Campaign:
    """Return the latest campaign, an idle one where there was none; a user sees root's.

    Raises ``UnsafeError`` for what a newer version has recorded, ``NeedsRootError`` where only root
    may look, and ``InitadvisorError`` for a record that cannot be read.
    """
    paths = _paths(host)
    return _read(paths[-1]) if paths else Campaign()


def read_campaigns(host: Host) -> tuple[Campaign, ...]:
    """Return all of them, the earliest first; raises like ``read_campaign``."""
    return tuple(_read(path) for path in _paths(host))


def campaign_stands(host: Host) -> bool:
    """Tell whether the trial's entry may be a campaign's; raises like ``read_campaign``."""
    return read_campaign(host).state.stands


def require_no_campaign(host: Host) -> None:
    """Raise ``UnsafeError`` while a campaign has armed a boot: there is one selection only."""
    if campaign_stands(host):
        msg = "a campaign has armed the next boot, or runs its trial now"
        raise UnsafeError(msg, hint="initadvisor trial pause takes it back")


def write_campaign(host: Host, campaign: Campaign) -> None:
    """Record a campaign so that it survives a power cut; raises ``InitadvisorError``.

    What a power cut has left of writing an earlier one goes: only with the lock of transactions
    held. After an error either the earlier record stands there or this one.
    """
    path = host.state_dir() / _DIRECTORY / f"{campaign.number:06}.json"
    record = {"schema": _SCHEMA, **dataclasses.asdict(campaign)}
    try:
        missing = [d for d in (path.parent, *path.parent.parents) if not d.is_dir()]
        make_directory(path.parent)
        for directory in missing:
            sync_directory(directory.parent)
        remove_partial(path.parent)
        with whole_file(path) as file:
            file.write(json.dumps(record, indent=2).encode() + b"\n")
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


def _read(path: Path) -> Campaign:
    try:
        return _parse(path, path.read_bytes())
    except PermissionError as err:
        msg = f"cannot read {path}: only root may"
        raise NeedsRootError(msg) from err
    except OSError as err:
        msg = f"cannot read {path}: {err.strerror}"
        raise InitadvisorError(msg) from err


def _parse(path: Path, text: bytes) -> Campaign:
    try:
        record: dict[str, Any] = from_json(text)
        schema = record.pop("schema")
        if isinstance(schema, int) and schema > _SCHEMA:
            msg = f"not touching the campaign in {path}: a newer version has recorded it"
            raise UnsafeError(msg, hint="use that version to stop it")
        ground = record.pop("ground")
        return Campaign(
            state=CampaignState(record.pop("state")),
            only=tuple(record.pop("only")),
            ground=ground and Ground(**ground),
            ready=tuple(TrialCandidate(**values) for values in record.pop("ready")),
            quarantined=tuple(Quarantined(**values) for values in record.pop("quarantined")),
            armings=tuple(_arming(values) for values in record.pop("armings")),
            **record,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as err:
        msg = f"cannot read the campaign in {path}: {shown(str(err))}"
        raise InitadvisorError(msg, hint="look at the file: it says what was armed") from err


def _arming(values: dict[str, Any]) -> Arming:
    fate, proof = values.pop("fate"), values.pop("proof")
    stage, own_words = ProofStage(proof.pop("stage")), tuple(proof.pop("own_words"))
    known_panics = tuple(values.pop("known_panics", ()))
    return Arming(
        proof=Proof(stage=stage, own_words=own_words, **proof),
        known_panics=known_panics,
        fate=fate and Fate(fate),
        **values,
    )
