"""The kernel's ring: records, gaps, who wrote them, and where reading ends."""

from __future__ import annotations

import errno
import os
import socket
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.boots.kmsg import parse_record, read_ring, running_boot
from initadvisor.core.errors import InitadvisorError, NeedsRootError
from initadvisor.host import Host
from initadvisor.records.kernel_log import KernelMessage
from tests.fakes.runner import FakeRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from initadvisor.records.marks import KernelTimestamps

VERSION = b"5,0,0,-;Linux version 6.1.0 (a@b) (cc) #1 SMP\n"
BEGIN = b"6,100,300000,-;Trying to unpack rootfs image as initramfs...\n"
FREED = b"6,101,500000,-;Freeing initrd memory: 42152K\n"
RUN = b"6,102,600000,-;Run /init as init process\n"


def ring(records: Sequence[bytes | OSError]) -> Callable[[], bytes]:
    """Return what reads these one by one, and then finds the ring's end."""
    left = iter(records)

    def read() -> bytes:
        record = next(left, BlockingIOError(errno.EAGAIN, "nothing more"))
        if isinstance(record, OSError):
            raise record
        return record

    return read


def marks(*records: bytes | OSError) -> KernelTimestamps:
    """Return the marks in a ring with these records."""
    return read_ring(ring(records)).timestamps


def test_the_marks_are_the_kernel_s_own_microseconds() -> None:
    found = marks(b"5,99,0,-;Linux version 6.1.0 (a@b) (cc) #1 SMP\n", BEGIN, FREED, RUN)
    assert (found.begin_us, found.end_us, found.run_init_us) == (300_000, 500_000, 600_000)
    assert found.release == "6.1.0"
    assert found.missed_messages == 0


def test_nothing_is_read_after_init_ran() -> None:
    assert marks(BEGIN, FREED, RUN, OSError(errno.EIO, "unread")).unpack_us == 200_000


def test_what_is_later_than_any_boot_ends_the_reading() -> None:
    late = b"6,102,3600000001,-;wlan0: associated\n"
    assert marks(BEGIN, FREED, late, OSError(errno.EIO, "unread")).run_init_us is None


@pytest.mark.parametrize("priority", [b"14", b"30", b"8"])
def test_what_user_space_wrote_is_no_mark(priority: bytes) -> None:
    forged = BEGIN.replace(b"6,", priority + b",", 1)
    assert not marks(forged, FREED).begun


def test_what_user_space_wrote_leaves_no_gap() -> None:
    other = b"30,101,400000,-;systemd[1]: Starting\n"
    after = FREED.replace(b",101,", b",102,")
    assert marks(BEGIN, other, after).missed_messages == 0


def test_overwritten_records_are_lost_ones() -> None:
    overrun = OSError(errno.EPIPE, "overwritten")
    assert marks(BEGIN, overrun, FREED.replace(b",101,", b",109,")).missed_messages == 8
    assert marks(BEGIN, FREED.replace(b",101,", b",103,")).missed_messages == 2


def test_a_ring_that_begins_later_than_the_boot_is_no_loss() -> None:
    assert marks(BEGIN, FREED, RUN).missed_messages == 0


def test_caller_and_properties_are_told_from_the_text() -> None:
    data = b"6,339,5140900,-,caller=T12;NET: Registered\\x0a\\x5c \xc3\xa9\n DEVICE=n1\n"
    record = parse_record(data)
    assert record is not None
    assert record.message == KernelMessage(
        text="NET: Registered\n\\ é", time_us=5_140_900, caller="T12"
    )


@pytest.mark.parametrize("flags", [b"6,1,2;text", b"6,1,2,c;text", b"6,1,2,-,caller=C0;text"])
def test_every_form_of_the_prefix(flags: bytes) -> None:
    record = parse_record(flags)
    assert record is not None
    assert record.message.text == "text"


@pytest.mark.parametrize("data", [b"no record\n", b"6,1;text\n", b"-6,1,2,-;text\n", b";\n"])
def test_what_is_no_record_counts_as_lost(data: bytes) -> None:
    assert parse_record(data) is None
    assert marks(BEGIN, data, FREED).missed_messages == 1


@given(st.lists(st.one_of(st.binary(min_size=1), st.sampled_from([BEGIN, FREED, RUN, VERSION]))))
def test_no_records_whatever_make_an_exception(records: list[bytes]) -> None:
    assert marks(*records).missed_messages >= 0


def test_records_come_from_the_machine_s_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A socket keeps records apart and has an end that does not block, as the device does."""
    ours, device = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, device:
        device.setblocking(False)
        for record in (VERSION, BEGIN, FREED, RUN):
            ours.send(record)
        opened: list[Path] = []

        def opens(path: Path, flags: int) -> int:
            assert flags & os.O_NONBLOCK
            opened.append(path)
            return os.dup(device.fileno())

        monkeypatch.setattr(os, "open", opens)
        found = running_boot(Host(root=tmp_path, runner=FakeRunner())).timestamps
    assert opened == [tmp_path / "dev/kmsg"]
    assert found.unpack_us == 200_000


def test_a_machine_without_the_device_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(InitadvisorError, match=r"dev/kmsg: No such file or directory"):
        running_boot(Host(root=tmp_path, runner=FakeRunner()))


@pytest.mark.parametrize("user", [0, 1000])
def test_messages_for_root_only_need_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int
) -> None:
    def refuses(path: Path, flags: int) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", str(path), flags)

    monkeypatch.setattr(os, "open", refuses)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    with pytest.raises(InitadvisorError) as raised:
        running_boot(Host(root=tmp_path, runner=FakeRunner()))
    words = "only root may" if user else "refused even to root"
    assert raised.value.message.endswith(f"dev/kmsg: {words}")
    assert isinstance(raised.value, NeedsRootError) is (user != 0)


def test_a_device_that_fails_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "dev/kmsg").mkdir(parents=True)
    with pytest.raises(InitadvisorError, match="Is a directory"):
        running_boot(Host(root=tmp_path, runner=FakeRunner()))
