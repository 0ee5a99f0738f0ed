"""What distributions call the packages of programs and Python modules, and what installs them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from initadvisor.core.errors import LibraryError

if TYPE_CHECKING:
    from initadvisor.core.errors import InitadvisorError
    from initadvisor.host import Host


class PackageManager(StrEnum):
    """What installs packages, by the command that does."""

    APT = "apt install --no-install-recommends"
    PACMAN = "pacman -S"
    DNF = "dnf install"
    ZYPPER = "zypper install"


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """Names in Debian, Arch and Fedora; openSUSE's are taken to be Fedora's.

    None where a distribution has none: Arch has lzo's module, and nobody but Debian user-mode
    Linux, in what users contribute only.
    """

    debian: str
    arch: str | None
    fedora: str | None


_FAMILIES: Final = {
    "debian": PackageManager.APT,
    "ubuntu": PackageManager.APT,
    "arch": PackageManager.PACMAN,
    "fedora": PackageManager.DNF,
    "rhel": PackageManager.DNF,
    "suse": PackageManager.ZYPPER,
    "opensuse": PackageManager.ZYPPER,
}

_PYTHON: Final = {
    "jinja2": Package(debian="python3-jinja2", arch="python-jinja", fedora="python3-jinja2"),
    "lzo": Package(debian="python3-lzo", arch=None, fedora=None),
    "systemd": Package(debian="python3-systemd", arch="python-systemd", fedora="python3-systemd"),
}

_PUBLISHED: Final = {"lzo": "python-lzo", "systemd": "systemd-python"}

PROGRAMS: Final = {
    "bzip2": Package(debian="bzip2", arch="bzip2", fedora="bzip2"),
    "cryptsetup": Package(debian="cryptsetup-bin", arch="cryptsetup", fedora="cryptsetup"),
    "gzip": Package(debian="gzip", arch="gzip", fedora="gzip"),
    "linux.uml": Package(debian="user-mode-linux", arch=None, fedora=None),
    "lz4": Package(debian="lz4", arch="lz4", fedora="lz4"),
    "lzma": Package(debian="xz-utils", arch="xz", fedora="xz-lzma-compat"),
    "lzop": Package(debian="lzop", arch="lzop", fedora="lzop"),
    "pigz": Package(debian="pigz", arch="pigz", fedora="pigz"),
    "qemu-system-x86_64": Package(
        debian="qemu-system-x86", arch="qemu-base", fedora="qemu-system-x86-core"
    ),
    "xz": Package(debian="xz-utils", arch="xz", fedora="xz"),
    "zstd": Package(debian="zstd", arch="zstd", fedora="zstd"),
}
"""What brings a program."""


def python_package(module: str) -> Package:
    """Return what brings a Python module."""
    usual = Package(debian=f"python3-{module}", arch=f"python-{module}", fedora=f"python3-{module}")
    return _PYTHON.get(module, usual)


def published_as(module: str) -> str:
    """Return the name under which PyPI has a module."""
    return _PUBLISHED.get(module, module)


def how_to_install(host: Host, package: Package) -> str | None:
    """Return the command that installs a package here, None where the distribution has none."""
    manager = package_manager(host)
    if manager is None:
        return f"install {package.debian}"
    name = {
        PackageManager.APT: package.debian,
        PackageManager.PACMAN: package.arch,
        PackageManager.DNF: package.fedora,
        PackageManager.ZYPPER: package.fedora,
    }[manager]
    return f"sudo {manager} {name}" if name else None


def what_to_do(host: Host, err: InitadvisorError) -> str | None:
    """Return the advice that comes with an error; of a Python module, what installs it here."""
    if err.hint or not isinstance(err, LibraryError) or err.module in sys.stdlib_module_names:
        return err.hint
    command = how_to_install(host, python_package(err.module))
    command = command or f"pip install {published_as(err.module)}"
    return command if err.missing else f"install it again: {command}"


def package_manager(host: Host) -> PackageManager | None:
    """Return what this distribution installs packages with, by os-release(5)."""
    text = host.read_text("/etc/os-release") or host.read_text("/usr/lib/os-release") or ""
    fields = dict(line.partition("=")[::2] for line in text.splitlines())
    names = f"{fields.get('ID', '')} {fields.get('ID_LIKE', '')}".replace('"', "").split()
    return next((_FAMILIES[name] for name in names if name in _FAMILIES), None)
