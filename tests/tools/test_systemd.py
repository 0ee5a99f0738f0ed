"""Under a real systemd: nobody shuts down meanwhile, and generators see the whole machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fixtures.systemd_container import REPOSITORY, run_under_systemd

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.tools, pytest.mark.xdist_group("systemd")]

SHUTDOWN_IS_REFUSED = r"""
import signal, subprocess, sys, time

from initadvisor.host import Host
from initadvisor.host.power import inhibited

HOLDER = '''
import sys
from initadvisor.host import Host
from initadvisor.host.power import inhibited
with inhibited(Host(), "replacing the initramfs"):
    print("inside", flush=True)
    sys.stdin.read()
'''


def output(*argv):
    done = subprocess.run(argv, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def listed():
    return output("systemd-inhibit", "--list", "--no-legend", "--no-pager")[1]


subprocess.run(["systemctl", "start", "dbus.service", "systemd-logind.service"], check=True)
assert "initadvisor" not in listed()
with inhibited(Host(), "replacing the initramfs"):
    line = listed()
    assert all(word in line for word in ("initadvisor", "shutdown:sleep", "block")), line
    for verb in ("poweroff", "suspend"):
        status, said = output("systemctl", "--check-inhibitors=yes", verb)
        assert status != 0, said
        assert 'Operation inhibited by "initadvisor"' in said, said
        assert "replacing the initramfs" in said, said
assert "initadvisor" not in listed()

with subprocess.Popen(
    [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
) as holder:
    assert holder.stdout.readline() == "inside\n"
    assert "initadvisor" in listed()
    holder.send_signal(signal.SIGKILL)
until = time.monotonic() + 300
while "initadvisor" in listed() and time.monotonic() < until:
    time.sleep(0.05)
assert "initadvisor" not in listed()

subprocess.run(["systemctl", "mask", "--runtime", "--now", "systemd-logind.service"], check=True)
with inhibited(Host(), "nobody listens"):
    print("it goes on without a logind")
"""

OUTSIDE = r"""
import os, subprocess, sys, time
from pathlib import Path

from initadvisor.host import Host
from initadvisor.host.sandbox import confinement

HARDENED = [
    "PrivateTmp=yes", "ProtectSystem=strict", "ReadWritePaths=/mnt", "ProtectHome=read-only",
    "PrivateDevices=yes", "ProtectKernelModules=yes", "NoNewPrivileges=yes",
    "CapabilityBoundingSet=CAP_SYS_PTRACE", "RestrictAddressFamilies=AF_UNIX",
    "SystemCallFilter=@system-service", "RestrictNamespaces=yes", "LockPersonality=yes",
]
INSIDE = '''
import os, sys
from pathlib import Path
from initadvisor.host import Host
from initadvisor.host.sandbox import confinement
from initadvisor.host.sandbox import run_outside
from initadvisor.core.errors import InitadvisorError

REPORT = (
    'echo "$1|$2|$A|$(readlink /proc/self/ns/mnt)|$(grep -c "^NoNewPrivs:.0$" /proc/self/status)|'
    '$(chrt -p $$ | head -n1)|$(ionice -p $$)|$(cat /proc/self/oom_score_adj)|'
    '$(cat /proc/self/cgroup)" > /mnt/place/report'
)
host = Host()
assert confinement(host)
Path("/mnt/place").mkdir(exist_ok=True)
Path("/tmp/hidden").mkdir()


def run(*argv, directory="/mnt/place", timeout_s=300.0):
    try:
        run_outside(
            host, argv, directory=Path(directory), timeout_s=timeout_s, env={"A": "$B %n 'c"}
        )
    except InitadvisorError as err:
        return err.message
    return "done"


if sys.argv[1] == "hang":
    run("sh", "-c", "echo $$ > /mnt/place/pid.tmp; mv /mnt/place/pid.tmp /mnt/place/pid; sleep 600")
    sys.exit()
print(confinement(host))
print(run("sh", "-c", REPORT, "sh", "$HOME %n", "${B}"))
print(run("sh", "-c", "echo no room >&2; exit 3"))
for limit_s in (3.0, 30.0, 300.0):  # until one is long enough for it to begin
    begin = "cd /mnt/place; echo $$ > late.tmp; mv late.tmp late"
    late = run("sh", "-c", f"{begin}; sleep 3600 & sleep 3600", timeout_s=limit_s)
    if Path("/mnt/place/late").exists():
        break
print(late)
print(run("true", directory="/tmp/hidden"))
'''
Path("/mnt/hardened.py").write_text(INSIDE)


def hardened(word, *options):
    properties = [f"--property={item}" for item in HARDENED]
    return ["systemd-run", "--quiet", *options, *properties,
            "--property=WorkingDirectory=" + os.getcwd(), sys.executable, "/mnt/hardened.py", word]


def alive(path):
    pid = Path(path).read_text().strip()
    return Path(f"/proc/{pid}").exists()


assert confinement(Host()) is None, confinement(Host())
done = subprocess.run(hardened("run", "--wait", "--pipe"), capture_output=True, text=True)
print(done.stdout, done.stderr)
assert done.returncode == 0
assert not alive("/mnt/place/late"), "it outlived its time limit"
print(Path("/mnt/place/report").read_text())
print("ours:", os.readlink("/proc/self/ns/mnt"))
assert "initadvisor-" not in subprocess.run(
    ["systemctl", "list-units", "--all", "--no-legend"], capture_output=True, text=True
).stdout

subprocess.run(hardened("hang", "--unit=ours.service"), check=True)
until = time.monotonic() + 300
while not Path("/mnt/place/pid").exists() and time.monotonic() < until:
    time.sleep(0.05)
assert alive("/mnt/place/pid")
subprocess.run(["systemctl", "kill", "--kill-whom=main", "-s", "KILL", "ours.service"], check=True)
until = time.monotonic() + 300
while alive("/mnt/place/pid") and time.monotonic() < until:
    time.sleep(0.05)
assert not alive("/mnt/place/pid"), "it outlived us"
print("it ends with us")
"""


IN_THE_UNIT = r"""
import subprocess, sys, time
from pathlib import Path

INSIDE = '''
import subprocess, sys, time
from pathlib import Path
from initadvisor.host import Host
from initadvisor.host.sandbox import confinement
from initadvisor.host.power import inhibited
from initadvisor.host.package_managers import busy_package_managers, package_managers_held
host = Host()
assert confinement(host)
with package_managers_held(host), inhibited(host, "in the unit"):
    Path("/mnt/held").touch()
    while not Path("/mnt/seen").exists():
        time.sleep(0.05)
assert not Path("/var/lib/pacman/db.lck").exists()
print("held and given back", flush=True)
'''
Path("/mnt/in_unit.py").write_text(INSIDE)
for name in ("dpkg", "pacman", "rpm"):
    Path("/var/lib", name).mkdir(exist_ok=True)
kept = [
    line for line in Path("systemd/initadvisor-settle.service").read_text().splitlines()
    if not line.startswith(("Condition", "Wants=", "After=", "Restart", "Exec"))
]
kept += [
    "[Service]", f"ExecStart={sys.executable} /mnt/in_unit.py", f"WorkingDirectory={Path.cwd()}",
    "StandardOutput=append:/mnt/unit-said", "StandardError=inherit",
    # Only for the test: where its interpreter may be, and where it writes.
    "ProtectHome=read-only", "ReadWritePaths=/mnt",
]
Path("/run/systemd/system/settle.service").write_text("\n".join(kept))
subprocess.run(["systemctl", "daemon-reload"], check=True)
subprocess.run(["systemctl", "start", "dbus.service", "systemd-logind.service"], check=True)
unit = subprocess.Popen(["systemctl", "start", "settle.service"])
until = time.monotonic() + 300
while not Path("/mnt/held").exists() and time.monotonic() < until and unit.poll() is None:
    time.sleep(0.05)
if Path("/mnt/held").exists():
    listed = subprocess.run(["systemd-inhibit", "--list"], capture_output=True, text=True).stdout
    print("inhibited:", "in the unit" in listed)
    dpkg = subprocess.run(["dpkg", "--configure", "-a"], capture_output=True, text=True)
    print(dpkg.stderr)
    print(Path("/var/lib/pacman/db.lck").read_text())
    Path("/mnt/seen").touch()
print("unit:", unit.wait(timeout=300))
print(Path("/mnt/unit-said").read_text())
"""

EVALUATED = r"""
import os, subprocess, sys, time
from pathlib import Path

sys.path.insert(0, os.getcwd())
from initadvisor.core.errors import InitadvisorError
from initadvisor.generators import shell
from initadvisor.host import Host
from initadvisor.host.sandbox import run_inside

HARDENED = "--hardened" in sys.argv


def said(script):
    done = run_inside(Host(), ["bash", "-c", f"echo @; {script}"], word=b"@", timeout_s=300)
    return " ".join(done.stdout.decode().split()[1:]) + done.stderr.decode()


def units():
    listed = subprocess.run(["systemctl", "list-units", "--all", "--plain", "--no-legend"],
                            capture_output=True, text=True).stdout
    return sum("initadvisor-" in line for line in listed.splitlines())


Path("/etc/only-root").write_text("secret\n")
Path("/etc/only-root").chmod(0o600)
print("user:", said("(($(id -u) > 60000)) && echo another"))
print("control group:", said("cat /proc/self/cgroup | grep -c initadvisor-"))
print("reads:", said("cat /etc/only-root"))
for place in ("/", "/etc", "/usr", "/var/lib", "/run", "/mnt", "/root"):
    print(f"writes {place}:", said(f"touch {place}/x 2>/dev/null && echo may"))
print("tmp:", said("ls /tmp | wc -l; touch /tmp/x /var/tmp/x && echo may"))
print("network:", said("tail -n +3 /proc/net/dev | cut -d: -f1"))
print("devices:", said("ls /dev/kmsg /dev/mem /dev/watchdog /dev/sda 2>/dev/null"))
print("socket:", said("exec 9<>/dev/tcp/127.0.0.1/1" ) != "" and "none")
print("bus:", said("systemctl list-units >/dev/null 2>&1 && echo talks"))
print("kills:", said("kill -0 1 2>/dev/null && echo may"))
said("setsid sleep 4321 >/dev/null 2>&1 & sleep 0.2")
print("left:", "sleep\\x004321" in "".join(
    ascii(p.read_text()) for p in Path("/proc").glob("[0-9]*/cmdline") if p.exists()), units())
Path("/etc/my.conf").write_text("X=$(cat /etc/only-root)\nbuiltin() { :; }\necho x >/etc/made\n")
Path("/etc/endless.conf").write_text("setsid sleep 4322 & while :; do :; done\n")
conf = Path("/etc/my.conf")
for kind in shell.Shell:
    found = shell.evaluate(Host(), kind, [conf], ("X", "Y"))
    print(kind, found.value("X"), found.warnings)
    found = shell.evaluate(Host(), kind, [conf], ("X", "Y"), texts={conf: "X=\"a\udcff\"\n"})
    print(kind, ascii(found.value("X")), found.warnings)
print("made:", Path("/etc/made").exists())
shell._TIMEOUT_S = 2
try:
    shell.evaluate(Host(), shell.Shell.BASH, [Path("/etc/endless.conf")], ("X",))
except InitadvisorError as err:
    print("endless:", err.message)
print("left:", units())
if not HARDENED:
    text = Path("REPOSITORY/systemd/initadvisor-measure.service").read_text()
    dropped = ("Exec", "Standard", "Condition", "MemoryMax", "DeviceAllow", "ProtectHome")
    # How soon it ends rests on what else is at work: it neither gives way nor has a time limit.
    dropped += ("TimeoutStart", "CPUSched", "IOSched", "Nice=")
    kept = [line for line in text.splitlines() if not line.startswith(dropped)]
    at = kept.index("[Service]") + 1
    kept[at:at] = [
        f"ExecStart={sys.executable} /mnt/inside.py --hardened",
        "WorkingDirectory=REPOSITORY",
        "StandardOutput=truncate:/mnt/hardened", "StandardError=inherit",
        "ReadWritePaths=/mnt /etc",
    ]
    Path("/run/systemd/system/measure-like.service").write_text("\n".join(kept))
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    print("unit:", subprocess.run(["systemctl", "start", "measure-like.service"]).returncode)
    print("HARDENED")
    print(Path("/mnt/hardened").read_text())
"""


def test_configuration_is_evaluated_in_a_unit_that_can_change_nothing(tmp_path: Path) -> None:
    code = EVALUATED.replace("REPOSITORY", str(REPOSITORY))
    free, _, hardened = run_under_systemd(code, tmp_path).partition("unit: 0\nHARDENED\n")
    for said in (free, hardened.rstrip("\n")):
        lines = dict(line.split(":", 1) for line in said.splitlines() if ":" in line)
        assert lines["user"] == " another", said
        assert lines["control group"] == " 1", said
        assert lines["reads"] == " secret", said
        assert {value for key, value in lines.items() if key.startswith("writes ")} == {" "}, said
        assert lines["tmp"] == " 0 may", said
        assert lines["network"] == " lo", said
        assert (lines["devices"], lines["bus"], lines["kills"]) == (" ", " ", " "), said
        assert lines["socket"] == " none", said
        assert "left: False 0\n" in said
        assert "bash secret ()\nbash 'a\\ufffd' ()\nsh secret ()\nsh 'a\\ufffd' ()\n" in said
        assert lines["made"] == " False"
        assert lines["endless"].endswith("/etc/endless.conf: it did not end within 2 s")
        assert said.rstrip("\n").endswith("left: 0")


def test_the_unit_that_replaces_files_can_keep_everybody_away(tmp_path: Path) -> None:
    said = run_under_systemd(IN_THE_UNIT, tmp_path)
    assert "inhibited: True" in said
    assert "dpkg frontend lock was locked by another process" in said
    assert "initadvisor: process" in said
    assert "unit: 0" in said
    assert said.endswith("held and given back\n\n")
    assert "nothing keeps this machine from shutting down" not in said


def test_nobody_shuts_down_or_sleeps_while_files_are_replaced(tmp_path: Path) -> None:
    said = run_under_systemd(SHUTDOWN_IS_REFUSED, tmp_path)
    assert "nothing keeps this machine from shutting down meanwhile" in said
    assert said.endswith("it goes on without a logind\n")


def test_a_hardened_unit_has_programs_run_outside_of_it(tmp_path: Path) -> None:
    said = run_under_systemd(OUTSIDE, tmp_path)
    reason, ran, failed, late, hidden, *_ = said.splitlines()
    assert "NoNewPrivileges" in reason
    assert ran == "done"
    assert failed.endswith("exited with status 3: no room")
    assert "did not end within 3" in late
    assert "hidden is a directory of this sandbox only" in hidden
    report = (tmp_path / "place/report").read_text().strip().split("|")
    home, argument, variable, namespace, free, policy, io_class, oom, cgroup = report
    assert (home, argument, variable) == ("$HOME %n", "${B}", "$B %n 'c")
    assert f"ours: {namespace}" in said
    assert free == "1"
    assert policy.endswith("SCHED_IDLE")
    assert (io_class, oom) == ("idle", "1000")
    assert "/initadvisor-" in cgroup
    assert said.endswith("it ends with us\n")
