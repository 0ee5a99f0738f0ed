#!/usr/bin/python3
"""Inside a guest: QEMU's program, of which the host's does the work; see outside_engine.py."""

from __future__ import annotations

import json
import signal
import socket
import struct
import sys
from pathlib import Path

_SOCKET = "/run/outside-engine"


def _send(connection: socket.socket, argv: list[str]) -> None:
    """Send a line of JSON, the arguments and the sizes of those that are files; then the files."""
    sizes = {
        number: Path(word).stat().st_size
        for number, word in enumerate(argv)
        if Path(word).is_file()
    }
    connection.sendall(json.dumps({"argv": argv, "sizes": sizes}).encode() + b"\n")
    for number in sizes:
        with Path(argv[number]).open("rb") as file:
            connection.sendfile(file)


def main() -> int:
    """Print what QEMU prints as it comes, and return its status."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(_SOCKET)
        _send(connection, sys.argv[1:])
        with connection.makefile("rb") as answer:
            while True:
                head = answer.read(4)
                if len(head) < 4:
                    sys.exit("the host's QEMU was lost")
                size: int = struct.unpack(">i", head)[0]
                if size <= 0:
                    return -size
                sys.stdout.buffer.write(answer.read(size))
                sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
