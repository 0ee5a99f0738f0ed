"""Under a real systemd: the daemon is started for notes, ends, and is not started in a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fixtures.systemd_container import run_under_systemd

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.tools, pytest.mark.xdist_group("systemd")]

PRELUDE = r"""
import os, re, subprocess, sys, time
from pathlib import Path

REPOSITORY = Path(os.getcwd())
STATE = Path("/var/lib/initadvisor")
QUEUE, TASKS, STARTS = STATE / "queue", STATE / "tasks", Path("/mnt/starts")
SERVICE = "initadvisord.service"


def systemctl(*words, check=True):
    done = subprocess.run(["systemctl", *words], capture_output=True, text=True)
    if done.returncode != 0 and check:
        journal = ["journalctl", "--no-pager", "-o", "cat", "-n", "30", "-u", SERVICE]
        said = subprocess.run(journal, capture_output=True, text=True).stdout
        raise AssertionError(f"{done.stderr}\n{said}")
    return done.stdout


def install(program, **changed):
    # Each start leaves a byte. The interpreter may be in somebody's home directory.
    for path in (REPOSITORY / "systemd").glob("initadvisord*"):
        text = path.read_text().replace("ConditionVirtualization=!container\n", "")
        text = text.replace("ProtectHome=yes\n", "")
        # On a busy machine a nice process may get a hundredth of a processor.
        text = text.replace("Nice=19\n", "TimeoutStartSec=infinity\n")
        text = re.sub("ExecStart=.*", f"ExecStart={program}", text)
        text = text.replace(
            "[Service]\n",
            f"[Service]\nWorkingDirectory={REPOSITORY}\nReadWritePaths=/mnt\n"
            "ExecStartPre=/bin/sh -c 'printf . >>/mnt/starts'\n",
        )
        for key, value in changed.items():
            text = re.sub(f"(?m)^{key}=.*", f"{key}={value}", text)
        Path("/run/systemd/system", path.name).write_text(text)
    STARTS.write_text("")
    systemctl("stop", "initadvisord.path", check=False)
    subprocess.run(["rm", "-rf", STATE], check=True)
    systemctl("daemon-reload")
    systemctl("reset-failed")
    systemctl("start", "initadvisord.path")


def python(code):
    Path("/mnt/daemon.py").write_text(code)
    return f"{sys.executable} /mnt/daemon.py"


def note(name="kernel-added@6.1.0"):
    subprocess.run([REPOSITORY / "hooks/queue", *name.split("@")], check=True)


def show(name, unit=SERVICE):
    return systemctl("show", "--value", f"--property={name}", unit).strip()


def until(condition, what, seconds=1800):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, (what, systemctl("status", SERVICE, check=False))
        time.sleep(0.05)


def starts():
    return STARTS.stat().st_size


def ended():
    return not any(QUEUE.iterdir()) and show("ActiveState") in ("inactive", "failed")


def stays(count):
    # Path units that see their condition again start their service at once.
    time.sleep(2.0)
    assert starts() == count, starts()
"""

DAEMON = r"""
FAKE = '''
import sys, time
from pathlib import Path
from initadvisor.daemon import loop
from initadvisor.daemon.loop import Daemon
from initadvisor.host import Host
from initadvisor.daemon.planning import TERMS, Needs, Terms
from initadvisor.daemon.notes import Task

class Worker:
    def do(self, job):
        with open("/mnt/did", "a") as file:
            file.write(f"{job}\\n")
        while Path("/mnt/hang").exists() and job.task is Task.BUILD:
            time.sleep(0.1)  # a signal just before a sleep is seen after it
        return ()

if Path("/mnt/hang").exists():
    TERMS[Task.BUILD] = Terms(needs=TERMS[Task.BUILD].needs, limit_s=0.5)
look = lambda host, needs: needs & (Needs.POWER if Path("/mnt/battery").exists() else Needs(0))
Daemon(host=Host(), work=Worker().do, look=look).run()
'''
DID, BATTERY, HANG = Path("/mnt/did"), Path("/mnt/battery"), Path("/mnt/hang")


def did():
    # A second note may come before or after the first one was taken in.
    return sorted(set(DID.read_text().split()))
"""

FOR_REAL = (
    PRELUDE
    + r"""
