"""A machine whose kernel has other work for a known time before anything waits for its initramfs.

The first to wait in Debian's kernels are self-tests and keys, within some hundredths of a second.
Without them, and without IPv6, it is the step before /init. Before that one comes the search for a
hibernated system, and that can be told to sleep first (``resumedelay=``, kernel/power/hibernate.c).
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.vm.boot import boot
from tests.vm.emulated import OPTIONS
from tests.vm.machine import Machine
from tests.vm.reporter import reported
from tests.vm.witness import witnessed

if TYPE_CHECKING:
    from tests.vm.boot import Boot
    from tests.vm.emulated import Candidate
    from tests.vm.guest import Guest
    from tests.vm.witness import Witnessed

HELD_US = 2_000_000

_WAITERS = ("crypto_kdf108_init", "init_encrypted")
_COMMAND_LINE = (
    f"{OPTIONS},{','.join(_WAITERS)} ipv6.disable=1 "
    f"resume=/dev/none resumedelay={HELD_US // 1_000_000} initcall_debug ignore_loglevel"
)
_HELD = r"^\[ *(\d+)\.(\d{6})\] PM: hibernation: Waiting \d+sec before reading resume device"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A boot whose init task was held.

    ``shadow_us``: from the beginning of unpacking until it went on, after which it has next to
    nothing left to do. ``left``: the files that the boot showed, by path.
    """

    kernel: Witnessed
    boot: Boot
    left: dict[str, bytes]
    shadow_us: int


def held(guest: Guest, candidate: Candidate) -> Held:
    """Boot a candidate on two processors, without firmware and loader."""
    shutil.copyfile(candidate.image, guest.initrd)
    machine = Machine(deterministic=True, beside=True, extra_command_line=_COMMAND_LINE)
    done = boot(guest, machine, direct=True)
    [kernel] = witnessed(done)
    found = done.find(_HELD)
    assert found, "the init task was not held"
    assert kernel.begin_us is not None
    held_at_us = int(found[1]) * 1_000_000 + int(found[2])
    return Held(
        kernel=kernel,
        boot=done,
        left=reported(done),
        shadow_us=held_at_us + HELD_US - kernel.begin_us,
    )
