"""A new image boots once before it is installed, and whatever happens leaves old or new, whole."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from initadvisor.apply import proving
from initadvisor.apply.commit import commit
from initadvisor.apply.proving import arm_proof, settle, take_back, withdraw
from initadvisor.bootloaders.entry import EntryKind, OneShot, OneShotState
from initadvisor.core.errors import InitadvisorError, NeedsRootError, UnsafeError
from initadvisor.core.estimates import Certainty
from initadvisor.core.settings import Setting
from initadvisor.host import Host
from initadvisor.records.boot_start import TRIAL_TAG
from initadvisor.records.trial_outcome import TrialOutcome
from initadvisor.transaction.transaction import ProofStage, TransactionState
from initadvisor.transaction.transactions import pending, transactions
from initadvisor.trial import one_boot
from initadvisor.trial.markers import (
    note_previous,
    note_rehearsed,
    noted_entry,
    previous_noted,
    was_rehearsed,
)
from initadvisor.trial.slot import fill_with_copy, slot_beside
from tests.fixtures.journals import START_US
from tests.fixtures.provable_machine import (
    ACTIVE,
    IMAGE,
    LINE,
    NEW,
    NEW_TEXT,
    NOT_ASKED,
    OLD,
    OLD_TEXT,
    Provable,
    make_provable,
)
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from collections.abc import Callable

    from initadvisor.transaction.transaction import ArmedBoot, Transaction
    from tests.fixtures.booted import Booted

DAY_US = 86_400_000_000
FWUPD = OneShot(state=OneShotState.OTHERS, identifier="Boot0007")


@pytest.fixture
def provable(machine: Booted, monkeypatch: pytest.MonkeyPatch) -> Provable:
    """A machine whose loader was never tried."""
    return make_provable(machine, monkeypatch)


@pytest.fixture
def rehearsed(provable: Provable) -> Provable:
    """A machine whose loader was tried."""
    note_rehearsed(provable.host, provable.loader.NAME)
    return provable


def proof(provable: Provable) -> ArmedBoot:
    """Return what is waited for."""
    found = provable.latest().armed_boot
    assert found is not None
    return found


def require_old(provable: Provable, reason: str) -> None:
    """Require that nothing is left but the reason."""
    latest = provable.latest()
    assert latest.state is TransactionState.UNDONE
    assert reason in latest.reason
    assert provable.installed() == (OLD, OLD_TEXT)
    assert provable.litter() == []
    assert provable.loader.entries == {}
    assert not provable.loader.is_armed
    assert noted_entry(provable.host) is None
    assert settle(provable.host) == ()


@pytest.mark.parametrize(
    "start_us",
    [START_US + 9 * DAY_US, START_US, 86_400_000_000],
    ids=["to an earlier boot's", "before all boots", "to 1970"],
)
def test_a_clock_that_went_back_keeps_no_proof_waiting(provable: Provable, start_us: int) -> None:
    provable.measure()
    provable.arm()
    provable.reboot()
    provable.measure()
    settle(provable.host)
    provable.reboot(start_us=start_us)
    provable.measure()
    assert "is done" in settle(provable.host)[0]
    assert provable.installed() == (NEW, NEW_TEXT)


def test_a_loader_is_tried_with_today_s_image_first(provable: Provable) -> None:
    waiting = provable.arm()
    assert waiting == provable.latest()
    assert waiting.state is TransactionState.PROVING
    found = proof(provable)
    assert (found.stage, found.image) == (ProofStage.REHEARSAL, IMAGE)
    assert found.armed_in_boot == provable.machine.boot.boot_id
    assert f"{TRIAL_TAG}={found.trial}" in found.extra_cmdline
    assert provable.loader.is_armed
    assert provable.loader.boot() == IMAGE


def test_the_new_image_is_installed_after_two_good_boots(provable: Provable) -> None:
    before = provable.measure()
    provable.arm()
    provable.reboot()
    rehearsal = provable.measure()
    [said] = settle(provable.host)
    assert "has the new image armed for the next boot" in said
    assert was_rehearsed(provable.host, provable.loader.NAME)
    second = proof(provable)
    assert second.stage is ProofStage.PROOF
    assert second.image == provable.latest().files[0].staged
    assert provable.installed() == (OLD, OLD_TEXT)

    provable.reboot()
    assert settle(provable.host) == (
        "transaction 1 (zstd to lz4) waits; the proving boot: this boot is its own, but is not "
        "recorded yet",
    )
    trial = provable.measure()
    assert settle(provable.host) == (
        "transaction 1 (zstd to lz4) is done; the proving boot: it booted and is complete",
    )
    assert provable.latest().state is TransactionState.COMMITTED
    assert provable.installed() == (NEW, NEW_TEXT)
    assert set(provable.loader.entries) == {EntryKind.PREVIOUS}
    assert settle(provable.host) == ()

    assert (before.setting, rehearsal.setting) == (Setting.parse("zstd -19"),) * 2
    assert trial.setting == Setting.parse("lz4 -9")
    assert trial.attribution.certainty is Certainty.CERTAIN
    assert before.class_key == rehearsal.class_key == trial.class_key
    assert {argv[0] for argv in provable.machine.runner.argvs} <= {
        "systemctl",
        "systemd-detect-virt",
    }


@pytest.mark.parametrize("cut", [False, True])
def test_a_copy_is_rehearsed_where_nothing_may_lie_beside_today_s_image(
    provable: Provable, monkeypatch: pytest.MonkeyPatch, cut: bool
) -> None:
    """As with Secure Boot on, when an addon has the words."""
    monkeypatch.setattr(
        proving, "fill_with_copy", lambda host, _kernel: fill_with_copy(host, IMAGE)
    )
    monkeypatch.setattr(proving, "ignores_options", lambda _host, _default: True)
    slot = slot_beside(provable.host, IMAGE)
    provable.measure()
    if cut:
        killed(provable, "plan_entry")
        assert provable.host.path(slot).exists()
        settle(provable.host)
        require_old(provable, "interrupted")
        return
    provable.arm()
    assert proof(provable).image == slot
    assert provable.host.path(slot).read_bytes() == OLD
    provable.reboot()
    provable.measure()
    settle(provable.host)
    assert proof(provable).stage is ProofStage.PROOF
    assert proof(provable).image != slot
    assert not provable.host.path(slot).exists()
    provable.reboot()
    provable.measure()
    settle(provable.host)
    assert provable.installed() == (NEW, NEW_TEXT)


def test_a_copy_that_is_selected_stays_until_that_is_taken_back(
    provable: Provable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the record of it is lost, too."""
    monkeypatch.setattr(proving, "ignores_options", lambda _host, _default: True)
    provable.arm()
    assert provable.loader.is_armed
    selected: list[bool] = []

    def cleared(_host: Host, _slot: str) -> None:
        selected.append(provable.loader.is_armed)

    monkeypatch.setattr(proving, "clear_slot", cleared)
    monkeypatch.setattr(proving, "_proving", lambda _host: ())
    monkeypatch.setattr(proving, "_waiting", lambda _host: ())
    settle(provable.host)
    assert selected == [False]


