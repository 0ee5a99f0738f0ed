"""Boots out of journal files that systemd's own writer made."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.boots.journal import JournalBoot, opened_journal
from initadvisor.boots.journal_files import JournalSource
from initadvisor.boots.loader_times import StartupTimes
from initadvisor.boots.record import rejections
from initadvisor.core.errors import InitadvisorError, LibraryError, NeedsRootError
from initadvisor.host import Host
from initadvisor.records.boot import RejectionReason
from initadvisor.records.marks import BootStep, Waiting
from initadvisor.target.packages import what_to_do
from tests.fakes.runner import FakeRunner
from tests.fixtures.journals import MACHINE_ID, Boot, Entry, write_journal
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from collections.abc import Callable


STARTING = "7d4958e842da4a758f6c1cdc7b36dcc5"
STARTED = "39f53479d3a045ac8e11786248231fbf"


def boots_of(source: JournalSource, root: Path = Path("/")) -> list[JournalBoot]:
    """Return all boots of a journal that nothing is to be said about."""
    with opened_journal(Host(root=root, runner=FakeRunner()), source) as journal:
        assert journal.warnings == []
        return [journal.read(span) for span in journal.spans()]


@pytest.fixture
def read(tmp_path: Path) -> Callable[[Boot], JournalBoot]:
    """Return what writes one boot to a journal and reads it."""

    def read(boot: Boot) -> JournalBoot:
        path = write_journal(tmp_path / "system.journal", [boot])
        (found,) = boots_of(JournalSource(files=(path,)))
        return found

    return read


def test_a_boot_is_told_in_full(read: Callable[[Boot], JournalBoot]) -> None:
    boot = Boot(number=1).ordinary()
    found = read(boot)
    marks, shadow = found.kernel.timestamps, found.kernel.shadow
    assert (marks.begin_us, marks.end_us, marks.run_init_us) == (300_000, 500_000, 600_000)
    assert marks.loaded_kib == 42152
    assert marks.release == "6.1.0-44-amd64"
    assert marks.command_line == "root=/dev/sda1 ro quiet"
    assert (shadow.waiting, shadow.shadow_us, shadow.rest_us) == (Waiting.WAITED, 50_000, 100_000)
    assert found.startup == StartupTimes(
        firmware_us=5_123_000,
        loader_us=63_100_000,
        kernel_us=1_500_123,
        initrd_us=3_000_456,
        userspace_us=9_000_789,
    )
    assert found.span.boot_id == boot.boot_id
    assert found.span.machine_id == MACHINE_ID
    assert found.span.first.realtime_us == boot.started_us + 5_000_000
    assert found.span.first.monotonic_us == 5_000_000
    assert found.span.last.monotonic_us == 5_000_000 + 1000 * (len(boot.entries) - 1)
    assert (found.emergency, found.hibernations, found.soft_reboots) == (False, 0, 0)
    assert (found.on_battery, found.damaged) == (None, 0)
    assert rejections(marks) == ()


def test_units_of_the_initramfs_are_told_until_it_is_left(
    read: Callable[[Boot], JournalBoot],
) -> None:
    """What is not told to the journal, because it does not run yet, is told to the kernel's log."""

    def said(boot: Boot, at_us: int, message: str, unit: str, **fields: str) -> None:
        identifier = STARTING if message.startswith("Starting") else STARTED
        boot.manager(message, UNIT=unit, MESSAGE_ID=identifier, **fields)
        boot.entries[-1] = replace(boot.entries[-1], at_us=at_us)

    boot = Boot(number=1)
    for at_us, text in (
        (1_600_000, "Starting early.service - Early..."),
        (1_700_000, "Finished early.service - Early."),
        (1_710_000, "Starting both.service - Both..."),
        (1_720_000, "Started at-once.path - At Once."),
    ):
        boot.kernel(at_us, text, facility=3)
        fields = {**boot.entries[-1].fields, "SYSLOG_IDENTIFIER": "systemd"}
        boot.entries[-1] = Entry(at_us=1_900_000, fields=fields)
    late = {"_SOURCE_REALTIME_TIMESTAMP": str(boot.started_us + 2_000_000)}
    said(boot, 1_910_000, "Finished both.service - Both.", "both.service")
    said(boot, 2_300_000, "Starting slow.service - Slow...", "slow.service", **late)
    said(boot, 4_000_000, "Finished slow.service - Slow.", "slow.service")
    said(boot, 4_100_000, "Starting quick.service - Quick...", "quick.service")
    said(boot, 4_100_900, "Finished quick.service - Quick.", "quick.service")
    said(boot, 4_200_000, "Starting never-done.service...", "never-done.service")
    said(boot, 4_300_000, "Starting <b>\u202e...", "<b>\u202e.service")
    said(boot, 4_400_000, "Finished <b>\u202e.", "<b>\u202e.service")
    without = boot.renumbered(2)
    without.entries = [*boot.entries]
    said(boot, 5_000_000, "Starting later.service...", "later.service")
    said(boot, 5_100_000, "Finished later.service.", "later.service")
    assert read(boot.ordinary()).initrd_units == (
        BootStep(name="early.service", start_us=1_600_000, duration_us=100_000),
        BootStep(name="both.service", start_us=1_710_000, duration_us=200_000),
        BootStep(name="slow.service", start_us=2_000_000, duration_us=2_000_000),
    )
    without.marks().finished("1.5s (kernel) + 9s (userspace) = 10.5s", KERNEL_USEC="1500123")
    assert read(without).initrd_units == ()


