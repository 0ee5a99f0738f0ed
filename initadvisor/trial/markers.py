"""What is remembered of trial entries: that one may stand, and that a loader was rehearsed.

Small files of the state directory. The one about the entry is there before the entry is and goes
after it, so that whoever comes after an interruption knows what to clear up; systemd's units look
for it, too, to have nothing done where nothing is armed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError
from initadvisor.core.plain_values import from_json
from initadvisor.host.files import PARTIAL_PREFIX, remove_partial, sync_directory, write_file

if TYPE_CHECKING:
    from initadvisor.host import Host


_ENTRY = "trial-entry"
_REHEARSED = "rehearsed"
_PREVIOUS = "previous-entry"

_MOST_BYTES = 256
"""Twice what any of them has."""

_BOARD = ("sys_vendor", "product_name", "board_name")
"""What tells one machine from another that the same disk is put into; none of it is secret."""


def note_entry(host: Host, loader: str) -> None:
    """Remember that a trial's entry of ``loader`` (``BootLoader.NAME``) may stand from now on."""
    _write(host, _ENTRY, f"{loader}\n")


def noted_entry(host: Host) -> str | None:
    """Return the loader that may have a trial's entry, None where none has."""
    return (_read(host, _ENTRY) or "").strip() or None


def forget_entry(host: Host) -> None:
    """Remember that there is no trial's entry any more.

    It is the end of what notes were written for: unfinished ones, which a power cut has left, go.
    """
    _remove(host, _ENTRY)
    for name in (_REHEARSED, _PREVIOUS):
        _remove_unfinished(host, name)


def note_previous(host: Host) -> None:
    """Remember that the previous image's entry may not be the right one from now on."""
    _write(host, _PREVIOUS, "")


def previous_noted(host: Host) -> bool:
    """Tell whether the previous image's entry may not be the right one."""
    return _read(host, _PREVIOUS) is not None


def forget_previous(host: Host) -> None:
    """Remember that the previous image's entry is the right one, or that there can be none."""
    _remove(host, _PREVIOUS)


def forget_rehearsed(host: Host) -> None:
    """Remember that the loader is not to be trusted before it was rehearsed again."""
    _remove(host, _REHEARSED)


def note_rehearsed(host: Host, loader: str) -> None:
    """Remember that this machine's loader boots an entry once, and forgets it."""
    _write(host, _REHEARSED, json.dumps({"loader": loader, "machine": _machine(host)}) + "\n")


def was_rehearsed(host: Host, loader: str) -> bool:
    """Tell whether the loader was rehearsed on this machine, not on another with the same disk."""
    noted: object = None
    with contextlib.suppress(ValueError):
        noted = from_json(_read(host, _REHEARSED) or "null")
    return noted == {"loader": loader, "machine": _machine(host)}


def _machine(host: Host) -> str:
    parts = [host.read_text("/etc/machine-id")]
    parts += [host.read_text(f"/sys/class/dmi/id/{name}") for name in _BOARD]
    parts.append(host.read_text("/sys/firmware/devicetree/base/model"))
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _read(host: Host, name: str) -> str | None:
    try:
        with (host.state_dir() / name).open("rb") as file:
            return file.read(_MOST_BYTES).decode(errors="replace")
    except FileNotFoundError:
        return None
    except OSError as err:
        msg = f"cannot read {err.filename}: {err.strerror}"
        raise InitadvisorError(msg) from err


def _partial(name: str) -> str:
    """Return how an unfinished note begins, which others' unfinished files beside it do not."""
    return f"{PARTIAL_PREFIX}{name}-"


def _write(host: Host, name: str, text: str) -> None:
    write_file(host.state_dir() / name, text.encode(), prefix=_partial(name))


def _remove(host: Host, name: str) -> None:
    path = host.state_dir() / name
    try:
        path.unlink(missing_ok=True)
        _remove_unfinished(host, name)
        if path.parent.is_dir():
            sync_directory(path.parent)
    except OSError as err:
        msg = f"cannot remove {path}: {err.strerror}"
        raise InitadvisorError(msg) from err


def _remove_unfinished(host: Host, name: str) -> None:
    try:
        remove_partial(host.state_dir(), prefix=_partial(name))
    except OSError as err:
        msg = f"cannot remove {err.filename}: {err.strerror}"
        raise InitadvisorError(msg) from err
