"""Runs one program from a process of its own that has hardly any memory, and says what it took.

What wait4(2) tells of a program's memory is never below that of the process which started it
(fs/exec.c passes it on). So a program whose memory is wanted is started by this file, which imports
next to nothing and is run by its path: a socket, signals, then the program and its arguments. It
writes a line when it is ready, starts the program when the other end is shut, waits for it, and
writes another line: ``ended STATUS WALL_NS CPU_US PEAK_BYTES``, or ``failed ERRNO``.
"""

import os
import sys
import time


def main() -> None:
    """Launch what the command line names."""
    socket = int(sys.argv[1])
    default = [int(number) for number in sys.argv[2].split(",")]  # Python has them ignored
    argv = sys.argv[3:]
    os.set_inheritable(socket, False)
    os.write(socket, b"ready\n")
    os.read(socket, 1)
    started_ns = time.monotonic_ns()
    try:
        pid = os.posix_spawn(argv[0], argv, os.environ, setsigdef=default)
    except OSError as err:
        os.write(socket, f"failed {err.errno}\n".encode())
        return
    os.closerange(0, 2)  # who reads or writes the other ends is to learn when the program has ended
    _, status, usage = os.wait4(pid, 0)
    wall_ns = time.monotonic_ns() - started_ns
    cpu_us = round(1e6 * (usage.ru_utime + usage.ru_stime))
    peak_bytes = usage.ru_maxrss * 1024
    os.write(socket, f"ended {status} {wall_ns} {cpu_us} {peak_bytes}\n".encode())


if __name__ == "__main__":
    main()
    os._exit(0)  # saves what Python does at its end
