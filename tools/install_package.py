"""Installs the Python package from its wheel, or removes it: for ``make install``.

    install_package.py install WHEEL DESTDIR PREFIX
    install_package.py uninstall DESTDIR PREFIX

Needs the module ``installer`` (python-installer, python3-installer).
"""

from __future__ import annotations

import os
import shutil
import site
import sys
import sysconfig
import tomllib
from pathlib import Path

NAME = "initadvisor"
PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def scheme_below(prefix: str) -> dict[str, str]:
    """Return where this interpreter looks for modules below the prefix, and what belongs to it.

    Debian's looks in other directories than its default scheme says: in those of packages for
    ``/usr``, and below a ``local`` of its own for ``/usr/local``.
    """
    parent = str(Path(prefix).parent)
    choices = [("deb_system", prefix), ("posix_local", parent), ("posix_prefix", prefix)]
    known = [choice for choice in choices if choice[0] in sysconfig.get_scheme_names()]
    schemes = [
        sysconfig.get_paths(name, vars={"base": base, "platbase": base, "installed_base": base})
        for name, base in known
    ]
    right = [scheme for scheme in schemes if Path(scheme["scripts"]) == Path(prefix, "bin")]
    looked_in = site.getsitepackages()  # sys.path has only those that are there already
    return next((scheme for scheme in right if scheme["purelib"] in looked_in), right[-1])


def install(wheel: Path, destdir: str, prefix: str) -> None:
    """Install the wheel, with byte code: where it is used, nobody may write it."""
    from installer import install as install_wheel
    from installer.destinations import SchemeDictionaryDestination
    from installer.sources import WheelFile

    uninstall(destdir, prefix)  # modules that a later version does not have any more
    scheme = scheme_below(prefix)
    destination = SchemeDictionaryDestination(
        {**scheme, "headers": scheme["include"]},
        interpreter=sys.executable,
        script_kind="posix",
        bytecode_optimization_levels=[0, 1],
        destdir=destdir or None,
    )
    with WheelFile.open(wheel) as source:
        install_wheel(source, destination, {"INSTALLER": b"make install\n"})


def uninstall(destdir: str, prefix: str) -> None:
    """Remove the package and its commands, where they are."""
    scheme = scheme_below(prefix)
    modules = Path(f"{destdir}{scheme['purelib']}")
    for directory in (modules / NAME, *modules.glob(f"{NAME}-*.dist-info")):
        if directory.is_dir():
            shutil.rmtree(directory)
    for command in tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["scripts"]:
        Path(f"{destdir}{scheme['scripts']}", command).unlink(missing_ok=True)


if __name__ == "__main__":
    os.umask(0o022)  # every user has to be able to read it
    match sys.argv[1:]:
        case ["install", wheel, destdir, prefix]:
            install(Path(wheel), destdir, prefix)
        case ["uninstall", destdir, prefix]:
            uninstall(destdir, prefix)
        case _:
            sys.exit(__doc__)