def test_the_kernel_s_own_clock_counts_and_not_the_time_of_receipt(
    read: Callable[[Boot], JournalBoot],
) -> None:
    """All of an early boot's messages are received at once, when journald starts."""
    found = read(Boot(number=1).marks(begin_us=1, end_us=40_000_000))
    assert found.kernel.timestamps.unpack_us == 39_999_999


def test_boots_come_in_the_order_in_which_they_began(tmp_path: Path) -> None:
    write_journal(tmp_path / "b.journal", [Boot(number=n).ordinary() for n in (3, 4)])
    write_journal(tmp_path / MACHINE_ID / "a.journal", [Boot(number=n).marks() for n in (1, 2)])
    found = boots_of(JournalSource(directory=tmp_path))
    assert [boot.span.boot_id for boot in found] == [Boot(number=n).boot_id for n in (1, 2, 3, 4)]
    assert all(boot.kernel.timestamps.unpack_us == 200_000 for boot in found)
    assert [boot.startup is not None for boot in found] == [False, False, True, True]


def test_a_boot_whose_entries_are_in_several_files_is_one(tmp_path: Path) -> None:
    whole = Boot(number=1).ordinary()
    for name, entries in (("1", whole.entries[:4]), ("2", whole.entries[4:])):
        write_journal(tmp_path / f"{name}.journal", [Boot(number=1, entries=entries)])
    (found,) = boots_of(JournalSource(directory=tmp_path))
    assert found.kernel.timestamps.unpack_us == 200_000
    assert found.startup is not None


def test_what_user_space_says_is_no_mark(read: Callable[[Boot], JournalBoot]) -> None:
    begin = "Trying to unpack rootfs image as initramfs..."
    boot = Boot(number=1).kernel(1, begin, facility=3)
    boot.add(_TRANSPORT="stdout", SYSLOG_FACILITY="0", MESSAGE=begin)
    boot.add(_TRANSPORT="journal", _SOURCE_MONOTONIC_TIMESTAMP="7", MESSAGE=begin)
    assert read(boot.marks()).kernel.timestamps.begin_us == 300_000


def test_only_the_manager_says_how_a_boot_went(read: Callable[[Boot], JournalBoot]) -> None:
    found = read(
        Boot(number=1)
        .marks()
        .add(
            _TRANSPORT="journal",
            _PID="4711",
            MESSAGE_ID="b07a249cd024414a82dd00cd181378ff",
            KERNEL_USEC="1",
            MESSAGE="Startup finished in 1us (kernel).",
        )
        .add(_TRANSPORT="journal", _PID="4711", UNIT="emergency.target", JOB_RESULT="done")
        .add(_TRANSPORT="journal", MESSAGE="PM: hibernation: hibernation exit")
        .add(
            _TRANSPORT="journal",
            MESSAGE_ID="e9bf28e6e834481bb6f48f548ad13606",
            MESSAGE="Missed 9 kernel messages",
        )
    )
    assert found.startup is None
    assert not found.emergency
    assert found.hibernations == 0
    assert found.kernel.timestamps.missed_messages == 0


def test_messages_lost_before_init_spoil_a_boot_and_later_ones_do_not(
    read: Callable[[Boot], JournalBoot],
) -> None:
    early = read(Boot(number=1).missed(7).marks()).kernel.timestamps
    assert early.missed_messages == 7
    assert rejections(early) == (RejectionReason.MESSAGES_LOST,)


def test_messages_lost_after_init_do_no_harm(read: Callable[[Boot], JournalBoot]) -> None:
    assert read(Boot(number=1).marks().missed(7)).kernel.timestamps.missed_messages == 0


def test_messages_lost_with_the_marks_are_why_they_are_not_there(
    read: Callable[[Boot], JournalBoot],
) -> None:
    marks = read(Boot(number=1).kernel(0, "Linux version 6.1.0 (a@b) (c) #1").missed(700)).kernel
    assert rejections(marks.timestamps) == (RejectionReason.MESSAGES_LOST, RejectionReason.NO_BEGIN)


