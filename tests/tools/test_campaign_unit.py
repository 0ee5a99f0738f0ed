"""The units of a campaign do what they have to in their sandboxes, under a real systemd."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fixtures.systemd_container import run_under_systemd

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.tools, pytest.mark.xdist_group("systemd")]

PRELUDE = r"""
import signal, subprocess, sys, time
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))

def call(*words):
    return subprocess.run(words, capture_output=True, text=True)

def install(unit, code):
    '''Have a unit that is shipped run this in its sandbox.'''
    name = unit.removesuffix(".service")
    Path(f"/mnt/{name}.py").write_text(code)
    # How soon it ends rests on what else is at work: it neither gives way nor has a time limit.
    dropped = (
        "Condition", "Wants=", "After=", "Exec", "RestartSec", "TimeoutStart", "Nice=", "IOSched"
    )
    text = Path("systemd", unit).read_text()
    kept = [line for line in text.splitlines() if not line.startswith(dropped)]
    kept += [
        "[Service]", f"ExecStart={sys.executable} /mnt/{name}.py",
        f"WorkingDirectory={Path.cwd()}",
        "StandardOutput=append:/mnt/unit-said", "StandardError=inherit", "RestartSec=1s",
        # Only for the test: where its interpreter and its code may be, and where it writes.
        "ProtectHome=read-only", "ReadWritePaths=/mnt", f"Environment=PYTHONPATH={Path.cwd()}",
    ]
    Path("/run/systemd/system", unit).write_text("\n".join(kept))
    subprocess.run(["systemctl", "daemon-reload"], check=True)

def said():
    path = Path("/mnt/unit-said")
    return path.read_text() if path.exists() else ""

def until(there):
    end = time.monotonic() + 120
    while not there() and time.monotonic() < end:
        time.sleep(0.05)
    return bool(there())

def sub_state():
    return call("systemctl", "show", "-P", "SubState", "initadvisor-reboot.service").stdout.strip()

subprocess.run(["systemctl", "start", "dbus.service", "systemd-logind.service"], check=True)
"""

IN_THE_UNIT = (
    PRELUDE
    + r"""
INSIDE = '''
import hashlib, os
from pathlib import Path
from initadvisor.host import Host
from initadvisor.host.sandbox import confinement
from initadvisor.campaign.campaign import TrialCandidate
from initadvisor.core.settings import Setting
from initadvisor.trial.reboot import arrange_reboot
from initadvisor.lab.observing import Unseen
from initadvisor.advise.recommend import Request
from initadvisor.advise.recommend import recommend
from initadvisor.trial.slot import clear_slot, fill_slot, slot_beside
host = Host()
assert confinement(host)
assert host.cache_dir() == Path("/var/cache/initadvisor")
only = (Setting.parse("gzip"), Setting.parse("zstd -3"))
found = recommend(host, Request(sample=True, only=only), observer=Unseen())
print("weighed:", len(found.rows), flush=True)
image = host.cache_dir() / "image"
image.write_bytes(b"an image")
digest = hashlib.sha256(b"an image").hexdigest()
candidate = TrialCandidate(setting="gzip", path=str(image), sha256=digest, size_bytes=8)
slot = slot_beside(host, "/boot/initrd.img")
fill_slot(host, slot, candidate)
assert Path(slot).read_bytes() == b"an image"
clear_slot(host, slot)
print("filled:", not os.path.lexists(slot), flush=True)
print("arranged:", arrange_reboot(host), flush=True)
'''
Path("/boot").mkdir(exist_ok=True)
install("initadvisor-reboot.service", "import time; print('started', flush=True); time.sleep(900)")
install("initadvisor-settle.service", INSIDE)
done = call("systemctl", "start", "initadvisor-settle.service")
print("unit:", done.returncode, done.stderr)
print("waits:", until(lambda: "started" in said()), sub_state())
print(said())
from initadvisor.host import Host
from initadvisor.trial.reboot import call_off_reboot
call_off_reboot(Host())
print("called off:", sub_state())
"""
)

REBOOTS = (
    PRELUDE
    + r"""
