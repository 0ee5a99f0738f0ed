"""initadvisor in a guest, as a package would put it there: Python files, manual and units."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fixtures.cache import made_once
from tests.vm.boot import boot
from tests.vm.filesystems import put_tree
from tests.vm.guest import Recipe, guest

if TYPE_CHECKING:
    from tests.fixtures.debian import Suite
    from tests.vm.guest import Guest

_CHECKOUT = Path(__file__).parents[2]
_PACKAGED = ("pyproject.toml", "README.md", "LICENSE", "initadvisor")
_WHERE = "/usr/lib/python3/dist-packages"
_UNITS = "systemd/system"
_TIMER = "initadvisor-measure.timer"
_PACKAGE = "/root/initadvisor.tar"
_PROGRAMS = {"initadvisor": "initadvisor.__main__", "initadvisord": "initadvisor.daemon.__main__"}
_PROGRAM = """\
#!/usr/bin/python3
from {} import main
main()
"""
"""What installers make of an entry point."""

UNPACK = f"""
tar -C {_WHERE} -xf {_PACKAGE}
ln -s /usr/lib/{_UNITS}/{_TIMER} /etc/{_UNITS}/timers.target.wants/
sync
"""
"""For the script of the first boot: what a package manager does on the machine itself, and has on
the disk when it is done; the timer runs from the next boot on.
"""

_COMPILE = f"""
python3 -m zipfile -e /root/initadvisor-*.whl {_WHERE}
python3 -m compileall -q {_WHERE}/initadvisor
cd {_WHERE}
tar -cf {_PACKAGE} initadvisor initadvisor-*.dist-info
sync
"""


def install(into: Guest, *, hooks: str = "") -> None:
    """Put this checkout's package, manual and units on a guest's disk, with these hooks."""
    with tempfile.TemporaryDirectory() as scratch:
        files = Path(scratch) / "files"
        command = ["tools/install-files", "install", str(files), "/usr", hooks]
        subprocess.run(command, cwd=_CHECKOUT, check=True, capture_output=True, timeout=60)
        for name, module in _PROGRAMS.items():
            program = files / "usr/bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(_PROGRAM.format(module))
            program.chmod(0o755)
        put_tree(into.disk.root, files, "")
    into.disk.root.put({_PACKAGE: _package(into.recipe.suite)})


def _package(suite: Suite) -> Path:
    """Return an archive of the Python files, compiled by the suite's Python: without KVM that takes
    longer than to boot.
    """
    base = guest(Recipe(suite=suite))

    def make(target: Path) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            copy = base.copied_to(Path(scratch) / "guest")
            _make_wheel(Path(scratch) / "checkout", Path(scratch) / "wheel")
            put_tree(copy.disk.root, Path(scratch) / "wheel", "/root")
            boot(copy, direct=True, script=_COMPILE)
            copy.disk.root.fetch(_PACKAGE, target)

    sources = [path for name in _PACKAGED for path in _files(_CHECKOUT / name)]
    contents = [path.read_text() for path in sources]
    made_of = (base.directory.name, _COMPILE, *map(str, sources), *contents)
    return made_once(f"compiled-{suite}", made_of, make)


def _files(path: Path) -> list[Path]:
    """Return what is packaged of a directory, or the file itself."""
    found = [path, *path.rglob("*")]
    return sorted(each for each in found if each.is_file() and "__pycache__" not in each.parts)


def _make_wheel(copy: Path, target: Path) -> None:
    """Build in a copy: setuptools leaves directories behind."""
    copy.mkdir()
    for name in _PACKAGED:
        source = _CHECKOUT / name
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
