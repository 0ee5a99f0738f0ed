"""A guest whose clock is synchronised: a real systemd-timesyncd asks a time server in the guest.

The server tells the guest's own time, which is QEMU's clock chip's: right to a second, because that
has no smaller unit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.vm.filesystems import write

if TYPE_CHECKING:
    from tests.vm.boot import Boot
    from tests.vm.guest import Guest

PACKAGES = ("systemd-timesyncd",)
"""What the guest's recipe has to name beside the usual."""

CLOCK_ERROR_S = 1.0
"""How far the guest's clock may be from the host's."""

_PROGRAM = "/usr/local/sbin/time-server"
_SERVER = '''\
#!/usr/bin/python3
"""Answers SNTP requests (RFC 4330) on the socket that systemd hands over.

They came when the kernel says: the first of them started this program, which took seconds.
"""
import socket
import struct
import time


def stamp(time_ns):
    seconds, rest_ns = divmod(time_ns, 10**9)
    return (seconds + 2_208_988_800 << 32) + (rest_ns << 32) // 10**9


with socket.socket(fileno=3) as server:
    while True:
        request, [(_, _, received)], _, peer = server.recvmsg(512, 64)
        (sent,) = struct.unpack_from(">Q", request, 40)
        seconds, rest_ns = struct.unpack("qq", received)
        came = stamp(seconds * 10**9 + rest_ns)
        head = struct.pack(">BBBbII4s", 0x24, 1, request[2], -20, 0, 0, b"LOCL")
        server.sendto(head + struct.pack(">QQQQ", came, sent, came, stamp(time.time_ns())), peer)
'''
_SOCKET_UNIT = """\
[Unit]
DefaultDependencies=no
Before=systemd-timesyncd.service

[Socket]
ListenDatagram=127.0.0.1:123
Timestamping=ns
"""
_SERVICE_UNIT = f"""\
[Unit]
DefaultDependencies=no
Conflicts=shutdown.target
Before=shutdown.target

[Service]
ExecStart={_PROGRAM}
"""
_WANTED = """\
[Unit]
Wants=time-server.socket
After=time-server.socket
"""
_CONFIGURATION = """\
[Time]
NTP=127.0.0.1
FallbackNTP=
"""


def synchronise(guest: Guest) -> None:
    """Have the guest's clock synchronised in every boot from now on."""
    units = "/etc/systemd/system"
    root = guest.disk.root
    write(root, _PROGRAM, _SERVER, mode=0o755)
    write(root, f"{units}/time-server.socket", _SOCKET_UNIT)
    write(root, f"{units}/time-server.service", _SERVICE_UNIT)
    write(root, f"{units}/systemd-timesyncd.service.d/guest.conf", _WANTED)
    write(root, "/etc/systemd/timesyncd.conf.d/guest.conf", _CONFIGURATION)


SHOW = """
until journalctl -b -q -u systemd-timesyncd | grep -q 'nitial clock synchronization'; do
    sleep 0.5
done
python3 - <<'END'
import time
with open("/dev/kmsg", "w") as console:
    now = time.time_ns() // 1000, time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
    console.write("<1>guest: clocks {} {}\\n".format(*now))
END
"""
"""For the script of a boot: say what the clocks show when the wall clock has been set."""

_SHOWN = re.compile(r"guest: clocks (\d+) (\d+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """Three clocks at one moment, in microseconds: the host's, which began anywhere, the guest's
    wall clock, and how long its kernel has run.
    """

    host_us: int
    wall_us: int
    since_start_us: int


def clocks(booted: Boot) -> Clocks:
    """Return what ``SHOW`` said."""
    (found,) = (
        (line, said) for line in booted.lines if (said := _SHOWN.search(line.text)) is not None
    )
    line, said = found
    return Clocks(
        host_us=round((booted.started_s + line.at_s) * 1e6),
        wall_us=int(said[1]),
        since_start_us=int(said[2]),
    )
