"""Programs of Debian trixie, unpacked but not installed: the same on every machine.

What matters is QEMU 10 (7.2 crashes Linux 6.12 without KVM, observed), its firmware, and a mke2fs
that takes an archive. They run through the dynamic loader they came with, so nothing of the machine
but its kernel takes part.
"""

from __future__ import annotations

import subprocess
from functools import cache
from typing import TYPE_CHECKING

from tests.fixtures.cache import made_once
from tests.fixtures.debian import Suite
from tests.vm.debian import mmdebstrap

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_PACKAGES = (
    *("qemu-system-x86", "ovmf", "seabios"),
    *("e2fsprogs", "libarchive13t64", "dosfstools", "mtools", "fdisk", "systemd"),
    *("btrfs-progs", "qemu-utils"),
)
_TIMEOUT_S = 3600
"""A safety net: on a busy host GRUB alone, which takes seconds else, was not through after 300."""


class ToolError(Exception):
    """A program failed; the message is its command line and the end of what it said."""


@cache
def tree() -> Path:
    """Return the directory the programs were unpacked to."""
    return made_once(
        "vm-tools",
        ("1", *_PACKAGES),
        lambda target: mmdebstrap(Suite.TRIXIE, target, _PACKAGES, variant="extract"),
    )


def command(program: str) -> tuple[str, ...]:
    """Return how to start one of the programs."""
    for directory in ("usr/bin", "usr/sbin"):
        path = tree() / directory / program
        if path.exists():
            libraries = tree() / "usr/lib/x86_64-linux-gnu"
            return (
                *(str(libraries / "ld-linux-x86-64.so.2"), "--library-path"),
                *(f"{libraries}:{libraries}/systemd", str(path)),
            )
    msg = f"no {program} in {', '.join(_PACKAGES)}"
    raise ToolError(msg)


def run(
    program: str, *arguments: str | Path, stdin: bytes = b"", good: tuple[int, ...] = (0,)
) -> bytes:
    """Run a program to its end and return its stdout; ``good`` are the statuses of success.

    Raises ``ToolError`` for any other status.
    """
    argv = [*command(program), *(str(argument) for argument in arguments)]
    return started(argv, stdin=stdin, good=good)


def started(argv: Sequence[str], *, stdin: bytes = b"", good: tuple[int, ...] = (0,)) -> bytes:
    """Run a command line as ``run`` does."""
    done = subprocess.run(
        argv,
        input=stdin,
        capture_output=True,
        check=False,
        timeout=_TIMEOUT_S,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MTOOLS_SKIP_CHECK": "1"},
    )
    if done.returncode not in good:
        said = (done.stdout + done.stderr).decode(errors="replace")[-2000:]
        msg = f"{' '.join(argv[3:])} exited with status {done.returncode}: {said}"
        raise ToolError(msg)
    return done.stdout
