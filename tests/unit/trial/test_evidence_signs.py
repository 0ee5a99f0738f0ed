"""What is left of a boot that never reached the journal."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from initadvisor.host import Host
from initadvisor.records.boot import RebootGapTime, RejectionReason
from initadvisor.records.trial_outcome import BootEndSigns
from initadvisor.trial.evidence import known_panics, signs_since
from tests.fixtures.boots import boot_record

if TYPE_CHECKING:
    from pathlib import Path

ARMED_S = 1_700_000_000
PANIC = """\
<6>[    1.2] Run /init as init process
<0>[    1.3] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)
<4>[    1.3] CPU: 0 PID: 1 Comm: swapper/0
"""


def write(root: Path, name: str, text: str, *, at_s: int = ARMED_S + 60) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (at_s, at_s))


def test_nothing_is_no_sign(tmp_path: Path) -> None:
    assert signs_since(Host(root=tmp_path), ARMED_S, None) == BootEndSigns()


@pytest.mark.parametrize(
    "place", ["sys/fs/pstore/dmesg-efi_pstore-1", "var/lib/systemd/pstore/1700000060/dmesg.txt"]
)
def test_a_panic_is_told_in_the_kernel_s_words(tmp_path: Path, place: str) -> None:
    write(tmp_path, place, PANIC)
    found = signs_since(Host(root=tmp_path), ARMED_S, None)
    assert found.panic == "VFS: Unable to mount root fs on unknown-block(0,0)"
    assert signs_since(Host(root=tmp_path), ARMED_S + 61, None).panic == ""


def test_a_panic_that_was_known_when_it_was_armed_is_none_of_that_boot_s(tmp_path: Path) -> None:
    """Whatever the clock says: the kernel's own time was another."""
    host = Host(root=tmp_path)
    write(tmp_path, "var/lib/systemd/pstore/1/dmesg.txt", PANIC)
    known = known_panics(host)
    assert len(known) == 1
    assert signs_since(host, ARMED_S, None, known=known).panic == ""
    later = PANIC.replace("unknown-block(0,0)", "unknown-block(8,1)")
    write(tmp_path, "var/lib/systemd/pstore/2/dmesg.txt", later)
    found = signs_since(host, ARMED_S, None, known=known)
    assert found.panic == "VFS: Unable to mount root fs on unknown-block(8,1)"


@pytest.mark.parametrize("armed_s", [0, 1000, 1_577_836_799])
def test_a_clock_that_nobody_had_set_dates_nothing(tmp_path: Path, armed_s: int) -> None:
    write(tmp_path, "sys/fs/pstore/dmesg-efi_pstore-1", PANIC)
    assert signs_since(Host(root=tmp_path), armed_s, None).panic == ""


def test_what_is_no_panic_counts_for_nothing(tmp_path: Path) -> None:
    write(tmp_path, "sys/fs/pstore/dmesg-ramoops-0", "<4>[ 1.3] Oops: 0002\n")
    assert signs_since(Host(root=tmp_path), ARMED_S, None).panic == ""


@pytest.mark.parametrize(
    ("status", "reset"), [("32\n", True), ("0x20\n", True), ("0\n", False), ("broken\n", False)]
)
def test_the_watchdog_says_that_it_was_it(tmp_path: Path, status: str, reset: bool) -> None:
    write(tmp_path, "sys/class/watchdog/watchdog0/bootstatus", status)
    assert signs_since(Host(root=tmp_path), ARMED_S, None).watchdog is reset


@pytest.mark.parametrize(
    ("rejections", "gap_us", "chosen"),
    [
        ((RejectionReason.MENU,), 12_000_000, True),
        ((RejectionReason.MENU,), 45_000_000, False),
        ((RejectionReason.MENU,), None, False),
        ((), 12_000_000, False),
    ],
)
def test_another_entry_was_chosen_only_where_no_panic_fits_in_between(
    tmp_path: Path, rejections: tuple[RejectionReason, ...], gap_us: int | None, chosen: bool
) -> None:
    record = boot_record(rejections=rejections)
    record = replace(record, reboot_gap=RebootGapTime(duration_us=gap_us))
    assert signs_since(Host(root=tmp_path), ARMED_S, record).menu is chosen
