"""A run that is killed while it writes a loader's entry leaves nothing that the next one keeps."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from initadvisor.apply import proving
from initadvisor.apply.commit import settle_previous_entry
from initadvisor.apply.proving import settle
from initadvisor.transaction.plan import Replacement
from initadvisor.transaction.transaction import FileRole
from initadvisor.transaction.transactions import transactions
from initadvisor.trial.markers import note_previous, previous_noted
from tests.fixtures.loader_machines import Machine, grub_machine, systemd_boot_machine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from initadvisor.host import Host


@pytest.fixture(params=[systemd_boot_machine, grub_machine], ids=["systemd-boot", "grub"])
def machine(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Machine:
    """A machine on which an image was replaced, and its entry is still to be written."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setattr(proving, "elsewhere", lambda _host: None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    make: Callable[[Path], Machine] = request.param
    found = make(tmp_path / "root")
    image = Replacement(path=found.installed, role=FileRole.IMAGE, new=b"new image")
    with transactions(found.host) as engine:
        engine.commit(engine.verify(engine.begin([image], purpose="test")))
    return found


def killed_while_renaming(host: Host) -> None:
    """Have a process write the entry of the previous image, and be killed before it is named."""

    def die(*_args: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    note_previous(host)
    child = os.fork()
    if child == 0:
        pytest.MonkeyPatch().setattr(os, "rename", die)
        try:
            settle_previous_entry(host)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL


def unfinished(machine: Machine) -> set[str]:
    """Return the names of unfinished files, of whoever they are."""
    return {name.rpartition("/")[2] for name in machine.tree() if "/.partial-" in name}


def test_the_next_run_removes_what_is_ours_and_writes_the_entry(machine: Machine) -> None:
    killed_while_renaming(machine.host)
    (left,) = unfinished(machine)
    path = next(p for p in machine.root.rglob(left))
    theirs = path.with_name(".partial-of-somebody-else")
    theirs.write_bytes(b"not ours")
    killed_while_renaming(machine.host)
    assert previous_noted(machine.host)
    settle(machine.host)
    assert unfinished(machine) == {theirs.name}
    assert not previous_noted(machine.host)
    entries = [text for text in machine.tree().values() if b"initadvisor: previous image" in text]
    assert len(entries) == 1
