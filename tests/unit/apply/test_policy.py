"""The policy applies an advice as a person would, watches the boots since, and goes back."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from initadvisor.apply import apply as applying
from initadvisor.apply import build as building
from initadvisor.apply import policy as module
from initadvisor.apply.apply import ApplyChoices, apply
from initadvisor.apply.plan import ApplyRequest, plan_apply
from initadvisor.apply.policy import apply_advice, go_back_if_slower
from initadvisor.apply.policy_log import PolicyChange, policy_log, record_change
from initadvisor.apply.rollback import plan_rollback, rollback
from initadvisor.core.codecs import Codec
from initadvisor.core.config import Config
from initadvisor.core.errors import InitadvisorError, UnfitImageError, UnsafeError
from initadvisor.core.refusals import Refusal, RefusalKind
from initadvisor.core.settings import Setting
from initadvisor.daemon.manager import StatusReporter
from initadvisor.decide.cost import Outcome
from initadvisor.host.files import write_file
from initadvisor.records.boot import RejectionReason
from initadvisor.store.store import open_store
from initadvisor.transaction.log import own_transactions
from initadvisor.transaction.transaction import TransactionState
from tests.fixtures.boots import boot_record, image_of
from tests.fixtures.dracut_machine import (
    IMAGE,
    generator,
    image,
    lost_machine,
    make_appliable,
    no_engine,
    snapshot,
    unpacks,
)
from tests.fixtures.hosts import RELEASE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from initadvisor.records.boot import BootRecord
    from tests.fakes.boot_loader import FakeLoader
    from tests.fixtures.hosts import Machine

GZIP, ZSTD = Setting.parse("gzip"), Setting.parse("zstd")
TOLD = StatusReporter()


@pytest.fixture
def appliable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Machine, FakeLoader]:
    """A machine whose advice is to switch from gzip to zstd, which has booted well here."""
    made = make_appliable(tmp_path, monkeypatch, Outcome.SWITCH)
    monkeypatch.setattr(applying, "proven_by", lambda *_args, **_named: object())
    identity = made[0].path(WATCHDOG)
    identity.parent.mkdir(parents=True)
    identity.write_text("iTCO_wdt\n")
    return made


WATCHDOG = "/sys/class/watchdog/watchdog0/identity"


def consent(machine: Machine) -> None:
    machine.path("/etc/initadvisor.toml").write_text("[daemon]\nperson_resets = true\n")


@pytest.fixture
def machine(appliable: tuple[Machine, FakeLoader]) -> Machine:
    """The machine."""
    return appliable[0]


def state(machine: Machine) -> list[TransactionState]:
    return [transaction.state for transaction in own_transactions(machine)]


def boots(
    machine: Machine,
    setting: Setting,
    times_ms: list[int],
    *,
    since: bool,
    first: int = 0,
    size_bytes: int = 40_000_000,
    loader: bool = True,
    kernel: str = "6.12.1-amd64 #1 SMP",
) -> None:
    """Record boots that took so long, before or since now."""
    began = datetime.now(UTC) + (timedelta(hours=1) if since else -timedelta(days=30))
    image = image_of(setting, size_bytes=size_bytes)
    for number, total_ms in enumerate(times_ms, 100 * since + first + 1):
        record = boot_record(number, setting=setting, read_us=total_ms * 500, kernel=kernel)
        record = replace(
            record,
            started_at=began + timedelta(hours=number),
            attribution=replace(record.attribution, images=(image,)),
            evidence=replace(record.evidence, loaded_bytes=size_bytes),
            timestamps=replace(record.timestamps, run_init_us=300_000 + total_ms * 500),
            rejections=() if loader else (RejectionReason.MENU,),
        )
        keep(machine, record)


def keep(machine: Machine, record: BootRecord) -> None:
    with open_store(machine) as store:
        store.add_boots([record])


BEFORE = [1000, 1010, 990, 1005, 995]
SLOWER = [1400, 1410, 1390, 1405]


def test_it_applies_and_remembers_that_it_did(machine: Machine) -> None:
    said = apply_advice(machine, observer=TOLD)
    assert said == "transaction 1 (zstd) is applied, by the policy"
    assert state(machine) == [TransactionState.COMMITTED]
    [change] = policy_log(machine).changes
    assert (change.after, change.kernel_release, change.number) == ("zstd", RELEASE, 1)


def test_a_new_setting_waits_for_its_boot_as_if_a_person_had_applied_it(
    appliable: tuple[Machine, FakeLoader], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, loader = appliable
    monkeypatch.setattr(applying, "proven_by", lambda *_args, **_named: None)
    said = apply_advice(machine, observer=TOLD)
    assert said == "transaction 1 (zstd) waits for a boot of the new image, by the policy"
    assert loader.is_armed
    with pytest.raises(UnsafeError, match="transaction 1"):
        apply_advice(machine, observer=TOLD)
    assert len(policy_log(machine).changes) == 1


@pytest.mark.parametrize(
    ("options", "watchdog", "reason"),
    [(" rdinit=/mine", True, "rdinit="), ("", False, "no hardware watchdog")],
)
def test_a_boot_that_may_wait_for_a_person_is_armed_with_consent_only(
    appliable: tuple[Machine, FakeLoader],
    monkeypatch: pytest.MonkeyPatch,
    options: str,
    watchdog: bool,
    reason: str,
) -> None:
    machine, loader = appliable
    loader.options += options
    if not watchdog:
        machine.path(WATCHDOG).unlink()
    monkeypatch.setattr(applying, "proven_by", lambda *_args, **_named: None)
    before = snapshot(machine)
    with pytest.raises(UnsafeError, match=f"{reason}.*initadvisor enable"):
        apply_advice(machine, observer=TOLD)
    assert snapshot(machine) == before
    assert not loader.is_armed
    assert policy_log(machine).changes == (), "nothing was built: it may be possible another time"
    consent(machine)
    assert "waits for a boot" in apply_advice(machine, observer=TOLD)
    assert loader.is_armed


def test_advice_to_keep_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, _ = make_appliable(tmp_path, monkeypatch, Outcome.KEEP)
    before = snapshot(machine)
    assert apply_advice(machine, observer=TOLD).startswith("nothing to apply")
    assert snapshot(machine) == before
    assert policy_log(machine).changes == ()


@pytest.mark.parametrize("unfit", ["not unpacked", "another codec", "other files"])
def test_an_image_that_is_not_fit_is_not_built_again_before_the_installed_one_is_another(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, unfit: str
) -> None:
    if unfit == "not unpacked":
        unpacks(monkeypatch, "the kernel says junk")
    elif unfit == "another codec":
        generator(machine).make = lambda order: write_file(order.image, image(Codec.GZIP))
    else:
        machine.path(IMAGE).write_bytes(image(Codec.GZIP, extra="etc"))
    before = snapshot(machine)
    with pytest.raises(UnfitImageError) as found:
        apply_advice(machine, observer=TOLD)
    assert snapshot(machine) == before
    assert policy_log(machine).changes[0].failed == found.value.message
    again = f"not applying zstd: it could not be applied for Linux {RELEASE} ("
    with pytest.raises(UnsafeError, match=re.escape(again + found.value.message)):
        apply_advice(machine, observer=TOLD)
    machine.path(IMAGE).write_bytes(machine.path(IMAGE).read_bytes() + bytes(4))
    with pytest.raises(UnfitImageError):
        apply_advice(machine, observer=TOLD)


def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_host: object) -> None:
        msg = "dpkg is at work"
        raise UnsafeError(msg)

    monkeypatch.setattr(applying, "undisturbed", fail)


def no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: object, **_named: object) -> None:
        msg = "cannot compare /boot/initrd.img: No space left on device"
        raise InitadvisorError(msg)

    monkeypatch.setattr(building, "_require_stream", fail)


@pytest.mark.parametrize(
    ("circumstance", "reason"),
    [
        (no_engine, "no kernel could be asked"),
        (lost_machine, "no kernel could be asked"),
        (busy, "dpkg is at work"),
        (no_room, "No space left"),
    ],
)
def test_circumstances_are_refused_and_not_held_against_the_setting(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    circumstance: Callable[[pytest.MonkeyPatch], None],
    reason: str,
) -> None:
    before = snapshot(machine)
    with monkeypatch.context() as patched:
        circumstance(patched)
        for _ in range(2):
            with pytest.raises(UnsafeError, match=reason) as found:
                apply_advice(machine, observer=TOLD)
            assert not isinstance(found.value, UnfitImageError)
            assert snapshot(machine) == before
            assert policy_log(machine).changes == ()
    assert "is applied" in apply_advice(machine, observer=TOLD)


def test_what_is_refused_before_anything_is_built_may_be_another_time(
    appliable: tuple[Machine, FakeLoader], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, loader = appliable
    with monkeypatch.context() as patched:
        patched.setattr(applying, "proven_by", lambda *_args, **_named: None)
        kind = RefusalKind.PENDING_ONE_SHOT
        loader.against = (Refusal(kind=kind, reason="fwupd's boot is next", remedy="reboot"),)
        with pytest.raises(UnsafeError, match="fwupd"):
            apply_advice(machine, observer=TOLD)
        assert policy_log(machine).changes == ()
    loader.against = ()
    assert "is applied" in apply_advice(machine, observer=TOLD)


def test_a_campaign_is_waited_for(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_noted_active", lambda _host: True)
    assert "while a campaign" in apply_advice(machine, observer=TOLD)
    assert policy_log(machine).changes == ()


def test_a_package_manager_at_work_is_no_failure(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "busy_package_managers", lambda _host: ("dpkg is at work",))
    with pytest.raises(InitadvisorError, match="dpkg is at work") as caught:
        apply_advice(machine, observer=TOLD)
    assert not isinstance(caught.value, UnsafeError)
    assert policy_log(machine).changes == ()


def test_what_was_undone_by_a_person_is_not_applied_again(machine: Machine) -> None:
    apply_advice(machine, observer=TOLD)
    plan = plan_rollback(machine)
    assert plan is not None
    rollback(machine, plan, observer=TOLD)
    before = snapshot(machine)
    with pytest.raises(UnsafeError, match=r"applying zstd: transaction 1 was undone \(rolled back"):
        apply_advice(machine, observer=TOLD)
    assert snapshot(machine) == before


def test_a_run_that_was_killed_finds_its_transaction(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_args: object, **_named: object) -> object:
        apply(machine, plan, ApplyChoices(by_policy=True), observer=TOLD)
        raise KeyboardInterrupt

    plan = plan_apply(machine, ApplyRequest(), observer=TOLD)
    with monkeypatch.context() as patched:
        patched.setattr(module, "apply", killed)
        with pytest.raises(KeyboardInterrupt):
            apply_advice(machine, observer=TOLD)
    assert policy_log(machine).changes[0].number is None
    boots(machine, GZIP, BEFORE, since=False)
    boots(machine, ZSTD, SLOWER, since=True)
    assert go_back_if_slower(machine, Config(), observer=TOLD) is not None
    assert state(machine) == [TransactionState.UNDONE]


def test_what_a_person_applies_after_the_policy_was_killed_is_never_gone_back_from(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_args: object, **_named: object) -> object:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module, "apply", killed)
        with pytest.raises(KeyboardInterrupt):
            apply_advice(machine, observer=TOLD)
    assert policy_log(machine).changes[0].number is None
    apply(
        machine, plan_apply(machine, ApplyRequest(), observer=TOLD), ApplyChoices(), observer=TOLD
    )
    boots(machine, GZIP, BEFORE, since=False)
    boots(machine, ZSTD, SLOWER, since=True)
    assert go_back_if_slower(machine, Config(), observer=TOLD) is None
    assert state(machine) == [TransactionState.COMMITTED]


def test_slower_boots_are_gone_back_from_with_the_reason(machine: Machine) -> None:
    before = snapshot(machine)
    apply_advice(machine, observer=TOLD)
    boots(machine, GZIP, BEFORE, since=False)
    boots(machine, ZSTD, SLOWER, since=True)
    said = go_back_if_slower(machine, Config(), observer=TOLD)
    reason = "boots were 401 ms slower (4 boots since, 5 before)"
    assert said == f"transaction 1 is undone by the policy: {reason}"
    assert own_transactions(machine)[0].reason == reason
    assert {path: snapshot(machine)[path] for path in before} == before
    assert go_back_if_slower(machine, Config(), observer=TOLD) is None
    with pytest.raises(UnsafeError, match="was undone"):
        apply_advice(machine, observer=TOLD)


@pytest.mark.parametrize(
    "since",
    [BEFORE, [900] * 5, [1400], [1015, 1005, 1020], [990, 1400]],
    ids=["equal", "faster", "one boot", "no matter", "one of two"],
)
def test_other_boots_are_no_reason(machine: Machine, since: list[int]) -> None:
    apply_advice(machine, observer=TOLD)
    boots(machine, GZIP, BEFORE, since=False)
    boots(machine, ZSTD, since, since=True)
    assert go_back_if_slower(machine, Config(), observer=TOLD) is None
    assert state(machine) == [TransactionState.COMMITTED]


def test_boots_of_another_kernel_cannot_be_compared(machine: Machine) -> None:
    apply_advice(machine, observer=TOLD)
    boots(machine, GZIP, BEFORE, since=False)
    boots(machine, ZSTD, SLOWER, since=True, kernel="6.13.0-amd64 #1 SMP")
    assert go_back_if_slower(machine, Config(), observer=TOLD) is None


def test_what_a_person_has_applied_is_not_watched(machine: Machine) -> None:
    plan = plan_apply(machine, ApplyRequest(setting=ZSTD), observer=TOLD)
    apply(machine, plan, ApplyChoices(), observer=TOLD)
    boots(machine, GZIP, BEFORE, since=False)
    boots(machine, ZSTD, SLOWER, since=True)
    assert go_back_if_slower(machine, Config(), observer=TOLD) is None


@pytest.mark.parametrize(
    ("size_bytes", "goes_back"), [(39_000_000, False), (40_000_000, True), (50_000_000, True)]
)
def test_without_the_loader_s_times_a_smaller_image_is_not_judged(
    machine: Machine, size_bytes: int, *, goes_back: bool
) -> None:
    apply_advice(machine, observer=TOLD)
    boots(machine, GZIP, BEFORE, since=False, loader=False)
    boots(machine, ZSTD, SLOWER, since=True, loader=False, size_bytes=size_bytes)
    found = go_back_if_slower(machine, Config(), observer=TOLD)
    assert (found is not None) is goes_back


def test_reading_that_is_known_of_one_side_only_is_no_comparison(machine: Machine) -> None:
    apply_advice(machine, observer=TOLD)
    boots(machine, GZIP, BEFORE, since=False, loader=False)
    boots(machine, ZSTD, SLOWER, since=True)
    assert go_back_if_slower(machine, Config(), observer=TOLD) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"schema": 2}',
        b'{"schema": 1}',
        b'{"schema": 1, "changes": [{}]}',
        b"\xff",
        b"[" * 90_000,
    ],
)
def test_a_record_that_cannot_be_read_forbids_everything(machine: Machine, content: bytes) -> None:
    machine.state_dir().mkdir(parents=True, exist_ok=True)
    (machine.state_dir() / "policy.json").write_bytes(content)
    before = snapshot(machine)
    with pytest.raises(UnsafeError, match=r"policy\.json"):
        apply_advice(machine, observer=TOLD)
    assert snapshot(machine) == before


def test_decisions_are_kept_in_their_order(machine: Machine) -> None:
    first = PolicyChange(after="zstd", kernel_release="6.1", decided_at_s=1)
    second = PolicyChange(after="lz4", kernel_release="6.2", decided_at_s=2, failed="no room")
    record_change(machine, first)
    record_change(machine, second)
    assert policy_log(machine).changes == (first, second)
    record_change(machine, replace(second, number=7, failed=""))
    assert policy_log(machine).changes == (first, replace(second, number=7, failed=""))


def test_the_image_is_what_it_was_about(machine: Machine) -> None:
    apply_advice(machine, observer=TOLD)
    assert IMAGE in {change.path for change in own_transactions(machine)[0].files}
