"""An image and the copies that kernel-install(8) made of it are replaced as one, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.apply.apply import Applied, ApplyChoices, apply
from initadvisor.apply.plan_values import ApplyStep
from initadvisor.apply.rollback import plan_rollback, rollback
from initadvisor.bootloaders.entry import EntryKind
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.host.owner import owned_name, owner_of_host
from initadvisor.transaction.transaction import FileRole, TransactionState
from initadvisor.transaction.transactions import pending
from initadvisor.trial.default_boot import default_boot
from initadvisor.trial.ownership import unrecorded
from initadvisor.trial.recovery import clear_unrecorded
from tests.fakes.observers import Watching
from tests.fixtures.dracut_machine import (
    CONFIG,
    IMAGE,
    IMMEDIATE,
    codec_of,
    generator,
    image,
    make_appliable,
    planned,
)
from tests.fixtures.hosts import RELEASE
from tests.fixtures.journals import MACHINE_ID

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.fakes.boot_loader import FakeLoader
    from tests.fixtures.hosts import Machine

DIRECTORY = f"/efi/{MACHINE_ID}/{RELEASE}"
COPY = f"{DIRECTORY}/initramfs-{RELEASE}.img"


@pytest.fixture
def appliable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Machine, FakeLoader]:
    """A machine whose default entry boots a copy, and its boot loader."""
    machine, loader = make_appliable(tmp_path, monkeypatch)
    machine.path(DIRECTORY).mkdir(parents=True)
    machine.path(COPY).write_bytes(machine.path(IMAGE).read_bytes())
    loader.image = COPY
    return machine, loader


@pytest.fixture
def machine(appliable: tuple[Machine, FakeLoader]) -> Machine:
    """The machine."""
    return appliable[0]


@pytest.fixture
def loader(appliable: tuple[Machine, FakeLoader]) -> FakeLoader:
    """The boot loader."""
    return appliable[1]


def files(machine: Machine) -> dict[str, bytes]:
    """Return everything that is installed."""
    return {
        str(path): path.read_bytes()
        for directory in ("etc", "boot", "efi")
        for path in (machine.root / directory).rglob("*")
        if path.is_file()
    }


def applied(
    machine: Machine,
    choices: ApplyChoices = IMMEDIATE,
    then: Callable[[], object] = lambda: None,
) -> Applied:
    """Apply zstd."""
    return apply(machine, planned(machine), choices, observer=Watching(then))


def back(machine: Machine) -> tuple[set[str], set[Path]]:
    """Go back; return what was restored and what was built anew."""
    plan = plan_rollback(machine)
    assert plan is not None
    rollback(machine, plan, observer=Watching())
    return set(plan.restored), {path for one in plan.rebuilt for path in one.paths}


def test_image_copy_and_configuration_change_together_and_back(
    machine: Machine, loader: FakeLoader
) -> None:
    old = files(machine)
    room = {one.purpose: one.needed_bytes for one in planned(machine).space}
    done = applied(machine).transaction
    assert done.state is TransactionState.COMMITTED
    assert [change.path for change in done.files] == [IMAGE, COPY, CONFIG]
    assert codec_of(machine) is Codec.ZSTD
    assert machine.path(COPY).read_bytes() == machine.path(IMAGE).read_bytes()
    backup = done.files[1].backup
    assert backup is not None
    assert backup.startswith(DIRECTORY)
    assert loader.entry(machine, EntryKind.PREVIOUS) == backup
    assert len(generator(machine).orders) == 2  # one with each setting
    restored, rebuilt = back(machine)
    assert (restored, rebuilt) == ({IMAGE, COPY, CONFIG}, set())
    assert files(machine) == old
    machine.path(COPY).unlink()
    less = {one.purpose: one.needed_bytes for one in planned(machine).space}
    (purpose,) = room
    assert room[purpose] > less[purpose]


def test_the_boots_before_that_are_of_the_copy_and_of_what_is_beside_it(
    machine: Machine, loader: FakeLoader
) -> None:
    old = files(machine)
    done = applied(machine, ApplyChoices()).transaction
    assert done.state is TransactionState.PROVING
    assert loader.boot() == COPY
    assert {path: content for path, content in files(machine).items() if path in old} == old
    staged = [change.staged for change in done.files if change.role is FileRole.IMAGE]
    assert staged[1].startswith(DIRECTORY)
    assert machine.path(staged[0]).read_bytes() == machine.path(staged[1]).read_bytes()


def test_a_copy_that_is_older_than_its_image_is_refused(machine: Machine) -> None:
    machine.path(COPY).write_bytes(image(Codec.GZIP, extra="etc"))
    found = planned(machine)
    (blocker,) = (one for one in found.blockers if one.step is ApplyStep.BUILD)
    assert blocker.reason.endswith(f"loads {COPY}, which is not what {machine.path(IMAGE)} is")
    assert blocker.remedy.startswith(f"kernel-install add {RELEASE} ")
    assert f"{machine.path(COPY)} stays as it is" in " ".join(found.warnings)


def test_a_copy_that_is_not_loaded_and_holds_something_else_stays(
    machine: Machine, loader: FakeLoader
) -> None:
    loader.image = IMAGE
    machine.path(COPY).write_bytes(b"of another time")
    assert [change.path for change in applied(machine).transaction.files] == [IMAGE, CONFIG]
    assert machine.path(COPY).read_bytes() == b"of another time"


def test_what_is_copied_anew_while_images_are_built_is_not_replaced(machine: Machine) -> None:
    old = files(machine)
    fresh = image(Codec.GZIP, extra="etc")
    with pytest.raises(InitadvisorError, match=f"{COPY} was changed while"):
        applied(machine, then=lambda: machine.path(COPY).write_bytes(fresh))
    assert files(machine) == old | {str(machine.path(COPY)): fresh}
    assert pending(machine) == ()


def test_an_entry_with_two_images_proves_nothing(machine: Machine, loader: FakeLoader) -> None:
    """As Debian 13 with dracut has it: its kernel hook's image, and that of kernel-install's
    plugin.
    """
    made = f"{DIRECTORY}/initrd"
    machine.path(made).write_bytes(image(Codec.GZIP))
    loader.before = (made,)
    (found,) = (one for one in planned(machine).blockers if one.step is ApplyStep.BUILD)
    assert found.reason == f"the default entry loads more than one image: {made}, {COPY}"
    assert "/etc/kernel/install.d" in found.remedy


@pytest.mark.parametrize("upgraded", [(IMAGE,), (COPY,), (IMAGE, COPY)], ids=str)
def test_what_an_upgrade_made_anew_is_one_again_after_going_back(
    machine: Machine, upgraded: tuple[str, ...]
) -> None:
    applied(machine)
    for path in upgraded:
        machine.path(path).write_bytes(image(Codec.ZSTD, parameters="another kernel"))
    generator(machine).orders.clear()
    restored, rebuilt = back(machine)
    assert (restored, rebuilt) == ({CONFIG}, {machine.path(IMAGE), machine.path(COPY)})
    assert len(generator(machine).orders) == 1
    assert codec_of(machine) is Codec.GZIP
    assert machine.path(COPY).read_bytes() == machine.path(IMAGE).read_bytes()
    assert not [path for path in files(machine) if "/.initadvisor" in path]


def test_trials_boot_beside_the_copy_as_long_as_it_is_one(
    machine: Machine, loader: FakeLoader
) -> None:
    found = default_boot(machine, loader)
    assert (found.image, found.release) == (COPY, RELEASE)
    machine.path(COPY).write_bytes(image(Codec.ZSTD))
    with pytest.raises(UnsafeError, match=rf"{COPY}, which is not what {IMAGE} is") as caught:
        default_boot(machine, loader)
    assert str(caught.value.hint).startswith(f"kernel-install add {RELEASE} ")
    machine.path(COPY).write_bytes(machine.path(IMAGE).read_bytes())
    loader.before = (IMAGE,)
    with pytest.raises(UnsafeError, match="loads more than one image"):
        default_boot(machine, loader)


def test_what_is_left_beside_a_copy_is_found(machine: Machine) -> None:
    owner = owner_of_host(machine)
    left = f"{DIRECTORY}/{owned_name(owner, '7-1.old')}"
    slot = f"{DIRECTORY}/{owned_name(owner, 'trial')}"
    for path in (left, slot):
        machine.path(path).write_bytes(b"x")
    assert {(one.name, one.owner) for one in unrecorded(machine)} == {(left, owner), (slot, owner)}
    clear_unrecorded(machine)
    assert not machine.path(slot).exists()
