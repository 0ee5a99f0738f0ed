"""Signals whose handlers raise an exception."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType


_AGAIN_S = 0.01


def is_put_off(signum: int, frame: FrameType | None) -> bool:
    """Tell whether a handler must not raise yet; then the signal comes again, a little later.

    What is raised inside a destructor is printed with a traceback, and lost
    (``object.__del__`` in the Python Language Reference).
    """
    while frame is not None and frame.f_code.co_name != "__del__":
        frame = frame.f_back
    if frame is None:
        return False
    again = threading.Timer(_AGAIN_S, os.kill, (os.getpid(), signum))
    again.daemon = True
    again.start()
    return True
