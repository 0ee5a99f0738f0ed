"""Signatures of EFI programs: what is signed, and whether that is this very file.

Microsoft's "Windows Authenticode Portable Executable Signature Format" and "PE Format", which
firmware checks (UEFI 2.10, section 32.2.4). Who signed is for OpenSSL to say.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from initadvisor.core.errors import BadImageError
from initadvisor.image.pe import PeLayout, pe_layout

if TYPE_CHECKING:
    from collections.abc import Iterator


_CERTIFICATE = struct.Struct("<IHH")
_PKCS_SIGNED_DATA = 2
_MOST_BYTES = 1 << 20
_CHUNK_BYTES = 1 << 20
_SEQUENCE, _CONTEXT_0, _OBJECT, _OCTETS = 0x30, 0xA0, 0x06, 0x04
_INDIRECT_DATA = bytes.fromhex("2b060104018237020104")
"""1.3.6.1.4.1.311.2.1.4, SPC_INDIRECT_DATA_OBJID."""

_DAMAGED = "a damaged table of signatures"
_UNKNOWN = "a signature that is not understood"
_FOREIGN = "a signature that is of another file"

_DIGESTS = {
    bytes.fromhex("608648016503040201"): "sha256",
    bytes.fromhex("608648016503040202"): "sha384",
    bytes.fromhex("608648016503040203"): "sha512",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """One signature of a file: ``pkcs7`` (DER) says who signed ``content``.

    That holds the file's digest, which was compared with the file.
    """

    pkcs7: bytes
    content: bytes


def read_signatures(file: IO[bytes], size_bytes: int) -> tuple[Signature, ...]:
    """Return the signatures of a PE file, none where it has none.

    Raises ``BadImageError`` for a file that is damaged, and where one of its signatures is of
    another file or of a kind that is not known.
    """
    layout = pe_layout(file, size_bytes)
    return tuple(_signature(file, layout, blob) for blob in _blobs(file, layout))


def _blobs(file: IO[bytes], layout: PeLayout) -> Iterator[bytes]:
    table = layout.certificates
    if table is None:
        return
    if table.size_bytes > _MOST_BYTES:
        raise _bad(_DAMAGED, table.offset)
    file.seek(table.offset)
    data = file.read(table.size_bytes)
    position = 0
    while position < len(data):
        rest = data[position:]
        if len(rest) < _CERTIFICATE.size:
            raise _bad(_DAMAGED, table.offset + position)
        length, _, kind = _CERTIFICATE.unpack_from(rest)
        if not _CERTIFICATE.size < length <= len(rest) or kind != _PKCS_SIGNED_DATA:
            raise _bad(_UNKNOWN, table.offset + position)
        yield rest[_CERTIFICATE.size : length]
        position += -(-length // 8) * 8


def _signature(file: IO[bytes], layout: PeLayout, blob: bytes) -> Signature:
    try:
        pkcs7, content, algorithm, expected = _signed(blob)
    except (ValueError, IndexError) as err:
        raise _bad(_UNKNOWN, layout.size_bytes) from err
    if _digest(file, layout, algorithm) != expected:
        raise _bad(_FOREIGN, layout.size_bytes)
    return Signature(pkcs7=pkcs7, content=content)


def _digest(file: IO[bytes], layout: PeLayout, algorithm: str) -> bytes:
    digest = hashlib.new(algorithm)
    for part in layout.signed:
        file.seek(part.offset)
        left = part.size_bytes
        while left:
            data = file.read(min(left, _CHUNK_BYTES))
            if not data:
                raise _bad(_DAMAGED, part.offset)
            digest.update(data)
            left -= len(data)
    return digest.digest()


def _signed(blob: bytes) -> tuple[bytes, bytes, str, bytes]:
    """Return the blob without padding, what it signs, and the digest in that with its name."""
    tag, body, end = _element(blob, 0)
    pkcs7 = blob[:end]
    [_, (_, wrapped)] = _parts(tag, body, _SEQUENCE)[:2]  # ContentInfo
    [(tag, signed_data)] = _parts(_SEQUENCE, wrapped, _SEQUENCE)
    content_info = _parts(tag, signed_data, _SEQUENCE)[2]
    [kind, (tag, explicit)] = _parts(*content_info, _SEQUENCE)
    if kind != (_OBJECT, _INDIRECT_DATA) or tag != _CONTEXT_0:
        raise ValueError(kind)
    [(tag, content)] = _parts(_SEQUENCE, explicit, _SEQUENCE)  # SpcIndirectDataContent
    [_, (tag, digest_info)] = _parts(tag, content, _SEQUENCE)
    [(tag, algorithm), (digest_tag, digest)] = _parts(tag, digest_info, _SEQUENCE)
    name = _DIGESTS.get(_parts(tag, algorithm, _SEQUENCE)[0][1])
    if name is None or digest_tag != _OCTETS:
        raise ValueError(algorithm)
    return pkcs7, content, name, digest


def _parts(tag: int, body: bytes, expected: int) -> list[tuple[int, bytes]]:
    """Return tag and content of what is in a DER element; raises ``ValueError`` for another tag."""
    if tag != expected:
        raise ValueError(tag)
    found, position = [], 0
    while position < len(body):
        inner, content, position = _element(body, position)
        found.append((inner, content))
    return found


def _element(data: bytes, position: int) -> tuple[int, bytes, int]:
    """Return tag, content and end of a DER element (X.690)."""
    tag, length, start = data[position], data[position + 1], position + 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[position + 2 : start], "big")
    if start + length > len(data):
        raise ValueError(length)
    return tag, data[start : start + length], start + length


def _bad(what: str, offset: int) -> BadImageError:
    msg = f"PE file with {what},"
    return BadImageError(msg, offset=offset)
