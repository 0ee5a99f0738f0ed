"""Which installed system something belongs to, where systems share a partition or the firmware.

An ESP, a ``/boot`` and the firmware's variables may be those of several systems. So every name that
is given there says whose it is, and nobody but its owner replaces or removes it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from initadvisor.core.refusals import RefusalKind, refused
from initadvisor.host.storage.mounts import mounts_of_host

if TYPE_CHECKING:
    from initadvisor.host import Host


_MACHINE_ID = "/etc/machine-id"
_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_APPLICATION = bytes.fromhex("308b3500ce7949afb78cf23a1265ff94")
_DIGITS = 8

OWNER: Final = rf"[0-9a-f]{{{_DIGITS}}}"
"""What an owner looks like, as a regular expression. FAT and GRUB keep lower case and digits."""

_STEM = ".initadvisor-"
_OWNED = re.compile(rf"\.(?:partial-)?initadvisor-(?P<owner>{OWNER})-.+", re.DOTALL)


def owner_of_host(host: Host) -> str:
    """Return the owner of what this system makes: 8 lower-case hexadecimal digits.

    They are the first of what sd_id128_get_machine_app_specific(3) makes of the machine's ID, which
    is itself to be kept confidential (machine-id(5)). Raises ``RefusedError`` where there is no ID,
    and where it is one of this boot only: nothing would be known again by it.
    """
    text = (host.read_text(_MACHINE_ID) or "").strip()
    if fault := _fault(host, text):
        reason = f"files and boot entries could not be told from another system's: {_MACHINE_ID} "
        remedy = "systemd-machine-id-setup makes one; with --commit it keeps that of this boot"
        raise refused(RefusalKind.UNKNOWN_OWNER, reason + fault, remedy)
    return app_specific(bytes.fromhex(text), _APPLICATION).hex()[:_DIGITS]


def app_specific(identifier: bytes, application: bytes) -> bytes:
    """Hash an ID with that of an application, and make a UUID of version 4 of it."""
    made = bytearray(hmac.digest(identifier, application, hashlib.sha256)[:16])
    made[6] = made[6] & 0x0F | 0x40
    made[8] = made[8] & 0x3F | 0x80
    return bytes(made)


def owned_name(owner: str, rest: str) -> str:
    """Return what a file of an owner is called.

    A dot in front: shells, generators and loaders that take all files of a directory do not take
    these.
    """
    return f"{_STEM}{owner}-{rest}"


def owner_of_name(path: str) -> str | None:
    """Return whose file that is by its name, None where the name does not say it."""
    found = _OWNED.fullmatch(PurePosixPath(path).name)
    return found["owner"] if found else None


def is_named_like_ours(name: str) -> bool:
    """Tell whether a file has such a name as this program gives, on whichever system."""
    return name.startswith((_STEM, f".partial-{_STEM[1:]}"))


def _fault(host: Host, text: str) -> str:
    if not os.path.lexists(host.path(_MACHINE_ID)):
        return "is not there"
    if text in {"", "uninitialized"}:
        return "is not initialized"
    if not _ID.fullmatch(text) or not int(text, 16):
        return "holds no machine ID"
    mounts = mounts_of_host(host)
    is_transient = any(m.mount_point == _MACHINE_ID and m.fs_type == "tmpfs" for m in mounts)
    return "is of this boot only" if is_transient else ""