REAL = '''
from initadvisor.daemon.loop import Daemon
from initadvisor.daemon.work import AdvisorsWork
from initadvisor.host import Host
from initadvisor.daemon.planning import Needs

host = Host()
Daemon(host=host, work=AdvisorsWork(host=host).do, look=lambda host, needs: Needs(0)).run()
'''
install(python(REAL))
note()
until(lambda: starts() == 1 and ended(), "it ends")
assert show("Result") == "success", show("Result")
left = sorted(path.name for path in TASKS.iterdir())
stays(1)
print("left:", *left)
print("retried:", show("ActiveState", "initadvisord-retry.timer"))
systemctl("stop", "initadvisord-retry.timer")
"""
)

STARTED = (
    PRELUDE
    + DAEMON
    + r"""
install(python(FAKE))
note()
note()
until(lambda: DID.exists() and "advise" in DID.read_text() and ended(), "it works")
assert not TASKS.exists()
count = starts()
stays(count)
print("worked off by", count, "starts:", *did())
assert show("ActiveState", "initadvisord-retry.timer") == "inactive"

BATTERY.touch()
DID.write_text("")
note("kernel-removed@6.1.0")
note("kernel-added@6.2.0")
until(lambda: starts() > count and ended(), "it leaves")
left = sorted(path.name for path in TASKS.iterdir())
count = starts()
stays(count)
print("on battery:", *did(), "left:", *left)
assert show("ActiveState", "initadvisord-retry.timer") == "inactive"

BATTERY.unlink()
rule = (REPOSITORY / "systemd/90-initadvisor.rules").read_text()
command = re.search('RUN[+]="([^"]*)"', rule)[1]
assert 'TEST=="/var/lib/initadvisor/tasks"' in rule
subprocess.run(command.split(), check=True)
until(lambda: starts() > count and ended() and not TASKS.exists(), "it goes on")
print("plugged in:", *did())

# Where systemd has made a directory of what it is to watch, the daemon puts a link.
WATCHED, IMAGE = STATE / "image", Path("/mnt/image")
IMAGE.write_text("made")
if WATCHED.is_dir():
    WATCHED.rmdir()
WATCHED.symlink_to(IMAGE)
until(lambda: starts() > count and ended() and show("SubState", "initadvisord.path") == "waiting",
      "the path unit looks at the link")
time.sleep(1.0)
for how in "over it", "into it":
    count = starts()
    if how == "over it":
        Path("/mnt/new").write_text("made anew")
        Path("/mnt/new").rename(IMAGE)
    else:
        IMAGE.write_text("made once more")
    Path("/mnt/beside").write_text("no image")
    until(lambda: starts() > count, f"a new image is noticed, written {how}")
    until(lambda: ended() and show("SubState", "initadvisord.path") == "waiting", "it ends")
    count = starts()
    Path("/mnt/beside").write_text("still no image")
    (STATE / "other").write_text("nor here")
    stays(count)
print("made by hand: noticed")

systemctl("start", "initadvisord.timer", "initadvisord-retry.timer")
print("timers:", show("ActiveState", "initadvisord.timer"),
      show("ActiveState", "initadvisord-retry.timer"))
"""
)

STOPPED = (
    PRELUDE
    + DAEMON
    + r"""
HANG.touch()
install(python(FAKE), WatchdogSec="5", RestartSec="100ms")
note()
until(lambda: show("StatusText") == "build: begins, Linux 6.1.0", "it works")
until(lambda: "lab@6.1.0" in DID.read_text(), "the watchdog ends it, and another run goes on")
until(ended, "it ends")
print("hung:", DID.read_text().count("build@6.1.0"), "times; starts:", starts())
assert not TASKS.exists()

install(python(FAKE), WatchdogSec="1h")
DID.write_text("")
note()
until(lambda: "build@6.1.0" in DID.read_text(), "it works")
systemctl("stop", SERVICE)
assert show("Result") == "success", show("Result")
print("stopped, left:", *sorted(path.name for path in TASKS.iterdir()))
assert (TASKS / "build@6.1.0").stat().st_size == 0
HANG.unlink()
systemctl("start", SERVICE)
until(lambda: ended() and not TASKS.exists(), "the next start goes on")
"""
)

LIMITED = (
    PRELUDE
    + r"""
install("/bin/true", Type="oneshot", WatchdogSec="0", Restart="no")
note()
until(lambda: show("ActiveState", "initadvisord.path") == "failed", "systemd gives up")
print("given up after", starts(), "starts:", show("Result", "initadvisord.path"))
assert starts() <= 32
stays(starts())
"""
)

SANDBOX = (
    PRELUDE
    + r"""
from initadvisor.vm.machine import DIES_WITH_US


