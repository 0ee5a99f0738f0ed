"""initadvisor in a guest, as a package would put it there: Python files, manual and units."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.vm.filesystems import put_tree

if TYPE_CHECKING:
    from tests.vm.guest import Guest

_CHECKOUT = Path(__file__).parents[2]
_PACKAGED = ("pyproject.toml", "README.md", "LICENSE", "initadvisor")
_WHERE = "/usr/lib/python3/dist-packages"
_PROGRAMS = {"initadvisor": "initadvisor.__main__", "initadvisord": "initadvisor.daemon.__main__"}
_PROGRAM = """\
#!/usr/bin/python3
from {} import main
main()
"""
"""What installers make of an entry point."""

UNPACK = f"""
python3 -m zipfile -e /root/initadvisor-*.whl {_WHERE}
python3 -m compileall -q {_WHERE}/initadvisor
systemctl enable initadvisor-measure.timer
"""
"""For the script of the first boot: what a package manager does on the machine itself."""


def install(guest: Guest, *, hooks: str = "") -> None:
    """Put a wheel of this checkout, manual and units on the guest's disk, with these hooks."""
    with tempfile.TemporaryDirectory() as scratch:
        files = Path(scratch) / "files"
        _make_wheel(Path(scratch) / "checkout", files / "root")
        command = ["tools/install-files", "install", str(files), "/usr", hooks]
        subprocess.run(command, cwd=_CHECKOUT, check=True, capture_output=True, timeout=60)
        for name, module in _PROGRAMS.items():
            program = files / "usr/bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(_PROGRAM.format(module))
            program.chmod(0o755)
        put_tree(guest.disk.root, files, "")


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
