"""A configuration that does more than assign is evaluated in a real guest, and changes nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.vm.applying import applying_guest
from tests.vm.boot import Then, boot
from tests.vm.guest import Loader
from tests.vm.installed import install

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.vm, pytest.mark.xdist_group("proving")]

_HARDENED = (
    "-p NoNewPrivileges=yes -p RestrictNamespaces=yes -p PrivateTmp=yes -p PrivateNetwork=yes"
)
_LOOK = f"""
cat >/etc/initramfs-tools/conf.d/zz-odd <<'END'
touch /etc/was-here /boot/was-here /tmp/was-here
setsid sleep 4321 >/dev/null 2>&1 &
COMPRESS=$(cat /etc/only-root)
greet() {{ printf hello; }}
END
echo zstd >/etc/only-root
chmod 600 /etc/only-root
systemctl is-system-running --wait >/dev/null
initadvisor status --json >/run/free.json
systemd-run --wait --quiet {_HARDENED} -p StandardOutput=truncate:/run/hardened.json \\
    /usr/bin/env initadvisor status --json
chmod 644 /etc/only-root
boot=$(findmnt --noheadings --output SOURCE --types vfat /boot)
umount /boot
mount -o umask=0022 "$boot" /boot
setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/tmp \\
    initadvisor status --json >/run/user.json
python3 - <<'END'
import json, pathlib, re, subprocess
def read(name):
    return json.loads(pathlib.Path("/run", name).read_text())["configured"]
def words(process):
    try:
        return (process / "cmdline").read_bytes().split(b"\\0")[:2]
    except OSError:
        return []
processes = pathlib.Path("/proc").glob("[0-9]*")
left = [str(each) for each in processes if words(each) == [b"sleep", b"4321"]]
units = subprocess.run(["systemctl", "list-units", "--all", "--plain", "--no-legend"],
                       capture_output=True, text=True).stdout
print(json.dumps({{
    "answers": [read("free.json"), read("hardened.json"), read("user.json")],
    "written": [d for d in ("/etc", "/boot", "/tmp") if pathlib.Path(d, "was-here").exists()],
    "left": left + re.findall("initadvisor-[0-9a-f]{{12}}.service", units),
}}))
END
"""


def test_it_tells_what_is_configured_and_nothing_else_comes_of_it(tmp_path: Path) -> None:
    copy = applying_guest(Loader.SYSTEMD_BOOT).copied_to(tmp_path / "guest")
    install(copy)
    done = boot(copy, script=_LOOK, then=Then.REBOOT, log=tmp_path / "log")
    seen: dict[str, Any] = json.loads(done.output[-1])
    for answer in seen["answers"]:
        assert answer["setting"].startswith("zstd")
        assert not [warning for warning in answer["warnings"] if "only read" in warning]
    assert seen["written"] == []
    assert seen["left"] == []
