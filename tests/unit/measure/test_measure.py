"""The running boot is measured: on machines made of files, with journals of systemd's making."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from initadvisor.boots import record as record_module
from initadvisor.boots.machine_name import command_line_key, machine_name
from initadvisor.core.errors import InitadvisorError, NeedsRootError
from initadvisor.core.estimates import Certainty
from initadvisor.core.settings import Setting
from initadvisor.lab.observing import Unseen
from initadvisor.measure.measure import measure
from initadvisor.records.boot import RecordSource, RejectionReason
from initadvisor.records.boot_class import command_line_sha256, comparable_command_line
from initadvisor.records.boot_start import BootMethod
from initadvisor.records.marks import KernelBoot, Waiting
from initadvisor.records.read_interval import IntervalSource, NoInterval, ReadInterval
from tests.fixtures.booted import IMAGE_BYTES, RELEASE, Booted
from tests.fixtures.journals import MACHINE_ID, Boot

if TYPE_CHECKING:
    from pathlib import Path
    from typing import IO

    from initadvisor.records.boot import BootRecord

from tests.fixtures.measured_boots import ended, kernel, measured


def running(machine: Booted) -> BootRecord:
    """Measure the running boot."""
    [record] = measured(machine).records
    return record


def test_an_ordinary_boot_is_told_in_full(machine: Booted) -> None:
    machine.systemd_boot()
    machine.initramfs_tools()
    image = machine.image()
    machine.loaded(IMAGE_BYTES)
    record = running(machine)
    assert (record.boot_id, record.source) == (machine.boot.boot_id, RecordSource.UNIT)
    assert record.machine == machine_name(MACHINE_ID)
    assert record.started_at == datetime.fromtimestamp(machine.boot.started_us / 1e6, tz=UTC)
    assert (record.start.method, record.start.certainty) == (
        BootMethod.SYSTEMD_BOOT,
        Certainty.CERTAIN,
    )
    assert (record.unpack_us, record.begin_to_init_us) == (200_000, 300_000)
    assert (record.shadow.waiting, record.shadow.shadow_us) == (Waiting.WAITED, 50_000)
    assert isinstance(record.read, ReadInterval)
    assert (record.read.source, record.read_us) == (IntervalSource.EXEC_MINUS_INIT, 900_000)
    assert (record.attribution.certainty, record.setting) == (
        Certainty.CERTAIN,
        Setting.parse("zstd -19"),
    )
    assert record.image is not None
    assert record.image.path == str(image)
    assert record.image.sha256 == hashlib.sha256(image.read_bytes()).hexdigest()
    assert record.loaded_bytes == IMAGE_BYTES
    assert record.boot_class.virtualisation == "none"
    assert record.boot_class.kernel == f"{RELEASE} #1 SMP Debian 6.1"
    assert [phase.duration_us for phase in record.phases] == [
        *(5_000_000, 900_000),
        *(3_000_000, 6_000_000),
    ]
    assert record.rejections == ()
    assert record.kernel_counts
    assert record.loader_counts


def test_the_command_line_itself_is_not_kept(machine: Booted) -> None:
    record = running(machine)
    assert record.timestamps.command_line is None
    assert record.boot_class.command_line_sha256 is not None
    line = comparable_command_line((machine.root / "proc/cmdline").read_text())
    guessed = hashlib.sha256(line.encode()).hexdigest()  # what others could compare with it
    assert record.boot_class.command_line_sha256 != guessed
    assert record.boot_class.command_line_sha256 == command_line_sha256(
        line, key=command_line_key(MACHINE_ID)
    )


def test_a_boot_is_recorded_once_and_the_journal_told_once(
    machine: Booted, told: list[BootRecord], tmp_path: Path
) -> None:
    host = machine.host()
    first = measure(host, observer=Unseen())
    before = (tmp_path / "state/initadvisor.sqlite").read_bytes()
    again = measure(host, observer=Unseen())
    assert first.new == {machine.boot.boot_id}
    assert again.new == frozenset()
    assert (tmp_path / "state/initadvisor.sqlite").read_bytes() == before
    assert told == list(first.records)


def test_a_dry_run_keeps_and_tells_nothing(
    machine: Booted, told: list[BootRecord], tmp_path: Path
) -> None:
    machine.earlier = [Boot(number=1).ordinary()]
    result = measured(machine, dry_run=True, backfill=True)
    assert len(result.records) == len(result.new) == 2
    assert told == []
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("ring", "unpack_us"),
    [
        (kernel(111_000), 111_000),  # both have all: the ring may tell which task said what
        (kernel(None), 200_000),
        (kernel(111_000, missed=5), 200_000),
        (kernel(111_000, release=None), 200_000),
    ],
)
def test_the_ring_or_the_journal_is_used_whichever_has_more(
    machine: Booted, monkeypatch: pytest.MonkeyPatch, ring: KernelBoot, unpack_us: int
) -> None:
    monkeypatch.setattr(record_module, "running_boot", lambda _host: ring)
    assert running(machine).unpack_us == unpack_us


def test_without_a_journal_the_ring_is_enough(
    machine: Booted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_module, "running_boot", lambda _host: kernel(111_000))
    machine.boot = Boot(number=5)
    host = machine.host()
    machine.identify(Boot(number=77))
    [record] = measure(host, observer=Unseen()).records
    assert (record.boot_id, record.unpack_us) == (Boot(number=77).boot_id, 111_000)
    assert record.reboot_gap.reason == "the journal has no boot before this one"


def test_without_any_message_a_boot_is_recorded_as_no_sample(machine: Booted) -> None:
    host = machine.host()
    machine.identify(Boot(number=77))
    [record] = measure(host, observer=Unseen()).records
    assert record.rejections == (RejectionReason.NO_MESSAGES,)
    assert "cannot read the kernel's messages" in record.notes[0]


def test_where_no_message_may_be_read_that_is_said(
    machine: Booted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(_host: object) -> KernelBoot:
        msg = "cannot read the kernel's messages"
        raise NeedsRootError(msg)

    monkeypatch.setattr(record_module, "running_boot", forbidden)
    host = machine.host()
    [record] = measure(host, observer=Unseen()).records  # the journal has them
    assert record.notes == ("cannot read the kernel's messages",)
    assert (record.unpack_us, record.rejections) == (200_000, ())
    machine.identify(Boot(number=77))
    with pytest.raises(NeedsRootError, match="no journal that may be read has them") as raised:
        measure(host, observer=Unseen())
    assert raised.value.hint is not None
    assert "group systemd-journal" in raised.value.hint


def test_without_an_id_boots_cannot_be_told_apart(machine: Booted) -> None:
    host = machine.host()
    (machine.root / "proc/sys/kernel/random/boot_id").unlink()
    with pytest.raises(InitadvisorError, match="no telling this boot from others"):
        measure(host, observer=Unseen())


def test_the_gap_to_the_boot_before_is_kept_where_clocks_are_right(machine: Booted) -> None:
    before = ended(Boot(number=8).ordinary())
    last_us = before.started_us + before.entries[-1].at_us
    machine.boot = ended(Boot(number=9, start_us=last_us + 23_000_000).ordinary(), "none.target")
    machine.earlier = [before]
    assert running(machine).reboot_gap.duration_us == 23_000_000


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        (Boot(number=8).ordinary(), [], "not known to have ended"),
        (ended(Boot(number=8).ordinary(), "poweroff.target"), [], "did not end by a reboot"),
        (ended(Boot(number=8).ordinary()), [], "clock of this boot is not synchronised"),
        (ended(Boot(number=8).ordinary()), ["PM: suspend exit"], "slept"),
    ],
)
def test_why_there_is_no_gap_is_kept_otherwise(
    machine: Booted, before: Boot, now: list[str], words: str
) -> None:
    machine.earlier = [before]
    for message in now:
        machine.boot.kernel(90_000_000, message)
    gap = running(machine).reboot_gap
    assert gap.duration_us is None
    assert words in gap.reason


def test_a_kexec_is_told_by_the_kernel_by_the_shutdown_before_or_by_the_loader_s_times(
    machine: Booted,
) -> None:
    machine.systemd_boot()
    host = machine.host()
    [first] = measure(host, observer=Unseen()).records
    assert first.rejections == ()
    machine.identify(Boot(number=10))
    machine.journal(machine.boot, Boot(number=10).ordinary())
    [same_times] = measure(host, observer=Unseen()).records
    assert same_times.rejections == (RejectionReason.KEXEC,)
    machine.systemd_boot(init_us=6_000_000, exec_us=6_800_000)
    machine.identify(Boot(number=11))
    machine.journal(ended(Boot(number=10).ordinary(), "kexec.target"), Boot(number=11).ordinary())
    [by_shutdown] = measure(host, observer=Unseen()).records
    assert by_shutdown.rejections == (RejectionReason.KEXEC,)
    machine.write("/proc/sys/kernel/bootloader_type", "208\n")  # 0xD0
    machine.identify(Boot(number=12))
    machine.journal(Boot(number=12).ordinary())
    [by_kernel] = measure(host, observer=Unseen()).records
    assert by_kernel.start.method is BootMethod.KEXEC
    assert RejectionReason.KEXEC in by_kernel.rejections


def test_circumstances_that_make_a_boot_no_sample_are_kept(machine: Booted) -> None:
    machine.systemd_boot()
    machine.variable("LoaderTimeMenuUSec", "5100000")
    machine.boot.manager("Reached.", UNIT="emergency.target", JOB_RESULT="done")
    machine.boot.kernel(70_000_000, "PM: hibernation: hibernation exit")
    host = machine.host()
    machine.runner.answer("systemctl show", "SoftRebootsCount=1\n")
    [record] = measure(host, observer=Unseen()).records
    assert set(record.rejections) == {
        *(RejectionReason.EMERGENCY, RejectionReason.HIBERNATION),
        *(RejectionReason.SOFT_REBOOT, RejectionReason.MENU),
    }


def test_what_is_wrong_with_a_source_is_noted(machine: Booted) -> None:
    machine.systemd_boot()
    machine.variable("LoaderTimeExecUSec", "soon")
    record = running(machine)
    assert isinstance(record.read, NoInterval)
    assert "LoaderTimeExecUSec: is no time in microseconds: 'soon'" in record.notes


def test_only_images_that_fit_are_read(machine: Booted, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def digest(_file: IO[bytes], *, offset: int, size_bytes: int, once: bool) -> str:
        assert (offset, once) == (0, True)
        read.append(size_bytes)
        return "d" * 64

    monkeypatch.setattr("initadvisor.measure.known_images.sha256_of", digest)
    machine.initramfs_tools()
    machine.image()
    machine.image("6.1.0-43-amd64", size_bytes=1000)
    machine.loaded(IMAGE_BYTES)
    assert running(machine).image is not None
    assert read == [IMAGE_BYTES]
