"""The record of a campaign as text, and back; nothing that is read is trusted."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

from initadvisor.model.campaign import (
    Arming,
    Campaign,
    CampaignState,
    Ground,
    Quarantined,
    TrialCandidate,
)
from initadvisor.model.fate import Fate
from initadvisor.model.field_types import require_types
from initadvisor.model.nested_text import from_json
from initadvisor.model.proof import Proof, ProofStage

_SCHEMA = 1
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
    ground = record.pop("ground")
    return Campaign(
        state=CampaignState(record.pop("state")),
        only=_items(record, "only"),
        ground=ground and Ground(**ground),
        ready=tuple(TrialCandidate(**values) for values in _items(record, "ready")),
        quarantined=tuple(Quarantined(**values) for values in _items(record, "quarantined")),
        armings=tuple(_arming(values) for values in _items(record, "armings")),
        **record,
    )


def _arming(values: dict[str, Any]) -> Arming:
    fate, proof = values.pop("fate"), values.pop("proof")
    stage, own_words = ProofStage(proof.pop("stage")), _items(proof, "own_words")
    known_panics = _items(values, "known_panics") if "known_panics" in values else ()
    return Arming(
        proof=Proof(stage=stage, own_words=own_words, **proof),
        known_panics=known_panics,
        fate=fate and Fate(fate),
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
    require_types(found, names={"Proof": Proof})
    if found.number != number:
        msg = f"it is numbered {found.number}"
        raise ValueError(msg)
    if late := [t for t in (found.began_at_s, *(a.at_s for a in found.armings)) if t >= _LATEST_S]:
        msg = f"{late[0]} is no time"
        raise ValueError(msg)
    images = [found.ground.image] if found.ground else []
    images += [arming.proof.image for arming in found.armings]
    if bad := [image for image in images if not _PATH.fullmatch(image)]:
        msg = f"{bad[0]!r} is no path of an image"
        raise ValueError(msg)
    if found.state.stands and not (found.ground and found.armings):
        msg = f"it is {found.state}, and nothing was armed"
        raise ValueError(msg)
