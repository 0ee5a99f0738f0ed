"""A running program: what it inherits, how it competes, how it is ended."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


_OOM_FIRST = "1000"


def search_path() -> str:
    """Return PATH with the sbin directories, which an ordinary user's often lacks."""
    path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    path += [d for d in ("/usr/local/sbin", "/usr/sbin", "/sbin") if d not in path]
    return os.pathsep.join(path)


def environment(extra: Mapping[str, str] | None) -> dict[str, str]:
    """Return what a program inherits: as little as possible, in the C locale, and ``extra``."""
    kept = {name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}
    return {**kept, "PATH": search_path(), "LC_ALL": "C.UTF-8", **(extra or {})}


def give_way(pid: int) -> None:
    """Let the process, and what it starts, use disks that nobody else wants, and be killed first.

    As far as that is allowed.
    """
    import psutil

    with contextlib.suppress(psutil.Error, OSError):
        psutil.Process(pid).ionice(psutil.IOPRIO_CLASS_IDLE)
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text(_OOM_FIRST, encoding="ascii")


def kill_session(pid: int) -> None:
    """Kill the process group of a session that ``pid`` leads; it must not be reaped yet."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