@pytest.mark.parametrize("message", ["PM: hibernation: hibernation exit", "PM: hibernation exit"])
def test_hibernations_are_counted_however_late(
    read: Callable[[Boot], JournalBoot], message: str
) -> None:
    boot = Boot(number=1).ordinary()
    for number in range(700):
        boot.kernel(10_000_000 + number, "audit: type=1400")
    found = read(boot.kernel(86_400_000_000, message).kernel(86_500_000_000, message))
    assert found.hibernations == 2
    assert found.kernel.timestamps.unpack_us == 200_000


def test_emergency_mode_is_seen(read: Callable[[Boot], JournalBoot]) -> None:
    reached = {"UNIT": "emergency.target", "JOB_TYPE": "start"}
    found = read(Boot(number=1).marks().manager("Reached target", JOB_RESULT="done", **reached))
    assert found.emergency


def test_an_emergency_mode_that_was_not_reached_is_none(
    read: Callable[[Boot], JournalBoot],
) -> None:
    failed = {"UNIT": "emergency.target", "JOB_RESULT": "dependency"}
    assert not read(Boot(number=1).marks().manager("Dependency failed", **failed)).emergency


def test_soft_reboots_are_counted(read: Callable[[Boot], JournalBoot]) -> None:
    again = Boot(number=1).ordinary().finished("4.000s", USERSPACE_USEC="4000000")
    found = read(again)
    assert found.soft_reboots == 1
    assert found.startup is not None
    assert found.startup.userspace_us == 9_000_789


def test_a_container_s_account_is_no_soft_reboot(read: Callable[[Boot], JournalBoot]) -> None:
    container = Boot(number=1).ordinary()
    container.finished("4.000s", USERSPACE_USEC="4000000", _MACHINE_ID="f" * 32)
    assert read(container).soft_reboots == 0


@pytest.mark.parametrize(
    ("states", "on_battery"),
    [
        (["ACPI: AC: AC Adapter [ADP1] (on-line)"], False),
        (["ACPI: AC Adapter [AC] (off-line)"], True),
        (["ACPI: AC: AC Adapter [A] (off-line)", "ACPI: AC: AC Adapter [B] (on-line)"], False),
        (["ACPI: AC: something else"], None),
    ],
)
def test_the_mains_adapter_tells_of_the_battery(
    read: Callable[[Boot], JournalBoot], states: list[str], on_battery: bool | None
) -> None:
    boot = Boot(number=1).marks()
    for state in states:
        boot.kernel(2_000_000, state)
    assert read(boot).on_battery is on_battery


def test_a_boot_without_kernel_messages_has_no_marks(read: Callable[[Boot], JournalBoot]) -> None:
    found = read(Boot(number=1).manager("Reached target"))
    assert rejections(found.kernel.timestamps) == (RejectionReason.NO_MESSAGES,)


def test_binary_and_endless_messages_do_no_harm(read: Callable[[Boot], JournalBoot]) -> None:
    boot = Boot(number=1).kernel(0, b"\xff\x00\n\xfe").kernel(1, "x" * 300_000)
    boot.kernel(2, b"Kernel command line: " + b"\xff" * 5000)
    found = read(boot.marks())
    assert found.kernel.timestamps.unpack_us == 200_000


def test_stamps_that_are_no_numbers_are_none(read: Callable[[Boot], JournalBoot]) -> None:
    boot = Boot(number=1)
    for stamp in ("", "x", "-5", "9" * 40, "\u0663"):
        boot.add(
            _TRANSPORT="kernel",
            SYSLOG_FACILITY="0",
            _SOURCE_MONOTONIC_TIMESTAMP=stamp,
            MESSAGE="Trying to unpack rootfs image as initramfs...",
        )
    marks = read(boot.kernel(9, "Freeing initrd memory: 1K")).kernel.timestamps
    assert marks.begun
    assert rejections(marks) == (RejectionReason.NO_TIMES,)


