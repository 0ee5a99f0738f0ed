"""A name for a machine that tells it apart from others and tells nothing else of it."""

from __future__ import annotations

import hashlib
import hmac
import re

_APPLICATION = bytes.fromhex("79516c8a0c2648558126f11605f2537e")
_MACHINE_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)


def machine_name(machine_id: str | None) -> str | None:
    """Return what sd_id128_get_machine_app_specific(3) makes of a machine's ID.

    The ID itself is to be kept confidential (machine-id(5)), but records of boots are exchanged.
    """
    if machine_id is None or not _MACHINE_ID.fullmatch(machine_id):
        return None
    return app_specific(bytes.fromhex(machine_id), _APPLICATION).hex()


def app_specific(identifier: bytes, application: bytes) -> bytes:
    """Hash an ID with that of an application, and make a UUID of version 4 of it."""
    made = bytearray(hmac.digest(identifier, application, hashlib.sha256)[:16])
    made[6] = made[6] & 0x0F | 0x40
    made[8] = made[8] & 0x3F | 0x80
    return bytes(made)
