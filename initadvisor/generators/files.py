"""What generators ask of the machine: programs, directories, package versions, default levels."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, NeedsRootError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from initadvisor.core.settings import Setting
    from initadvisor.host import Host


PACKAGE_MANAGER_PATH = (
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
)
"""Where a program started by a package manager's hook finds programs."""

_NUMBERS = re.compile(r"(\d+)")


def has_program(
    host: Host, program: str, directories: Iterable[str] = PACKAGE_MANAGER_PATH
) -> bool:
    """Tell whether a shell with this search path finds ``program``; a path is looked up as it is.

    Only what lies below the host's root counts, so that the answer is the generator's, which has a
    search path of its own.
    """
    if not program:
        return False
    paths = [program] if "/" in program else [f"{place}/{program}" for place in directories]
    return any(host.path(path).is_file() and os.access(host.path(path), os.X_OK) for path in paths)


def exists(host: Host, path: str | Path) -> bool:
    """Tell whether a path of the host exists.

    Raises ``NeedsRootError`` where only root may find out.
    """
    try:
        host.path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except PermissionError as err:
        msg = f"cannot look at {host.path(path)}: only root may"
        raise NeedsRootError(msg) from err
    except OSError as err:
        msg = f"cannot look at {host.path(path)}: {err.strerror}"
        raise InitadvisorError(msg) from err
    return True


def debian_version(host: Host, package: str) -> str | None:
    """Return the version of an installed Debian package (dpkg's status file)."""
    status = host.read_text("/var/lib/dpkg/status") or ""
    for stanza in status.split("\n\n"):
        lines = stanza.splitlines()
        if f"Package: {package}" in lines and any(
            line.startswith("Status: ") and line.endswith(" installed") for line in lines
        ):
            return next((line[9:] for line in lines if line.startswith("Version: ")), None)
    return None


def modules_suffix(host: Host, release: str) -> str | None:
    """Return how compressed kernel modules end (``.ko.zst``), None if they are not compressed."""
    listed = host.read_text(f"/lib/modules/{release}/modules.dep") or ""
    first = listed.partition(":")[0]
    match = re.search(r"\.ko\.\w+$", first)
    return match[0] if match else None


def version_key(name: str) -> tuple[tuple[int, int | str], ...]:
    """Return a key that sorts names like ``sort -V`` does for names made of words and numbers."""
    return tuple(
        (1, int(part)) if part.isdecimal() else (0, part) for part in _NUMBERS.split(name) if part
    )


_LEVEL = re.compile(r"^-(\d+)e?$")
_UNTOLD = ("--fast", "--best", "--lzma1", "--lzma2")


def level_of(setting: Setting, otherwise: int | None) -> int | None:
    """Return the level the setting's options ask for, ``otherwise`` if they ask for none.

    None for ``cat``, and where an option replaces the level by something else (``--fast``, a
    filter chain of xz).
    """
    if setting.codec is Codec.CAT:
        return None
    level = otherwise
    for option in setting.options:
        if match := _LEVEL.match(option):
            level = int(match[1])
        elif option.startswith(_UNTOLD):
            level = None
    return level
