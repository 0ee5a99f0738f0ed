"""Runs one program from a process of its own that has hardly any memory, and says what it took.

What wait4(2) tells of a program's memory is never below that of the process which started it
(fs/exec.c passes it on). So a program whose memory is wanted is started by this file, which imports
next to nothing and gets as arguments: a pipe to read, one to write, signals, a scheduling policy,
then the program and its arguments. Once it is told to, it starts the program, waits for it, and
writes a line: ``ended STATUS WALL_NS CPU_US PEAK_BYTES``, or ``failed ERRNO``. The policy is the
program's; the launcher itself would hold everybody up if it had to wait for idle time.
"""

from __future__ import annotations

import os
import sys
import time


def schedule(policy: int) -> None:
    """Set the policy of this process and of what it starts; only root may raise it again."""
    try:  # noqa: SIM105  # contextlib would have to be imported
        os.sched_setscheduler(0, policy, os.sched_param(0))
    except OSError:
        pass


def main() -> None:
    """Launch what the command line names."""
    told, report = int(sys.argv[1]), int(sys.argv[2])
    default = [int(number) for number in sys.argv[3].split(",")]  # Python has them ignored
    policy = int(sys.argv[4])
    argv = sys.argv[5:]
    os.set_inheritable(told, False)
    os.set_inheritable(report, False)
    if not os.read(told, 1):
        return  # who wanted it has been killed
    started_ns = time.monotonic_ns()
    try:
        schedule(policy)
        pid = os.posix_spawn(argv[0], argv, os.environ, setsigdef=default)
        schedule(os.SCHED_OTHER)
    except OSError as err:
        os.write(report, f"failed {err.errno}\n".encode())
        return
    os.closerange(0, 2)  # who reads or writes the other ends is to learn when the program has ended
    _, status, usage = os.wait4(pid, 0)
    wall_ns = time.monotonic_ns() - started_ns
    cpu_us = round(1e6 * (usage.ru_utime + usage.ru_stime))
    peak_bytes = usage.ru_maxrss * 1024
    os.write(report, f"ended {status} {wall_ns} {cpu_us} {peak_bytes}\n".encode())


if __name__ == "__main__":
    main()
    os._exit(0)  # saves what Python does at its end
