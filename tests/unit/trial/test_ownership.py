"""What no record tells of: another system's, and what a snapshot has made an orphan of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.bootloaders.entry import EntryKind
from initadvisor.core.errors import UnsafeError
from initadvisor.trial.ownership import require_no_orphan, unrecorded
from initadvisor.trial.recovery import clear_unrecorded
from tests.fixtures.campaign_machine import make_campaigning
from tests.fixtures.owners import OTHER_OWNER, OWNER

if TYPE_CHECKING:
    from tests.fixtures.booted import Booted
    from tests.fixtures.campaign_machine import Campaigning

FOREIGN = f"/boot/.initadvisor-{OTHER_OWNER}-3-0.old"
SLOT_OF_THE_OTHER = f"/boot/.initadvisor-{OTHER_OWNER}-trial"
ORPHAN = f"/boot/.initadvisor-{OWNER}-7-0.old"
SLOT = f"/boot/.initadvisor-{OWNER}-trial"


@pytest.fixture
def machine_of_trials(machine: Booted, monkeypatch: pytest.MonkeyPatch) -> Campaigning:
    """A machine with files of another system beside its images."""
    made = make_campaigning(machine, monkeypatch)
    for path in (FOREIGN, SLOT_OF_THE_OTHER):
        made.host.path(path).write_bytes(b"another system's")
    return made


def take_records_back(made: Campaigning) -> None:
    """Have no records, as after a snapshot of ``/var`` from before came back."""
    for path in sorted(made.host.state_dir().rglob("*"), reverse=True):
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink()


def told(made: Campaigning) -> dict[str, tuple[str | None, str]]:
    return {left.name: (left.owner, left.removed_by) for left in unrecorded(made.host)}


def test_another_systems_files_are_shown_and_nothing_removes_them(
    machine_of_trials: Campaigning,
) -> None:
    foreign = dict.fromkeys((FOREIGN, SLOT_OF_THE_OTHER), (OTHER_OWNER, ""))
    assert told(machine_of_trials) == foreign
    machine_of_trials.start()
    assert told(machine_of_trials) == foreign
    machine_of_trials.boot()
    clear_unrecorded(machine_of_trials.host)
    assert told(machine_of_trials) == foreign


def test_what_a_snapshot_has_made_an_orphan_of_is_armed_no_more_before_somebody_clears_it(
    machine_of_trials: Campaigning,
) -> None:
    made = machine_of_trials
    made.start()
    made.boot()  # the rehearsal; now a candidate lies in the slot
    made.host.path(ORPHAN).write_bytes(b"kept by nobody")
    take_records_back(made)
    before = made.host.path(SLOT).read_bytes()
    assert made.provable.loader.is_armed
    orphans = {name: command for name, (owner, command) in told(made).items() if owner == OWNER}
    assert orphans == {
        "trial": "initadvisor trial stop",
        SLOT: "initadvisor trial stop",
        ORPHAN: "initadvisor rollback --drop --confirm",
    }
    with pytest.raises(UnsafeError, match="no record tells"):
        require_no_orphan(made.host, made.provable.loader, EntryKind.TRIAL)
    with pytest.raises(UnsafeError, match="no record tells") as raised:
        made.start()
    assert raised.value.hint == "initadvisor trial stop removes it"
    assert made.host.path(SLOT).read_bytes() == before
    clear_unrecorded(made.host)
    assert not made.host.path(SLOT).exists()
    assert made.provable.loader.entries == {}
    assert made.host.path(SLOT_OF_THE_OTHER).exists()
