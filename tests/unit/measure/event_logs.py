"""Event logs of a TPM, made by hand."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

SHA1, SHA256, SHA384 = 0x4, 0xB, 0xC
NO_ACTION, EVENT_TAG, IPL, SEPARATOR = 0x3, 0x6, 0xD, 0x4
INITRD_TAG = struct.pack("<II", 0x8F3B22EC, 13) + b"Linux initrd\0"
OPTIONS_TAG = struct.pack("<II", 0x8F3B22ED, 26) + b"LOADED_IMAGE::LoadOptions\0"
SIZES = {SHA1: 20, SHA256: 32, SHA384: 48}


@dataclass(frozen=True, slots=True)
class Measured:
    """Something to measure, and how the event describes it."""

    register: int
    kind: int
    content: bytes
    data: bytes


def initrd(content: bytes) -> Measured:
    """What the kernel's EFI stub says of the initramfs it has loaded."""
    return Measured(9, EVENT_TAG, content, INITRD_TAG)


def section(name: str, content: bytes) -> tuple[Measured, Measured]:
    """What systemd-stub says of a section: its name, then its content, described alike."""
    text = f"{name}\0".encode("utf-16-le")
    return (
        Measured(11, IPL, f"{name}\0".encode(), text),
        Measured(11, IPL, content, text),
    )


def digest(algorithm: int, content: bytes) -> bytes:
    """Return the digest as the log has it."""
    name = {SHA1: "sha1", SHA256: "sha256", SHA384: "sha384"}[algorithm]
    return hashlib.new(name, content, usedforsecurity=False).digest()


def header(algorithms: tuple[int, ...], signature: bytes = b"Spec ID Event03\0") -> bytes:
    """Return the first event, which is in the old format."""
    kinds = b"".join(struct.pack("<HH", each, SIZES[each]) for each in algorithms)
    event = signature + struct.pack("<I4BI", 0, 0, 2, 0, 2, len(algorithms)) + kinds + b"\0"
    return struct.pack("<II20sI", 0, NO_ACTION, bytes(20), len(event)) + event


def event(measured: Measured, algorithms: tuple[int, ...]) -> bytes:
    """Return an event with a digest of each kind."""
    digests = b"".join(struct.pack("<H", a) + digest(a, measured.content) for a in algorithms)
    return (
        struct.pack("<III", measured.register, measured.kind, len(algorithms))
        + digests
        + struct.pack("<I", len(measured.data))
        + measured.data
    )


def event_log(*measured: Measured, algorithms: tuple[int, ...] = (SHA1, SHA256)) -> bytes:
    """Return a log of these events."""
    return header(algorithms) + b"".join(event(each, algorithms) for each in measured)
