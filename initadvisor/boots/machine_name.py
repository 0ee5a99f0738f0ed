"""A name for a machine that tells it apart from others and tells nothing else of it."""

from __future__ import annotations

import re

from initadvisor.host.owner import app_specific

_APPLICATION = bytes.fromhex("79516c8a0c2648558126f11605f2537e")
_COMMAND_LINES = bytes.fromhex("3318a2d639964e19b961f2c68c6b3fa3")
_MACHINE_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_ANY_CASE_ID = re.compile(r"(?<![0-9A-Fa-f])[0-9A-Fa-f]{32}(?![0-9A-Fa-f])", re.ASCII)


def machine_name(machine_id: str | None) -> str | None:
    """Return what sd_id128_get_machine_app_specific(3) makes of a machine's ID.

    The ID itself is to be kept confidential (machine-id(5)), but records of boots are exchanged.
    """
    if machine_id is None or not _MACHINE_ID.fullmatch(machine_id):
        return None
    return app_specific(bytes.fromhex(machine_id), _APPLICATION).hex()


def command_line_key(machine_id: str | None) -> bytes:
    """Return what the machine's command lines are hashed with; nobody can tell it from its name.

    Without an ID there is no secret, and the key is empty.
    """
    if machine_id is None or not _MACHINE_ID.fullmatch(machine_id):
        return b""
    return app_specific(bytes.fromhex(machine_id), _COMMAND_LINES)


def without_id(text: str, name: str | None) -> str:
    """Return text with the name of a machine wherever its ID stands.

    An ID is part of file names and entries that kernel-install(8) makes, also in capitals (FAT).
    """
    if name is None:
        return text
    return _ANY_CASE_ID.sub(
        lambda found: name if machine_name(found[0].lower()) == name else found[0], text
    )
