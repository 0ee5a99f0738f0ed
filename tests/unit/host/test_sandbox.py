"""What makes things for the whole machine is not run in a sandbox, what is evaluated in one."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import ProgramError, UnsafeError
from initadvisor.host import Host
from initadvisor.host.run import Priority, SystemRunner
from initadvisor.host.sandbox import (
    NoSandboxError,
    confinement,
    is_private,
    own_unit,
    run_inside,
    run_outside,
)
from tests.fakes.runner import FakeRunner
from tests.fixtures.waiting import HANGS_S, wait_until

if TYPE_CHECKING:
    from initadvisor.host.run import Completed

FREE = "Name:\tx\nCapBnd:\t000001ffffffffff\nNoNewPrivs:\t0\nSeccomp:\t0\n"


class Sandbox:
    """A machine on which this process is where a test puts it."""

    def __init__(self, root: Path) -> None:
        self.runner = FakeRunner(programs=["dracut", "systemd-run"])
        self.host = Host(root=root, runner=self.runner)
        self.own, self.first = root / "proc/self", root / "proc/1"
        for process in (self.own, self.first):
            (process / "ns").mkdir(parents=True)
            (process / "status").write_text(FREE)
            (process / "ns/mnt").symlink_to("mnt:[4026531841]")
        (self.first / "root").symlink_to("/")
        (root / "run/systemd/system").mkdir(parents=True)
        self.cgroup("0::/system.slice/initadvisord.service\n")

    def cgroup(self, text: str) -> None:
        """Say where this process is."""
        (self.own / "cgroup").write_text(text)

    def status(self, old: str, new: str) -> None:
        """Change what the kernel says of this process."""
        (self.own / "status").write_text(FREE.replace(old, new))

    def unshare(self) -> None:
        """Give this process a mount namespace of its own."""
        (self.own / "ns/mnt").unlink()
        (self.own / "ns/mnt").symlink_to("mnt:[4026532000]")

    def run(self, *argv: str, timeout_s: float = 900) -> None:
        """Run a program that writes below the machine's root."""
        directory = self.host.root
        run_outside(
            self.host, argv, directory=directory, timeout_s=timeout_s, env={"TMPDIR": "/a b"}
        )


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """A machine without a sandbox, so far."""
    return Sandbox(tmp_path)


def test_a_shell_of_root_s_is_no_sandbox(sandbox: Sandbox) -> None:
    assert confinement(sandbox.host) is None
    sandbox.runner.answer("dracut --force")
    sandbox.run("dracut", "--force")
    (call,) = sandbox.runner.calls
    assert (call.argv, call.priority, call.timeout_s) == (("dracut", "--force"), Priority.IDLE, 900)
    assert call.env == {"TMPDIR": "/a b"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("NoNewPrivs:\t0", "NoNewPrivs:\t1", "gain no privileges"),
        ("Seccomp:\t0", "Seccomp:\t2", "system calls are filtered"),
        ("000001ffffffffff", "000001fffffff7ff", "capabilities are bounded"),
    ],
)
def test_a_hardened_unit_is_a_sandbox(sandbox: Sandbox, old: str, new: str, said: str) -> None:
    sandbox.status(old, new)
    assert said in str(confinement(sandbox.host))


def test_what_process_1_may_not_do_either_is_no_sandbox(sandbox: Sandbox) -> None:
    everywhere = FREE.replace("Seccomp:\t0", "Seccomp:\t2")
    for process in (sandbox.own, sandbox.first):
        (process / "status").write_text(everywhere)
    assert confinement(sandbox.host) is None


def test_another_mount_namespace_is_a_sandbox(sandbox: Sandbox) -> None:
    sandbox.unshare()
    assert "mount namespace" in str(confinement(sandbox.host))


def test_that_process_1_may_not_be_looked_at_is_no_sandbox_yet(sandbox: Sandbox) -> None:
    (sandbox.first / "ns/mnt").unlink()
    assert confinement(sandbox.host) is None


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("0::/system.slice/initadvisord.service\n", "initadvisord.service"),
        ("0::/system.slice/initadvisord.service/supervised\n", "initadvisord.service"),
        ("0::/user.slice/user-0.slice/session-3.scope\n", "session-3.scope"),
        ("0::/user.slice/user-0.slice/user@0.service/app.slice/a.scope\n", "user@0.service"),
        ("5:devices:/x.service\n1:name=systemd:/system.slice/a.service\n0::/\n", "a.service"),
        ("0::/init.scope\n", "init.scope"),
        ("0::/\n", None),
    ],
)
def test_the_unit_is_that_of_the_control_group(
    sandbox: Sandbox, text: str, unit: str | None
) -> None:
    sandbox.cgroup(text)
    assert own_unit(sandbox.host) == unit


