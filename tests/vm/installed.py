"""initadvisor in a guest, as a package would put it there: Python files, manual and units.

It is all written to the guest's disk from outside, compiled by the guest's own Python, which runs
on this machine. So no boot is spent on it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fixtures.cache import made_once
from tests.vm.bootstrap import bootstrapped
from tests.vm.filesystems import put_tree
from tests.vm.guest import Recipe

if TYPE_CHECKING:
    from tests.fixtures.debian import Suite
    from tests.vm.guest import Guest

CHECKOUT = Path(__file__).parents[2]
_PACKAGED = ("pyproject.toml", "README.md", "LICENSE", "initadvisor")
WHERE = "/usr/lib/python3/dist-packages"
"""Where modules are that packages bring."""
_UNITS = "systemd/system"
_TIMER = "initadvisor-measure.timer"
_PROGRAMS = {"initadvisor": "initadvisor.__main__", "initadvisord": "initadvisor.daemon.__main__"}
_PROGRAM = """\
#!/usr/bin/python3
from {} import main
main()
"""
"""What installers make of an entry point."""

ENABLE = f"""
ln -s /usr/lib/{_UNITS}/{_TIMER} /etc/{_UNITS}/timers.target.wants/
sync
"""
"""For the script of the first boot: what a package manager does when all files are there. The timer
runs from the next boot on.
"""

_PYTHON = re.compile(
    r"./usr/(bin/python3\.\d+$|lib/python3\.\d+/|lib/x86_64-linux-gnu/(ld-linux|lib(c|m|z|expat)\.so))"
)
"""Of a root file system: an interpreter and what it needs to compile."""


def install(into: Guest, *, hooks: str = "") -> None:
    """Put this checkout's package, manual and units on a guest's disk, with these hooks."""
    with tempfile.TemporaryDirectory() as scratch:
        files = Path(scratch) / "files"
        command = ["tools/install-files", "install", str(files), "/usr", hooks]
        subprocess.run(command, cwd=CHECKOUT, check=True, capture_output=True, timeout=60)
        for name, module in _PROGRAMS.items():
            program = files / "usr/bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(_PROGRAM.format(module))
            program.chmod(0o755)
        put_tree(into.disk.root, files, "")
    package = compiled(into.recipe.suite)
    root_files = (path for path in package.rglob("*") if path.is_file())
    into.disk.root.put({f"{WHERE}/{path.relative_to(package)}": path for path in root_files})


def compiled(suite: Suite) -> Path:
    """Return a directory with the Python files, compiled by the suite's Python."""
    archives = bootstrapped(suite, Recipe(suite=suite).packages)

    def make(target: Path) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            _make_wheel(Path(scratch) / "checkout", Path(scratch) / "wheel")
            (wheel,) = (Path(scratch) / "wheel").iterdir()
            with zipfile.ZipFile(wheel) as files:
                files.extractall(target)  # noqa: S202  # it was made here
            _compile(archives / "root.tar", Path(scratch) / "python", target)

    sources = [path for name in _PACKAGED for path in _files(CHECKOUT / name)]
    names = [str(path.relative_to(CHECKOUT)) for path in sources]
    contents = [path.read_text() for path in (*sources, Path(__file__))]
    return made_once(f"compiled-{suite}", (archives.name, *names, *contents), make)


def _compile(root_archive: Path, scratch: Path, package: Path) -> None:
    """Compile a directory of Python files for the guest whose root file system this is."""
    with tarfile.open(root_archive) as archive:
        members = [member for member in archive if _PYTHON.match(member.name)]
        archive.extractall(scratch, members, filter="tar")
    libraries = scratch / "usr/lib/x86_64-linux-gnu"
    (python,) = (scratch / "usr/bin").iterdir()
    (loader,) = libraries.glob("ld-linux-*")
    subprocess.run(
        [
            *(loader, "--library-path", libraries, python, "-m", "compileall", "-q"),
            # Times of files are not kept on the way to the guest.
            *("--invalidation-mode", "unchecked-hash", "-s", package, "-p", WHERE, package),
        ],
        env={"PYTHONHOME": str(scratch / "usr"), "LC_ALL": "C.UTF-8"},
        check=True,
        timeout=600,
    )


def _files(path: Path) -> list[Path]:
    """Return what is packaged of a directory, or the file itself."""
    found = [path, *path.rglob("*")]
    return sorted(each for each in found if each.is_file() and "__pycache__" not in each.parts)


def _make_wheel(copy: Path, target: Path) -> None:
    """Build in a copy: setuptools leaves directories behind."""
    copy.mkdir()
    for name in _PACKAGED:
        source = CHECKOUT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy)
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--no-build-isolation", "--wheel-dir", str(target), str(copy)),
        ],
        check=True,
        capture_output=True,
        timeout=300,
    )
