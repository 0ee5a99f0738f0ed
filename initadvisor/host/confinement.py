"""Whether this process is in a sandbox, and where."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host

_PRIVATE = ("/tmp", "/var/tmp")  # noqa: S108  what PrivateTmp= hides (systemd.exec(5))

_UNIT = re.compile(r"/([^/]+\.(?:service|scope))(?:/|$)")
_CGROUP = re.compile(r"^(?:0:|\d+:name=systemd):(/.*)$", re.MULTILINE)


def confinement(host: Host) -> str | None:
    """Return in words what keeps this process from seeing or doing what process 1 can.

    None where there is nothing: a shell of root's, a unit that is not hardened. Process 1 itself
    may only be looked at by who has all of its capabilities or CAP_SYS_PTRACE; a hardened unit that
    has neither shows by its bounding set.
    """
    own, first = _status(host, "self"), _status(host, "1")
    if own.get("NoNewPrivs", "0") != first.get("NoNewPrivs", "0"):
        return "it may gain no privileges (NoNewPrivileges=)"
    if own.get("Seccomp", "0") != first.get("Seccomp", "0"):
        return "its system calls are filtered"
    if _bounding_set(first) & ~_bounding_set(own):
        return "its capabilities are bounded"
    mine, its = _mount_namespace(host, "self"), _mount_namespace(host, "1")
    if mine and its and mine != its:
        return "it has a mount namespace of its own"
    return None


def own_unit(host: Host) -> str | None:
    """Return the unit of the system's manager that this process is in, None where there is none."""
    for match in _CGROUP.finditer(host.read_text("/proc/self/cgroup") or ""):
        if unit := _UNIT.search(match[1]):
            return unit[1]
    return None


def is_private(host: Host, path: Path) -> bool:
    """Tell whether process 1 has something else, or nothing, where this process has ``path``.

    Where that may not be known, temporary directories count as private.
    """
    try:
        seen = host.path(f"/proc/1/root{path}").stat()
    except FileNotFoundError:
        return True
    except OSError:
        return any(path.is_relative_to(host.path(place)) for place in _PRIVATE)
    return not os.path.samestat(seen, path.stat())


def _status(host: Host, process: str) -> dict[str, str]:
    lines = (host.read_text(f"/proc/{process}/status") or "").splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def _bounding_set(status: dict[str, str]) -> int:
    return int(status.get("CapBnd", "0"), 16)


def _mount_namespace(host: Host, process: str) -> str | None:
    try:
        return str(host.path(f"/proc/{process}/ns/mnt").readlink())
    except OSError:
        return None