def test_in_a_sandbox_it_runs_in_a_unit_of_its_own(sandbox: Sandbox) -> None:
    sandbox.unshare()
    sandbox.runner.answer("systemd-run")
    sandbox.run("dracut", "--kernel-cmdline", "a=$b %i", timeout_s=900)
    (call,) = sandbox.runner.calls
    options = call.argv[1 : call.argv.index("--")]
    assert call.argv[call.argv.index("--") + 1 :] == (
        "/usr/bin/dracut",
        "--kernel-cmdline",
        "a=$$b %i",
    )
    assert {"--wait", "--pipe", "--collect", "--setenv=TMPDIR=/a b"} <= set(options)
    properties = dict(
        option.removeprefix("--property=").split("=", 1)
        for option in options
        if option.startswith("--property=")
    )
    assert properties == {
        "Type": "exec",
        "CPUSchedulingPolicy": "idle",
        "IOSchedulingClass": "idle",
        "OOMScoreAdjust": "1000",
        "KillSignal": "SIGKILL",
        "RuntimeMaxSec": "960",
        "BindsTo": "initadvisord.service",
    }
    assert call.timeout_s == 900


def test_its_failure_is_told_as_its_own(sandbox: Sandbox) -> None:
    sandbox.unshare()
    sandbox.runner.answer("systemd-run", stderr="dracut: no space left\n", returncode=3)
    with pytest.raises(
        ProgramError, match=r"^/usr/bin/dracut --force exited with status 3: dracut: no space left$"
    ):
        sandbox.run("dracut", "--force")


