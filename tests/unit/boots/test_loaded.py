"""What the running system shows of the image it was booted with."""

from __future__ import annotations

import hashlib
import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.boots.attribute import image_evidence, loaded_bytes
from initadvisor.core.estimates import Certainty
from initadvisor.records.attribution import ImageEvidence
from initadvisor.records.boot_start import BootMethod, BootStart, Unreadable
from tests.fixtures.event_logs import event_log, initrd, section
from tests.fixtures.trees import host_at, write

PARAMS = "/sys/kernel/boot_params/data"
LOG = "/sys/kernel/security/tpm0/binary_bios_measurements"
IMAGE = b"an initramfs"
DIGEST = hashlib.sha256(IMAGE).hexdigest()


def boot_params(size_bytes: int) -> bytes:
    page = bytearray(4096)
    struct.pack_into("<I", page, 0x21C, size_bytes & 0xFFFFFFFF)
    struct.pack_into("<I", page, 0xC4, size_bytes >> 32)
    return bytes(page)


def started(way: BootMethod, entry: str | None = "arch.conf") -> BootStart:
    return BootStart(method=way, certainty=Certainty.CERTAIN, entry=entry)


@pytest.mark.parametrize("size_bytes", [0, 1, 22_716_000, 2**32 - 1, 2**32 + 5])
def test_the_loaded_size_is_in_two_halves(tmp_path: Path, size_bytes: int) -> None:
    write(tmp_path, PARAMS, boot_params(size_bytes))
    wrong: list[Unreadable] = []
    assert loaded_bytes(host_at(tmp_path), wrong) == size_bytes
    assert wrong == []


def test_other_processors_have_no_boot_parameters(tmp_path: Path) -> None:
    wrong: list[Unreadable] = []
    assert loaded_bytes(host_at(tmp_path), wrong) is None
    assert wrong == []


def test_boot_parameters_that_are_cut_off_say_so(tmp_path: Path) -> None:
    write(tmp_path, PARAMS, boot_params(5)[:0x300])
    wrong: list[Unreadable] = []
    assert loaded_bytes(host_at(tmp_path), wrong) is None
    assert wrong[0].reason == "has 768 bytes instead of 4096"


def test_everything_there_is_becomes_a_trace(tmp_path: Path) -> None:
    write(tmp_path, PARAMS, boot_params(12_345))
    write(tmp_path, LOG, event_log(*section(".initrd", IMAGE), initrd(b"x" + IMAGE)))
    write(tmp_path, "/proc/cmdline", "root=/dev/sda2 initadvisor.trial=7 quiet\n")
    start = started(BootMethod.SYSTEMD_BOOT_UKI)
    traces, wrong = image_evidence(host_at(tmp_path), start, freed_kib=16, page_bytes=4096)
    assert traces == ImageEvidence(
        from_uki=True,
        loaded_bytes=12_345,
        loaded_sha256=hashlib.sha256(b"x" + IMAGE).hexdigest(),
        section_sha256=DIGEST,
        freed_kib=16,
        trial="7",
        entry="arch.conf",
    )
    assert wrong == ()


def test_after_a_kexec_only_what_is_its_own_counts(tmp_path: Path) -> None:
    write(tmp_path, PARAMS, boot_params(12_345))
    write(tmp_path, LOG, event_log(initrd(IMAGE)))
    write(tmp_path, "/proc/cmdline", "initadvisor.trial=7")
    start = started(BootMethod.KEXEC)
    traces, _ = image_evidence(host_at(tmp_path), start, freed_kib=16, page_bytes=4096)
    assert traces == ImageEvidence(loaded_bytes=12_345, freed_kib=16)


@pytest.mark.parametrize(
    ("way", "from_uki"),
    [(BootMethod.UNKNOWN, None), (BootMethod.GRUB_EFI, False), (BootMethod.LOADER_UKI, True)],
)
def test_whether_it_came_out_of_a_uki_follows_from_the_way(
    tmp_path: Path, way: BootMethod, from_uki: bool | None
) -> None:
    traces, _ = image_evidence(
        host_at(tmp_path), started(way, entry=None), freed_kib=None, page_bytes=4096
    )
    assert traces == ImageEvidence(from_uki=from_uki)


def test_a_damaged_event_log_says_so_and_leaves_the_rest(tmp_path: Path) -> None:
    write(tmp_path, PARAMS, boot_params(5))
    write(tmp_path, LOG, event_log(initrd(IMAGE))[:-3])
    start = started(BootMethod.GRUB_EFI)
    traces, wrong = image_evidence(host_at(tmp_path), start, freed_kib=None, page_bytes=4096)
    assert (traces.loaded_bytes, traces.loaded_sha256) == (5, None)
    assert [each.source for each in wrong] == [LOG]


def test_an_event_log_without_end_is_not_read_to_it(tmp_path: Path) -> None:
    write(tmp_path, LOG, event_log(initrd(IMAGE)) + bytes(5 << 20))
    start = started(BootMethod.GRUB_EFI)
    traces, wrong = image_evidence(host_at(tmp_path), start, freed_kib=None, page_bytes=4096)
    assert traces.loaded_sha256 is None
    assert "is longer than" in wrong[0].reason


@given(params=st.binary(max_size=100), log=st.binary(max_size=100), line=st.binary(max_size=50))
def test_no_bytes_are_too_strange(params: bytes, log: bytes, line: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        for path, content in ((PARAMS, params), (LOG, log), ("/proc/cmdline", line)):
            write(root, path, content)
        start = started(BootMethod.EFI_STUB)
        traces, wrong = image_evidence(host_at(root), start, freed_kib=None, page_bytes=4096)
    assert traces.loaded_bytes is None
    assert {each.source for each in wrong} == {PARAMS, LOG}
