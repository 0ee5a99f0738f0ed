"""Whether this process is in a sandbox, and how it runs a program outside of it.

A hardened unit hides modules, devices and directories; what is made there for the whole machine
lacks them. systemd starts the program in a transient unit instead. A unit that is to do this needs
AF_UNIX and the system bus.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from initadvisor.core.errors import ProgramError, UnsafeError
from initadvisor.host.process import environment
from initadvisor.host.run import Completed, Priority, failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from initadvisor.host import Host


log = logging.getLogger(__name__)

_STOP_TIMEOUT_S = 30.0
_GRACE_S = 60.0


def run_outside(
    host: Host,
    argv: Sequence[str | Path],
    *,
    directory: Path,
    timeout_s: float,
    env: Mapping[str, str],
) -> Completed:
    """Run one idle program to its end, where it sees the machine as process 1 does.

    ``directory`` is what it works in and has to see. It is killed with all that it has started when
    the run is cut short, and no later than this process's unit ends. In a transient unit the
    resources that are told are not the program's.

    Raises ``UnsafeError`` where this process is in a sandbox and there is no way out, and what
    ``Runner.run`` does.
    """
    reason = confinement(host)
    program = host.runner.which(str(argv[0]))
    if reason is None or program is None:
        return host.runner.run(argv, timeout_s=timeout_s, env=env, priority=Priority.IDLE)
    if host.runner.which("systemd-run") is None or not host.path("/run/systemd/system").is_dir():
        msg = f"not running {argv[0]} in a sandbox ({reason}): it would not see the whole machine"
        raise UnsafeError(msg, hint="run it from a shell of root's")
    if is_private(host, directory):
        msg = f"not running {argv[0]}: {directory} is a directory of this sandbox only ({reason})"
        raise UnsafeError(msg, hint="let CACHE_DIRECTORY be outside of /tmp and /var/tmp")
    log.info("running %s in a unit of its own: %s", argv[0], reason)
    words = (str(program), *(str(word) for word in argv[1:]))
    unit = f"initadvisor-{uuid.uuid4().hex[:12]}.service"
    command = tuple(_transient(host, unit, words, timeout_s=timeout_s, env=env))
    try:
        done = host.runner.run(command, timeout_s=timeout_s, check=False)
    except BaseException:
        # Who asked systemd for the unit is dead; the unit is not.
        with contextlib.suppress(ProgramError):
            host.runner.run(["systemctl", "stop", unit], timeout_s=_STOP_TIMEOUT_S, check=False)
        raise
    done = replace(done, argv=words)
    if done.returncode != 0:
        raise failure(done)
    return done


def _transient(
    host: Host, unit: str, words: Sequence[str], *, timeout_s: float, env: Mapping[str, str]
) -> Iterator[str]:
    """Return the command: environment, priority and time limit as ``SystemRunner.run`` has them."""
    yield from ("systemd-run", "--wait", "--pipe", "--collect", "--quiet", f"--unit={unit}")
    properties = {
        "Type": "exec",
        "CPUSchedulingPolicy": "idle",
        "IOSchedulingClass": "idle",
        "OOMScoreAdjust": "1000",
        "KillSignal": "SIGKILL",
        # Only for when nobody is left who would stop it in time.
        "RuntimeMaxSec": f"{timeout_s + _GRACE_S:.0f}",
    }
    if own := own_unit(host):
        # Without After=, which would have it wait for a oneshot unit (us) to end before it starts.
        properties["BindsTo"] = own
    yield from (f"--property={name}={value}" for name, value in properties.items())
    yield from (f"--setenv={name}={value}" for name, value in environment(env).items())
    yield "--"
    # systemd puts variables in (systemd.service(5)), and not every version can be told not to.
    yield from (word.replace("$", "$$") for word in words)


_PRIVATE = ("/tmp", "/var/tmp")  # noqa: S108  what PrivateTmp= hides (systemd.exec(5))

_UNIT = re.compile(r"/([^/]+\.(?:service|scope))(?:/|$)")
_CGROUP = re.compile(r"^(?:0:|\d+:name=systemd):(/.*)$", re.MULTILINE)


def confinement(host: Host) -> str | None:
    """Return in words what keeps this process from seeing or doing what process 1 can.

    None where there is nothing: a shell of root's, a unit that is not hardened. Process 1 itself
    may only be looked at by who has all of its capabilities or CAP_SYS_PTRACE; a hardened unit that
    has neither shows by its bounding set.
    """
    own, first = host.read_fields("/proc/self/status"), host.read_fields("/proc/1/status")
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


def _bounding_set(status: dict[str, str]) -> int:
    return int(status.get("CapBnd", "0"), 16)


def _mount_namespace(host: Host, process: str) -> str | None:
    try:
        return str(host.path(f"/proc/{process}/ns/mnt").readlink())
    except OSError:
        return None
