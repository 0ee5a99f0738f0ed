"""Whether a disk is unlocked by a TPM only as long as image and command line stay what they are.

The TPM gives the key away while its registers (PCRs) hold what they held when it was sealed. Those
that a trial changes are measured from the boot options (1), the programs and boot data that were
started (4, 5), GRUB's commands (8), the loaded files (9), and systemd-stub's parts and options
(11, 12); see the UAPI group's "Linux TPM PCR Registry".
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any, Final

from initadvisor.bootloaders.places import read_bytes
from initadvisor.core.errors import ProgramError
from initadvisor.core.plain_values import from_json
from initadvisor.core.refusals import RefusalKind, RefusedError, refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from initadvisor.host import Host


_CHANGED_BY_TRIAL: Final = frozenset({1, 4, 5, 8, 9, 11, 12})
_TIMEOUT_S = 20
_ANOTHER_TYPE = 1
"""What ``cryptsetup isLuks`` exits with; a device that cannot be read gives another status."""
_CLEVIS_PCRS = re.compile(r'"pcr_ids"\s*:\s*"(?P<pcrs>[\d,\s]*)"')


def require_no_binding(host: Host) -> None:
    """Raise ``RefusedError`` where an open disk's key is bound to what a trial changes.

    Or where that cannot be found out. Both may be overridden: the worst is that somebody has to
    type the passphrase.
    """
    for device in open_devices(host):
        bound = _bound(host, device) & _CHANGED_BY_TRIAL
        if bound:
            registers = ", ".join(map(str, sorted(bound)))
            reason = f"{device} is unlocked by a TPM that is bound to PCR {registers}"
            remedy = "bind it to PCR 7, or have the passphrase at hand and override this"
            raise refused(RefusalKind.BOUND_TO_TPM, reason, remedy)


def open_devices(host: Host) -> tuple[str, ...]:
    """Return the devices of the encrypted disks that are open now, by the kernel's mappings."""
    found: list[str] = []
    for mapping in sorted(host.path("/sys/block").glob("dm-*")):
        uuid = read_bytes(mapping / "dm/uuid") or b""
        if uuid.startswith(b"CRYPT-LUKS"):
            found += [f"/dev/{part.name}" for part in sorted((mapping / "slaves").glob("*"))]
    return tuple(dict.fromkeys(found))


def _bound(host: Host, device: str) -> set[int]:
    path = host.path(device)
    is_luks2: list[str | Path] = ["cryptsetup", "isLuks", "--type", "luks2", path]
    try:
        answered = host.runner.run(is_luks2, timeout_s=_TIMEOUT_S, check=False)
        if answered.returncode == _ANOTHER_TYPE:
            return _bound_by_clevis(host, path)
        header: list[str | Path] = ["cryptsetup", "luksDump", "--dump-json-metadata", path]
        metadata = from_json(host.runner.run(header, timeout_s=_TIMEOUT_S).stdout)
        return {pcr for token in metadata["tokens"].values() for pcr in _of_token(token)}
    except ProgramError as err:
        raise _unknown(device, err.message) from err
    except (ValueError, KeyError, TypeError, AttributeError) as err:
        raise _unknown(device, "its header is not understood") from err


def _bound_by_clevis(host: Host, path: Path) -> set[int]:
    """Ask clevis(1) about LUKS1, whose header has no room for tokens."""
    if host.runner.which("clevis") is None:
        return set()
    listed = host.runner.run(["clevis", "luks", "list", "-d", path], timeout_s=_TIMEOUT_S)
    return set(_of_pins(listed.stdout.decode(errors="replace")))


def _of_token(token: dict[str, Any]) -> Iterator[int]:
    """Yield the registers of a token: systemd-cryptenroll(1)'s, or clevis-luks-bind(1)'s."""
    if token["type"] == "systemd-tpm2":
        for key in ("tpm2-pcrs", "tpm2_pubkey_pcrs"):
            yield from map(int, token.get(key, []))
        if token.get("tpm2_pcrlock"):
            # systemd-pcrlock(8) predicts what installed images give, and no trial is one.
            yield from _CHANGED_BY_TRIAL
    elif token["type"] == "clevis":
        yield from _of_pins(_pins(token["jwe"]["protected"]))


def _pins(protected: str) -> str:
    """Return what a header of clevis' (JWE, RFC 7516) says of its pins, as text."""
    padded = protected + "=" * (-len(protected) % 4)
    header = from_json(base64.urlsafe_b64decode(padded))
    # Shamir's sharing (the pin sss) has pins of its own, encoded again.
    shares = header["clevis"].get("sss", {}).get("jwe", [])
    return json.dumps(header["clevis"]) + "".join(
        _pins(share.partition(".")[0]) for share in shares
    )


def _of_pins(text: str) -> Iterator[int]:
    for match in _CLEVIS_PCRS.finditer(text):
        yield from (int(number) for number in match["pcrs"].replace(",", " ").split())


def _unknown(device: str, why: str) -> RefusedError:
    reason = f"it cannot be told how {device} is unlocked: {why}"
    remedy = "make sure that its passphrase is at hand, and override this"
    return refused(RefusalKind.UNKNOWN_UNLOCKING, reason, remedy)
