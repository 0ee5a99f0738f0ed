"""One run at a time: the lock names its holder and goes with its process."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError, NeedsRootError
from initadvisor.host.lock import locked
from tests.fixtures.waiting import HANGS_S

if TYPE_CHECKING:
    from pathlib import Path

_HOLD = """
import sys, time
from pathlib import Path
from initadvisor.host.lock import locked
with locked(Path(sys.argv[1]), what="it"):
    print("held", flush=True)
    time.sleep(3600)
"""


@pytest.mark.parametrize("wait_s", [0, 0.1])
def test_only_one_process_holds_the_lock_and_it_goes_with_the_process(
    tmp_path: Path, wait_s: float
) -> None:
    lock = tmp_path / "new" / "lock"
    with subprocess.Popen([sys.executable, "-c", _HOLD, lock], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with (
            pytest.raises(InitadvisorError, match=f"it is already running: process {holder.pid} "),
            locked(lock, what="it", wait_s=wait_s),
        ):
            pass
        holder.kill()
        holder.wait(timeout=HANGS_S)
    with locked(lock, what="it"):
        pass


def test_nobody_else_may_open_it_and_keep_others_waiting(tmp_path: Path) -> None:
    with locked(tmp_path / "lock", what="it"):
        assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600


@pytest.mark.usefixtures("ordinary_user")
def test_where_nobody_may_write_only_root_can_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object, **_named: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("initadvisor.host.lock.os.open", refuse)
    with pytest.raises(NeedsRootError, match="only root may"), locked(tmp_path / "lock", what="it"):
        pass