def test_a_loader_that_was_tried_is_armed_with_the_new_image(rehearsed: Provable) -> None:
    rehearsed.arm()
    assert proof(rehearsed).stage is ProofStage.PROOF
    assert rehearsed.loader.boot() == rehearsed.latest().files[0].staged


def test_on_another_machine_with_the_same_disk_it_is_tried_again(rehearsed: Provable) -> None:
    rehearsed.machine.write("/sys/class/dmi/id/product_name", "Another\n")
    rehearsed.arm()
    assert proof(rehearsed).stage is ProofStage.REHEARSAL


def test_nothing_is_done_before_the_reboot(rehearsed: Provable) -> None:
    waiting = rehearsed.arm()
    [said] = settle(rehearsed.host)
    assert "waits; the proving boot: it is armed for the next boot" in said
    assert rehearsed.latest() == waiting
    assert rehearsed.loader.is_armed


def another_entry(provable: Provable) -> None:
    provable.loader.is_armed = False
    provable.reboot()
    provable.measure()


def taken_back(provable: Provable) -> None:
    provable.loader.is_armed = False


def somebody_else(provable: Provable) -> None:
    provable.loader.selected = FWUPD
    provable.loader.is_armed = False


def kept_by_the_loader(provable: Provable) -> None:
    provable.reboot()
    provable.loader.is_armed = True


def other_bytes(provable: Provable) -> None:
    path = provable.host.path(provable.latest().files[0].staged)
    path.write_bytes(NEW[:-1] + b"!")
    provable.reboot()
    provable.measure()


def fails_its_checks(provable: Provable) -> None:
    provable.reboot()
    provable.measure()
    provable.units(complete="ActiveState=inactive\n")
    provable.machine.runner.answer(
        "systemctl list-units", "check.service loaded failed failed Checks\n"
    )


