"""Encrypted disks that are open, and what crypttab and the command line say of their keys.

See crypttab(5) of systemd and of Debian, systemd-cryptsetup-generator(8), dracut.cmdline(7), and
mkinitcpio's hook encrypt. What is kept outside of the header (a header file, a key that a TPM or a
token has sealed, a key on another device) does not tell what it depends on.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from initadvisor.bootloaders.places import is_file, read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from initadvisor.host import Host


_TABLES = ("/etc/crypttab", "/etc/crypttab.initramfs")
_USUAL_KEYS = ("/etc/cryptsetup-keys.d", "/run/cryptsetup-keys.d")
_NO_KEY = frozenset({"", "none", "-"})
ONCE = frozenset({"/dev/urandom", "/dev/random", "/dev/hw_random"})
"""Keys that are thrown away: what is in such a disk is gone after each boot."""

_NOT_UNLOCKED = frozenset({"VERITY", "INTEGRITY", "SUBDEV"})
"""Mappings of cryptsetup's that nobody has given a key to (``CRYPT-`` and this in their name)."""

_TOKENS = {"tpm2": "systemd-tpm2", "fido2": "systemd-fido2", "pkcs11": "systemd-pkcs11"}
"""Which token has in the header what an option of this prefix asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenDisk:
    """An encrypted disk that is open now, as the kernel maps it.

    ``format``: as cryptsetup(8) calls it (luks2, plain); ``uuid`` a LUKS header's, without hyphens,
    "" of the others; ``names``: what the mapping is called.
    """

    device: str
    format: str
    uuid: str
    names: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlocking:
    """How one place says that a disk is unlocked."""

    place: str
    key: str = ""
    options: tuple[str, ...] = ()


def open_disks(host: Host) -> Iterator[OpenDisk]:
    """Yield the encrypted disks that are open, by the kernel's mappings."""
    for mapping in sorted(host.path("/sys/block").glob("dm-*")):
        words = text_of(mapping / "dm/uuid")
        kind, _, rest = words.removeprefix("CRYPT-").partition("-")
        if not words.startswith("CRYPT-") or kind in _NOT_UNLOCKED:
            continue
        uuid, _, name = rest.partition("-") if kind.startswith("LUKS") else ("", "", rest)
        names = frozenset({name, text_of(mapping / "dm/name")} - {""})
        for part in sorted((mapping / "slaves").glob("*")):
            yield OpenDisk(device=f"/dev/{part.name}", format=kind.lower(), uuid=uuid, names=names)


def text_of(path: Path) -> str:
    """Return a small file's text without blanks around it, "" where there is none."""
    return (read_bytes(path) or b"").decode(errors="replace").strip()


def keys_elsewhere(host: Host, disk: OpenDisk, *, tokens: frozenset[str]) -> Iterator[str]:
    """Yield in words what unlocks a disk and is not in its header, which has ``tokens``.

    Raises ``NeedsRootError`` where only root may read what is said, else ``InitadvisorError``.
    """
    for said in (*in_tables(host, disk), *_from_command_line(host, disk)):
        key = _usual_key(host, disk) if said.key in _NO_KEY else said.key
        yield from _elsewhere(host, replace(said, key=key), tokens)


def _usual_key(host: Host, disk: OpenDisk) -> str:
    """Return the key file that is used where none is named (crypttab(5)), "" where there is none.

    With an option for a token it holds a sealed key, which then counts, not the header's token.
    """
    usual = (f"{place}/{name}.key" for place in _USUAL_KEYS for name in sorted(disk.names))
    return next((key for key in usual if is_file(host, key)), "")


def _elsewhere(host: Host, said: Unlocking, tokens: frozenset[str]) -> Iterator[str]:
    has_key = said.key not in _NO_KEY | ONCE
    for option in said.options:
        name = option.partition("=")[0]
        token = _TOKENS.get(name.partition("-")[0]) if "-" in name else None
        if name in {"header", "keyscript"} or (token and (has_key or token not in tokens)):
            yield f"{said.place} has {option}"
    if has_key and (":" in said.key or said.key.startswith("/dev/") or _is_socket(host, said.key)):
        yield f"{said.place} has its key in {said.key}"


def _is_socket(host: Host, path: str) -> bool:
    try:
        return stat.S_ISSOCK(host.path(path).stat().st_mode)
    except OSError:
        return False


def in_tables(host: Host, disk: OpenDisk) -> Iterator[Unlocking]:
    """Yield what crypttab and crypttab.initramfs say of a disk."""
    for table in _TABLES:
        for line in text_of(host.path(table)).splitlines():
            name, _, key, options = [*line.split(None, 4), "", "", "", ""][:4]
            if name in disk.names:
                yield Unlocking(place=table, key=key, options=tuple(options.split(",")))


def _from_command_line(host: Host, disk: OpenDisk) -> Iterator[Unlocking]:
    for word in (host.read_text("/proc/cmdline") or "").split():
        name, _, value = word.partition("=")
        short = name.removeprefix("rd.")
        if short in {"luks.options", "luks.key", "luks.data"}:
            uuid, equals, rest = value.partition("=")
            named = uuid.lower().removeprefix("luks-").replace("-", "")
            if equals and _is_uuid(named):
                if named != disk.uuid:
                    continue
                value = rest
        match short:
            case "luks.options":
                yield Unlocking(place=f"{name}=", options=tuple(value.split(",")))
            case "luks.key":
                yield Unlocking(place=f"{name}=", key=value)
            case "luks.data":
                yield Unlocking(place=f"{name}=", options=("header",))
            case "cryptkey" if not value.startswith("rootfs:"):
                yield Unlocking(place=f"{name}=", key=value)


def _is_uuid(text: str) -> bool:
    return len(text) == 32 and all(letter in "0123456789abcdef" for letter in text)
