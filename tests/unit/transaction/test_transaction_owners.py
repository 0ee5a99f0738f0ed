"""Systems that share a partition replace files beside one another's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import UnsafeError
from initadvisor.transaction.transactions import Transactions, transactions
from tests.fixtures.owners import OTHER_ID, OTHER_OWNER, OWNER, identify
from tests.fixtures.replaced_files import apply, held, host_of_old, wanted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from initadvisor.host import Host

IMAGE = "/boot/initrd.img"


def staged(engine: Transactions) -> None:
    """Be killed before anything was replaced."""
    engine.begin(wanted({IMAGE: b"staged"}), purpose="test")


def undone(engine: Transactions) -> None:
    """Go back."""
    engine.undo(apply(engine, {IMAGE: b"of this system"}), reason="test")


def dropped(engine: Transactions) -> None:
    """Give going back up."""
    apply(engine, {IMAGE: b"of this system"})
    engine.prune()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine on which another system has replaced an image and has one staged."""
    machine = host_of_old(tmp_path, monkeypatch)
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state of the other"))
    identify(machine.root, OTHER_ID)
    with transactions(machine) as engine:
        apply(engine, {IMAGE: b"of the other"})
        engine.begin(wanted({IMAGE: b"staged by the other"}), purpose="test")
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    identify(machine.root)
    return machine


def of(owner: str, host: Host) -> dict[str, bytes]:
    return {path: content for path, content in held(host).items() if f"-{owner}-" in path}


@pytest.mark.parametrize("run", [staged, undone, dropped])
def test_the_others_files_stay_byte_for_byte(
    host: Host, run: Callable[[Transactions], None]
) -> None:
    theirs = of(OTHER_OWNER, host)
    assert len(theirs) == 2
    with transactions(host) as engine:
        run(engine)
    with transactions(host) as engine:
        engine.recover()
    assert of(OTHER_OWNER, host) == theirs
    assert of(OWNER, host) == {}


def test_a_record_of_another_system_is_not_followed(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of its disk has its records; the machine ID was made anew."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state of the other"))
    before = held(host)
    with transactions(host) as engine, pytest.raises(UnsafeError, match="another system"):
        engine.recover()
    with transactions(host) as engine:
        assert engine.prune() == ()
    assert held(host) == before


def test_a_snapshot_that_takes_the_records_back_loses_nothing_beside_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = host_of_old(tmp_path, monkeypatch)
    with transactions(host) as engine:
        apply(engine, {IMAGE: b"first"})
    before = of(OWNER, host)
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state of earlier"))
    with transactions(host) as engine:
        assert apply(engine, {IMAGE: b"second"}).number == 2
        engine.prune()
    assert of(OWNER, host) == before


def test_without_a_machine_id_nothing_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = host_of_old(tmp_path, monkeypatch)
    host.path("/etc/machine-id").write_text("uninitialized\n")
    before = held(host)
    with transactions(host) as engine, pytest.raises(UnsafeError, match="is not initialized"):
        apply(engine)
    assert held(host) == before