def cannot_unpack(provable: Provable) -> None:
    provable.reboot()
    boot = provable.machine.boot
    boot.kernel(400_000, "rootfs image is not initramfs (broken padding); looks like an initrd")
    boot.entries.insert(3, boot.entries.pop())
    provable.write_journal()
    provable.measure()


def too_soon(
    provable: Provable, *, start_us: int | None = None, later_us: int | None = None
) -> None:
    """Have the trial's boot come up, and another one after it; by these clocks, if told."""
    trial = proof(provable).trial
    provable.reboot(start_us=start_us)
    fields = {**provable.machine.boot.entries[1].fields}
    fields["MESSAGE"] = f"Kernel command line: {LINE} {TRIAL_TAG}={trial}"
    provable.machine.boot.entries[1] = replace(provable.machine.boot.entries[1], fields=fields)
    provable.reboot(start_us=later_us)
    provable.measure()


def crashed(provable: Provable) -> None:
    too_soon(provable)
    del provable.past[-1].entries[-1]
    provable.write_journal()


def hung(provable: Provable) -> None:
    crashed(provable)
    write(provable.host.root, "/sys/class/watchdog/watchdog0/bootstatus", "32\n")


@pytest.mark.parametrize(
    ("happens", "reason", "outcome"),
    [
        (another_entry, "the proving boot: its boot left nothing", "unexplained"),
        (taken_back, "taken back, or never made", "withdrawn"),
        (somebody_else, "somebody else has selected Boot0007", "replaced"),
        (kept_by_the_loader, "again and again", "stuck"),
        (other_bytes, "another image than the one that was armed", "unexplained"),
        (fails_its_checks, "did not reach boot-complete.target: check.service failed", "failed"),
        (cannot_unpack, "could not unpack the image", "failed"),
        (too_soon, "it came up, but the machine was restarted before", "not-tried"),
        (
            partial(too_soon, start_us=START_US),
            "but the machine was restarted",
            "not-tried",
        ),
        (
            partial(too_soon, later_us=START_US),
            "but the machine was restarted",
            "not-tried",
        ),
        (
            partial(too_soon, start_us=START_US, later_us=START_US + DAY_US),
            "but the machine was restarted",
            "not-tried",
        ),
        (crashed, "it began to boot but did not come up", "unexplained"),
        (hung, "it hung, and the watchdog restarted the machine", "failed"),
    ],
)
def test_what_was_not_proven_is_dropped(
    rehearsed: Provable, happens: Callable[[Provable], None], reason: str, outcome: str
) -> None:
    rehearsed.arm()
    happens(rehearsed)
    [said] = settle(rehearsed.host)
    assert "transaction 1 (zstd to lz4) is undone; " in said
    require_old(rehearsed, reason)
    assert rehearsed.latest().outcome == outcome


