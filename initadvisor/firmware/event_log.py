"""The TPM's event log: what was measured before the kernel ran, and with which digest.

The format is that of the TCG PC Client Platform Firmware Profile (section 10, "crypto agile"), all
numbers little-endian: a header in the old format names the digests' sizes, then come the events. No
library for it is packaged for both Debian and Arch. The log is what firmware and loaders wrote, so
nothing in it is trusted: every length is checked against what is left.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.core.errors import require

if TYPE_CHECKING:
    from collections.abc import Iterator


_SHA256 = 0x000B
_NO_ACTION, _EVENT_TAG, _IPL = 0x3, 0x6, 0xD
_OLD_EVENT = struct.Struct("<II20sI")  # register, type, SHA-1 digest, bytes of data
_SPEC_HEAD = struct.Struct("<16sI4BI")  # signature, class, version, number of digests
_SIGNATURE = b"Spec ID Event03\0"
_U16, _U32, _TWO_U16, _THREE_U32 = (struct.Struct(f"<{kind}") for kind in ("H", "I", "2H", "3I"))
_MOST_DIGESTS = 16

_INITRD_TAG = _U32.pack(0x8F3B22EC)
"""How the kernel's EFI stub tags the initramfs it has loaded (drivers/firmware/efi/libstub)."""
_INITRD_REGISTER = 9
_SECTION_REGISTER = 11
_SECTION_NAME = ".initrd\0".encode("utf-16-le")
"""How systemd-stub describes the section, once for its name and once for its content."""
_SECTION_EVENTS = 2


class BadLogError(ValueError):
    """Bytes that are no event log with SHA-256 digests, or a damaged one; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredEvent:
    """Something that was measured: into which register, of which type, its SHA-256 digest."""

    register: int
    kind: int
    sha256: str | None
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class InitrdDigests:
    """SHA-256 of the initramfs, as it was measured.

    ``loaded``: of all bytes that were handed to the kernel, measured by the kernel's EFI stub since
    Linux 5.16. ``section``: of a unified kernel image's .initrd section, measured by systemd-stub.
    """

    loaded: str | None = None
    section: str | None = None


def initrd_digests(log: bytes) -> InitrdDigests:
    """Return the digests of what was booted, the last where there were several attempts.

    Raises ``BadLogError``.
    """
    loaded: str | None = None
    sections: list[str | None] = []
    for event in read_events(log):
        is_initrd = event.kind == _EVENT_TAG and event.data.startswith(_INITRD_TAG)
        if event.register == _INITRD_REGISTER and is_initrd:
            loaded = event.sha256
        is_section = event.kind == _IPL and event.data == _SECTION_NAME
        if event.register == _SECTION_REGISTER and is_section:
            sections.append(event.sha256)
    complete = len(sections) - len(sections) % _SECTION_EVENTS
    return InitrdDigests(loaded=loaded, section=sections[complete - 1] if complete else None)


def read_events(log: bytes) -> Iterator[MeasuredEvent]:
    """Yield the events after the header.

    Raises ``BadLogError``.
    """
    digest_bytes, position = _header(log)
    while position < len(log):
        register, kind, count = _unpack(_THREE_U32, log, position)
        position += _THREE_U32.size
        if (register, kind, count) == (0, 0, 0):  # the rest of the firmware's buffer
            return
        require(count <= _MOST_DIGESTS, f"an event with {count} digests", BadLogError)
        sha256 = None
        for _ in range(count):
            (algorithm,) = _unpack(_U16, log, position)
            require(
                algorithm in digest_bytes,
                f"a digest of the unknown kind {algorithm:#x}",
                BadLogError,
            )
            digest = _take(log, position + _U16.size, digest_bytes[algorithm])
            position += _U16.size + len(digest)
            sha256 = digest.hex() if algorithm == _SHA256 else sha256
        (size,) = _unpack(_U32, log, position)
        data = _take(log, position + _U32.size, size)
        position += _U32.size + size
        yield MeasuredEvent(register=register, kind=kind, sha256=sha256, data=data)


def _header(log: bytes) -> tuple[dict[int, int], int]:
    """Return the size of each kind of digest, and where the events begin."""
    _, kind, _, size = _unpack(_OLD_EVENT, log, 0)
    event = _take(log, _OLD_EVENT.size, size)
    require(
        kind == _NO_ACTION and event.startswith(_SIGNATURE),
        "an event log of the old format, without SHA-256 digests",
        BadLogError,
    )
    count = _unpack(_SPEC_HEAD, event, 0)[-1]
    require(count <= _MOST_DIGESTS, f"a header with {count} kinds of digest", BadLogError)
    digest_bytes = {}
    for index in range(count):
        algorithm, digest_size = _unpack(_TWO_U16, event, _SPEC_HEAD.size + index * _TWO_U16.size)
        digest_bytes[algorithm] = digest_size
    require(digest_bytes.get(_SHA256) == 32, "an event log without SHA-256 digests", BadLogError)
    return digest_bytes, _OLD_EVENT.size + size


def _unpack(form: struct.Struct, data: bytes, position: int) -> tuple[int, ...]:
    return form.unpack(_take(data, position, form.size))


def _take(data: bytes, position: int, size: int) -> bytes:
    require(
        position + size <= len(data),
        f"the event log ends inside an event, at byte {len(data)}",
        BadLogError,
    )
    return data[position : position + size]
