"""A boot is armed for one kernel, one initramfs and one command line, and for no other."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from initadvisor.apply import proving
from initadvisor.bootloaders.entry import EntryKind, OneShot, OneShotState
from initadvisor.campaign.campaign import CampaignState
from initadvisor.core.errors import InitadvisorError
from initadvisor.daemon.notes import Job, Note, NoteReason, Task, jobs_of
from initadvisor.daemon.planning import TERMS, Needs
from initadvisor.daemon.work import AdvisorsWork
from initadvisor.records.trial_outcome import TrialOutcome
from initadvisor.transaction.transaction import ArmedBoot, ProofStage, TransactionState
from initadvisor.trial import binding, campaigns
from initadvisor.trial.markers import note_rehearsed
from tests.fakes.boot_programs import KEPT, load_option
from tests.fixtures.campaign_machine import Campaigning, make_campaigning
from tests.fixtures.loader_machines import LOADERS, PARTITION, armed_machine
from tests.fixtures.provable_machine import IMAGE, OLD, Provable, make_provable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from initadvisor.bootloaders.entry import TrialPlan
    from tests.fixtures.booted import Booted
    from tests.fixtures.loader_machines import Machine

KERNEL = "/boot/vmlinuz"


@pytest.fixture
def provable(machine: Booted, monkeypatch: pytest.MonkeyPatch) -> Provable:
    """A machine whose loader was never tried."""
    return make_provable(machine, monkeypatch)


@pytest.fixture
def ready(machine: Booted, monkeypatch: pytest.MonkeyPatch) -> Campaigning:
    """A machine whose loader was tried, with candidates."""
    made = make_campaigning(machine, monkeypatch)
    note_rehearsed(made.host, made.provable.loader.NAME)
    return made


def upgrade(provable: Provable) -> str:
    """Replace kernel and image under their names, as a distribution without versions does."""
    provable.host.path(KERNEL).write_bytes(b"the next kernel")
    provable.host.path(IMAGE).write_bytes(b"its image")
    return KERNEL


def another_kernel(provable: Provable) -> str:
    """Replace the kernel only."""
    provable.host.path(KERNEL).write_bytes(b"another kernel")
    return KERNEL


def no_kernel(provable: Provable) -> str:
    """Remove the kernel."""
    provable.host.path(KERNEL).unlink()
    return KERNEL


def another_image(provable: Provable) -> str:
    """Rebuild today's image."""
    provable.host.path(IMAGE).write_bytes(b"rebuilt")
    return IMAGE


def another_trial_image(provable: Provable) -> str:
    """Replace what the armed entry loads."""
    armed = provable.latest().armed_boot
    assert armed is not None
    provable.host.path(armed.image).write_bytes(b"not what was verified")
    return armed.image


def another_command_line(provable: Provable) -> str:
    """Give the default entry other options."""
    provable.loader.options = "root=/dev/sdb2"
    return "command line"


def another_armed_entry(provable: Provable) -> str:
    """Edit the armed entry, and nothing else."""
    plan = provable.loader.entries[EntryKind.TRIAL]
    provable.loader.entries[EntryKind.TRIAL] = replace(plan, text=f"{plan.text} single")
    return "the armed entry was changed"


def no_armed_entry(provable: Provable) -> str:
    """Remove the armed entry."""
    del provable.loader.entries[EntryKind.TRIAL]
    return "the armed entry was changed or removed"


def no_certain_default(provable: Provable) -> str:
    """Have nothing say which entry boots by default."""
    provable.loader.unclear = "nothing says what boots"
    return "nothing says what boots"


CHANGES = (
    upgrade,
    another_kernel,
    no_kernel,
    another_image,
    another_trial_image,
    another_command_line,
    another_armed_entry,
    no_armed_entry,
    no_certain_default,
)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("rehearsed", [True, False], ids=["proof", "rehearsal"])
def test_a_proving_boot_is_withdrawn_when_what_it_was_armed_for_changes(
    provable: Provable, change: Callable[[Provable], str], rehearsed: bool
) -> None:
    if rehearsed:
        note_rehearsed(provable.host, provable.loader.NAME)
    provable.arm()
    assert "waits" in proving.settle(provable.host)[0]
    named = change(provable)
    [said] = proving.settle(provable.host)
    assert "is undone" in said
    assert named in said
    assert not provable.loader.is_armed
    assert provable.loader.entries == {}
    assert provable.latest().state is TransactionState.UNDONE


@pytest.mark.parametrize("change", [upgrade, another_kernel, another_command_line])
def test_a_rehearsal_that_passed_arms_no_image_of_what_changed_meanwhile(
    provable: Provable, change: Callable[[Provable], str]
) -> None:
    provable.arm()
    provable.reboot()
    provable.measure()
    change(provable)
    [said] = proving.settle(provable.host)
    assert "is undone" in said
    assert not provable.loader.is_armed


