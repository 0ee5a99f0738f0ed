"""A virtual machine: an engine, its program, the kernel in it; and its command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.records.lab import BootKind, Engine, LabKernel

if TYPE_CHECKING:
    from pathlib import Path


QEMU = "qemu-system-x86_64"
UML = "linux.uml"

DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
"""Should this process be killed, nobody else would stop a machine that hangs."""

_MB = 1 << 20
_KERNEL_MB = 384
"""For the kernel itself and the largest window of a decompressor (128 MiB)."""

_SYNCHRONOUS = ("initramfs_async=0", "rdinit=/does-not-exist")
END_PROGRAM = "initadvisor-end"
"""A file that cannot be executed: the kernel says that it runs it, and panics."""

_UNTIL_INIT = (f"rdinit=/{END_PROGRAM}", f"init=/{END_PROGRAM}")
_TALKATIVE = ("initcall_debug", "ignore_loglevel", "printk.time=1", "log_buf_len=1M")
"""User-mode Linux has a console only late, and what it said before must still be there then."""

_ENDING = ("panic=-1", "oops=panic")
"""A kernel that stumbles over an image would otherwise wait for the thread that did, for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualMachine:
    """What an image is booted with.

    ``program`` is QEMU or a user-mode Linux, ``version`` what it says of itself. ``kernel`` says
    what kernel that is, ``kernel_file`` is where QEMU can start it from.
    """

    engine: Engine
    program: str
    version: str
    kernel: LabKernel
    kernel_file: Path
    cores: int = 1

    def command(
        self, image: Path | None, kind: BootKind, *, memory_mb: int, scratch: Path
    ) -> list[str]:
        """Return the command line that boots ``image``; files it makes go to ``scratch``."""
        told = [*_TALKATIVE, *_ENDING, *(_SYNCHRONOUS if kind is BootKind.UNPACK else _UNTIL_INIT)]
        if self.engine is Engine.UML:
            loaded = [f"initrd={image}"] if image else []
            console = ["con=null", "con0=fd:0,fd:1"]
            return [
                self.program, f"mem={memory_mb}M", *loaded, *told, *console, f"uml_dir={scratch}",
            ]  # fmt: skip
        loaded = ["-initrd", str(image)] if image else []
        return [
            self.program,
            *self._processor(memory_mb),
            *("-display", "none", "-nodefaults", "-no-user-config", "-nic", "none"),
            *("-serial", "stdio", "-no-reboot", "-kernel", str(self.kernel_file)),
            *loaded,
            *("-append", " ".join(["console=ttyS0", *told])),
        ]

    def _processor(self, memory_mb: int) -> list[str]:
        size = ["-m", f"{memory_mb}M"]
        if self.engine is Engine.KVM:
            # Memory that the host finds only when the guest touches it would be in the figure.
            memory = f"memory-backend-ram,id=ram,size={memory_mb}M,prealloc=on"
            return [
                *("-accel", "kvm", "-cpu", "host", "-smp", str(self.cores), *size),
                *("-machine", "q35,memory-backend=ram", "-object", memory),
            ]
        # QEMU 7.2 emulates cmpxchg16b wrongly: Linux 6.12 crashes on it.
        processor = ["-accel", "tcg,thread=single", "-cpu", "max,-cx16", "-smp", "1"]
        return [*processor, *size, "-machine", "q35"]


def memory_mb(*, image_bytes: int, unpacked_bytes: int) -> int:
    """Return how much memory unpacking an image takes, in MiB, with room to spare.

    The root file system takes at most half of the memory, and as many files as that has pages
    (mm/shmem.c); beyond that the kernel drops them without a word.
    """
    return _KERNEL_MB + -(-image_bytes // _MB) + 2 * -(-unpacked_bytes * 5 // (4 * _MB))


def time_limit_s(engine: Engine, *, unpacked_bytes: int) -> float:
    """Return after how long a boot that has not ended hangs: many times what it should take."""
    per_mb = 1.0 if engine is Engine.TCG else 0.2
    return 60 + per_mb * unpacked_bytes / _MB
