"""Programs outside of the sandbox that this process may be in, and programs inside of one.

A hardened unit hides modules, devices and directories; what is made there for the whole machine
lacks them. systemd starts the program in a transient unit instead. A unit that is to do this needs
AF_UNIX and the system bus.

What only has to be evaluated gets a sandbox: another transient unit, or namespaces of its own where
there is no systemd to ask (unshare(1)).
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from initadvisor.core.errors import InitadvisorError, ProgramError, UnsafeError
from initadvisor.core.text import shown
from initadvisor.host.process import environment
from initadvisor.host.run import Completed, Priority, failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import IO

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
    if not _manager_starts_units(host):
        msg = f"not running {argv[0]} in a sandbox ({reason}): it would not see the whole machine"
        raise UnsafeError(msg, hint="run it from a shell of root's")
    if is_private(host, directory):
        msg = f"not running {argv[0]}: {directory} is a directory of this sandbox only ({reason})"
        raise UnsafeError(msg, hint="let CACHE_DIRECTORY be outside of /tmp and /var/tmp")
    log.info("running %s in a unit of its own: %s", argv[0], reason)
    words = (str(program), *(str(word) for word in argv[1:]))
    done = _run_in_unit(host, words, _OUTSIDE, timeout_s=timeout_s, env=env)
    if done.returncode != 0:
        raise failure(done)
    return done


_OUTSIDE: Final = {
    "CPUSchedulingPolicy": "idle",
    "IOSchedulingClass": "idle",
    "OOMScoreAdjust": "1000",
}

_PROCESSES: Final = 256
_USERS: Final = range(61184, 65520)
"""Those that systemd gives to units without a user of their own (systemd.exec(5), DynamicUser=)."""

_INSIDE: Final = {
    # A user of its own, who may write nowhere else: the file system is read-only, /tmp private.
    "DynamicUser": "yes",
    "PrivateTmp": "yes",
    "ProtectSystem": "strict",
    "ProtectHome": "read-only",
    # Only root can read some of what a configuration reads.
    "AmbientCapabilities": "CAP_DAC_READ_SEARCH",
    "CapabilityBoundingSet": "CAP_DAC_READ_SEARCH",
    "NoNewPrivileges": "yes",
    "PrivateDevices": "yes",
    "PrivateNetwork": "yes",
    "ProtectControlGroups": "yes",
    "ProtectKernelLogs": "yes",
    "ProtectKernelModules": "yes",
    "ProtectKernelTunables": "yes",
    "ProtectProc": "invisible",
    "KeyringMode": "private",
    "RestrictNamespaces": "yes",
    "RestrictRealtime": "yes",
    "RestrictSUIDSGID": "yes",
    "SystemCallFilter": "~@network-io @clock @debug @module @mount @raw-io @reboot @swap",
    "SystemCallErrorNumber": "EPERM",
    "OOMScoreAdjust": "1000",
    "TasksMax": f"{_PROCESSES}",
    # Each is told of in the journal, and there are several in a run.
    "LogLevelMax": "warning",
}

# Arguments: the program. What is mounted is made read-only first, all at once as far as mount(8)
# does that (not /, for one), then one by one; what is covered by other mounts cannot be reached.
# What has to be writable, and what there is of devices, is put over it, and nothing over /run: its
# sockets lead to who does as asked (a user's own systemd), read-only or not. The program is a child
# of process 1: signals end it, and whatever it has started ends with process 1.
_ENTER: Final = r"""
set -eu
writable() {
    grep -v ' - autofs ' /proc/self/mountinfo | while read -r _ _ _ _ point options _; do
        case $options:$point in
            ro[,:]* | *:/tmp) ;;
            *) printf '%s\n' "$options,ro $point" ;;
        esac
    done
}
mount -n -t tmpfs -o mode=755,nosuid initadvisor /tmp
writable | sed 's/\(.*\) \(.*\)/none \2 none remount,bind,\1 0 0/' >/tmp/fstab
mount -n -a -T /tmp/fstab 2>/dev/null || :
writable | sed 's/\\/\\0/g' | while read -r options point; do
    point=$(printf '%b.' "$point")
    point=${point%.}
    if ! mount -n -o "remount,bind,$options" "$point" && mountpoint -q "$point"; then
        exit 1
    fi 2>/dev/null