# The unit's sandbox, systemd and logind are real; what is armed, and how long a minute is, are not.
INSIDE = '''
import sys, time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from initadvisor import host as host_package
from initadvisor.bootloaders import detect
from initadvisor.bootloaders.entry import BootEntry, BootFile, OneShot, OneShotState
from initadvisor.boots.record import running_boot_id
from initadvisor.campaign.campaign import Campaign, CampaignState, DefaultBoot, TrialBoot
from initadvisor.campaign.record import note_active, write_campaign
from initadvisor.cli import main
from initadvisor.host import Host
from initadvisor.host.files import sha256_of
from initadvisor.host.package_managers import busy_package_managers
from initadvisor.host.run import SystemRunner
from initadvisor.transaction.transaction import ArmedBoot, BootBinding, BoundFile, ProofStage

KERNEL = "/mnt/kernel"
class Runner(SystemRunner):
    def run(self, argv, **options):
        if tuple(argv[:2]) == ("systemctl", "reboot"):
            assert Path("/var/lib/pacman/db.lck").exists()
            Path("/mnt/calling").touch()
        return super().run(argv, **options)
host = Host(runner=Runner())
host_package.Host = lambda: host
kernel = BootFile(named="/kernel", path=KERNEL)
entry = BootEntry(
    identifier="linux", title="Linux", kernel=kernel, initrds=(), options="quiet", source=""
)
loader = SimpleNamespace(
    NAME="fake", default_entry=lambda _: entry, armed=lambda _: OneShot(state=OneShotState.OURS),
    is_written=lambda _, text: text == "ours",
)
detect.BOOT_LOADERS = (loader,)
if not Path("/mnt/begun").exists():
    with open(KERNEL, "rb") as file:
        bound = BoundFile(path=KERNEL, sha256=sha256_of(file))
    armed = ArmedBoot(
        stage=ProofStage.PROOF, loader="fake", trial="trial-1-0",
        armed_in_boot=running_boot_id(host), image=KERNEL, sha256=bound.sha256,
        bound_to=BootBinding(
            entry="linux", options="quiet", files=(bound,), armed_entry="ours"
        ),
    )
    today = DefaultBoot(
        image=KERNEL, image_sha256=bound.sha256, release="6.1", entry="linux",
        kernel_sha256=bound.sha256, options="quiet",
    )
    campaign = Campaign(
        default_boot=today, number=1, state=CampaignState.ARMED, most_boots=9, reboots=True,
        trial_boots=(TrialBoot(setting="gzip", sha256=bound.sha256, armed_boot=armed, at_s=1),),
    )
    write_campaign(host, campaign)
    note_active(host)
    Path("/mnt/begun").touch()
def soon(seconds):
    Path("/mnt/noticed").touch()
    while not Path("/mnt/over").exists():
        pause(0.05)
pause, time.sleep = time.sleep, soon
sys.argv = ["initadvisor", "settle", "--reboot"]
main()
'''
REBOOT = "initadvisor-reboot.service"
Path("/mnt/kernel").write_bytes(b"a kernel")
for name in ("dpkg", "pacman"):
    Path("/var/lib", name).mkdir(exist_ok=True)
install(REBOOT, INSIDE)

def against(words):
    '''Wait until the unit says so anew, and tell what has become of it.'''
    before = said().count(words)
    more = until(lambda: said().count(words) > before + 1 or "Traceback" in said())
    # The first of them may have been of before.
    more = more and "Traceback" not in said()
    until(lambda: sub_state() == "auto-restart")
    print(words, more, call("systemctl", "is-failed", REBOOT).stdout.strip(), flush=True)
    assert more, said()

lock = Path("/var/lib/pacman/db.lck")
lock.touch()
holder = subprocess.Popen(
    ["systemd-inhibit", "--what=shutdown", "--who=somebody", "--why=works", "sleep", "9999"]
)
until(lambda: "somebody" in call("systemd-inhibit", "--list").stdout)
subprocess.run(["systemctl", "start", "--no-block", REBOOT], check=True)
against("pacman is at work")
against("somebody keeps the machine from shutting down: works")
print("told:", Path("/mnt/noticed").exists())
process = subprocess.Popen(["sleep", "9999"])
session = call(
    "busctl", "call", "org.freedesktop.login1", "/org/freedesktop/login1",
    "org.freedesktop.login1.Manager", "CreateSession", "uusssssussbssa(sv)",
    "65534", str(process.pid), "login", "tty", "user", "", "", "0", "", "", "false", "", "", "0",
)
print("session:", session.returncode, session.stderr)
lock.unlink()
holder.kill()
holder.wait()
against("nobody is logged in")
print("told:", Path("/mnt/noticed").exists())
process.kill()
process.wait()
print("noticed:", until(lambda: Path("/mnt/noticed").exists()))
# It was announced; what begins in that minute counts.
holder = subprocess.Popen(
    ["systemd-inhibit", "--what=shutdown", "--who=late", "--why=comer", "sleep", "9999"]
)
until(lambda: "late" in call("systemd-inhibit", "--list").stdout)
Path("/mnt/over").touch()
against("late keeps the machine from shutting down: comer")
print("called:", Path("/mnt/calling").exists())
subprocess.run(["systemctl", "stop", REBOOT], check=True)
print("stopped:", sub_state())
holder.kill()
holder.wait()
print(said(), flush=True)

def going_down(*_):
    # The first may be among the processes of this unit that are being ended.
    jobs = lambda: call("systemctl", "list-jobs", "--full").stdout
    print("reboots:", until(lambda: "reboot.target" in jobs()), flush=True)
    sys.exit()

signal.signal(signal.SIGTERM, going_down)
subprocess.run(["systemctl", "start", "--no-block", REBOOT], check=True)
time.sleep(900)
print("nothing has happened:", said())
"""
)


def test_the_one_that_settles_can_weigh_fill_the_slot_and_start_the_one_that_reboots(
    tmp_path: Path,
) -> None:
    said = run_under_systemd(IN_THE_UNIT, tmp_path)
    assert "unit: 0" in said, said
    assert "weighed: 3" in said  # with the one of the sample
    assert "filled: True" in said
    assert "arranged: the machine reboots by itself once nothing is against it" in said
    assert "waits: True running" in said
    assert "called off: dead" in said


def test_the_one_that_reboots_waits_for_everybody_and_then_does(tmp_path: Path) -> None:
    said = run_under_systemd(REBOOTS, tmp_path)
    for words in (
        "pacman is at work",
        "somebody keeps the machine from shutting down: works",
        "nobody is logged in",
        "late keeps the machine from shutting down: comer",
    ):
        assert f"{words} True activating" in said, said
    assert said.count("told: False") == 2
    assert "noticed: True" in said
    assert "called: False" in said
    assert "stopped: dead" in said
    assert said.endswith("reboots: True\n")
