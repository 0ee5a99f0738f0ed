"""What is no installed system is told apart, as far as that may be known."""

from __future__ import annotations

from pathlib import Path

import pytest

from initadvisor.core.errors import NeedsRootError
from initadvisor.generators.running import elsewhere
from initadvisor.host import Host
from tests.fakes.runner import FakeRunner

FIRST = "proc/1/root"


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine on which process 1 has the same root directory as this one."""
    (tmp_path / "proc/1").mkdir(parents=True)
    (tmp_path / FIRST).symlink_to(tmp_path)
    return Host(root=tmp_path, runner=FakeRunner())


def test_another_root_than_the_first_process_s_is_a_chroot(host: Host) -> None:
    assert elsewhere(host) is None
    host.path(FIRST).unlink()
    host.path(FIRST).symlink_to("/usr")
    assert elsewhere(host) == "a chroot"
    host.path(FIRST).unlink()
    assert elsewhere(host) == "a chroot"


@pytest.mark.parametrize("is_root", [True, False])
def test_what_root_may_not_see_is_a_sandbox_and_what_others_may_not_is_not_known(
    host: Host, monkeypatch: pytest.MonkeyPatch, is_root: bool
) -> None:
    look = Path.stat

    def closed(path: Path) -> object:
        if path == host.path(FIRST):
            raise PermissionError
        return look(path)

    monkeypatch.setattr(Path, "stat", lambda path, **_named: closed(path))
    monkeypatch.setattr(Host, "is_root", property(lambda _host: is_root))
    if is_root:
        assert elsewhere(host) is None
        return
    with pytest.raises(NeedsRootError, match="only root"):
        elsewhere(host)
