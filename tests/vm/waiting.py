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

_HELD_US = 3_000_000
"""More than twice what zstd takes for the heavy content, and less than half of what xz takes."""

_WAITERS = ("crypto_kdf108_init", "init_encrypted")
_COMMAND_LINE = (
    f"{OPTIONS},{','.join(_WAITERS)} ipv6.disable=1 "
    f"resume=/dev/none resumedelay={_HELD_US // 1_000_000} initcall_debug ignore_loglevel"
)
_AT = r"^\[ *(\d+)\.(\d{6})\] "
_HELD = f"{_AT}PM: hibernation: Waiting \\d+sec before reading resume device"
_WENT_ON = f"{_AT}initcall software_resume_initcall\\S+ returned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A boot whose init task was held.

    From the beginning of unpacking, ``held_us``: until it was held; ``shadow_us``: until it went
    on, after which it has next to nothing left to do. ``left``: the files that the boot showed, by
    path.
    """

    kernel: Witnessed
    boot: Boot
    left: dict[str, bytes]
    held_us: int
    shadow_us: int


def held(guest: Guest, candidate: Candidate) -> Held:
    """Boot a candidate on two processors, without firmware and loader."""
    shutil.copyfile(candidate.image, guest.initrd)
    machine = Machine(deterministic=True, beside=True, extra_command_line=_COMMAND_LINE)
    done = boot(guest, machine, direct=True)
    [kernel] = witnessed(done)
    assert kernel.begin_us is not None
    return Held(
        kernel=kernel,
        boot=done,
        left=reported(done),
        held_us=_at_us(done, _HELD) - kernel.begin_us,
        shadow_us=_at_us(done, _WENT_ON) - kernel.begin_us,
    )


def _at_us(done: Boot, line: str) -> int:
    found = done.find(line)
    assert found, f"the init task was not held: no {line}"
    return int(found[1]) * 1_000_000 + int(found[2])
