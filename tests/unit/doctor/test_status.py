"""The status says what is configured, what is pending and what is kept, and what it cannot say."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from initadvisor.apply.apply import ApplyChoices
from initadvisor.apply.policy_log import (
    GivenAdvice,
    PolicyChange,
    note_advice,
    note_refusal,
    record_change,
)
from initadvisor.apply.rollback import plan_rollback, rollback
from initadvisor.bootloaders.entry import OneShotState
from initadvisor.campaign.campaign import Campaign, CampaignState
from initadvisor.campaign.record import write_campaign
from initadvisor.core.codecs import Codec
from initadvisor.core.config import Policy
from initadvisor.core.errors import NeedsRootError
from initadvisor.core.settings import Setting
from initadvisor.decide.cost import Outcome
from initadvisor.doctor import loop_stages
from initadvisor.doctor import status as looking
from initadvisor.doctor.loop_stages import LoopStage
from initadvisor.doctor.status import status
from initadvisor.transaction import backups as kept_files
from initadvisor.transaction.log import own_transactions
from initadvisor.transaction.transaction import TransactionState
from tests.fakes.observers import Watching
from tests.fixtures.campaigns import GROUND, arming
from tests.fixtures.dracut_machine import (
    CONFIG,
    IMAGE,
    applied_setting,
    image,
    make_appliable,
    snapshot,
)

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.bootloaders.entry import EntryKind
    from tests.fakes.boot_loader import FakeLoader
    from tests.fixtures.hosts import Machine

_ZSTD = Setting(Codec.ZSTD)


@pytest.fixture
def appliable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Machine, FakeLoader]:
    """A machine on which zstd can be applied, and its boot loader."""
    return make_appliable(tmp_path, monkeypatch)


@pytest.fixture
def machine(appliable: tuple[Machine, FakeLoader]) -> Machine:
    """The machine."""
    return appliable[0]


def test_a_machine_to_which_nothing_was_done(machine: Machine) -> None:
    before = snapshot(machine)
    found = status(machine)
    assert (found.generator, found.image) == ("dracut", machine.path(IMAGE))
    assert found.configured is not None
    assert found.configured.setting == Setting(Codec.GZIP)
    assert (found.transactions, found.pending, found.backups, found.notes) == ((), (), (), ())
    assert "was not measured" in found.running.reason
    assert (found.entries.loader, found.entries.trial, found.entries.previous) == (
        ("fake", None, None)
    )
    assert snapshot(machine) == before


def reached(machine: Machine) -> dict[str, tuple[int | None, str]]:
    return {found.stage: (found.at_s, found.words) for found in status(machine).stages}


def test_how_far_the_daemon_has_come_is_told_from_what_each_stage_leaves(machine: Machine) -> None:
    stages = reached(machine)
    assert list(stages) == list(LoopStage)
    assert set(stages.values()) == {(None, "")}
    advice = GivenAdvice(
        outcome=Outcome.UNDECIDED,
        setting="gzip",
        today="gzip",
        kernel_release="6.1.0",
        words="keep gzip for now",
        at_s=200,
        since_s=200,
    )
    note_advice(machine, advice)
    note_refusal(machine, Policy.TRY, "no boots are left", at_s=200)
    stages = reached(machine)
    assert stages[LoopStage.RANKED] == (200, "keep gzip for now")
    assert stages[LoopStage.TRIED] == (None, "nothing is tried: no boots are left")
    assert stages[LoopStage.DECIDED] == (None, "")
    kept = replace(advice, outcome=Outcome.KEEP, at_s=300, since_s=300)
    assert [note_advice(machine, a) for a in (kept, replace(kept, at_s=400, since_s=400))] == [
        True,
        False,
    ]
    note_refusal(machine, Policy.TRY, "", at_s=400)
    default = replace(GROUND, image=f"{IMAGE}")
    write_campaign(
        machine,
        Campaign(
            number=1,
            state=CampaignState.ARMED,
            most_boots=5,
            by_policy=True,
            default_boot=default,
            trial_boots=(replace(arming(), release=default.release, at_s=350),),
            reason="the next boot is of lz4 -9",
        ),
    )
    applied_setting(machine, _ZSTD)
    [done] = own_transactions(machine)
    record_change(
        machine,
        PolicyChange(after="zstd", kernel_release="6.1.0", decided_at_s=1, number=done.number),
    )
    stages = reached(machine)
    assert stages[LoopStage.TRIED] == (
        350,
        "1 of at most 6 boots of Linux 6.1.0; armed: the next boot is of lz4 -9",
    )
    assert stages[LoopStage.DECIDED] == (300, "keep gzip")
    assert stages[LoopStage.APPLIED] == (done.began_at_s, f"transaction 1 ({done.purpose})")
    assert stages[LoopStage.WATCHED][1].startswith("boots since transaction 1")
    plan = plan_rollback(machine)
    assert plan is not None
    rollback(machine, plan, reason="boots were 400 ms slower", observer=Watching())
    stages = reached(machine)
    assert stages[LoopStage.APPLIED] == (None, "")
    assert stages[LoopStage.WATCHED][1] == "transaction 1 was undone: boots were 400 ms slower"


@pytest.mark.parametrize(("count", "words"), [(1, "1 candidate"), (2, "2 candidates")])
def test_the_candidates_of_the_latest_image_are_counted(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, count: int, words: str
) -> None:
    built = SimpleNamespace(image_sha256="a", image="/boot/initrd.img", built_at_ns=9 * 10**9)
    monkeypatch.setattr(
        loop_stages, "Cache", lambda _host: SimpleNamespace(all=lambda: (built,) * count)
    )
    assert reached(machine)[LoopStage.BUILT] == (9, f"{words} of /boot/initrd.img")


def test_what_was_applied_and_is_kept(machine: Machine) -> None:
    size_bytes = machine.path(IMAGE).stat().st_size
    done = applied_setting(machine, _ZSTD)
    found = status(machine)
    assert found.configured is not None
    assert found.configured.setting == _ZSTD
    kept = {backup.of: backup for backup in found.backups}
    assert kept.keys() == {IMAGE, CONFIG}
    assert (kept[IMAGE].size_bytes, kept[IMAGE].current) == (size_bytes, True)
    assert found.entries.previous == done.transaction.files[0].backup
    assert found.pending == ()
    machine.path(IMAGE).write_bytes(image(Codec.ZSTD, extra="etc"))
    assert not {b.of: b for b in status(machine).backups}[IMAGE].current
    machine.path(str(done.transaction.files[0].backup)).unlink()
    (note,) = status(machine).notes
    assert "is gone" in note


def test_what_later_changes_replaced_is_gone_back_to_over_them(machine: Machine) -> None:
    for setting in (_ZSTD, Setting(Codec.LZ4), Setting(Codec.GZIP)):
        applied_setting(machine, setting)
    found = {(b.transaction, b.of): b.current for b in status(machine).backups}
    assert found == dict.fromkeys(((n, of) for n in (1, 2, 3) for of in (IMAGE, CONFIG)), True)
    machine.path(IMAGE).write_bytes(image(Codec.GZIP, extra="etc"))
    found = {(b.transaction, b.of): b.current for b in status(machine).backups}
    assert {of for (_, of), current in found.items() if current} == {CONFIG}


def test_what_others_replaced_in_between_is_told(machine: Machine) -> None:
    applied_setting(machine, _ZSTD)
    machine.path(IMAGE).write_bytes(image(Codec.ZSTD, extra="etc"))
    applied_setting(
        machine, Setting(Codec.LZ4), ApplyChoices(immediate=True, accept_content_changes=True)
    )
    found = {(b.transaction, b.of): b.current for b in status(machine).backups}
    assert {key for key, current in found.items() if not current} == {(1, IMAGE)}


def test_what_is_kept_is_told_from_what_was_kept(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = applied_setting(machine, _ZSTD)
    backups = {change.path: machine.path(str(change.backup)) for change in done.transaction.files}
    assert {(b.compared, b.problem) for b in status(machine).backups} == {(True, "")}
    flipped = bytearray(backups[IMAGE].read_bytes())
    flipped[-1] ^= 1
    backups[IMAGE].write_bytes(flipped)
    backups[CONFIG].write_text("longer than it was, and another one\n")
    found = {b.of: b for b in status(machine).backups}
    assert found[IMAGE].problem == "it has another content"
    assert "it has 36 bytes, not" in found[CONFIG].problem
    # Large files are read only when that is asked for; their size is looked at always.
    monkeypatch.setattr(kept_files, "_SMALL_BYTES", 100)
    found = {b.of: b for b in status(machine).backups}
    assert (found[IMAGE].compared, found[IMAGE].problem) == (False, "")
    assert {b.of: b for b in status(machine, check=True).backups}[IMAGE].problem
    backups[IMAGE].write_bytes(flipped[:-1])
    assert "bytes, not" in {b.of: b for b in status(machine).backups}[IMAGE].problem
    backups[IMAGE].unlink()
    backups[IMAGE].symlink_to(machine.path(IMAGE))
    assert "no ordinary file" in {b.of: b for b in status(machine).backups}[IMAGE].problem


def test_what_waits_for_a_boot(machine: Machine) -> None:
    applied_setting(machine, _ZSTD, ApplyChoices())
    found = status(machine)
    assert [transaction.state for transaction in found.pending] == [TransactionState.PROVING]
    assert found.entries.trial == IMAGE
    assert found.entries.next_boot is not None
    assert found.entries.next_boot.state is OneShotState.OURS
    assert found.backups == ()


def test_what_was_undone(machine: Machine) -> None:
    applied_setting(machine, _ZSTD)
    plan = plan_rollback(machine)
    assert plan is not None
    rollback(machine, plan, observer=Watching())
    found = status(machine)
    assert [(t.state, t.reason) for t in found.transactions] == [
        (TransactionState.UNDONE, "rolled back")
    ]
    assert found.backups == ()
    assert found.entries.previous is None


def test_without_root_the_boot_loader_stays_unknown(
    machine: Machine, appliable: tuple[Machine, FakeLoader], monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(_host: object, _kind: EntryKind) -> str | None:
        msg = "cannot look"
        raise NeedsRootError(msg)

    monkeypatch.setattr(type(appliable[1]), "entry", lambda _self, host, kind: closed(host, kind))
    assert "only root" in status(machine).entries.problem


def test_a_machine_without_a_generator(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "detect_generator", lambda _host: None)
    found = status(machine)
    assert (found.generator, found.configured) == (None, None)
    assert "no generator" in found.notes[0]
