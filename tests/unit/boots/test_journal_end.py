"""How boots in a journal ended, whose clocks were right, and which came before which."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from initadvisor.boots.journal import BootEnd, BootEnding, opened_journal
from initadvisor.boots.journal_files import JournalSource
from initadvisor.host import Host
from tests.fakes.runner import FakeRunner
from tests.fixtures.journals import MACHINE_ID, Boot, write_journal

if TYPE_CHECKING:
    from pathlib import Path


def reached(boot: Boot, target: str, result: str = "done") -> Boot:
    """Add what systemd writes when it has reached a target."""
    return boot.manager(f"Reached target {target}.", UNIT=target, JOB_RESULT=result)


def end_of(tmp_path: Path, boot: Boot) -> BootEnd:
    path = write_journal(tmp_path / "system.journal", [boot])
    with opened_journal(
        Host(root=tmp_path, runner=FakeRunner()), JournalSource(files=(path,))
    ) as journal:
        [span] = journal.spans()
        return journal.end(span)


@pytest.mark.parametrize(
    ("target", "ending"),
    [
        ("reboot.target", BootEnding.REBOOT),
        ("kexec.target", BootEnding.KEXEC),
        ("poweroff.target", BootEnding.POWER_OFF),
        ("halt.target", BootEnding.POWER_OFF),
        ("multi-user.target", None),
    ],
)
def test_the_target_of_the_shutdown_tells_how_a_boot_ended(
    tmp_path: Path, target: str, ending: BootEnding | None
) -> None:
    assert end_of(tmp_path, reached(Boot(number=1).ordinary(), target)).ending is ending


def test_a_shutdown_that_failed_or_that_somebody_else_tells_of_is_none(tmp_path: Path) -> None:
    boot = reached(Boot(number=1).ordinary(), "reboot.target", "failed")
    boot.add(_TRANSPORT="journal", _PID="77", UNIT="reboot.target", JOB_RESULT="done")
    assert end_of(tmp_path, boot).ending is None


@pytest.mark.parametrize(
    ("unit", "message", "synchronised"),
    [
        (
            "systemd-timesyncd.service",
            "Initial clock synchronization to Sat 2026-03-01 12:00:00.123456 UTC.",
            True,
        ),
        (
            "systemd-timesyncd.service",
            "Initial synchronization to time server 192.0.2.1:123 (a).",
            True,
        ),
        (
            "systemd-timesyncd.service",
            "Synchronized to time server for the first time 192.0.2.1:123 (a).",
            True,
        ),
        ("systemd-timesyncd.service", "Contacted time server 192.0.2.1:123 (a).", False),
        ("chronyd.service", "Selected source 192.0.2.1 (a)", True),
        ("chrony.service", "Selected source 192.0.2.1", True),
        ("chronyd.service", "Can't synchronise: no selectable sources", False),
        ("evil.service", "Selected source 192.0.2.1", False),
    ],
)
def test_only_what_sets_the_clock_says_that_it_is_right(
    tmp_path: Path, unit: str, message: str, synchronised: bool
) -> None:
    boot = Boot(number=1).ordinary().add(_SYSTEMD_UNIT=unit, MESSAGE=message)
    assert end_of(tmp_path, boot).synchronised is synchronised


@pytest.mark.parametrize(
    "message",
    ["PM: suspend exit", "PM: hibernation: hibernation exit", "PM: hibernation exit"],
)
def test_sleep_is_what_the_kernel_says_it_came_back_from(tmp_path: Path, message: str) -> None:
    awake = Boot(number=1).ordinary().add(MESSAGE=message)
    assert not end_of(tmp_path / "a", awake).slept
    assert end_of(tmp_path / "b", awake.kernel(900_000_000, message)).slept


def test_the_boot_before_is_found_without_reading_all(tmp_path: Path) -> None:
    write_journal(tmp_path / "a.journal", [Boot(number=n).ordinary() for n in (1, 2)])
    write_journal(tmp_path / "b.journal", [Boot(number=n).ordinary() for n in (3, 4)])
    with opened_journal(
        Host(root=tmp_path, runner=FakeRunner()), JournalSource(directory=tmp_path)
    ) as journal:
        spans = journal.spans()
        for number, span in enumerate(spans):
            assert journal.span(span.boot_id) == span
            assert journal.before(span) == (spans[number - 1] if number else None)
        assert journal.span("f" * 32) is None
        assert journal.span("_BOOT_ID=x") is None


def test_only_the_files_that_were_written_last_are_opened_where_that_is_asked(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "var/log/journal" / MACHINE_ID
    for number, name in enumerate(("system@c", "system@a", "system", "user-1000"), 1):
        path = write_journal(directory / f"{name}.journal", [Boot(number=number).ordinary()])
        os.utime(path, (1000 + number, 1000 + number))
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/machine-id").write_text(MACHINE_ID)
    for latest, boots in ((1, [3]), (2, [2, 3]), (9, [1, 2, 3]), (None, [1, 2, 3])):
        with opened_journal(
            Host(root=tmp_path, runner=FakeRunner()), JournalSource(latest=latest)
        ) as journal:
            found = [span.boot_id for span in journal.spans()]
        assert found == [Boot(number=number).boot_id for number in boots]
