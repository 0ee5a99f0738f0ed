"""What is remembered of trial entries survives, and is never taken for what it is not."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError
from initadvisor.host import Host
from initadvisor.trial.markers import (
    forget_entry,
    note_entry,
    note_rehearsed,
    noted_entry,
    was_rehearsed,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine on which nothing is remembered."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/machine-id").write_text("1" * 32)
    return Host(root=root)


def test_an_entry_is_remembered_until_it_is_forgotten(host: Host) -> None:
    forget_entry(host)
    assert noted_entry(host) is None
    note_entry(host, "grub")
    assert noted_entry(host) == "grub"
    assert [path.name for path in host.state_dir().iterdir()] == ["trial-entry"]
    forget_entry(host)
    assert noted_entry(host) is None


def test_a_rehearsal_is_of_one_loader_on_one_machine(host: Host) -> None:
    assert not was_rehearsed(host, "grub")
    note_rehearsed(host, "grub")
    assert was_rehearsed(host, "grub")
    assert not was_rehearsed(host, "systemd-boot")
    host.path("/etc/machine-id").write_text("2" * 32)
    assert not was_rehearsed(host, "grub")


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "null", '{"loader": "grub"}', '["grub"]'])
def test_a_damaged_note_of_a_rehearsal_is_none(host: Host, text: str) -> None:
    host.state_dir().mkdir()
    (host.state_dir() / "rehearsed").write_text(text)
    assert not was_rehearsed(host, "grub")


def test_what_cannot_be_kept_is_an_error(host: Host) -> None:
    (host.state_dir() / "trial-entry").mkdir(parents=True)
    with pytest.raises(InitadvisorError, match="trial-entry: Is a directory"):
        note_entry(host, "grub")
    with pytest.raises(InitadvisorError, match="trial-entry: Is a directory"):
        forget_entry(host)
    with pytest.raises(InitadvisorError, match="cannot read"):
        noted_entry(host)


@pytest.mark.parametrize("name", ["trial-entry", "rehearsed", "previous-entry"])
def test_with_the_entry_all_unfinished_notes_go(host: Host, name: str) -> None:
    left = host.state_dir() / f".partial-{name}-abc"
    left.parent.mkdir(parents=True)
    left.touch()
    forget_entry(host)
    assert not left.exists()


def test_what_a_power_cut_has_left_of_a_note_goes_with_the_next(host: Host) -> None:
    left = host.state_dir() / ".partial-trial-entry-abc"
    others = host.state_dir() / ".partial-campaign-active-abc"
    left.parent.mkdir(parents=True, exist_ok=True)
    for change in (partial(note_entry, host, "grub"), partial(forget_entry, host)):
        left.touch()
        others.touch()
        change()
        assert not left.exists()
        assert others.exists()
