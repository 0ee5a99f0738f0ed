"""Keeps the machine from shutting down and going to sleep while files are replaced."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

from initadvisor.core.errors import ProgramError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.host import Host


log = logging.getLogger(__name__)

_TIMEOUT_S = 10.0
_BOOTED = "/run/systemd/system"
"""Exists where systemd is the init system (sd_booted(3))."""


@contextlib.contextmanager
def inhibited(host: Host, why: str) -> Iterator[None]:
    """Have logind refuse to shut down and to sleep as long as the context is.

    ``why`` is what users are told who try. The inhibitor goes with this process, however it ends
    (systemd-inhibit(1)). It guards against haste, not for correctness: where it cannot be had, a
    warning is logged and the block runs without.
    """
    with contextlib.ExitStack() as held:
        if reason := _lacking(host):
            log.warning("nothing keeps this machine from shutting down meanwhile: %s", reason)
        else:
            try:
                held.enter_context(_inhibitor(host, why))
            except ProgramError as err:
                log.warning("nothing keeps this machine from shutting down meanwhile: %s", err)
        yield


def _inhibitor(host: Host, why: str) -> contextlib.AbstractContextManager[None]:
    """Hold systemd-inhibit, which starts its program once it has the lock."""
    words = ("--what=shutdown:sleep", "--mode=block", "--who=initadvisor", f"--why={why}")
    command = ("systemd-inhibit", *words, "cat")
    return host.runner.hold(command, word="inhibited", timeout_s=_TIMEOUT_S)


def _lacking(host: Host) -> str | None:
    if not host.path(_BOOTED).is_dir():
        return "it was not booted with systemd"
    if host.runner.which("systemd-inhibit") is None:
        return "systemd-inhibit is not installed"
    return None
