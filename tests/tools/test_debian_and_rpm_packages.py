"""Packages for Debian and for distributions with rpm: built, checked, installed and removed."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.fixtures.arch_package import ran
from tests.fixtures.cache import hard_linked_copy
from tests.fixtures.checkout import SYSTEM_PYTHON
from tests.fixtures.debian import Suite, debian
from tests.fixtures.packaged import built

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.tools,
    pytest.mark.xdist_group("packages"),
    pytest.mark.skipif(os.geteuid() != 0, reason="dpkg and rpm change the root for scripts"),
]

_STATE = "var/lib/initadvisor"


@pytest.fixture(scope="module")
def deb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package for Debian."""
    return built("deb", tmp_path_factory.mktemp("deb"))


class Root:
    """A Debian of its own; what systemctl and the program are asked is said."""

    def __init__(self, place: Path) -> None:
        hard_linked_copy(debian(Suite.BOOKWORM).root, place)
        self.path = place
        (place / "var/lib/dpkg/updates").mkdir(parents=True, exist_ok=True)
        (place / "var/lib/dpkg/info").mkdir(exist_ok=True)
        (place / "var/lib/dpkg/status").touch()
        (place / "dev").mkdir(exist_ok=True)
        (place / "dev/null").touch()
        self.stand_in("systemctl")
        self.stand_in("deb-systemd-invoke")
        self.before = self.files()

    def stand_in(self, name: str) -> None:
        """Have a program say what it is asked."""
        command = self.path / "usr/bin" / name
        command.unlink(missing_ok=True)  # it may be a link to a file that others use
        command.write_text(f'#!/bin/sh\necho "called: {name} $*"\n')
        command.chmod(0o755)

    def files(self) -> set[str]:
        """Return what there is but for what dpkg keeps for itself."""
        names = (str(path.relative_to(self.path)) for path in self.path.rglob("*"))
        return {n for n in names if not n.startswith(("var/lib/dpkg", "var/log", "var/lib/rpm"))}

    def dpkg(self, *words: str | Path) -> str:
        """Run dpkg over this root."""
        return ran("dpkg", f"--root={self.path}", "--force-depends", *words)


def test_lintian_finds_nothing(deb: Path) -> None:
    (changes,) = deb.parent.glob("*.changes")
    said = ran("lintian", "--allow-root", "--fail-on", "error,warning", changes)
    assert not [line for line in said.splitlines() if line.startswith(("E:", "W:"))]


def test_a_deb_is_installed_upgraded_removed_and_purged_whole(deb: Path, tmp_path: Path) -> None:
    root = Root(tmp_path / "root")
    said = root.dpkg("--install", deb)
    assert "called" not in said  # nothing runs before it is turned on
    assert {
        "etc/dpkg/dpkg.cfg.d/initadvisor",
        "etc/initramfs/post-update.d/initadvisor",
        "etc/kernel/postinst.d/zz-initadvisor",
        "usr/bin/initadvisor",
        "usr/lib/initadvisor/disarm",
        "usr/lib/kernel/install.d/95-initadvisor.install",
        "usr/lib/systemd/system/initadvisord.path",
        "usr/lib/systemd/system/timers.target.wants/initadvisor-settle.timer",
        "usr/share/man/man1/initadvisor.1.gz",
    } <= root.files() - root.before
    first = (root.path / "usr/bin/initadvisor").read_text().splitlines()[0]
    assert first == f"#!{SYSTEM_PYTHON}"
    # A boot is armed, and there is work to do.
    root.stand_in("initadvisor")
    state = root.path / _STATE
    state.mkdir(parents=True, exist_ok=True)
    for name in ("trial-entry", "tasks", "measurements.db"):
        (state / name).touch()
    said = root.dpkg("--install", deb)
    assert "called: deb-systemd-invoke stop initadvisord.service" in said
    assert "called: deb-systemd-invoke start initadvisord.service" in said
    assert "withdraw" not in said
    assert (state / "trial-entry").exists()
    root.stand_in("initadvisor")
    said = root.dpkg("--remove", "initadvisor")
    withdrawn, turned_off = (
        said.index("called: initadvisor settle --withdraw"),
        said.index("called: systemctl --quiet disable --now initadvisor-measure.timer"),
    )
    assert withdrawn < turned_off
    assert "rollback --drop" in said
    assert (state / "measurements.db").exists()
    said = root.dpkg("--purge", "initadvisor")
    assert "a boot is still armed" in said  # the stand-in took nothing back
    assert (state / "measurements.db").exists()
    (state / "trial-entry").unlink()
    root.dpkg("--install", deb)
    root.dpkg("--purge", "initadvisor")
    assert root.files() - root.before == set()


def test_an_rpm_is_installed_and_removed_whole(tmp_path: Path) -> None:
    rpm = built("rpm", tmp_path)
    root = Root(tmp_path / "root")
    over = ("rpm", f"--root={root.path}", "--nodeps")
    ran(*over, "--install", rpm)
    assert {
        "usr/bin/initadvisor",
        "usr/lib/initadvisor/queue",
        "usr/lib/kernel/install.d/95-initadvisor.install",
        "usr/lib/systemd/system/initadvisord.path",
        "usr/share/licenses/initadvisor/LICENSE",
    } <= root.files() - root.before
    assert "missing" not in ran(*over, "--verify", "--nofiledigest", "initadvisor")
    (root.path / _STATE).mkdir(parents=True)
    root.stand_in("initadvisor")
    (root.path / _STATE / "trial-entry").touch()
    said = ran(*over, "--erase", "initadvisor")
    assert "called: initadvisor settle --withdraw" in said
    assert "Measurements stay" in said
    shutil.rmtree(root.path / _STATE)
    assert not [name for name in root.files() - root.before if "initadvisor" in name]
