"""The record of what the policy has decided: one small file, replaced whole."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from initadvisor.host.files import make_directory, whole_file
from initadvisor.model.errors import InitadvisorError, UnsafeError
from initadvisor.model.nested_text import from_json
from initadvisor.model.policy import PolicyChange

if TYPE_CHECKING:
    from initadvisor.host import Host

_NAME = "policy.json"
_SCHEMA = 1
_MOST_BYTES = 1 << 20


def policy_changes(host: Host) -> tuple[PolicyChange, ...]:
    """Return what was decided so far, the earliest first.

    Raises ``UnsafeError`` for what a newer version has recorded, ``InitadvisorError`` for what
    cannot be read: what was undone must not be forgotten and done again.
    """
    path = host.state_dir() / _NAME
    try:
        with path.open("rb") as file:
            document = from_json(file.read(_MOST_BYTES))
        if document["schema"] > _SCHEMA:
            msg = f"cannot read {path}: a newer version of initadvisor has written it"
            raise UnsafeError(msg)
        return tuple(_change(each) for each in document["changes"])
    except FileNotFoundError:
        return ()
    except OSError as err:
        msg = f"cannot read {path}: {err.strerror}"
        raise InitadvisorError(msg) from err
    except (ValueError, KeyError, TypeError) as err:
        msg = f"cannot read {path}: it is damaged ({err})"
        raise UnsafeError(msg, hint="remove it to have the policy begin anew") from err


def record_change(host: Host, change: PolicyChange) -> None:
    """Record a decision, or what became of it: it takes the place of the one of the same time.

    Raises what ``policy_changes`` does.
    """
    _write(host, (*_others(host, change), change))


def forget_change(host: Host, change: PolicyChange) -> None:
    """Forget a decision that nothing was done about; raises what ``policy_changes`` does."""
    _write(host, _others(host, change))


def _others(host: Host, change: PolicyChange) -> tuple[PolicyChange, ...]:
    found = policy_changes(host)
    return tuple(each for each in found if each.decided_at_s != change.decided_at_s)


def _write(host: Host, changes: tuple[PolicyChange, ...]) -> None:
    document = {"schema": _SCHEMA, "changes": [dataclasses.asdict(each) for each in changes]}
    path = host.state_dir() / _NAME
    make_directory(path.parent)
    try:
        with whole_file(path) as file:
            file.write(json.dumps(document, indent=1).encode() + b"\n")
    except OSError as err:
        msg = f"cannot write {path}: {err.strerror}"
        raise InitadvisorError(msg) from err


def _change(values: dict[str, Any]) -> PolicyChange:
    number, decided_at_s = values["number"], values["decided_at_s"]
    words = [values[name] for name in ("after", "kernel_release", "failed")]
    if not all(isinstance(word, str) for word in words):
        msg = f"{words} are not words"
        raise TypeError(msg)
    if not isinstance(decided_at_s, int) or not isinstance(number, int | None):
        msg = f"{decided_at_s} and {number} are no numbers"
        raise TypeError(msg)
    return PolicyChange(
        after=words[0],
        kernel_release=words[1],
        decided_at_s=decided_at_s,
        number=number,
        failed=words[2],
    )
