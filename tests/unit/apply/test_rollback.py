"""Going back gives what was there before, byte for byte or made anew; nothing is lost over it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from initadvisor.apply.apply import ApplyChoices
from initadvisor.apply.rollback import RolledBack, drop, kept, plan_rollback, rollback
from initadvisor.bootloaders.entry import EntryKind, TrialRequest
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, NeedsRootError, UnsafeError
from initadvisor.core.settings import Setting
from initadvisor.generators import dracut
from initadvisor.transaction.log import log_directory, read_transactions
from initadvisor.transaction.plan import Replacement
from initadvisor.transaction.transaction import TransactionState
from initadvisor.transaction.transactions import Transactions, pending, transactions
from tests.fakes.observers import Watching
from tests.fixtures.dracut_machine import (
    CONFIG,
    IMAGE,
    applied_setting,
    codec_of,
    generator,
    image,
    make_appliable,
    no_engine,
    snapshot,
    unpacks,
)
from tests.fixtures.hosts import RELEASE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fakes.boot_loader import FakeLoader
    from tests.fakes.generators import Ordered
    from tests.fixtures.hosts import Machine

_ZSTD, _LZ4, _GZIP = Setting(Codec.ZSTD), Setting(Codec.LZ4), Setting(Codec.GZIP)


@pytest.fixture
def appliable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Machine, FakeLoader]:
    """A machine on which zstd can be applied, and its boot loader."""
    return make_appliable(tmp_path, monkeypatch)


@pytest.fixture
def machine(appliable: tuple[Machine, FakeLoader]) -> Machine:
    """The machine."""
    return appliable[0]


@pytest.fixture
def loader(appliable: tuple[Machine, FakeLoader]) -> FakeLoader:
    """The boot loader."""
    return appliable[1]


def back(machine: Machine, *, unverified: bool = False) -> RolledBack:
    """Go back."""
    plan = plan_rollback(machine)
    assert plan is not None
    return rollback(machine, plan, unverified=unverified, observer=Watching())


def configured(machine: Machine) -> Setting:
    """Return what the generator reads."""
    return dracut.configured(machine, RELEASE).setting


def test_there_may_be_nothing_to_go_back_to(machine: Machine) -> None:
    assert plan_rollback(machine) is None


def test_everything_is_as_it_was(machine: Machine, loader: FakeLoader) -> None:
    old = snapshot(machine)
    applied_setting(machine, _ZSTD)
    plan = plan_rollback(machine)
    assert plan is not None
    assert set(plan.restored) == {IMAGE, CONFIG}
    assert back(machine).transaction.state is TransactionState.UNDONE
    assert snapshot(machine) == old
    assert loader.entries == {}
    assert plan_rollback(machine) is None


def test_what_is_wrong_with_the_entry_is_told_with_the_way_out(
    machine: Machine,
    loader: FakeLoader,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    old = snapshot(machine)
    applied_setting(machine, _ZSTD)

    def fail(_host: object, _kind: object) -> object:
        msg = "it is immutable"
        raise InitadvisorError(msg, hint="chattr -i it")

    monkeypatch.setattr(type(loader), "remove", lambda _self, host, kind: fail(host, kind))
    back(machine)
    assert "entry in the menu is not right: it is immutable (chattr -i it)" in caplog.text
    assert snapshot(machine) == old


def test_several_are_gone_back_over_one_by_one(machine: Machine, loader: FakeLoader) -> None:
    old = snapshot(machine)
    first = applied_setting(machine, _ZSTD)
    applied_setting(machine, _LZ4)
    assert configured(machine) == _LZ4
    back(machine)
    assert (configured(machine), codec_of(machine)) == (_ZSTD, Codec.ZSTD)
    assert loader.entry(machine, EntryKind.PREVIOUS) == first.transaction.files[0].backup
    back(machine)
    assert snapshot(machine) == old


def test_an_entry_whose_image_is_gone_does_not_outlive_it(
    machine: Machine, loader: FakeLoader
) -> None:
    first = applied_setting(machine, _ZSTD)
    applied_setting(machine, _LZ4)
    loader.entries[EntryKind.PREVIOUS] = loader.trial(
        machine,
        TrialRequest(replaces=IMAGE, image="/boot/gone", kind=EntryKind.PREVIOUS),
    )
    loader.may_have_entries = False
    back(machine)
    assert machine.path(str(first.transaction.files[0].backup)).is_file()
    assert loader.entries == {}


def test_what_a_kernel_upgrade_has_rebuilt_is_built_with_the_old_configuration(
    machine: Machine, loader: FakeLoader
) -> None:
    applied_setting(machine, _ZSTD)
    upgraded = image(Codec.ZSTD, parameters="another kernel")
    machine.path(IMAGE).write_bytes(upgraded)
    plan = plan_rollback(machine)
    assert plan is not None
    assert [one.path for one in plan.rebuilt] == [machine.path(IMAGE)]
    assert plan.restored == (CONFIG,)
    generator(machine).orders.clear()
    done = back(machine)
    assert done.transaction.left == (IMAGE,)
    assert (configured(machine), codec_of(machine)) == (_GZIP, Codec.GZIP)
    (order,) = generator(machine).orders
    assert "compress=gzip" in "".join(order.config.values())
    assert not list(machine.path("/boot").glob(".initadvisor*"))
    assert loader.entries == {}
    assert plan_rollback(machine) is None


def test_images_of_kernels_that_came_since_are_built_with_the_old_configuration(
    machine: Machine,
) -> None:
    old = snapshot(machine)
    applied_setting(machine, _ZSTD)
    names = [f"/boot/initramfs-{name}.img" for name in ("6.99.0", "0-rescue-2")]
    for name in names:
        path = machine.path(name)
        path.write_bytes(image(Codec.ZSTD))
        os.utime(path, (time.time() + 60,) * 2)
    rescue = machine.path(names[1]).read_bytes()
    plan = plan_rollback(machine)
    assert plan is not None
    assert set(plan.restored) == {IMAGE, CONFIG}
    assert [one.path for one in plan.rebuilt] == [machine.path(names[0])]
    machine.path("/lib/modules/6.99.0").mkdir()
    machine.path("/lib/modules/6.99.0/config").write_bytes(
        machine.path(f"/lib/modules/{RELEASE}/config").read_bytes()
    )
    done = back(machine)
    assert done.transaction.left == ()
    content = machine.path(names[0]).read_bytes()
    assert content == image(Codec.GZIP, parameters=" ".join(generator(machine).orders[-1].argv))
    assert machine.path(names[1]).read_bytes() == rescue
    for name in (*names, "/lib/modules/6.99.0/config"):
        machine.path(name).unlink()
    machine.path("/lib/modules/6.99.0").rmdir()
    assert snapshot(machine) == old


def test_one_that_was_cut_short_between_its_steps_goes_on(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied_setting(machine, _ZSTD)
    machine.path(IMAGE).write_bytes(image(Codec.ZSTD, parameters="another kernel"))

    def cut(*_args: object, **_named: object) -> object:
        msg = "the power is cut"
        raise InitadvisorError(msg)

    with monkeypatch.context() as patch:
        patch.setattr(Transactions, "undo", cut)
        with pytest.raises(InitadvisorError, match="power"):
            back(machine)
    # The image is whole and of the old setting, the configuration still the new one.
    assert (configured(machine), codec_of(machine)) == (_ZSTD, Codec.GZIP)
    back(machine)
    assert (configured(machine), codec_of(machine)) == (_GZIP, Codec.GZIP)


def test_images_that_were_not_kept_are_built_anew(machine: Machine) -> None:
    applied_setting(machine, _ZSTD, ApplyChoices(immediate=True, without_backup=True))
    back(machine)
    assert (configured(machine), codec_of(machine)) == (_GZIP, Codec.GZIP)


def test_what_was_rebuilt_for_going_back_bars_nobody_from_going_back_further(
    machine: Machine,
) -> None:
    old = snapshot(machine)
    applied_setting(machine, _ZSTD)
    applied_setting(machine, _LZ4, ApplyChoices(immediate=True, without_backup=True))
    back(machine)  # the generator makes the very bytes that the first one had made
    assert (configured(machine), codec_of(machine)) == (_ZSTD, Codec.ZSTD)
    back(machine)
    assert snapshot(machine) == old
    assert plan_rollback(machine) is None


def test_one_that_was_cut_after_rebuilding_the_very_bytes_goes_on(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied_setting(machine, _ZSTD)
    applied_setting(machine, _LZ4, ApplyChoices(immediate=True, without_backup=True))

    def cut(*_args: object, **_named: object) -> object:
        msg = "the power is cut"
        raise InitadvisorError(msg)

    with monkeypatch.context() as patch:
        patch.setattr(Transactions, "undo", cut)
        with pytest.raises(InitadvisorError, match="power"):
            back(machine)
    assert (configured(machine), codec_of(machine)) == (_LZ4, Codec.ZSTD)
    back(machine)
    assert (configured(machine), codec_of(machine)) == (_ZSTD, Codec.ZSTD)


@pytest.mark.parametrize("damage", ["gone", "damaged"])
def test_a_lost_configuration_is_told_with_what_does_the_same(
    machine: Machine, damage: str
) -> None:
    done = applied_setting(machine, _ZSTD)
    (backup,) = (c.backup for c in done.transaction.files if c.path == CONFIG)
    path = machine.path(str(backup))
    if damage == "gone":
        path.unlink()
    else:
        path.write_text("# damaged\n")
    with pytest.raises(UnsafeError, match="any more, or is damaged") as caught:
        plan_rollback(machine)
    assert "apply 'gzip'" in str(caught.value.hint)


def test_only_root_goes_back(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    applied_setting(machine, _ZSTD)
    plan = plan_rollback(machine)
    assert plan is not None
    monkeypatch.setattr(type(machine), "is_root", False)
    with pytest.raises(NeedsRootError, match="only root may"):
        rollback(machine, plan, observer=Watching())
    with pytest.raises(NeedsRootError, match="only root may"):
        drop(machine)


def test_what_is_not_mounted_is_not_dropped(machine: Machine, loader: FakeLoader) -> None:
    applied_setting(machine, _ZSTD)
    (record,) = log_directory(machine).glob("*.json")
    record.write_text(record.read_text().replace('"mount_point": ""', '"mount_point": "/boot"'))
    before = snapshot(machine)
    with pytest.raises(InitadvisorError, match="nothing is mounted"):
        drop(machine)
    assert snapshot(machine) == before
    assert loader.entry(machine, EntryKind.PREVIOUS) is not None


def test_an_image_that_is_gone_with_its_kernel_stays_gone(machine: Machine) -> None:
    applied_setting(machine, _ZSTD)
    machine.path(IMAGE).unlink()
    plan = plan_rollback(machine)
    assert plan is not None
    assert (plan.gone, plan.rebuilt) == ((IMAGE,), ())
    back(machine)
    assert configured(machine) == _GZIP
    assert not machine.path(IMAGE).exists()
    assert not list(machine.path("/boot").glob(".initadvisor*"))


def test_a_configuration_that_somebody_else_changed_is_theirs(machine: Machine) -> None:
    applied_setting(machine, _ZSTD)
    machine.path(CONFIG).write_text("# mine\ncompress=zstd\n")
    with pytest.raises(UnsafeError, match="changed since, not by initadvisor") as caught:
        plan_rollback(machine)
    assert caught.value.hint is not None
    assert "apply 'gzip'" in caught.value.hint


def test_what_was_rebuilt_wrongly_is_not_installed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied_setting(machine, _ZSTD)
    machine.path(IMAGE).write_bytes(image(Codec.ZSTD, parameters="another kernel"))
    before = snapshot(machine)
    no_engine(monkeypatch)
    generator(machine).orders.clear()
    with pytest.raises(UnsafeError, match="no kernel could be asked"):
        back(machine)
    assert generator(machine).orders == []  # told before anything is built
    unpacks(monkeypatch, "Linux panics")
    with pytest.raises(UnsafeError, match="Linux panics"):
        back(machine)

    def cat(order: Ordered) -> None:
        order.image.write_bytes(image(Codec.CAT))

    generator(machine).make = cat
    with pytest.raises(UnsafeError, match="with cat, not with gzip"):
        back(machine)
    assert snapshot(machine) == before
    assert pending(machine) == ()


def test_one_that_waits_for_a_boot_is_taken_back(machine: Machine, loader: FakeLoader) -> None:
    old = snapshot(machine)
    applied_setting(machine, _ZSTD, ApplyChoices())
    assert loader.is_armed
    plan = plan_rollback(machine)
    assert plan is not None
    assert plan.waiting
    back(machine)
    assert snapshot(machine) == old
    assert not loader.is_armed
    assert loader.entries == {}
    assert pending(machine) == ()


def test_one_that_was_interrupted_has_to_be_settled_first(machine: Machine) -> None:
    applied_setting(machine, _ZSTD)
    with transactions(machine) as engine:
        last = read_transactions(machine)[-1]
        cut = Replacement(path="/etc/x", role=last.files[0].role, new=b"x")
        engine.begin([cut], purpose="test")
        with pytest.raises(UnsafeError, match="was interrupted"):
            plan_rollback(machine)


def test_dropping_what_older_changes_kept_leaves_the_latest_whole(
    machine: Machine, loader: FakeLoader
) -> None:
    applied_setting(machine, _ZSTD)
    last = applied_setting(machine, _LZ4).transaction
    assert {backup.transaction for backup in kept(machine, keep=1)} == {1}
    assert drop(machine, keep=1) == ()
    assert [backup.transaction for backup in kept(machine)] == [last.number] * 2
    assert loader.entry(machine, EntryKind.PREVIOUS) == last.files[0].backup
    back(machine)
    assert (configured(machine), codec_of(machine)) == (_ZSTD, Codec.ZSTD)
    assert plan_rollback(machine) is None


def test_what_is_kept_can_be_dropped(machine: Machine, loader: FakeLoader) -> None:
    applied_setting(machine, _ZSTD)
    applied_setting(machine, _LZ4)
    assert {backup.of for backup in kept(machine)} == {IMAGE, CONFIG}
    now = {p: t for p, t in snapshot(machine).items() if "/.initadvisor" not in p}
    drop(machine)
    assert snapshot(machine) == now
    assert kept(machine) == ()
    assert loader.entries == {}
    assert plan_rollback(machine) is None