def inside(name, command):
    # Whatever the exit status: only what it says counts.
    command = " ".join(("-/usr/bin/timeout 20", *DIES_WITH_US, command))
    install(command, Type="oneshot", WatchdogSec="0", Restart="no")
    path = Path("/run/systemd/system", SERVICE)
    told = f"StandardOutput=truncate:/mnt/{name}\nStandardError=inherit\n"
    path.write_text(path.read_text() + told)
    systemctl("daemon-reload")
    systemctl("start", SERVICE, check=False)
    return Path("/mnt", name).read_text(errors="replace")


uml = inside("uml", "/usr/bin/linux.uml mem=96M panic=1 con=null con0=null,fd:1 root=98:0")
print("uml:", "Linux version" in uml, uml[-200:] if "Linux version" not in uml else "")
qemu = "/usr/bin/qemu-system-x86_64 -accel tcg -display none -serial stdio -nodefaults -m 64"
code = bytes.fromhex("fa b0 21 ba f8 03 ee f4 eb fd")  # '!' to the serial line
Path("/mnt/disk").write_bytes(code.ljust(510, b"\0") + b"\x55\xaa")
disk = "-drive file=/mnt/disk,format=raw,if=ide -snapshot"
said = inside("tcg", f"{qemu} {disk}")
print("tcg:", "!" in said, said[-200:] if "!" not in said else "")
print(inside("written", "/bin/sh -c 'touch /etc/ours /boot/ours && echo may; touch /usr/ours'"))
"""
)

EFI_VARIABLES = (
    PRELUDE
    + r"""
variables = Path("/sys/firmware/efi/efivars")
subprocess.run(["mount", "-o", "remount,rw", "/sys"], check=True)
variables.mkdir(parents=True)
subprocess.run(["mount", "-t", "tmpfs", "variables", variables], check=True)
for unit in sorted((REPOSITORY / "systemd").glob("*.service")):
    kept = re.findall(r"^(?:Protect|Read|Private)\w+=.*$", unit.read_text(), re.MULTILINE)
    words = [word for line in kept for word in ("-p", line)]
    tried = f"touch {variables}/ours && echo may; touch {variables.parent}/ours || echo not"
    command = ["systemd-run", "--wait", "--pipe", "--quiet", *words, "sh", "-c", tried]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    print(unit.name, *said.split())
"""
)


def test_the_real_daemon_takes_notes_in_and_leaves_what_fails_to_a_timer(tmp_path: Path) -> None:
    """In a container nothing may be settled, and there is no image: advising fails."""
    said = run_under_systemd(FOR_REAL, tmp_path)
    assert "left: advise\n" in said
    assert "retried: active\n" in said


def test_it_is_started_once_for_what_was_noted_whatever_it_leaves(tmp_path: Path) -> None:
    said = run_under_systemd(STARTED, tmp_path)
    assert "starts: advance advise build@6.1.0 lab@6.1.0 settle watch\n" in said
    left = "advance advise build@6.2.0 lab@6.2.0"
    assert f"on battery: prune settle left: {left}\n" in said
    assert f"plugged in: {left} prune settle\n" in said
    assert "made by hand: noticed\n" in said
    assert said.endswith("timers: active active\n")


def test_what_hangs_is_ended_and_given_up_and_what_is_stopped_goes_on(tmp_path: Path) -> None:
    said = run_under_systemd(STOPPED, tmp_path)
    assert "hung: 3 times; starts: 4\n" in said
    assert "stopped, left: advance advise build@6.1.0 lab@6.1.0\n" in said


def test_a_daemon_that_does_not_take_in_its_notes_is_given_up(tmp_path: Path) -> None:
    assert "starts: unit-start-limit-hit\n" in run_under_systemd(LIMITED, tmp_path)


def test_virtual_machines_work_in_its_sandbox(tmp_path: Path) -> None:
    """User-mode Linux traces its processes, and QEMU without KVM writes code and runs it."""
    said = run_under_systemd(SANDBOX, tmp_path)
    assert "uml: True" in said, said
    assert "tcg: True" in said, said
    assert "may\n" in said
    assert "'/usr/ours': Read-only file system" in said


def test_whoever_arms_a_boot_may_write_efi_variables_and_nothing_else_of_the_kernel(
    tmp_path: Path,
) -> None:
    said = run_under_systemd(EFI_VARIABLES, tmp_path)
    assert said.splitlines() == [
        "initadvisor-measure.service not",
        "initadvisor-reboot.service not",
        "initadvisor-settle.service may not",
        "initadvisor-sleep.service may not",
        "initadvisord.service may not",
    ]