done
mkdir /tmp/shm
ln -s /proc/self/fd /tmp/fd
: >/tmp/null >/tmp/zero >/tmp/random >/tmp/urandom
cat >/tmp/fstab <<END
/dev/null /tmp/null none bind 0 0
/dev/zero /tmp/zero none bind 0 0
/dev/random /tmp/random none bind 0 0
/dev/urandom /tmp/urandom none bind 0 0
initadvisor /tmp/shm tmpfs mode=1777,nosuid,nodev,size=64m 0 0
initadvisor /var/tmp tmpfs mode=1777,nosuid,nodev,size=64m 0 0
initadvisor /proc proc ro,nosuid,nodev,noexec 0 0
END
[ ! -d /run ] || echo 'initadvisor /run tmpfs ro,nosuid,nodev,mode=755 0 0' >>/tmp/fstab
mount -n -a -T /tmp/fstab
mount -n -o remount,bind,ro,nosuid /tmp
mount -n --move /tmp /dev
mount -n -t tmpfs -o mode=1777,nosuid,nodev,size=64m initadvisor /tmp
cd /
unset TMPDIR
"$@"
exit $?
"""


class NoSandboxError(InitadvisorError):
    """There is no sandbox to be had here; the message says why."""


def run_inside(
    host: Host,
    argv: Sequence[str | Path],
    *,
    word: bytes,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    stdin: IO[bytes] | None = None,
) -> Completed:
    """Run one program where it can change nothing and nothing of it is left.

    The whole system is read-only, /tmp is empty, there is no network, and no device of the machine.
    Sockets of services cannot be used: systemd filters the calls, else /run is empty.
    The program says ``word`` first: where it does not, that was no sandbox. It may fail.

    Raises ``NoSandboxError`` where none can be had, as for an ordinary user without user
    namespaces, and ``ProgramError`` when the program takes too long or talks too much.
    """
    reasons = []
    if host.is_root and _manager_starts_units(host) and (found := host.runner.which(str(argv[0]))):
        words = (str(found), *(str(each) for each in argv[1:]))
        done = _run_in_unit(host, words, _INSIDE, timeout_s=timeout_s, env=env, stdin=stdin)
        if done.stdout.startswith(word):
            return done
        reasons.append(_last_words("systemd-run", done))
        if stdin:
            stdin.seek(0)
    if host.runner.which("unshare") is None:
        reasons.append("unshare is not installed")
    else:
        command = (*_namespaces(host), "sh", "-c", _ENTER, "sh", *_powerless(host), *argv)
        done = host.runner.run(command, timeout_s=timeout_s, check=False, env=env, stdin=stdin)
        if done.stdout.startswith(word):
            return done
        reasons.append(_last_words("unshare", done))
    msg = f"no sandbox can be made here: {'; '.join(reasons)}"
    raise NoSandboxError(msg)


def _namespaces(host: Host) -> tuple[str, ...]:
    user = () if host.is_root else ("--user", "--map-root-user")
    spaces = ("--mount", "--net", "--ipc", "--uts", "--pid", "--fork", "--kill-child")
    return ("unshare", *user, *spaces, "--propagation", "private")


def _powerless(host: Host) -> tuple[str, ...]:
    """Return what makes nobody of root, who may read what root may; another user stays itself."""
    words = ["prlimit", f"--nproc={_PROCESSES}", "setpriv", "--no-new-privs"]
    kept = "-all"
    if host.is_root:
        kept = "-all,+dac_read_search"
        # What others run as the same user would count, too.
        user = _USERS[os.getpid() % len(_USERS)]
        words += [f"--reuid={user}", f"--regid={user}", "--clear-groups", f"--ambient-caps={kept}"]
    return (*words, f"--inh-caps={kept}", f"--bounding-set={kept}")


def _last_words(program: str, done: Completed) -> str:
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return shown(said[-1])[:200] if said else f"{program} exited with status {done.returncode}"


def _manager_starts_units(host: Host) -> bool:
    there = host.path("/run/systemd/system").is_dir()
    return there and host.runner.which("systemd-run") is not None


def _run_in_unit(
    host: Host,
    words: tuple[str, ...],
    properties: Mapping[str, str],
    *,
    timeout_s: float,
    env: Mapping[str, str] | None,
    stdin: IO[bytes] | None = None,
) -> Completed:
    """Run a program in a transient unit, which is stopped when the run is cut short."""
    unit = f"initadvisor-{uuid.uuid4().hex[:12]}.service"
    command = tuple(_transient(host, unit, words, properties, timeout_s=timeout_s, env=env))
    try:
        done = host.runner.run(command, timeout_s=timeout_s, check=False, stdin=stdin)
    except BaseException:
        # Who asked systemd for the unit is dead; the unit is not.
        with contextlib.suppress(ProgramError):
            host.runner.run(["systemctl", "stop", unit], timeout_s=_STOP_TIMEOUT_S, check=False)
        raise
    return replace(done, argv=words)


def _transient(
    host: Host,
    unit: str,
    words: Sequence[str],
    properties: Mapping[str, str],
    *,
    timeout_s: float,
    env: Mapping[str, str] | None,
) -> Iterator[str]:
    """Return the command: environment, priority and time limit as ``SystemRunner.run`` has them."""
    yield from ("systemd-run", "--wait", "--pipe", "--collect", "--quiet", f"--unit={unit}")
    yield f"--description={words[0]} of initadvisor"
    every = {
        "Type": "exec",
        "KillSignal": "SIGKILL",
        # Only for when nobody is left who would stop it in time.
        "RuntimeMaxSec": f"{timeout_s + _GRACE_S:.0f}",
        **properties,
    }
    if own := own_unit(host):
        # Without After=, which would have it wait for a oneshot unit (us) to end before it starts.
        every["BindsTo"] = own
    yield from (f"--property={name}={value}" for name, value in every.items())
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
