"""What a machine says on its serial console, as it says it."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_DEAD_END = re.compile(
    r"UEFI Interactive Shell|Entering rescue mode|built-in shell \(ash\)|You are in emergency mode"
)
"""What is said before a prompt for a human, where nobody is."""
_CONTROL = re.compile(r"\x1b\[[0-9;?=]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line, without control characters; ``at_s`` counts from the start of the machine, on the
    host's clock, to when the line was complete.
    """

    at_s: float
    text: str


class Console:
    """Collects lines in a thread of its own; others wait for them."""

    def __init__(self, stream: IO[bytes], log: Path) -> None:
        self._stream = stream
        self._log = log
        self._started = time.monotonic()
        self._lines: list[Line] = []
        self._is_over = False
        self._is_stuck = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def started_s(self) -> float:
        """When the machine was started, by the host's monotonic clock."""
        return self._started

    @property
    def lines(self) -> tuple[Line, ...]:
        """What was said so far."""
        with self._changed:
            return tuple(self._lines)

    def wait_for(self, pattern: re.Pattern[str], start: int, within_s: float) -> int | None:
        """Return the number of the first line from ``start`` on that the pattern is in.

        None where the machine stopped, came to a prompt, or ``within_s`` passed without it.
        """
        deadline = time.monotonic() + within_s
        with self._changed:
            while True:
                for number in range(start, len(self._lines)):
                    if pattern.search(self._lines[number].text):
                        return number
                start = max(start, len(self._lines))
                left_s = deadline - time.monotonic()
                if self._is_over or self._is_stuck or left_s <= 0:
                    return None
                self._changed.wait(left_s)

    def wait_for_end(self, within_s: float) -> bool:
        """Tell whether the machine stopped within that time and before any prompt."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or self._is_stuck, within_s)
            return self._is_over

    def close(self) -> None:
        """Wait for what is left to read, once there is nobody to say more."""
        self._thread.join()

    def _read(self) -> None:
        with self._log.open("w", encoding="utf-8") as log:
            for raw in self._stream:
                text = _CONTROL.sub("", raw.decode("utf-8", "replace")).rstrip("\n")
                line = Line(at_s=time.monotonic() - self._started, text=text)
                log.write(f"[{line.at_s:8.2f}] {line.text}\n")
                log.flush()
                with self._changed:
                    self._lines.append(line)
                    self._is_stuck = self._is_stuck or bool(_DEAD_END.search(text))
                    self._changed.notify_all()
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
