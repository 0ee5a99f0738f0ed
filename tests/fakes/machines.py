"""Virtual machines that say what a test wants them to say, by the image they boot."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.host.process import Ending
from initadvisor.records.lab import Engine, LabKernel
from initadvisor.vm.machine import VirtualMachine
from tests.fakes.runner import FakeRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

UNPACKED = """\
[    0.000000] Linux version 6.1.0-50-amd64 (debian-kernel@lists.debian.org) #1 SMP
[    1.300000] calling  populate_rootfs+0x0/0x107 @ 1
[    1.314817] Trying to unpack rootfs image as initramfs...
[    1.930417] Freeing initrd memory: 22716K
[    1.930500] initcall populate_rootfs+0x0/0x107 returned 0 after {us} usecs
"""

REFUSED = """\
[    1.314817] Trying to unpack rootfs image as initramfs...
[    1.320000] rootfs image is not initramfs ({why}); looks like an initrd
[    1.930417] Freeing initrd memory: 22716K
[    1.930500] initcall populate_rootfs+0x0/0x107 returned 0 after 600000 usecs
"""

UNTIL_INIT = """\
[    1.300000] initcall populate_rootfs+0x0/0x107 returned 0 after 12 usecs
[    1.314817] Trying to unpack rootfs image as initramfs...
[    1.320000] calling  crypto_kdf108_init+0x0/0x12c @ 1
[    1.930417] Freeing initrd memory: 22716K
[    1.930600] initcall crypto_kdf108_init+0x0/0x12c returned 0 after 610000 usecs
[    2.500000] Run /initadvisor-end as init process
"""


@dataclass(slots=True)
class Machines(FakeRunner):
    """Answers a boot with what ``says`` returns for the image's bytes and the command line.

    None stands for a machine that hangs.
    """

    says: Callable[[bytes, str], str | None] = lambda _image, _command: UNPACKED.format(us=600_000)
    booted: list[str] = field(default_factory=list)
    limits_s: list[float] = field(default_factory=list)

    def watch(
        self,
        argv: Sequence[str | Path],
        *,
        timeout_s: float,
        on_line: Callable[[bytes], bool],
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Ending:
        """Say it, line by line."""
        del env, cwd
        self.limits_s.append(timeout_s)
        words = [str(word) for word in argv]
        command = " ".join(words)
        self.booted.append(command)
        said = self.says(_image(words), command)
        if said is None:
            return Ending.TIME_OUT
        if any(on_line(line.encode()) for line in said.splitlines()):
            return Ending.STOPPED
        return Ending.EXITED


def machine(engine: Engine = Engine.UML, *, kernel: Path = Path("/boot/vmlinuz")) -> VirtualMachine:
    """Return a machine of the engine, with a made-up kernel."""
    return VirtualMachine(
        engine=engine,
        program=f"/usr/bin/{engine}",
        version=f"{engine} 1",
        kernel=LabKernel(path=str(kernel), sha256="f" * 64, release="6.1.0"),
        kernel_file=kernel,
        cores=1 if engine is Engine.UML else 2,
    )


def _image(words: Sequence[str]) -> bytes:
    if "-initrd" in words:
        return Path(words[words.index("-initrd") + 1]).read_bytes()
    named = [word.removeprefix("initrd=") for word in words if word.startswith("initrd=")]
    return Path(named[0]).read_bytes() if named else b""
