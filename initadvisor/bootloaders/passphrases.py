"""Whether somebody has to type a passphrase when the machine boots.

A disk counts as one that asks, unless something is found that unlocks it without a person: a key
file, a TPM or a server, in its header (systemd-cryptenroll(1), clevis(1)) or in crypttab(5). A
token that wants to be touched is no better than a passphrase.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from initadvisor.bootloaders.crypttab import ONCE, OpenDisk, in_tables, open_disks, text_of
from initadvisor.bootloaders.places import file_system_of, is_file
from initadvisor.bootloaders.safety import require_no_binding
from initadvisor.core.errors import ProgramError
from initadvisor.core.plain_values import from_json
from initadvisor.core.refusals import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from initadvisor.bootloaders import BootLoader
    from initadvisor.host import Host


_TIMEOUT_S = 20
_USUAL_KEYS = ("/crypto_keyfile.bin", "/etc/cryptsetup-keys.d/{name}.key")
"""Where mkinitcpio's hook encrypt and systemd-cryptsetup(8) look where no key is named."""

_NEEDS_NOBODY: Final = {
    "clevis": (),
    "systemd-tpm2": ("tpm2-pin",),
    "systemd-fido2": ("fido2-clientPin-required", "fido2-up-required", "fido2-uv-required"),
}
"""Tokens that need nobody, unless one of these is set; that of FIDO2 says so, or it is."""


def passphrase_prompt(host: Host, loader: BootLoader) -> str | None:
    """Return in words what may ask for a passphrase when the machine boots; None: nothing does.

    A key that depends on what is booted counts as one that is not given away. Raises
    ``InitadvisorError`` where it cannot be looked at.
    """
    try:
        require_no_binding(host, loader.default_entry)
    except RefusedError as err:
        return f"it may ask for a passphrase when it boots, since {err.refusal.reason}"
    kernel = loader.default_entry(host).kernel.path
    if _is_encrypted(host, kernel):
        return f"its boot loader asks for a passphrase, since {kernel} is on an encrypted disk"
    for disk in open_disks(host):
        if not (_is_not_opened(host, disk) or _has_key(host, disk) or _has_token(host, disk)):
            return f"it asks for the passphrase of {disk.device} when it boots"
    return None


def _is_not_opened(host: Host, disk: OpenDisk) -> bool:
    """Tell whether crypttab says that a disk waits for somebody to open it, or has a random key."""
    line = (host.read_text("/proc/cmdline") or "").replace("-", "")
    return any(
        said.key in ONCE or ("noauto" in said.options and not (disk.uuid and disk.uuid in line))
        for said in in_tables(host, disk)
    )


def _has_key(host: Host, disk: OpenDisk) -> bool:
    """Tell whether a file has the key, which is there; what a device has sealed is none."""
    usual = [place.format(name=name) for place in _USUAL_KEYS for name in disk.names]
    keys = [*usual, *_in_command_line(host)]
    for said in in_tables(host, disk):
        names = {option.partition("=")[0] for option in said.options}
        if not names & {"keyscript", "tpm2-device", "fido2-device", "pkcs11-uri"}:
            keys.append(said.key)
    return any(key.startswith("/") and is_file(host, key) for key in keys)


def _in_command_line(host: Host) -> Iterator[str]:
    """Yield the key files that ``rd.luks.key=[UUID=]PATH`` and ``cryptkey=rootfs:PATH`` name."""
    for word in (host.read_text("/proc/cmdline") or "").split():
        name, _, value = word.partition("=")
        if name.removeprefix("rd.") == "luks.key":
            yield value.rpartition("=")[2]
        elif name == "cryptkey" and value.startswith("rootfs:"):
            yield value.removeprefix("rootfs:")


def _has_token(host: Host, disk: OpenDisk) -> bool:
    path = host.path(disk.device)
    try:
        if disk.format == "luks1":
            if host.runner.which("clevis") is None:
                return False
            listed = host.runner.run(["clevis", "luks", "list", "-d", path], timeout_s=_TIMEOUT_S)
            return bool(listed.stdout.strip())
        if disk.format != "luks2":
            return False
        header: list[str | Path] = ["cryptsetup", "luksDump", "--dump-json-metadata", path]
        metadata = from_json(host.runner.run(header, timeout_s=_TIMEOUT_S).stdout)
        return any(_needs_nobody(token) for token in metadata["tokens"].values())
    except (ProgramError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _needs_nobody(token: dict[str, Any]) -> bool:
    kind = token["type"]
    unsaid = kind == "systemd-fido2"
    flags = _NEEDS_NOBODY.get(kind)
    return flags is not None and not any(token.get(flag, unsaid) for flag in flags)


def _is_encrypted(host: Host, path: str) -> bool:
    """Tell whether a file is on an encrypted disk; btrfs names that instead of numbering it."""
    mount = file_system_of(host, path)
    if mount.major:
        return _has_encrypted(host.path(f"/sys/dev/block/{mount.major}:{mount.minor}"))
    name = mount.source.rpartition("/")[2]
    return any(
        name in {mapping.name, text_of(mapping / "dm/name")} and _has_encrypted(mapping)
        for mapping in host.path("/sys/block").glob("dm-*")
    )


def _has_encrypted(device: Path) -> bool:
    """Tell whether a device, or one below it, is a mapping of cryptsetup's."""
    return text_of(device / "dm/uuid").startswith("CRYPT-") or any(
        _has_encrypted(part) for part in device.glob("slaves/*")
    )
