"""Who signed a unified kernel image, and that what takes its place is signed by the same."""

from __future__ import annotations

import base64
import binascii
import hashlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.core.errors import BadImageError, ProgramError, UnfitImageError, UnsafeError
from initadvisor.host.files import open_regular
from initadvisor.image.authenticode import read_signatures

if TYPE_CHECKING:
    from initadvisor.host import Host


_TIMEOUT_S = 60


def require_same_signers(host: Host, installed: Path, new: Path) -> None:
    """Raise ``UnfitImageError`` where ``new`` lacks a signature by a key that signed ``installed``.

    Also while Secure Boot is off: it may be on again at the next boot, and nothing that is not
    signed starts then. All keys are asked for, because which of them the firmware trusts is not
    known.
    """
    before = signers(host, installed)
    if not before:
        return
    missing = before - signers(host, new)
    if missing:
        msg = f"{installed} is signed, and what was built is not signed with the same "
        msg += f"{'keys' if len(before) > 1 else 'key'}"
        hint = "what makes it has to sign it with that, ukify by the keys of /etc/kernel/uki.conf"
        raise UnfitImageError(msg, hint=f"{hint}; nothing was changed")


def signers(host: Host, image: Path) -> frozenset[str]:
    """Return the SHA-256 of each certificate with which a PE file is signed; none without.

    Raises ``UnsafeError`` where a signature is not valid, or where OpenSSL cannot be asked.
    """
    try:
        with open_regular(image) as file:
            found = read_signatures(file, file.seek(0, 2))
        with tempfile.TemporaryDirectory(prefix="initadvisor-") as place:
            return frozenset(_signer(host, Path(place), one.pkcs7, one.content) for one in found)
    except (BadImageError, ProgramError) as err:
        msg = f"cannot tell who signed {image}: {err.message}"
        raise UnsafeError(msg, hint="sign it anew; openssl has to be installed") from err


def _signer(host: Host, place: Path, pkcs7: bytes, content: bytes) -> str:
    """Have openssl-smime(1) check a signature, and return its certificate's digest.

    Whom to trust is the firmware's business, which knows no dates either: hence ``-noverify``.
    """
    signature, signed, certificate = place / "pkcs7", place / "content", place / "certificate"
    signature.write_bytes(pkcs7)
    signed.write_bytes(content)
    certificate.unlink(missing_ok=True)
    how = ("openssl", "smime", "-verify", "-noverify", "-inform", "DER", "-binary")
    what = ("-in", signature, "-content", signed, "-signer", certificate, "-out", place / "out")
    host.runner.run((*how, *what), timeout_s=_TIMEOUT_S)
    try:
        lines = certificate.read_text(encoding="ascii").splitlines()
        encoded = "".join(line for line in lines if line and not line.startswith("-----"))
        der = base64.b64decode(encoded, validate=True)
    except (OSError, UnicodeDecodeError, binascii.Error) as err:
        msg = "openssl has named no certificate"
        raise ProgramError(msg) from err
    if not der or lines.count("-----BEGIN CERTIFICATE-----") != 1:
        msg = "openssl has not named one certificate"
        raise ProgramError(msg)
    return hashlib.sha256(der).hexdigest()
