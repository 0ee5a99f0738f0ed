"""What is applied is applied whole, after everything was looked at; else nothing has changed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from initadvisor.apply import apply as applying
from initadvisor.apply import room
from initadvisor.apply.apply import Applied, ApplyChoices, apply
from initadvisor.bootloaders.entry import EntryKind
from initadvisor.campaign.campaign import Campaign, CampaignState
from initadvisor.campaign.record import write_campaign
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.core.refusals import Refusal, RefusalKind
from initadvisor.core.settings import Setting
from initadvisor.generators import dracut
from initadvisor.transaction.log import read_transactions
from initadvisor.transaction.transaction import ProofStage, TransactionState
from initadvisor.transaction.transactions import pending
from initadvisor.trial.slot import slot_beside
from tests.fakes.observers import Watching
from tests.fixtures.dracut_machine import (
    CONFIG,
    IMAGE,
    IMMEDIATE,
    applied_setting,
    codec_of,
    generator,
    image,
    lost_machine,
    make_appliable,
    no_engine,
    ordered_codec,
    planned,
    snapshot,
    unlike,
    unpacks,
)
from tests.fixtures.hosts import RELEASE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.fakes.boot_loader import FakeLoader
    from tests.fakes.generators import Ordered
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


@pytest.fixture
def loader(appliable: tuple[Machine, FakeLoader]) -> FakeLoader:
    """The boot loader."""
    return appliable[1]


def applied(
    machine: Machine,
    choices: ApplyChoices = IMMEDIATE,
    *,
    then: Callable[[], object] = lambda: None,
    everything: bool = False,
) -> Applied:
    """Apply zstd."""
    plan = planned(machine, everything=everything)
    return apply(machine, plan, choices, observer=Watching(then))


def refused(
    machine: Machine,
    words: str,
    choices: ApplyChoices = IMMEDIATE,
    *,
    then: Callable[[], object] = lambda: None,
    but: Sequence[str] = (),
) -> None:
    """Apply zstd, which is refused, and has changed nothing but what ``then`` has."""
    before = snapshot(machine)
    with pytest.raises(InitadvisorError, match=words):
        applied(machine, choices, then=then)
    after = snapshot(machine)
    changed = {str(machine.path(path)) for path in but}
    assert {p: t for p, t in after.items() if p not in changed} == {
        p: t for p, t in before.items() if p not in changed
    }
    assert pending(machine) == ()


def configured(machine: Machine) -> Setting:
    """Return what the generator reads."""
    return dracut.configured(machine, RELEASE).setting


def test_configuration_and_image_change_together(machine: Machine, loader: FakeLoader) -> None:
    old = snapshot(machine)
    found = applied(machine)
    assert found.transaction.state is TransactionState.COMMITTED
    assert (configured(machine), codec_of(machine)) == (_ZSTD, Codec.ZSTD)
    backup = found.transaction.files[0].backup
    assert backup is not None
    assert machine.path(backup).read_bytes() == old[str(machine.path(IMAGE))]
    assert loader.entries[EntryKind.PREVIOUS].request.image == backup
    assert loader.entries[EntryKind.PREVIOUS].request.label == "gzip"
    assert not loader.is_armed
    changed = {p for p, text in snapshot(machine).items() if old.get(p) != text}
    kept = {str(machine.path(str(c.backup))) for c in found.transaction.files}
    assert changed == {str(machine.path(p)) for p in (CONFIG, IMAGE)} | kept
    setting = found.transaction.setting
    assert setting is not None
    assert (setting.before, setting.after) == ("gzip", "zstd")


def test_a_setting_that_has_not_booted_here_waits_for_a_rehearsal(
    machine: Machine, loader: FakeLoader
) -> None:
    old = snapshot(machine)
    found = applied(machine, ApplyChoices())
    assert found.transaction.state is TransactionState.PROVING
    assert found.transaction.armed_boot is not None
    assert found.transaction.armed_boot.stage is ProofStage.REHEARSAL
    assert loader.is_armed
    assert loader.boot() == IMAGE
    assert {p: t for p, t in snapshot(machine).items() if p in old} == old


def test_a_setting_that_has_booted_here_is_not_proven_again(
    machine: Machine, loader: FakeLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str | None] = []

    def proven(_host: object, _setting: object, *, kernel_release: str | None) -> object:
        asked.append(kernel_release)
        return object()

    monkeypatch.setattr(applying, "proven_by", proven)
    assert applied(machine, ApplyChoices()).transaction.state is TransactionState.COMMITTED
    assert not loader.is_armed
    assert asked == [None, None]
    # Where no kernel can be asked, only boots of this very kernel count.
    applied_again = ApplyChoices(unverified=True)
    no_engine(monkeypatch)
    machine.path(CONFIG).write_text("compress=gzip\n")
    assert applied(machine, applied_again).transaction.state is TransactionState.COMMITTED
    assert asked[-1] == RELEASE


def test_without_an_engine_it_takes_the_users_word(
    machine: Machine, loader: FakeLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_engine(monkeypatch)
    with pytest.raises(UnsafeError, match="no kernel could be asked") as caught:
        applied(machine)
    assert caught.value.hint == "install QEMU; --unverified goes without"
    refused(machine, "no kernel could be asked")
    assert generator(machine).orders == []
    found = applied(machine, ApplyChoices(immediate=True, unverified=True))
    assert found.unverified == f"no virtual machine for {RELEASE}"
    assert found.transaction.state is TransactionState.COMMITTED
    assert loader.entries


def test_a_machine_that_is_lost_while_it_unpacks_is_no_verdict(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost_machine(monkeypatch)
    refused(machine, "no kernel could be asked .* was lost")
    found = applied(machine, ApplyChoices(immediate=True, unverified=True))
    assert found.unverified.endswith("was lost")


def test_what_a_kernel_does_not_unpack_is_never_installed(
    machine: Machine, loader: FakeLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacks(monkeypatch, "Linux panics")
    refused(machine, "must not be booted: Linux panics")
    refused(machine, "Linux panics", ApplyChoices(immediate=True, unverified=True))
    assert not loader.entries


def test_what_a_rebuild_brings_besides_has_to_be_accepted(machine: Machine) -> None:
    machine.path(IMAGE).write_bytes(image(Codec.GZIP, extra="etc"))
    refused(machine, "a rebuild has 1 other file$")
    choices = ApplyChoices(immediate=True, accept_content_changes=True)
    done = applied(machine, choices).transaction
    assert done.state is TransactionState.COMMITTED
    assert done.setting
    assert done.setting.with_updates


def test_an_installed_image_that_cannot_be_read_has_to_be_accepted(machine: Machine) -> None:
    machine.path(IMAGE).write_bytes(b"no image")
    refused(machine, "cannot be compared with a rebuild")


@pytest.mark.parametrize("path", [IMAGE, CONFIG])
def test_what_somebody_else_replaces_meanwhile_is_theirs(
    machine: Machine, loader: FakeLoader, path: str
) -> None:
    def replace() -> None:
        machine.path(path).write_bytes(machine.path(path).read_bytes() + b"\n")

    refused(machine, "was changed while images were built", then=replace, but=[path])
    assert not loader.entries


def test_where_there_is_no_room_what_is_kept_is_named(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "free_bytes", lambda _path: 0)
    remedies = []
    for setting in (_ZSTD, Setting(Codec.LZ4), Setting(Codec.GZIP)):
        (obstacle,) = planned(machine, setting).blockers
        remedies.append(obstacle.remedy)
        with monkeypatch.context() as patched:
            patched.setattr(room, "free_bytes", lambda _path: 1 << 40)
            applied_setting(machine, setting)
    mb = r"[0-9]+\.[0-9] MB"
    assert remedies[0] == "make room"
    way = rf"make room; initadvisor rollback --drop --confirm frees {mb} and gives up going back"
    assert re.fullmatch(way, remedies[1])
    way = rf"make room; initadvisor rollback --drop --keep 1 --confirm frees {mb}"
    assert re.fullmatch(way, remedies[2])
    monkeypatch.setattr(room, "kept", unreadable)
    assert planned(machine).blockers[0].remedy == "make room"
    machine.path(slot_beside(machine, IMAGE)).write_bytes(bytes(100_000))
    assert room.ways_to_make_room(machine, "/") == "make room"
    write_campaign(machine, Campaign(number=1, state=CampaignState.PREPARING))
    frees = "make room; initadvisor trial pause frees 0.1 MB"
    assert room.ways_to_make_room(machine, "/") == frees


def unreadable(_host: object, *, keep: int) -> object:
    """Fail as a record does that cannot be read."""
    msg = f"cannot read what is kept of more than {keep}"
    raise InitadvisorError(msg)


def test_what_the_next_boot_does_not_load_is_not_replaced_whatever_is_asked_for(
    machine: Machine, loader: FakeLoader
) -> None:
    machine.path("/boot/copy").write_bytes(machine.path(IMAGE).read_bytes())
    loader.image = "/boot/copy"
    bold = ApplyChoices(immediate=True, unverified=True, without_backup=True, without_entry=True)
    for choices in (ApplyChoices(), bold):
        refused(machine, "the next boot would not use", choices)
    assert generator(machine).orders == []


def test_without_an_entry_for_the_previous_image_only_where_the_user_says_so(
    machine: Machine, loader: FakeLoader
) -> None:
    loader.may_have_entries = False
    refused(machine, "does not load")
    choices = ApplyChoices(immediate=True, without_entry=True)
    found = applied(machine, choices)
    assert found.transaction.state is TransactionState.COMMITTED
    assert machine.path(str(found.transaction.files[0].backup)).is_file()


def test_an_entry_that_fails_in_the_end_undoes_all(
    machine: Machine, loader: FakeLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_host: object, _plan: object) -> None:
        msg = "the ESP is full"
        raise InitadvisorError(msg)

    monkeypatch.setattr(type(loader), "write", lambda _self, host, plan: fail(host, plan))
    refused(machine, "the ESP is full")
    assert read_transactions(machine)[-1].state is TransactionState.UNDONE


def test_without_a_backup_nothing_is_kept_but_the_configuration(
    machine: Machine, loader: FakeLoader
) -> None:
    found = applied(machine, ApplyChoices(immediate=True, without_backup=True))
    assert [bool(change.backup) for change in found.transaction.files] == [False, True]
    assert not loader.entries


def test_what_is_against_a_proving_boot_is_told_before_anything_is_built(
    machine: Machine, loader: FakeLoader
) -> None:
    loader.against = (Refusal(kind=RefusalKind.NO_DEFAULT, reason="no default", remedy="set one"),)
    refused(machine, "no default", ApplyChoices())
    assert generator(machine).orders == []
    assert applied(machine).transaction.state is TransactionState.COMMITTED


def test_all_images_are_replaced_if_that_is_asked_for(machine: Machine) -> None:
    found = applied(machine, everything=True)
    images = [change.path for change in found.transaction.files if change.path != CONFIG]
    assert len(images) == 3
    assert {codec_of(machine, path) for path in images} == {Codec.ZSTD}


def test_one_at_a_time(machine: Machine, loader: FakeLoader) -> None:
    applied(machine, ApplyChoices())
    staged = snapshot(machine)
    plan = planned(machine)
    assert any("is proving" in one.reason for one in plan.blockers)
    with pytest.raises(UnsafeError, match="is proving"):
        apply(machine, plan, IMMEDIATE, observer=Watching())
    assert snapshot(machine) == staged
    assert loader.is_armed


def test_a_wrong_build_is_refused(machine: Machine, loader: FakeLoader) -> None:
    def cat(order: Ordered) -> bytes:
        assert ordered_codec(order) is Codec.ZSTD
        return image(Codec.CAT)

    generator(machine).make = unlike(cat)
    refused(machine, "with cat, not with zstd")
    assert not loader.entries