@pytest.mark.parametrize("step", ["_planned", "write", "arm"])
@pytest.mark.parametrize("error", [InitadvisorError("no luck"), KeyboardInterrupt()])
def test_an_error_leaves_nothing(
    rehearsed: Provable, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    def fail(*_args: object, **_named: object) -> None:
        raise error

    owner = proving if step == "_planned" else type(rehearsed.loader)
    monkeypatch.setattr(owner, step, fail)
    with pytest.raises(type(error)):
        rehearsed.arm()
    require_old(rehearsed, "no luck" if str(error) else "KeyboardInterrupt")


def test_what_cannot_be_armed_after_the_rehearsal_is_dropped(
    provable: Provable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object, **_named: object) -> None:
        msg = "the next boot is taken"
        raise UnsafeError(msg)

    provable.arm()
    provable.reboot()
    provable.measure()
    monkeypatch.setattr(type(provable.loader), "arm", refuse)
    with pytest.raises(UnsafeError, match="is taken"):
        settle(provable.host)
    require_old(provable, "it could not be armed: the next boot is taken")
    assert was_rehearsed(provable.host, provable.loader.NAME)


def killed(provable: Provable, at: str) -> None:
    """Arm, and be killed in the middle: no handler of an error runs."""

    def kill(*_args: object, **_named: object) -> None:
        raise KeyboardInterrupt

    staged = provable.stage()
    with pytest.MonkeyPatch.context() as patch, transactions(provable.host) as engine:
        patch.setattr(proving, "withdraw", lambda *_args, **_named: None)
        owners = {"note_entry": one_boot, "plan_entry": proving}
        patch.setattr(owners.get(at, type(provable.loader)), at, kill)
        with pytest.raises(KeyboardInterrupt):
            arm_proof(provable.host, engine, staged)


@pytest.mark.parametrize("at", ["note_entry", "write", "arm"])
@pytest.mark.parametrize("rebooted", [False, True])
def test_a_power_cut_while_arming_is_cleared_up(
    rehearsed: Provable, at: str, *, rebooted: bool
) -> None:
    killed(rehearsed, at)
    assert [t.state for t in pending(rehearsed.host)] == [TransactionState.PROVING]
    if rebooted:
        rehearsed.reboot()
        rehearsed.measure()
    settle(rehearsed.host)
    require_old(rehearsed, "left nothing" if rebooted else "never made")


def proven(provable: Provable) -> None:
    """Have the new image booted, and that boot measured."""
    provable.arm()
    provable.reboot()
    provable.measure()


def test_what_was_committed_before_a_power_cut_is_cleared_up(rehearsed: Provable) -> None:
    proven(rehearsed)
    with transactions(rehearsed.host) as engine:
        engine.commit(rehearsed.latest())
    assert EntryKind.TRIAL in rehearsed.loader.entries
    assert settle(rehearsed.host) == ()
    assert set(rehearsed.loader.entries) == {EntryKind.PREVIOUS}
    assert noted_entry(rehearsed.host) is None
    assert rehearsed.installed() == (NEW, NEW_TEXT)


def test_a_power_cut_before_the_previous_image_has_its_entry_is_made_good(
    provable: Provable,
) -> None:
    def kill(*_args: object, **_named: object) -> None:
        raise KeyboardInterrupt

    staged = provable.stage()
    with pytest.MonkeyPatch.context() as patch, transactions(provable.host) as engine:
        patch.setattr(type(provable.loader), "write", kill)
        with pytest.raises(KeyboardInterrupt):
            commit(provable.host, engine, staged)
    assert not provable.loader.entries
    settle(provable.host)
    assert set(provable.loader.entries) == {EntryKind.PREVIOUS}
    assert not previous_noted(provable.host)


def test_a_power_cut_before_the_entry_of_what_was_restored_is_gone_is_made_good(
    provable: Provable,
) -> None:
    staged = provable.stage()
    with transactions(provable.host) as engine:
        done = commit(provable.host, engine, staged)
        note_previous(provable.host)
        engine.undo(done, reason="rolled back")
    assert set(provable.loader.entries) == {EntryKind.PREVIOUS}
    settle(provable.host)
    assert not provable.loader.entries
    assert not previous_noted(provable.host)


def test_what_was_interrupted_before_it_waited_is_undone(rehearsed: Provable) -> None:
    rehearsed.stage()
    assert settle(rehearsed.host) == (
        "transaction 1 (zstd to lz4) was interrupted, and is undone now",
    )
    require_old(rehearsed, "it was interrupted")
    assert rehearsed.latest().outcome is TrialOutcome.NOT_TRIED


def test_an_image_that_somebody_replaces_meanwhile_is_theirs(rehearsed: Provable) -> None:
    proven(rehearsed)
    rehearsed.host.path(IMAGE).write_bytes(b"rebuilt")
    [said] = settle(rehearsed.host)
    assert f"{IMAGE} was changed since it was armed" in said
    assert rehearsed.latest().state is TransactionState.UNDONE
    assert rehearsed.latest().outcome is TrialOutcome.NOT_TRIED, "it tells nothing of the setting"
    assert rehearsed.installed() == (b"rebuilt", OLD_TEXT)
    assert rehearsed.litter() == []
    assert rehearsed.loader.entries == {}
    assert settle(rehearsed.host) == ()


def test_while_a_package_manager_works_it_waits(
    rehearsed: Provable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(_host: Host) -> None:
        msg = "apt is at work"
        raise UnsafeError(msg)

    proven(rehearsed)
    with monkeypatch.context() as patch:
        patch.setattr(proving, "undisturbed", busy)
        with pytest.raises(UnsafeError, match="apt"):
            settle(rehearsed.host)
    assert rehearsed.latest().state is TransactionState.PROVING
    assert "is done" in settle(rehearsed.host)[0]


def test_nothing_is_armed_while_the_machine_sleeps(rehearsed: Provable) -> None:
    first: Transaction = rehearsed.arm()
    [said] = take_back(rehearsed.host)
    assert "is not armed for the time being" in said
    assert not rehearsed.loader.is_armed
    assert proof(rehearsed).taken_back
    assert take_back(rehearsed.host) == ()
    [said] = settle(rehearsed.host)
    assert "has the new image armed for the next boot" in said
    assert rehearsed.loader.is_armed
    again = proof(rehearsed)
    assert first.armed_boot is not None
    assert not again.taken_back
    assert again.trial != first.armed_boot.trial


def test_who_does_not_wake_up_again_boots_the_default_and_tries_later(provable: Provable) -> None:
    provable.arm()
    take_back(provable.host)
    provable.reboot()
    assert provable.host.read_text("/proc/cmdline") == f"{LINE}\n"
    [said] = settle(provable.host)
    assert "has today's image armed for the next boot" in said
    assert proof(provable).armed_in_boot == provable.machine.boot.boot_id


def test_before_a_sleep_only_what_is_armed_is_taken_back(rehearsed: Provable) -> None:
    assert take_back(rehearsed.host) == ()
    rehearsed.arm()
    rehearsed.reboot()
    assert take_back(rehearsed.host) == ()
    assert not proof(rehearsed).taken_back


def test_who_changes_his_mind_has_nothing_left(rehearsed: Provable) -> None:
    waiting = rehearsed.arm()
    with transactions(rehearsed.host) as engine:
        withdraw(rehearsed.host, engine, waiting, reason="rolled back")
    require_old(rehearsed, "rolled back")


def test_an_entry_that_cannot_be_removed_keeps_its_image(rehearsed: Provable) -> None:
    waiting = rehearsed.arm()
    rehearsed.loader.unremovable = InitadvisorError("EFI is full")
    with (
        transactions(rehearsed.host) as engine,
        pytest.raises(InitadvisorError, match="EFI is full"),
    ):
        withdraw(rehearsed.host, engine, waiting, reason="rolled back")
    assert rehearsed.latest() == waiting
    assert rehearsed.host.path(waiting.files[0].staged).read_bytes() == NEW


def test_two_runs_at_once_do_not_both_settle(
    rehearsed: Provable, monkeypatch: pytest.MonkeyPatch
) -> None:
    proven(rehearsed)
    monkeypatch.setattr(proving, "transactions", partial(transactions, wait_s=0.1))
    with transactions(rehearsed.host), pytest.raises(InitadvisorError, match="already running"):
        settle(rehearsed.host)
    assert "is done" in settle(rehearsed.host)[0]


def test_only_root_settles_and_only_on_the_machine_itself(
    rehearsed: Provable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Host, "is_root", property(lambda _self: False))
    assert settle(rehearsed.host) == ()
    rehearsed.stage()
    with pytest.raises(NeedsRootError):
        settle(rehearsed.host)
    monkeypatch.setattr(Host, "is_root", property(lambda _self: True))
    rehearsed.machine.write("/run/.containerenv", "")
    with pytest.raises(UnsafeError, match="this is a container"):
        settle(rehearsed.host)
    assert [t.state for t in pending(rehearsed.host)] == [TransactionState.VERIFIED]


def test_a_lock_that_a_power_cut_left_is_cleared_also_where_nothing_is_pending(
    provable: Provable, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleared: list[Host] = []
    monkeypatch.setattr(proving, "clear_stale_locks", cleared.append)
    assert settle(provable.host) == ()
    assert cleared == [provable.host]
    monkeypatch.setattr(Host, "is_root", property(lambda _self: False))
    assert settle(provable.host) == ()
    assert cleared == [provable.host]


def test_nothing_is_armed_that_nobody_would_judge(rehearsed: Provable) -> None:
    said = "LoadState=not-found\nWantedBy=\n"
    rehearsed.machine.runner.answer("systemctl show --property=LoadState,WantedBy", said)
    with pytest.raises(UnsafeError, match="nothing would judge a proving boot"):
        rehearsed.arm()
    require_old(rehearsed, "nothing would judge")


def test_a_boot_that_asks_for_its_checks_later_is_waited_for(rehearsed: Provable) -> None:
    """Somebody runs it by hand before the timer does."""
    proven(rehearsed)
    rehearsed.units(default=ACTIVE, complete="ActiveState=inactive\n", service=NOT_ASKED)
    [said] = settle(rehearsed.host)
    assert "is not complete yet" in said
    rehearsed.units()
    assert "is done" in settle(rehearsed.host)[0]
