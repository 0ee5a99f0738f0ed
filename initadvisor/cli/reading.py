"""Reading an image beside other work: decompressors let other threads run."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
from typing import TYPE_CHECKING

from initadvisor.core.errors import BadImageError, InitadvisorError
from initadvisor.host.files import open_regular
from initadvisor.image.scan import scan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

    from initadvisor.image.contents import ImageContents


_SWITCH_INTERVAL_S = 0.0002
"""How long a thread that imports modules may keep the decompressing one waiting; Python's own 5 ms
are several times what one piece of an image takes."""


class ScanThread:
    """A scan in a thread of its own."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._name = name
        self._contents: ImageContents | None = None
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._scan, daemon=True)
        self._thread.start()

    def contents(self) -> ImageContents:
        """Wait for the end of the scan; raises ``InitadvisorError`` for what is no initramfs."""
        self._thread.join()
        if isinstance(self._error, BadImageError):
            msg = f"cannot read {self._name} as an initramfs: {self._error.message}"
            raise InitadvisorError(msg) from self._error
        if self._contents is None:
            raise self._error or RuntimeError
        return self._contents

    def _scan(self) -> None:
        try:
            self._contents = scan(self._file)
        except Exception as err:  # noqa: BLE001 - raised again by contents()
            self._error = err


@contextlib.contextmanager
def read_image(path: Path) -> Iterator[ScanThread]:
    """Open an image and start reading it; raises as ``open_regular`` does."""
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    gc.disable()  # for a scan, which makes no garbage, and imports; it saves about 10 ms
    with open_regular(path) as file:
        yield ScanThread(file, str(path))