def test_the_system_s_own_journal_is_found_below_its_root(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/machine-id").write_text(f"{MACHINE_ID}\n", encoding="ascii")
    places = (tmp_path / "var/log/journal", tmp_path / "run/log/journal")
    for number, place in enumerate(places):
        write_journal(place / MACHINE_ID / "system.journal", [Boot(number=number).marks()])
    write_journal(places[0] / MACHINE_ID / "user-1000.journal", [Boot(number=7).marks()])
    write_journal(places[0] / ("f" * 32) / "system.journal", [Boot(number=8).marks()])
    found = boots_of(JournalSource(), tmp_path)
    assert [boot.span.boot_id for boot in found] == [Boot(number=n).boot_id for n in (0, 1)]


def test_a_machine_without_a_journal_has_no_boots(tmp_path: Path) -> None:
    assert boots_of(JournalSource(), tmp_path) == []


def test_a_directory_without_journal_files_is_said_to_have_none(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not looked at", encoding="ascii")
    with pytest.raises(InitadvisorError, match="has no journal files"):
        boots_of(JournalSource(directory=tmp_path))


def test_where_no_file_that_was_named_is_a_journal_each_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cut_off = tmp_path / "cut.journal"
    cut_off.write_bytes(
        write_journal(tmp_path / "whole.journal", [Boot(number=1).ordinary()]).read_bytes()[
            :100_000
        ]
    )
    files = (Path("/dev/zero"), tmp_path, cut_off)
    with pytest.raises(InitadvisorError, match=r"cut\.journal: a damaged journal") as raised:
        boots_of(JournalSource(files=files))
    assert raised.value.exit_code == 1
    assert [record.getMessage() for record in caplog.records] == [
        f"cannot read the journal: {path}: not an ordinary file" for path in files[:2]
    ]


def test_damaged_files_are_left_out_with_a_warning(tmp_path: Path) -> None:
    good = write_journal(tmp_path / "good.journal", [Boot(number=1).ordinary()])
    data = good.read_bytes()
    (tmp_path / "header.journal~").write_bytes(data[:300])
    (tmp_path / "short.journal").write_bytes(data[:100_000])
    (tmp_path / "empty.journal").write_bytes(b"")
    (tmp_path / "text.journal").write_bytes(b"no journal\n" * 10_000)
    (tmp_path / "directory.journal").mkdir()
    os.mkfifo(tmp_path / "fifo.journal")
    (tmp_path / "notes.txt").write_text("not looked at", encoding="ascii")
    source = JournalSource(directory=tmp_path)
    with opened_journal(Host(runner=FakeRunner()), source) as journal:
        found = [journal.read(span) for span in journal.spans()]
    assert [boot.kernel.timestamps.unpack_us for boot in found] == [200_000]
    names = ["directory.journal", "empty", "fifo", "header.journal~", "short", "text"]
    assert len(journal.warnings) == len(names)
    for name, warning in zip(names, sorted(journal.warnings), strict=True):
        assert f"{tmp_path / name}" in warning
        assert "left out" in warning


@pytest.mark.parametrize("position", range(0, 100, 7))
def test_damage_inside_a_file_is_survived(tmp_path: Path, position: int) -> None:
    """Each of the middle's regions is overwritten in turn; what is read depends on which."""
    path = write_journal(tmp_path / "system.journal", [Boot(number=1).ordinary()])
    data = bytearray(path.read_bytes())
    used = len(data.rstrip(b"\0"))
    start = 300 + (used - 300) * position // 100
    data[start : start + 500] = bytes(255 - byte for byte in data[start : start + 500])
    path.write_bytes(data)
    with opened_journal(Host(runner=FakeRunner()), JournalSource(files=(path,))) as journal:
        for span in journal.spans():
            assert journal.read(span).kernel.timestamps.unpack_us in {None, 200_000}


@pytest.mark.usefixtures("ordinary_user")
def test_files_that_nobody_may_read_need_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_journal(tmp_path / "system.journal", [Boot(number=1).marks()])

    def refuses(self: Path, mode: str) -> None:
        raise PermissionError(13, "Permission denied", str(self), mode)

    monkeypatch.setattr(Path, "open", refuses)
    with pytest.raises(NeedsRootError, match=r"system\.journal: permission denied") as raised:
        boots_of(JournalSource(files=(path,)))
    assert raised.value.hint is not None
    assert "systemd-journal" in raised.value.hint


@pytest.mark.usefixtures("ordinary_user")
def test_a_directory_that_nobody_may_list_needs_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(self: Path) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "iterdir", refuses)
    with pytest.raises(NeedsRootError, match="permission denied"):
        boots_of(JournalSource(directory=tmp_path))


def test_what_is_named_must_be_there(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(InitadvisorError, match="missing does not exist"):
        boots_of(JournalSource(files=(missing,)))
    with pytest.raises(InitadvisorError, match="missing is no directory"):
        boots_of(JournalSource(directory=missing))


def test_without_python_systemd_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "systemd", None)
    with pytest.raises(LibraryError, match=r"cannot read the journal: .* systemd is not") as raised:
        boots_of(JournalSource(directory=tmp_path))
    host = Host(root=tmp_path, runner=FakeRunner())
    for system, advice in (
        ("debian", "sudo apt install --no-install-recommends python3-systemd"),
        ("arch", "sudo pacman -S python-systemd"),
        ("fedora", "sudo dnf install python3-systemd"),
        ("another", "install python3-systemd"),
    ):
        write(tmp_path, "etc/os-release", f"ID={system}\n".encode())
        assert what_to_do(host, raised.value) == advice
