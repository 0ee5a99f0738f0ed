"""Journals of real guests, recorded by tests/vm/journal_fixtures.py beside their serial consoles.

The guests ran without KVM on a busy machine: the times are of no interest, that all of them are
found, and told as the console did, is.
"""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from initadvisor.boots.journal import opened_journal
from initadvisor.boots.journal_files import JournalSource
from initadvisor.host import Host
from initadvisor.lab.observing import Unseen
from initadvisor.measure.measure import measure_journal
from initadvisor.records.boot import RejectionReason
from initadvisor.records.marks import WaitEvidence, Waiting
from tests.fakes.runner import FakeRunner
from tests.fixtures.debian import Suite
from tests.fixtures.journals import write_exported
from tests.vm.journal_fixtures import DIRECTORY, PLANS

if TYPE_CHECKING:
    from initadvisor.boots.journal import JournalBoot
    from initadvisor.records.boot import BootRecord

WAITERS = {
    Suite.BOOKWORM: "crypto_kdf108_init",
    Suite.TRIXIE: "crypto_kdf108_init",
    Suite.SID: "load_system_certificate_list",
}
"""Who waits first in these kernels, as initcall_debug shows."""

REJECTED = {
    "retained": (RejectionReason.RETAINED,),
    "kexec-2": (RejectionReason.KEXEC,),
    "soft-reboot": (RejectionReason.SOFT_REBOOT,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The boots of a guest: as they were planned and witnessed, and as they are read."""

    suite: Suite
    release: str
    facts: list[dict[str, Any]]
    boots: list[JournalBoot]
    records: dict[str, BootRecord]

    @property
    def pairs(self) -> list[tuple[dict[str, Any], JournalBoot]]:
        return list(zip(self.facts, self.boots, strict=True))


@pytest.fixture(scope="module", params=PLANS)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    suite: Suite = request.param
    directory = tmp_path_factory.mktemp(suite)
    exported = lzma.decompress((DIRECTORY / f"{suite}.export.xz").read_bytes())
    source = JournalSource(files=(write_exported(directory / "system.journal", exported),))
    host = Host(root=directory, runner=FakeRunner())
    with opened_journal(host, source) as journal:
        assert journal.warnings == []
        boots = [journal.read(span) for span in journal.spans()]
    measured = measure_journal(host, source, observer=Unseen(), dry_run=True)
    truth = json.loads((DIRECTORY / f"{suite}.json").read_text())
    return Recorded(
        suite=suite,
        release=truth["release"],
        facts=truth["boots"],
        boots=boots,
        records={record.boot_id: record for record in measured.records},
    )


def test_every_boot_is_found_in_its_order(recorded: Recorded) -> None:
    assert [boot.span.boot_id for boot in recorded.boots] == [
        fact["boot_id"] for fact in recorded.facts
    ]
    assert len(recorded.records) == len(recorded.facts)
    assert len(recorded.facts) >= len(PLANS[recorded.suite])


def test_the_marks_are_those_of_the_console(recorded: Recorded) -> None:
    for fact, boot in recorded.pairs:
        marks = boot.kernel.timestamps
        told = (marks.begin_us, marks.end_us, marks.run_init_us, marks.loaded_kib)
        names = ("begin_us", "end_us", "run_init_us", "freed_kib")
        assert told == tuple(fact[name] for name in names), fact["name"]
        assert (marks.run_program, marks.missed_messages) == ("/init", 0)


def test_the_kernel_and_what_it_was_told_are_known(recorded: Recorded) -> None:
    for fact, boot in recorded.pairs:
        marks = boot.kernel.timestamps
        assert marks.release == recorded.release
        assert marks.version is not None
        assert marks.version.startswith("#1 SMP PREEMPT_DYNAMIC Debian")
        assert marks.command_line is not None
        assert marks.command_line_whole
        assert marks.command_line.endswith(fact["options"])
        assert marks.machine.product is not None


def test_only_what_was_spoilt_on_purpose_is_rejected(recorded: Recorded) -> None:
    for fact in recorded.facts:
        record = recorded.records[fact["boot_id"]]
        assert record.rejections == REJECTED.get(fact["name"], ()), fact["name"]


def test_initcalls_tell_who_waited(recorded: Recorded) -> None:
    (boot,) = (boot for fact, boot in recorded.pairs if fact["name"] == "initcalls")
    seen, marks = boot.kernel.shadow, boot.kernel.timestamps
    assert (seen.waiting, seen.evidence) == (Waiting.WAITED, WaitEvidence.INITCALLS)
    assert seen.waiter == WAITERS[recorded.suite]
    assert seen.shadow_us is not None
    assert marks.unpack_us is not None
    assert 0 < seen.shadow_us < marks.unpack_us
    assert seen.rest_us == marks.slack_us


def test_no_boot_is_said_to_have_hidden_what_its_kernel_waits_for(recorded: Recorded) -> None:
    """The messages alone do not always tell that it waited; none may tell that it did not."""
    waited = {WaitEvidence.LINES: 0, WaitEvidence.INITCALLS: 0}
    for fact, boot in recorded.pairs:
        seen = boot.kernel.shadow
        if "initramfs_async=0" in fact["options"]:
            assert (seen.waiting, seen.shadow_us) == (Waiting.SYNCHRONOUS, 0)
            assert seen.rest_us == fact["run_init_us"] - fact["end_us"]
            continue
        assert seen.waiting in {Waiting.WAITED, Waiting.UNKNOWN}, fact["name"]
        if seen.waiting is Waiting.WAITED:
            assert seen.evidence is not None
            assert seen.shadow_us is not None
            waited[seen.evidence] += 1
            assert seen.shadow_us < fact["end_us"] - fact["begin_us"]
            assert seen.rest_us == fact["run_init_us"] - fact["end_us"]
    assert all(waited.values())


def test_the_manager_s_account_is_found(recorded: Recorded) -> None:
    for _, boot in recorded.pairs:
        startup = boot.startup
        assert startup is not None
        assert startup.kernel_us is not None
        assert startup.userspace_us is not None
        assert startup.firmware_us is not None
        assert startup.loader_us is not None
        assert min(startup.firmware_us, startup.loader_us) > 0
        assert startup.kernel_us > (boot.kernel.timestamps.run_init_us or 0) / 2
