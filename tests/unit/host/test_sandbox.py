"""What makes things for the whole machine is not run in a sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import ProgramError, UnsafeError
from initadvisor.host import Host
from initadvisor.host.run import Priority
from initadvisor.host.sandbox import confinement, is_private, own_unit, run_outside
from tests.fakes.runner import FakeRunner

if TYPE_CHECKING:
    from pathlib import Path

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