@pytest.mark.parametrize(
    "change", [upgrade, another_kernel, another_command_line, another_armed_entry]
)
def test_what_booted_well_is_not_installed_beside_another_kernel(
    provable: Provable, change: Callable[[Provable], str]
) -> None:
    note_rehearsed(provable.host, provable.loader.NAME)
    provable.arm()
    provable.reboot()
    provable.measure()
    change(provable)
    [said] = proving.settle(provable.host)
    assert "is undone" in said
    assert provable.installed()[0] == (b"its image" if change is upgrade else OLD)
    assert provable.latest().state is TransactionState.UNDONE


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_taken_back_is_not_armed_again_for_something_else(
    provable: Provable, change: Callable[[Provable], str]
) -> None:
    note_rehearsed(provable.host, provable.loader.NAME)
    provable.arm()
    assert proving.take_back(provable.host)
    change(provable)
    [said] = proving.settle(provable.host)
    assert "is undone" in said
    assert not provable.loader.is_armed


@pytest.mark.parametrize(
    "change",
    [another_kernel, another_image, another_command_line, another_armed_entry, no_kernel],
)
def test_a_campaign_s_boot_is_withdrawn_without_building_anything(
    ready: Campaigning, change: Callable[[Provable], str]
) -> None:
    ready.start()
    assert ready.provable.loader.is_armed
    change(ready.provable)
    campaigns.advance(ready.host, may_build=False)
    [trial_boot, *_] = ready.record.trial_boots
    assert trial_boot.outcome is TrialOutcome.NOT_TRIED
    assert ready.prepared_times == 1
    if ready.record.state is not CampaignState.ARMED:
        ready.require_nothing_armed()


def test_a_campaign_s_boot_of_another_image_than_was_verified_is_withdrawn(
    ready: Campaigning,
) -> None:
    ready.start()
    [trial_boot] = ready.record.trial_boots
    ready.host.path(trial_boot.armed_boot.image).write_bytes(b"not what was verified")
    campaigns.advance(ready.host, may_build=False)
    [first, *_] = ready.record.trial_boots
    assert first.outcome is TrialOutcome.NOT_TRIED


def test_microcode_beside_the_image_is_part_of_it(provable: Provable) -> None:
    loader = provable.loader
    microcode = provable.host.path("/boot/ucode.img")
    microcode.write_bytes(b"microcode")
    loader.before = ("/boot/ucode.img",)
    note_rehearsed(provable.host, loader.NAME)
    provable.arm()
    assert "waits" in proving.settle(provable.host)[0]
    microcode.write_bytes(b"newer microcode")
    [said] = proving.settle(provable.host)
    assert "/boot/ucode.img was changed" in said
    assert not loader.is_armed


def test_a_record_that_does_not_say_what_was_armed_is_not_followed(provable: Provable) -> None:
    waiting = provable.arm()
    assert waiting.armed_boot is not None
    bound = waiting.armed_boot.bound_to
    assert bound is not None
    for recorded in (None, replace(bound, armed_entry="")):
        without = replace(waiting.armed_boot, bound_to=recorded)
        assert "not recorded" in binding.binding_fault(provable.host, without)


@pytest.mark.parametrize("name", LOADERS)
def test_whatever_is_changed_in_an_armed_entry_is_seen(tmp_path: Path, name: str) -> None:
    loader, make = LOADERS[name]
    machine = make(tmp_path)
    plan = loader.trial(machine.host, machine.request)
    armed = ArmedBoot(
        stage=ProofStage.PROOF,
        loader=loader.NAME,
        trial="t1",
        armed_in_boot="a" * 32,
        image=machine.request.image,
        sha256="0" * 64,
        bound_to=binding.binding_of(machine.host, plan),
    )
    assert "armed entry" in binding.binding_fault(machine.host, armed)
    armed_machine(loader, machine)
    assert binding.binding_fault(machine.host, armed) == ""
    for path, content in entry_edits(machine, plan):
        before = path.read_bytes()
        path.write_bytes(content)
        assert "armed entry" in binding.binding_fault(machine.host, armed), content
        path.write_bytes(before)
    assert binding.binding_fault(machine.host, armed) == ""


def entry_edits(machine: Machine, plan: TrialPlan) -> Iterator[tuple[Path, bytes]]:
    """Yield what somebody could make of our entry: of a text every byte, of an option each part."""
    path, text = machine.host.path(plan.target), plan.text.encode()
    if path.is_file():
        content = path.read_bytes()
        start = content.index(text)
        for index in range(start, start + len(text)):
            yield path, content[:index] + bytes([content[index] ^ 1]) + content[index + 1 :]
        yield path, content.replace(text, text + b"# more\n")
        return
    path = machine.programs.variable("Boot0001")
    images = re.findall(r"initrd=\S+", plan.options)
    parts = (plan.title, PARTITION, plan.default.kernel.named, plan.options)
    label, partition, program, options = parts
    assert path.read_bytes() == KEPT + load_option(*parts)
    for others in (
        (label.replace("t1", "t2"), partition, program, options),
        (label, partition.replace("1", "2"), program, options),
        (label, partition, r"\another", options),
        (label, partition, program, f"{options} single"),
        (label, partition, program, options.removesuffix(plan.extra_cmdline[-1])),
        (label, partition, program, options.replace(images[0], r"initrd=\another")),
        (label, partition, program, options.replace(images[-1], r"initrd=\another")),
    ):
        yield path, KEPT + load_option(*others)
    yield path, KEPT + load_option(*parts, active=False)


