"""The lab in a guest: its QEMU is the host's.

QEMU emulated by QEMU takes many minutes for a kernel. So the guest's program sends its arguments
and the files they name out of the guest, the host's QEMU is started with just these, and what it
says goes back as it comes. The guest's sandboxed services have no network, so the way out begins
with a socket in the file system; systemd-socket-proxyd(8) leads on to QEMU's own network, which
starts this module for each connection.
"""

from __future__ import annotations

import json
import os
import select
import shlex
import struct
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tests.vm import tools
from tests.vm.filesystems import write

if TYPE_CHECKING:
    from tests.vm.guest import Guest
    from tests.vm.machine import Machine

_PROGRAM = "qemu-system-x86_64"
_INSIDE = Path(__file__).with_name("inside_engine.py")
_CHECKOUT = Path(__file__).parents[2]
_LONGEST_HEAD_BYTES = 1 << 16
_CHUNK_BYTES = 1 << 16
_WHERE = "/usr/lib/outside-engine"
_SCRIPT = f"""\
#!/bin/sh
# Whoever asks for the version waits ten seconds, which is little for the way out and back where a
# busy host emulates the guest.
[ "$*" != --version ] || exec cat {_WHERE}/version
exec {_WHERE}/inside_engine.py "$@"
"""
_ADDRESS = "10.0.2.100"
_PORT = 9
_UNITS = "/etc/systemd/system"
_SOCKET_UNIT = """\
[Socket]
ListenStream=/run/outside-engine
[Install]
WantedBy=sockets.target
"""
_SERVICE_UNIT = f"""\
[Unit]
Wants=systemd-networkd.service
After=systemd-networkd.service
[Service]
ExecStartPre=/usr/lib/systemd/systemd-networkd-wait-online --any
ExecStart=/usr/lib/systemd/systemd-socket-proxyd --exit-idle-time=10 {_ADDRESS}:{_PORT}
"""
_NETWORK = """\
[Match]
Name=en*
[Network]
Address=10.0.2.15/24
LinkLocalAddressing=no
"""


def put_engine(guest: Guest) -> None:
    """Give the guest the program qemu-system-x86_64 and its way out; see ``with_engine``."""
    root = guest.disk.root
    write(root, f"/usr/bin/{_PROGRAM}", _SCRIPT, mode=0o755)
    write(root, f"{_WHERE}/inside_engine.py", _INSIDE.read_bytes(), mode=0o755)
    write(root, f"{_WHERE}/version", tools.run(_PROGRAM, "--version"))
    write(root, "/etc/systemd/network/outside.network", _NETWORK)
    write(root, f"{_UNITS}/outside-engine.socket", _SOCKET_UNIT)
    write(root, f"{_UNITS}/outside-engine.service", _SERVICE_UNIT)
    root.link(
        f"{_UNITS}/sockets.target.wants/outside-engine.socket", f"{_UNITS}/outside-engine.socket"
    )


def with_engine(machine: Machine) -> Machine:
    """Return the machine with the way out for a guest's engine."""
    program = ("env", f"PYTHONPATH={_CHECKOUT}", sys.executable, "-m", __name__)
    command = shlex.join(program).replace(",", ",,")
    forward = f"guestfwd=tcp:{_ADDRESS}:{_PORT}-cmd:{command}"
    device = ("-device", "virtio-net-pci,netdev=outside,romfile=")
    network = ("-netdev", f"user,id=outside,restrict=on,{forward}", *device)
    return replace(machine, also=(*machine.also, *network))


def main() -> None:
    """Serve one command, for the guest at the other end of stdin, which is stdout, too."""
    with tempfile.TemporaryDirectory(prefix="outside-engine-") as scratch:
        argv = _received(sys.stdin.buffer, Path(scratch))
        share = tools.tree() / "usr/share"
        firmware = ("-L", str(share / "seabios"), "-L", str(share / "qemu"))
        process = subprocess.Popen(
            [*tools.command(_PROGRAM), *firmware, *argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert process.stdout
        with process.stdout:
            try:
                _hand_on(process.stdout.fileno())
            finally:
                process.kill()
                status = process.wait()
        _answer(struct.pack(">i", -status if status > 0 else 0))


def _received(stream: IO[bytes], scratch: Path) -> list[str]:
    """Return the arguments, with files by the names that they have here."""
    head = json.loads(stream.readline(_LONGEST_HEAD_BYTES))
    argv: list[str] = head["argv"]
    for number, size_bytes in head["sizes"].items():
        path = scratch / number
        with path.open("wb") as file:
            left = size_bytes
            while left and (chunk := stream.read(min(left, _CHUNK_BYTES))):
                left -= file.write(chunk)
        argv[int(number)] = str(path)
    return argv


def _hand_on(said: int) -> None:
    """Hand on what is said until that ends, or nobody listens any more."""
    guest = sys.stdin.fileno()
    while True:
        ready, _, _ = select.select([said, guest], [], [])
        if guest in ready:
            return  # it sends nothing more: this is its end
        chunk = os.read(said, _CHUNK_BYTES)
        if not chunk:
            return
        _answer(struct.pack(">i", len(chunk)) + chunk)


def _answer(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
