"""Orders to a running QEMU, in its machine protocol (docs/interop/qmp-spec.rst of QEMU)."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import socket
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from tests.vm.machine import Machine

_TIMEOUT_S = 300.0
_POLL_S = 0.05


class QmpError(Exception):
    """QEMU did not do what it was told; the message is its own."""


@contextlib.contextmanager
def controlled(machine: Machine) -> Iterator[Machine]:
    """Return the machine with a socket to control it, which is there as long as the context is."""
    # The name of a socket must be short, unlike those of the directories that tests get.
    with tempfile.TemporaryDirectory(prefix="qmp-") as directory:
        yield dataclasses.replace(machine, control=Path(directory) / "socket")


class Qmp:
    """A connection to a running machine; a context manager. Raises ``QmpError``."""

    def __init__(self, machine: Machine) -> None:
        assert machine.control
        self._deadline = time.monotonic() + _TIMEOUT_S
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_TIMEOUT_S)
        while self._socket.connect_ex(str(machine.control)):
            self._wait("it does not answer")
        self._lines = self._socket.makefile("rb")
        self._answer()  # the greeting
        self.execute("qmp_capabilities")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lines.close()
        self._socket.close()

    def execute(self, command: str, **arguments: object) -> dict[str, Any]:
        """Give a command and return the answer. Raises ``QmpError``."""
        order = json.dumps({"execute": command, "arguments": arguments})
        self._socket.sendall(order.encode() + b"\n")
        answer = self._answer()
        if "error" in answer:
            msg = f"{command}: {answer['error']['desc']}"
            raise QmpError(msg)
        return dict(answer["return"])

    def save(self, target: Path) -> None:
        """Stop the machine and write what is in its memory and devices to a file.

        Its disks are not in there: they stay as they are now, all requests done.
        """
        self.execute("stop")
        self.execute("migrate-set-parameters", **{"max-bandwidth": 1 << 33})
        self.execute("migrate", uri=f"file:{target}")
        while (status := self.execute("query-migrate"))["status"] != "completed":
            if status["status"] == "failed":
                msg = f"saving a machine in {target}: {status}"
                raise QmpError(msg)
            self._wait("it is not saved yet")

    def resume(self) -> None:
        """Let a machine that was saved go on, once everything is in its place again."""
        while self.execute("query-status")["status"] == "inmigrate":
            self._wait("it is not loaded yet")
        self.execute("cont")

    def _wait(self, what: str) -> None:
        if time.monotonic() > self._deadline:
            msg = f"a machine takes too long: {what}"
            raise QmpError(msg)
        time.sleep(_POLL_S)

    def _answer(self) -> dict[str, Any]:
        """Return the next line that is no event."""
        for line in self._lines:
            said: dict[str, Any] = json.loads(line)
            if "event" not in said:
                return said
        msg = "QEMU hung up"
        raise QmpError(msg)
