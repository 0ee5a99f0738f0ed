"""The unit that carries campaigns on can weigh, fill the trial slot and announce a reboot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fixtures.systemd_container import run_under_systemd

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.tools, pytest.mark.xdist_group("systemd")]

IN_THE_UNIT = r"""
import subprocess, sys
from pathlib import Path

from initadvisor.host import Host
from initadvisor.trial.reboot import cancel_reboot

INSIDE = '''
import hashlib, os
from pathlib import Path
from initadvisor.host import Host
from initadvisor.host.sandbox import confinement
from initadvisor.campaign.campaign import TrialCandidate
from initadvisor.core.settings import Setting
from initadvisor.trial.reboot import reboot_soon
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
print("announced:", reboot_soon(host), flush=True)
'''
Path("/mnt/in_unit.py").write_text(INSIDE)
Path("/boot").mkdir(exist_ok=True)
kept = [
    line for line in Path("systemd/initadvisor-settle.service").read_text().splitlines()
    if not line.startswith(("Condition", "Wants=", "After=", "Restart", "Exec"))
]
kept += [
    "[Service]", f"ExecStart={sys.executable} /mnt/in_unit.py", f"WorkingDirectory={Path.cwd()}",
    "StandardOutput=append:/mnt/unit-said", "StandardError=inherit",
    # Only for the test: where its interpreter may be.
    "ProtectHome=read-only",
]
Path("/run/systemd/system/settle.service").write_text("\n".join(kept))
subprocess.run(["systemctl", "daemon-reload"], check=True)
subprocess.run(["systemctl", "start", "dbus.service", "systemd-logind.service"], check=True)
done = subprocess.run(["systemctl", "start", "settle.service"], capture_output=True, text=True)
print("unit:", done.returncode, done.stderr)
print(Path("/mnt/unit-said").read_text())
scheduled = Path("/run/systemd/shutdown/scheduled")
print(scheduled.read_text() if scheduled.exists() else "nothing is scheduled")
print("cancelled:", cancel_reboot(Host()), not scheduled.exists())
subprocess.run(["shutdown", "-r", "+9", "somebody else's"], check=True)
print("left alone:", cancel_reboot(Host()), scheduled.exists())
subprocess.run(["shutdown", "-c"], check=True)
"""


def test_it_can_weigh_fill_the_slot_and_announce_a_reboot(tmp_path: Path) -> None:
    said = run_under_systemd(IN_THE_UNIT, tmp_path)
    assert "unit: 0" in said, said
    assert "weighed: 3" in said  # with the one of the sample
    assert "filled: True" in said
    assert "announced: initadvisor boots a trial in 1 min; shutdown -c cancels it" in said
    assert "MODE=reboot" in said
    assert "cancelled: True True" in said
    assert "left alone: False True" in said