def test_a_package_manager_at_work_has_nothing_armed(
    provable: Provable, monkeypatch: pytest.MonkeyPatch
) -> None:
    note_rehearsed(provable.host, provable.loader.NAME)
    provable.arm()
    busy = "dpkg is at work"
    with monkeypatch.context() as patch:
        patch.setattr(proving, "busy_package_managers", lambda _host: (busy,))
        [said] = proving.settle(provable.host)
    assert "is not armed for the time being: " in said
    assert not provable.loader.is_armed
    assert "armed for the next boot" in proving.settle(provable.host)[0]
    assert provable.loader.is_armed


def test_a_campaign_has_nothing_armed_while_a_package_manager_is_at_work(
    ready: Campaigning,
) -> None:
    ready.start()
    ready.busy = ("dpkg is at work",)
    campaigns.advance(ready.host, may_build=False)
    assert not ready.provable.loader.is_armed
    with pytest.raises(InitadvisorError, match="dpkg is at work"):
        campaigns.advance(ready.host, may_build=False)
    assert not ready.provable.loader.is_armed
    ready.busy = ()
    campaigns.advance(ready.host, may_build=False)
    assert ready.provable.loader.is_armed


def test_what_cannot_be_taken_back_is_said(provable: Provable) -> None:
    provable.arm()
    provable.loader.selected = OneShot(state=OneShotState.UNREADABLE, reason="no variables")
    with pytest.raises(InitadvisorError, match="no variables") as caught:
        proving.take_back(provable.host)
    assert "do not reboot" in caught.value.with_hint


def test_a_selection_that_an_earlier_boot_has_left_is_taken_back_and_not_forgiven(
    provable: Provable,
) -> None:
    note_rehearsed(provable.host, provable.loader.NAME)
    provable.arm()
    provable.reboot()
    provable.loader.is_armed = True
    assert proving.take_back(provable.host)
    assert not provable.loader.is_armed
    armed = provable.latest().armed_boot
    assert armed is not None
    assert not armed.taken_back


def test_what_no_readable_record_tells_of_is_taken_back_too(provable: Provable) -> None:
    provable.arm()
    (provable.host.state_dir() / "transactions/000001.json").write_bytes(b"{")
    [said] = proving.take_back(provable.host)
    assert "no boot is armed any more" in said
    assert not provable.loader.is_armed
    assert proving.take_back(provable.host) == ()


def test_what_keeps_a_change_from_being_settled_keeps_no_campaign_armed(
    ready: Campaigning, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_host: object) -> tuple[str, ...]:
        msg = "a record cannot be read"
        raise InitadvisorError(msg)

    ready.start()
    another_kernel(ready.provable)
    monkeypatch.setattr(proving, "settle", fail)
    with pytest.raises(InitadvisorError, match="a record cannot be read"):
        AdvisorsWork(host=ready.host).do(Job(task=Task.SETTLE))
    assert not ready.provable.loader.is_armed


def test_withdrawing_leaves_nothing(provable: Provable) -> None:
    provable.arm()
    [said] = proving.withdraw_all(provable.host, reason="it was withdrawn")
    assert "is undone: it was withdrawn" in said
    assert (provable.loader.is_armed, provable.loader.entries) == (False, {})
    assert proving.withdraw_all(provable.host, reason="again") == ()


def test_withdrawing_ends_a_campaign(ready: Campaigning) -> None:
    ready.start()
    campaigns.withdraw(ready.host, reason="it was withdrawn")
    assert ready.record.state is CampaignState.STOPPED
    ready.require_nothing_armed()
    assert campaigns.withdraw(ready.host, reason="again") == ()


def test_the_daemon_withdraws_it_with_the_first_of_its_jobs(ready: Campaigning) -> None:
    """That one waits for no mains power and no idle processors."""
    assert TERMS[Task.SETTLE].needs is Needs.MANAGERS
    assert all(Job(task=Task.SETTLE) in jobs_of(Note(reason=reason)) for reason in NoteReason)
    ready.start()
    another_kernel(ready.provable)
    AdvisorsWork(host=ready.host).do(Job(task=Task.SETTLE))
    assert not ready.provable.loader.is_armed
    assert ready.record.trial_boots[0].outcome is TrialOutcome.NOT_TRIED
