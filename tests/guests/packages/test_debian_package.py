"""apt installs Debian's package, upgrades it while a boot is armed, removes it and purges it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.fixtures.debian import program
from tests.fixtures.packaged import built
from tests.vm.applying import applying_guest
from tests.vm.boot import Then, boot
from tests.vm.campaign_standing import TRIAL, default_is_as_before, standing
from tests.vm.entries import default_entry
from tests.vm.guest import Loader
from tests.vm.loop_checks import tags
from tests.vm.loop_guest import put_patience
from tests.vm.loop_scripts import JUDGED
from tests.vm.machine import Machine
from tests.vm.outside_engine import put_engine, with_engine

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.vm

_FIRST, _SECOND = "/root/first.deb", "/root/second.deb"
_APT = "apt-get -y --no-install-recommends"
_ARMED = "until ls /sys/firmware/efi/efivars/LoaderEntryOneShot-* 2>/dev/null; do sleep 3; done"
_VERSION = "dpkg-query -W -f='version ${Version}\\n' initadvisor"
_LEFT = """
find / -xdev -name '*initadvisor*' ! -path '/etc/systemd/system/*.d' | sort | sed 's/^/left /'
"""
_INSTALL = f"""
export DEBIAN_FRONTEND=noninteractive
{_APT} install {_FIRST}
initadvisor enable --policy advise --yes
initadvisor trial start --yes --only 'lz4 -1'
ls /sys/firmware/efi/efivars/LoaderEntryOneShot-*
{_APT} install {_SECOND}
{_VERSION}
{_ARMED}
"""
_REMOVE = f"""
export DEBIAN_FRONTEND=noninteractive
{JUDGED}
ls /sys/firmware/efi/efivars/LoaderEntryOneShot-*
initadvisor trial status
{_APT} remove initadvisor
ls -d /var/lib/initadvisor
{_APT} purge initadvisor
{_LEFT}
"""


def _later(deb: Path, place: Path) -> tuple[Path, str]:
    """Return the package with a later version, and that."""
    tree, later = place / "later", place / "later.deb"
    dpkg_deb = str(program("dpkg-deb"))
    subprocess.run([dpkg_deb, "-R", str(deb), str(tree)], check=True)
    control = tree / "DEBIAN/control"
    lines = control.read_text().splitlines()
    (version,) = (line.removeprefix("Version: ") for line in lines if line.startswith("Version: "))
    control.write_text(control.read_text().replace(f"Version: {version}", f"Version: {version}+1"))
    argv = [dpkg_deb, "--root-owner-group", "-Znone", "-b", str(tree), str(later)]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return later, f"{version}+1"


@pytest.mark.shows("package by apt", "systemd-boot")
def test_it_leaves_nothing_that_boots_and_nothing_else(tmp_path: Path) -> None:
    guest = applying_guest(Loader.SYSTEMD_BOOT).copied_to(tmp_path / "guest")
    put_engine(guest)
    put_patience(guest)
    first = built("deb", tmp_path)
    second, version = _later(first, tmp_path)
    guest.disk.root.put({_FIRST: first, _SECOND: second})
    before = standing(guest)
    machine = with_engine(Machine(bare_metal=True))
    upgraded = boot(guest, machine, script=_INSTALL, then=Then.REBOOT)
    assert f"version {version}" in upgraded.output
    # It was taken back for the time of the upgrade, and armed again by what is there now.
    said = "\n".join(upgraded.output)
    assert "initadvisor: the campaign has no boot armed for the time being" in said
    assert standing(guest).one_shot == TRIAL
    rehearsed = boot(guest, machine, script=_REMOVE, then=Then.REBOOT)
    assert rehearsed.entry == TRIAL
    assert [line for line in rehearsed.output if line.startswith("left ")] == []
    now = standing(guest)
    assert list(default_is_as_before(now, before)) == []
    assert (now.one_shot, now.files.keys()) == (None, before.files.keys())
    last = boot(guest, machine, script="systemctl --failed --no-legend", then=Then.POWER_OFF)
    assert last.entry == default_entry(guest)
    assert tags(last) == [None]
    assert last.output == ()
