"""A TPM for a guest (swtpm), which keeps what it holds from one boot to the next."""

from __future__ import annotations

import contextlib
import subprocess
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def tpm(state: Path) -> Iterator[Path]:
    """Start the TPM of a machine, once for each boot, and yield where it listens."""
    socket = state / "socket"
    socket.unlink(missing_ok=True)
    argv = ["swtpm", "socket", "--tpm2", "--tpmstate", f"dir={state}"]
    argv += ["--ctrl", f"type=unixio,path={socket}", "--flags", "startup-clear"]
    with subprocess.Popen(argv) as process:
        try:
            while process.poll() is None and not socket.exists():
                time.sleep(0.05)
            yield socket
        finally:
            process.terminate()
