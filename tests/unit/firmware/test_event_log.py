"""The TPM's event log: what it says of the initramfs, and what happens to damaged ones."""

from __future__ import annotations

import contextlib
import hashlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.firmware.event_log import BadLogError, InitrdDigests, initrd_digests, read_events
from tests.fixtures.event_logs import (
    EVENT_TAG,
    IPL,
    OPTIONS_TAG,
    SEPARATOR,
    SHA1,
    SHA256,
    SHA384,
    Measured,
    event_log,
    header,
    initrd,
    section,
)

IMAGE, OTHER = b"an initramfs", b"another one"
BEFORE = (
    Measured(0, SEPARATOR, b"\0\0\0\0", b"\0\0\0\0"),
    Measured(9, EVENT_TAG, b"q", OPTIONS_TAG),
)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    "algorithms", [(SHA256,), (SHA1, SHA256), (SHA256, SHA384), (SHA384, SHA256, SHA1)]
)
def test_the_digest_of_what_was_loaded_is_found_in_any_order(algorithms: tuple[int, ...]) -> None:
    log = event_log(*BEFORE, initrd(IMAGE), algorithms=algorithms)
    assert initrd_digests(log) == InitrdDigests(loaded=sha256(IMAGE))


def test_the_section_of_a_unified_kernel_image_is_measured_after_its_name() -> None:
    sections = (*section(".linux", b"kernel"), *section(".initrd", IMAGE), *section(".osrel", b"o"))
    log = event_log(*BEFORE, *sections, initrd(b"cpio" + IMAGE))
    expected = InitrdDigests(loaded=sha256(b"cpio" + IMAGE), section=sha256(IMAGE))
    assert initrd_digests(log) == expected


def test_of_several_attempts_the_last_one_was_booted() -> None:
    first, last = section(".initrd", OTHER), section(".initrd", IMAGE)
    log = event_log(*first, initrd(OTHER), *last, initrd(IMAGE))
    assert initrd_digests(log) == InitrdDigests(loaded=sha256(IMAGE), section=sha256(IMAGE))


def test_a_name_without_its_content_is_no_digest() -> None:
    name, _ = section(".initrd", IMAGE)
    assert initrd_digests(event_log(name)) == InitrdDigests()
    log = event_log(*section(".initrd", OTHER), name)
    assert initrd_digests(log).section == sha256(OTHER)


@pytest.mark.parametrize(
    "measured",
    [
        Measured(8, EVENT_TAG, IMAGE, initrd(IMAGE).data),  # another register
        Measured(9, IPL, IMAGE, initrd(IMAGE).data),  # another type
        Measured(9, EVENT_TAG, IMAGE, b"Linux initrd\0"),  # no tag
        Measured(12, IPL, IMAGE, section(".initrd", IMAGE)[1].data),
        Measured(11, IPL, IMAGE, ".initrd2\0".encode("utf-16-le")),
    ],
)
def test_what_only_looks_like_it_does_not_count(measured: Measured) -> None:
    assert initrd_digests(event_log(measured, measured)) == InitrdDigests()


def test_the_rest_of_the_firmwares_buffer_is_no_event() -> None:
    log = event_log(initrd(IMAGE)) + bytes(4096)
    assert initrd_digests(log).loaded == sha256(IMAGE)


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (b"", "ends inside an event, at byte 0"),
        (header((SHA256,))[:-1], "ends inside an event"),
        (header((SHA256,), signature=b"Spec ID Event02\0"), "old format"),
        (event_log(initrd(IMAGE), algorithms=(SHA1,)), "without SHA-256"),
        (event_log(initrd(IMAGE))[:-1], "ends inside an event"),
        (event_log() + struct.pack("<III", 9, 6, 1) + b"\x99\0", "unknown kind 0x99"),
        (event_log() + struct.pack("<III", 9, 6, 1 << 31), "an event with 2147483648 digests"),
        (event_log() + struct.pack("<IIII", 9, 6, 0, 0xFFFFFFFF) + b"x", "ends inside an event"),
    ],
)
def test_a_log_that_cannot_be_read_says_why(log: bytes, reason: str) -> None:
    with pytest.raises(BadLogError, match=reason):
        initrd_digests(log)


@pytest.mark.parametrize("count", [17, 0xFFFFFFFF])
def test_a_header_that_promises_too_much_is_refused(count: int) -> None:
    good = header((SHA256,))
    at = 32 + 16 + 8
    with pytest.raises(BadLogError, match=f"{count} kinds of digest"):
        initrd_digests(good[:at] + struct.pack("<I", count) + good[at + 4 :])


def test_a_header_that_gives_sha256_another_size_is_refused() -> None:
    bad = header((SHA256,)).replace(struct.pack("<HH", SHA256, 32), struct.pack("<HH", SHA256, 0))
    with pytest.raises(BadLogError, match="without SHA-256"):
        initrd_digests(bad)


def read_all(log: bytes) -> int:
    with contextlib.suppress(BadLogError):
        return sum(len(event.data) for event in read_events(log))
    return 0


@given(st.binary(max_size=400))
def test_no_bytes_are_too_strange_after_a_good_header(rest: bytes) -> None:
    assert read_all(event_log(*BEFORE) + rest) <= 400 + 64


@given(st.binary(max_size=200))
def test_no_bytes_are_too_strange(log: bytes) -> None:
    assert read_all(log) <= len(log)


@given(data=st.data())
def test_no_damage_is_too_strange(data: st.DataObject) -> None:
    log = bytearray(event_log(*BEFORE, *section(".initrd", IMAGE), initrd(IMAGE)))
    position = data.draw(st.integers(0, len(log) - 1))
    log[position] = data.draw(st.integers(0, 255))
    assert read_all(bytes(log)) <= len(log)
