"""Debian by mmdebstrap, as root or in user namespaces, from the mirror this machine uses itself."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from tests.fixtures.debian import mirror, program

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.fixtures.debian import Suite

_TIMEOUT_S = 1800
_REPEATED = ("Acquire::http", "Acquire::https", "Acquire::Check-", "Acquire::Retries")
"""What mmdebstrap, whose apt has a configuration of its own, is told of this machine's: proxies,
and how old an index may be."""


def mmdebstrap(
    suite: Suite, target: Path, packages: Sequence[str], *options: str, variant: str
) -> None:
    """Make a directory or, where its name ends in ``.tar``, an archive of a Debian."""
    argv = [
        *(program("mmdebstrap"), "--quiet", f"--variant={variant}", "--architectures=amd64"),
        *(f"--aptopt={line}" for line in _apt_options()),
        *('--aptopt=APT::Install-Recommends "false"', f"--include={','.join(packages)}"),
        *(*options, suite.value, str(target), mirror()),
    ]
    done = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-4000:]


def _apt_options() -> list[str]:
    dump = subprocess.run(
        [program("apt-config"), "dump"], check=True, capture_output=True, text=True, timeout=60
    )
    return [
        line.rstrip(";")
        for line in dump.stdout.splitlines()
        if line.startswith(_REPEATED) and not line.endswith(' "";')
    ]
