"""Runs a generator: outside of any sandbox, idle, and known to hooks as our own doing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.host.outside import run_outside

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from initadvisor.host import Host

REBUILDING = "INITADVISOR_REBUILDING"
"""The variable that is ``1`` for every generator that we run, and so for all that it starts.

Hooks of ours look at it and do nothing: what they would be told of is our own doing. A variable,
not a file, because it ends with the run, however that ends, and reaches a transient unit, too.
"""


def run_generator(
    host: Host,
    argv: Sequence[str | Path],
    *,
    directory: Path,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run a generator to its end; ``directory`` is where it writes.

    Raises ``UnsafeError`` in a sandbox without a way out, ``ProgramError`` when it fails.
    """
    run_outside(
        host,
        argv,
        directory=directory,
        timeout_s=timeout_s,
        env={REBUILDING: "1", **(env or {})},
    )
