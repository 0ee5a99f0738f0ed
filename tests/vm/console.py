"""What a machine says on its serial console, as it says it."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

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
        self._ended = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def lines(self) -> tuple[Line, ...]:
        """What was said so far."""
        with self._changed:
            return tuple(self._lines)

    def wait_for(self, pattern: re.Pattern[str], start: int, within_s: float) -> int | None:
        """Return the number of the first line from ``start`` on that the pattern is in.

        None where the machine said its last word, or ``within_s`` passed, without it.
        """
        deadline = time.monotonic() + within_s
        with self._changed:
            while True:
                for number in range(start, len(self._lines)):
                    if pattern.search(self._lines[number].text):
                        return number
                start = max(start, len(self._lines))
                left_s = deadline - time.monotonic()
                if self._ended or left_s <= 0:
                    return None
                self._changed.wait(left_s)

    def wait_for_end(self, within_s: float) -> bool:
        """Tell whether the last word was said within that time."""
        self._thread.join(within_s)
        return not self._thread.is_alive()

    def _read(self) -> None:
        with self._log.open("w", encoding="utf-8") as log:
            for raw in self._stream:
                text = _CONTROL.sub("", raw.decode("utf-8", "replace")).rstrip("\n")
                line = Line(at_s=time.monotonic() - self._started, text=text)
                log.write(f"[{line.at_s:8.2f}] {line.text}\n")
                log.flush()
                with self._changed:
                    self._lines.append(line)
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()