@pytest.mark.parametrize("error", [ProgramError("took too long"), KeyboardInterrupt()])
def test_the_unit_is_stopped_when_the_run_is_cut_short(
    sandbox: Sandbox, error: Exception | KeyboardInterrupt, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.unshare()
    sandbox.runner.answer("systemctl stop")
    run = FakeRunner.run

    def cut_short(self: FakeRunner, argv: tuple[str, ...], **rest: object) -> object:
        if argv[0] == "systemd-run":
            self.calls.clear()
            units.extend(word.partition("=")[2] for word in argv if word.startswith("--unit="))
            raise error
        return run(self, argv, **rest)  # type: ignore[arg-type]

    units: list[str] = []
    monkeypatch.setattr(FakeRunner, "run", cut_short)
    with pytest.raises(type(error)):
        sandbox.run("dracut")
    assert sandbox.runner.argvs == [("systemctl", "stop", *units)]
    assert units[0].startswith("initadvisor-")


@pytest.mark.parametrize("lacking", ["systemd-run", "systemd"])
def test_without_a_way_out_it_is_refused(sandbox: Sandbox, lacking: str) -> None:
    sandbox.unshare()
    if lacking == "systemd":
        (sandbox.host.root / "run/systemd/system").rmdir()
    else:
        sandbox.runner.programs = ["dracut"]
    with pytest.raises(UnsafeError, match="not running dracut in a sandbox"):
        sandbox.run("dracut")


def test_a_program_that_is_not_there_is_said_to_be_missing(sandbox: Sandbox) -> None:
    sandbox.unshare()
    sandbox.runner.answer("mkinitcpio", error=ProgramError("not installed"))
    with pytest.raises(ProgramError, match="not installed"):
        sandbox.run("mkinitcpio")


def test_a_directory_that_process_1_does_not_have_is_refused(sandbox: Sandbox) -> None:
    sandbox.unshare()
    (sandbox.first / "root").unlink()
    (sandbox.first / "root").symlink_to(sandbox.host.root)
    with pytest.raises(UnsafeError, match="a directory of this sandbox only"):
        sandbox.run("dracut")
    same_name = sandbox.host.path(f"/proc/1/root{sandbox.host.root}")
    same_name.mkdir(parents=True)
    with pytest.raises(UnsafeError, match="a directory of this sandbox only"):
        sandbox.run("dracut")


def test_where_it_may_not_be_known_temporary_directories_are_private(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("tmp", "var/tmp", "var/cache"):
        (sandbox.host.root / name).mkdir(parents=True)

    def denied(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(type(sandbox.host.root), "stat", denied)
    assert is_private(sandbox.host, sandbox.host.root / "tmp/x")
    assert is_private(sandbox.host, sandbox.host.root / "var/tmp")
    assert not is_private(sandbox.host, sandbox.host.root / "var/cache")


_SAID = b"@"


def inside(host: Host, script: str, *, timeout_s: float = HANGS_S) -> Completed:
    """Run a script in a sandbox."""
    return run_inside(host, ["sh", "-c", f"echo @; {script}"], word=_SAID, timeout_s=timeout_s)


@pytest.fixture
def real(tmp_path: Path) -> Host:
    """This machine's programs, on a machine without systemd."""
    return Host(root=tmp_path, runner=SystemRunner())


@pytest.mark.parametrize(
    "place", ["/", "/etc", "/usr", "/var", "/home", "/root", "/run", "/dev", "/proc", "/sys"]
)
def test_nothing_of_the_system_can_be_written_inside(real: Host, place: str) -> None:
    done = inside(real, f"touch {place}/initadvisor-was-here")
    assert done.returncode != 0
    assert not Path(place, "initadvisor-was-here").exists()


def test_every_file_system_is_read_only_inside_but_those_made_for_it(real: Host) -> None:
    done = inside(real, "cut -d' ' -f5,6 /proc/self/mountinfo")
    last = dict(line.split()[:2] for line in done.stdout.decode().splitlines()[1:])
    writable = {place for place, options in last.items() if "ro" not in options.split(",")}
    covered = {place for place in writable if place.startswith(("/tmp/", "/dev/", "/proc/"))}  # noqa: S108
    assert writable - covered == {"/tmp", "/var/tmp"}  # noqa: S108
    assert inside(real, "touch /tmp/x /var/tmp/x /dev/shm/x").returncode == 0


_MOUNTED = r"""
mount -t tmpfs x /mnt
mkdir '/mnt/a b\c'
mount -t tmpfs x '/mnt/a b\c'
exec "$@"
"""
_LOOK = r"""
import sys
from pathlib import Path
from initadvisor.host import Host
from initadvisor.host.sandbox import run_inside
argv = ["sh", "-c", "echo @; cd '/mnt/a b\\c' && ! touch x && echo kept"]
print(run_inside(Host(root=Path(sys.argv[1])), argv, word=b"@", timeout_s=1800).stdout)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="it takes root to mount something")
def test_a_mount_point_of_any_name_is_read_only_inside(tmp_path: Path) -> None:
    look = [sys.executable, "-c", _LOOK, str(tmp_path)]
    done = SystemRunner().run(
        ["unshare", "--mount", "sh", "-e", "-c", _MOUNTED, "sh", *look],
        timeout_s=HANGS_S,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert b"kept" in done.stdout


def test_there_is_no_network_and_no_device_inside(real: Host) -> None:
    done = inside(real, "tail -n +3 /proc/net/dev | cut -d: -f1; ls /dev")
    words = done.stdout.decode().split()
    assert set(words) == {"@", "lo", "fd", "fstab", "null", "random", "shm", "urandom", "zero"}


def test_no_service_of_the_machine_can_be_asked_from_inside(real: Host) -> None:
    assert any(Path("/run").iterdir())  # where their sockets are
    assert inside(real, "ls -A /run").stdout == b"@\n"


def test_who_runs_inside_has_no_rights_but_reading(real: Host) -> None:
    script = "grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs)' /proc/self/status"
    lines = inside(real, script).stdout.decode().splitlines()[1:]
    status = {name: int(value, 16) for name, value in (line.split(":") for line in lines)}
    reads_all = 1 << 2 if os.geteuid() == 0 else 0  # CAP_DAC_READ_SEARCH
    assert status == {
        **dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), reads_all),
        "NoNewPrivs": 1,
    }
    assert inside(real, "cat /etc/shadow").returncode == (0 if reads_all else 1)


@pytest.mark.parametrize("end", ["exit 0", "kill -9 $$"])
def test_nothing_is_left_of_it(real: Host, tmp_path: Path, end: str) -> None:
    name = f"initadvisor-test-{tmp_path.name}"
    inside(real, f"(setsid sh -c 'sleep 3600; : {name}' >/dev/null 2>&1 &); sleep 0.2; {end}")
    assert wait_until(lambda: not any(name in command for command in _command_lines()))


def test_what_takes_too_long_is_killed_with_all_it_has_started(real: Host, tmp_path: Path) -> None:
    name = f"initadvisor-test-{tmp_path.name}"
    with pytest.raises(ProgramError, match="did not end within 1 s"):
        inside(real, f"setsid sh -c 'sleep 3600; : {name}' & wait", timeout_s=1)
    assert wait_until(lambda: not any(name in command for command in _command_lines()))


def test_it_sees_no_process_of_the_machine(real: Host) -> None:
    done = inside(real, "kill -0 -1; ls -d /proc/[0-9]*")
    assert len(done.stdout.split()) < 8


def _command_lines() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_text(errors="replace"))
    return found


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be root, whoever runs the tests."""
    monkeypatch.setattr(Host, "is_root", True)


@pytest.mark.usefixtures("as_root")
def test_systemd_is_asked_for_a_sandbox(sandbox: Sandbox) -> None:
    sandbox.runner.programs = ["sh", "systemd-run", "unshare"]
    sandbox.runner.answer("systemd-run", "@ done")
    done = run_inside(sandbox.host, ["sh", "-c", "echo $X"], word=_SAID, timeout_s=7)
    assert (done.argv, done.stdout) == (("/usr/bin/sh", "-c", "echo $X"), b"@ done")
    (call,) = sandbox.runner.calls
    assert call.timeout_s == 7
    assert call.argv[call.argv.index("--") + 1 :] == ("/usr/bin/sh", "-c", "echo $$X")
    options = call.argv[1 : call.argv.index("--")]
    assert {"--wait", "--pipe", "--collect", "--quiet"} <= set(options)
    properties = dict(
        option.removeprefix("--property=").split("=", 1)
        for option in options
        if option.startswith("--property=")
    )
    assert (
        properties.items()
        >= {
            "DynamicUser": "yes",
            "ProtectSystem": "strict",
            "ProtectHome": "read-only",
            "PrivateTmp": "yes",
            "PrivateDevices": "yes",
            "PrivateNetwork": "yes",
            "NoNewPrivileges": "yes",
            "CapabilityBoundingSet": "CAP_DAC_READ_SEARCH",
            "RestrictNamespaces": "yes",
            "KillSignal": "SIGKILL",
            "RuntimeMaxSec": "67",
            "TasksMax": "256",
            "BindsTo": "initadvisord.service",
        }.items()
    )
    assert properties["SystemCallFilter"].startswith("~@network-io ")


@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize("error", [ProgramError("took too long"), KeyboardInterrupt()])
def test_the_sandbox_s_unit_is_stopped_when_the_run_is_cut_short(
    sandbox: Sandbox, error: Exception
) -> None:
    sandbox.runner.programs = ["sh", "systemd-run"]
    sandbox.runner.answer("systemd-run", error=error)
    sandbox.runner.answer("systemctl stop")
    with pytest.raises(type(error)):
        inside(sandbox.host, "sleep 3600")
    started, stopped = sandbox.runner.argvs
    assert f"--unit={stopped[2]}" in started


@pytest.mark.usefixtures("as_root")
def test_where_systemd_makes_no_sandbox_namespaces_do(sandbox: Sandbox) -> None:
    sandbox.runner.programs = ["sh", "systemd-run", "unshare"]
    sandbox.runner.answer("systemd-run", stderr="Unknown assignment\n", returncode=1)
    sandbox.runner.answer("unshare", "@")
    assert inside(sandbox.host, ":").stdout == b"@"
    command = sandbox.runner.argvs[-1]
    assert {"--mount", "--net", "--ipc", "--pid", "--kill-child"} <= set(command)
    assert "--user" not in command
    [user] = [word.removeprefix("--reuid=") for word in command if word.startswith("--reuid=")]
    assert int(user) in range(61184, 65520)


def test_another_user_has_a_user_namespace_and_asks_no_systemd(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Host, "is_root", False)
    sandbox.runner.programs = ["sh", "systemd-run", "unshare"]
    sandbox.runner.answer("unshare", "@")
    inside(sandbox.host, ":")
    [command] = sandbox.runner.argvs
    assert {"--user", "--map-root-user"} <= set(command)
    assert not any(word.startswith("--reuid=") for word in command)


@pytest.mark.usefixtures("as_root")
def test_without_a_sandbox_the_program_is_not_run_and_why_is_said(sandbox: Sandbox) -> None:
    sandbox.runner.programs = ["sh", "systemd-run", "unshare"]
    sandbox.runner.answer("systemd-run", stderr="a\nAccess \x1b denied\n", returncode=1)
    sandbox.runner.answer("unshare", stderr="unshare: not permitted\n", returncode=1)
    with pytest.raises(NoSandboxError, match=r"Access \\x1b denied; unshare: not permitted$"):
        inside(sandbox.host, ":")
    sandbox.runner.programs = ["sh"]
    with pytest.raises(NoSandboxError, match=r"unshare is not installed$"):
        inside(sandbox.host, ":")
