"""Two systems share a partition and the firmware: each has its entries, and touches no others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.bootloaders.entry import EntryKind, OneShotState
from initadvisor.core.refusals import RefusalKind, RefusedError
from tests.fixtures.loader_machines import LOADERS, armed_machine
from tests.fixtures.owners import OTHER_ID, OTHER_OWNER, OWNER, identify
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fixtures.loader_machines import Case, Machine


@pytest.fixture(params=LOADERS)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    """A loader, and a machine on which another system has both entries and an armed boot."""
    loader, make = LOADERS[request.param]
    machine = make(tmp_path)
    identify(machine.root, OTHER_ID)
    loader.write(machine.host, loader.trial(machine.host, machine.previous))
    armed_machine(loader, machine)
    identify(machine.root)
    return loader, machine


def test_what_another_system_armed_is_somebody_elses(case: Case) -> None:
    loader, machine = case
    before = machine.tree()
    assert loader.armed(machine.host).state is OneShotState.OTHERS
    for kind in EntryKind:
        assert loader.entry(machine.host, kind) is None
        assert not loader.disarm(machine.host, kind)
        assert not loader.remove(machine.host, kind)
    assert RefusalKind.PENDING_ONE_SHOT in {r.kind for r in loader.refusals(machine.host)}
    assert machine.tree() == before
    plan = loader.trial(machine.host, machine.request)
    loader.write(machine.host, plan)
    with pytest.raises(RefusedError, match="selected by somebody else"):
        loader.arm(machine.host, plan)
    assert loader.remove(machine.host)
    assert machine.tree() == before


def test_each_has_its_own_and_takes_only_that_away(case: Case) -> None:
    loader, machine = case
    assert machine.reboots() is not None
    before = without_selections(machine)
    loader.write(machine.host, loader.trial(machine.host, machine.previous))
    armed_machine(loader, machine)
    owned = {(entry.owner, entry.kind) for entry in loader.owned_entries(machine.host)}
    assert owned == {(owner, kind) for owner in (OWNER, OTHER_OWNER) for kind in EntryKind}
    assert loader.armed(machine.host).state is OneShotState.OURS
    for kind in EntryKind:
        assert loader.remove(machine.host, kind)
    assert without_selections(machine) == before
    identify(machine.root, OTHER_ID)
    assert loader.entry(machine.host, EntryKind.TRIAL) == machine.candidate
    for kind in EntryKind:
        assert loader.remove(machine.host, kind)
    identify(machine.root)
    assert loader.owned_entries(machine.host) == ()


def test_what_another_system_is_writing_is_not_cleared_away(case: Case) -> None:
    loader, machine = case
    directories = {path.parent for path in files_of_entries(machine)}
    left = [write(d, f".partial-initadvisor-{OTHER_OWNER}-abcdefgh", b"half") for d in directories]
    loader.write(machine.host, loader.trial(machine.host, machine.request))
    loader.remove(machine.host)
    assert [path.read_bytes() for path in left] == [b"half"] * len(left)


@pytest.mark.parametrize("text", [None, "", "uninitialized\n", "0" * 32, "not an ID\n"])
@pytest.mark.parametrize("name", LOADERS)
def test_without_a_machine_id_nothing_is_written_or_armed(
    tmp_path: Path, name: str, text: str | None
) -> None:
    loader, make = LOADERS[name]
    machine = make(tmp_path)
    plan = loader.trial(machine.host, machine.request)
    (tmp_path / "etc/machine-id").unlink()
    if text is not None:
        write(tmp_path, "/etc/machine-id", text)
    before = machine.tree()
    for call in (loader.write, loader.arm):
        with pytest.raises(RefusedError, match="/etc/machine-id"):
            call(machine.host, plan)
    assert machine.tree() == before


def files_of_entries(machine: Machine) -> list[Path]:
    """Return the files that entries are in, of loaders that have any."""
    return [*machine.root.glob("boot/grub*/custom.cfg"), *machine.root.glob("efi/loader/entries/*")]


def without_selections(machine: Machine) -> dict[str, bytes]:
    """Return every file but GRUB's variables: taken back, one is not there instead of empty."""
    return {path: text for path, text in machine.tree().items() if "grubenv" not in path}
