"""Real package managers stop at our locks, and their hooks learn that they are hooks."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tarfile
import textwrap
from pathlib import Path

import pytest

from initadvisor.host import Host
from initadvisor.host.package_managers import busy_package_managers, package_managers_held
from tests.fakes.runner import FakeRunner
from tests.fixtures.waiting import HANGS_S

pytestmark = pytest.mark.tools

REFUSALS = {
    "dpkg": r"dpkg frontend lock was locked by another process with pid {us}\n",
    "apt-get": r"lock-frontend\. It is held by process {us} \(",
    "pacman": r"unable to lock database",
    "rpmdb": r"can't create transaction lock on .*\.rpm\.lock",
}

_AS_ROOT = () if os.geteuid() == 0 else ("unshare", "--user", "--map-root-user")
_DPKG_OPTIONS = ("--force-script-chrootless", "--force-not-root")

HOOK = """\
#!{python}
import sys
sys.path.insert(0, {repository!r})
from pathlib import Path
from initadvisor.host import Host
from initadvisor.host.package_managers import busy_package_managers, package_managers_held
from initadvisor.core.errors import UnsafeError
host = Host(root=Path({root!r}))
try:
    with package_managers_held(host, wait_s=3600):
        said = "was held"
except UnsafeError as err:
    (busy,) = [busy for busy in busy_package_managers(host) if busy.around]
    said = busy.program + ": " + err.message
Path({root!r}, "said").write_text(said)
"""


PACMAN_HOOK = """\
[Trigger]
Operation = Install
Type = Package
Target = ours

[Action]
When = PostTransaction
Exec = {hook}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Databases of packages without any package, and a hook that asks for all the locks."""
    for name in ("dpkg/info", "dpkg/updates", "dpkg/triggers", "pacman", "rpm"):
        (tmp_path / "var/lib" / name).mkdir(parents=True)
    apt = ("etc/apt/sources.list.d", "var/cache/apt/archives/partial", "var/log/apt")
    for name in (*apt, "var/lib/apt/lists/partial"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("var/lib/dpkg/status", "var/lib/dpkg/available", "etc/apt/sources.list"):
        (tmp_path / name).touch()
    hook = tmp_path / "hook"
    repository = str(Path(__file__).parents[2])
    hook.write_text(HOOK.format(python=sys.executable, repository=repository, root=str(tmp_path)))
    hook.chmod(0o755)
    return tmp_path


def command(program: str, root: Path) -> list[str]:
    """Return a command that would work on files, and finds nothing to do."""
    return {
        "dpkg": f"dpkg --root={root} --force-not-root --configure -a",
        "apt-get": f"apt-get -o Dir={root} -o Dir::State::status={root}/var/lib/dpkg/status "
        "--yes autoremove",
        "pacman": f"pacman --config /dev/null --dbpath {root}/var/lib/pacman "
        "--database --asdeps none",
        "rpmdb": f"rpmdb --dbpath {root}/var/lib/rpm --rebuilddb",
    }[program].split()


def run(argv: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a package manager as root, be it one by name, and take both of its outputs as one."""
    return subprocess.run(
        [*_AS_ROOT, *argv],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": str(cwd)},
        text=True,
        check=False,
        timeout=HANGS_S,
    )


@pytest.mark.parametrize("program", REFUSALS)
def test_it_refuses_while_we_hold_its_lock_and_works_afterwards(program: str, root: Path) -> None:
    with package_managers_held(Host(root=root, runner=FakeRunner())):
        refused = run(command(program, root), root)
        again = run(command(program, root), root)
    assert refused.returncode != 0
    assert again.returncode != 0, "its refusal took our lock away"
    assert re.search(REFUSALS[program].format(us=os.getpid()), refused.stdout), refused.stdout
    done = run(command(program, root), root)
    assert "lock" not in done.stdout
    if program != "pacman":  # it does not know the package, whether there is a lock or not
        assert done.returncode == 0, done.stdout


def installing(program: str, root: Path) -> list[str]:
    """Make a package whose installation runs the hook, and return how it is installed."""
    match program:
        case "dpkg":
            options = f"--root={root} {' '.join(_DPKG_OPTIONS)}"
            return f"dpkg {options} --install {deb(root)}".split()
        case "apt-get":
            told = [f"-oDpkg::Options::={option}" for option in _DPKG_OPTIONS]
            told += [f"-oDpkg::Options::=--root={root}", "install", str(deb(root))]
            return [*command("apt-get", root)[:-1], *told]
        case "pacman":
            (root / "hooks").mkdir()
            (root / "hooks/ours.hook").write_text(PACMAN_HOOK.format(hook=root / "hook"))
            options = f"--config /dev/null --dbpath {root}/var/lib/pacman --hookdir {root}/hooks"
            options += f" --logfile {root}/log --noconfirm"
            return f"pacman {options} --upgrade {pacman_package(root)}".split()
        case _:
            return f"rpm --dbpath {root}/var/lib/rpm --nodeps --upgrade {rpm(root)}".split()


def deb(root: Path) -> Path:
    """Make a Debian package without files."""
    control = root / "deb/DEBIAN"
    control.mkdir(parents=True)
    (control / "control").write_text(
        "Package: ours\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b.c>\nDescription: ours\n"
    )
    (control / "postinst").write_text(f"#!/bin/sh\nexec {root}/hook\n")
    (control / "postinst").chmod(0o755)
    done = run(["dpkg-deb", "--build", "deb", "ours.deb"], root)
    assert done.returncode == 0, done.stdout
    return root / "ours.deb"


def pacman_package(root: Path) -> Path:
    """Make a package of pacman's without files."""
    info = b"pkgname = ours\npkgver = 1-1\npkgdesc = ours\narch = any\nsize = 0\n"
    with tarfile.open(root / "ours-1-1-any.pkg.tar", "w") as archive:
        member = tarfile.TarInfo(".PKGINFO")
        member.size = len(info)
        archive.addfile(member, io.BytesIO(info))
    return root / "ours-1-1-any.pkg.tar"


def rpm(root: Path) -> Path:
    """Make a package of rpm's without files."""
    spec = f"""\
        Name: ours
        Version: 1
        Release: 1
        Summary: ours
        License: none
        BuildArch: noarch
        %description
        ours
        %post
        exec {root}/hook
        %files
    """
    (root / "ours.spec").write_text(textwrap.dedent(spec))
    done = run(["rpmbuild", "--define", f"_topdir {root}/top", "-bb", "ours.spec"], root)
    assert done.returncode == 0, done.stdout
    return next((root / "top/RPMS").rglob("*.rpm"))


@pytest.mark.parametrize("program", ["dpkg", "apt-get", "pacman", "rpm"])
def test_its_hook_learns_that_it_is_one(program: str, root: Path) -> None:
    done = run(installing(program, root), root)
    assert (root / "said").exists(), done.stdout
    assert done.returncode == 0, done.stdout
    assert (root / "said").read_text().startswith(f"{program}: not from inside a package manager: ")
    assert busy_package_managers(Host(root=root, runner=FakeRunner())) == ()
