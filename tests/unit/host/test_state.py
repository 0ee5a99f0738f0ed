"""Where measurements are kept, and whose are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import NeedsRootError
from initadvisor.host import Host
from tests.fakes.runner import FakeRunner

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine asked by a user whose home is on it."""
    for name in ("STATE_DIRECTORY", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return Host(root=tmp_path, runner=FakeRunner())


@pytest.mark.parametrize(
    ("is_root", "variables", "expected"),
    [
        (True, {}, "var/lib/initadvisor"),
        (True, {"XDG_STATE_HOME": "xdg"}, "var/lib/initadvisor"),
        (False, {}, "home/.local/state/initadvisor"),
        (False, {"XDG_STATE_HOME": "xdg"}, "xdg/initadvisor"),
        (False, {"XDG_STATE_HOME": "xdg", "STATE_DIRECTORY": "unit"}, "unit"),
        (True, {"STATE_DIRECTORY": "unit"}, "unit"),
    ],
)
def test_the_directory_is_systemd_s_or_the_user_s(
    host: Host,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_root: bool,
    variables: dict[str, str],
    expected: str,
) -> None:
    monkeypatch.setattr(Host, "is_root", is_root)
    for name, value in variables.items():
        monkeypatch.setenv(name, str(tmp_path / value))
    assert host.state_dir() == tmp_path / expected


def test_what_is_read_is_the_own_file_or_the_machine_s(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Host, "is_root", False)
    assert host.state_file("table") is None
    host.path("/var/lib/initadvisor").mkdir(parents=True)
    with pytest.raises(NeedsRootError, match="no copy is published"):
        host.state_file("table")
    published = host.published_dir() / "table"
    own = host.state_dir() / "table"
    published.parent.mkdir(parents=True)
    assert host.state_file("table") is None
    published.touch()
    assert host.state_file("table") == published
    own.parent.mkdir(parents=True)
    own.touch()
    assert host.state_file("table") == own


def test_root_never_reads_the_copy(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Host, "is_root", True)
    host.published_dir().mkdir(parents=True)
    (host.published_dir() / "table").touch()
    assert host.state_file("table") is None


@pytest.mark.parametrize("is_root", [True, False])
def test_a_directory_that_is_named_is_meant_even_without_the_file(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_root: bool
) -> None:
    monkeypatch.setattr(Host, "is_root", is_root)
    machine_s = host.published_dir() / "table"
    machine_s.parent.mkdir(parents=True)
    machine_s.touch()
    for place in (tmp_path / "empty", machine_s):  # there is nothing below a file either
        monkeypatch.setenv("STATE_DIRECTORY", str(place))
        assert host.state_file("table") is None
    monkeypatch.setenv("STATE_DIRECTORY", "")  # as good as unset
    assert host.state_file("table") == (None if is_root else machine_s)
