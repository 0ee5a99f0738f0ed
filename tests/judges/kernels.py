"""Where the judges' kernels come from, and how they are started."""

from __future__ import annotations

import gzip
import lzma
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.image.kernel import KernelConfig
from tests.fixtures.cache import made_once
from tests.fixtures.debian import Kernel, Suite, debian
from tests.judges.judge import Judge
from tests.vm import tools

if TYPE_CHECKING:
    from collections.abc import Mapping

_UML = "/usr/bin/linux.uml"
_UML_CONFIG = Path("/usr/share/doc/user-mode-linux/config.gz")
_MEMORY = "1G"
"""More than the largest window a kernel accepts takes, and the unpacked files."""

_TREES = {
    Judge.TCG: (Suite.BOOKWORM, Kernel.FULL),
    Judge.TCG_LATER: (Suite.TRIXIE, Kernel.CLOUD),
}

_ASKED = re.compile(r"CONFIG_(RD_|XZ_DEC_|DECOMPRESS_|BLK_DEV_INITRD$|INITRAMFS_FORCE$)")
"""The options that lint may ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedKernel:
    """A kernel that can be started; ``file`` is what QEMU or the shell gets."""

    judge: Judge
    file: Path
    config_file: Path

    @property
    def options(self) -> Mapping[str, str]:
        """What lint may ask of the configuration, as far as it is set."""
        content = self.config_file.read_bytes()
        text = gzip.decompress(content) if self.config_file.suffix == ".gz" else content
        config = KernelConfig.parse(text.decode(), source=str(self.config_file))
        return {
            name: value
            for name, value in config.options.items()
            if value is not None and _ASKED.match(name)
        }

    def command(self, image: Path, parameters: str, scratch: Path) -> list[str | Path]:
        """Return what boots the kernel with an image; it talks on its standard output."""
        if self.judge is Judge.UML:
            console = ("con=null", "con0=null,fd:1", f"uml_dir={scratch}")
            return [self.file, f"mem={_MEMORY}", f"initrd={image}", *console, *parameters.split()]
        options = ("-kernel", self.file, "-initrd", image)
        return qemu(*options, "-append", f"console=ttyS0 {parameters}")


def qemu(*options: str | Path) -> list[str | Path]:
    """Return what starts a virtual machine that talks on its standard output."""
    share = tools.tree() / "usr/share"
    return [
        *tools.command("qemu-system-x86_64"),
        *("-L", share / "seabios", "-L", share / "qemu"),
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
        *("-machine", "q35,accel=tcg", "-cpu", "max", "-smp", "1", "-m", _MEMORY),
        *("-serial", "stdio", *options),
    ]


@cache
def kernel_of(judge: Judge) -> StartedKernel:
    """Return a judge's kernel, downloaded and unpacked where that was not done before."""
    if judge is Judge.UML:
        return StartedKernel(judge=judge, file=Path(_UML), config_file=_UML_CONFIG)
    tree = debian(*_TREES[judge])
    file = tree.root / f"boot/vmlinuz-{tree.release}"
    return StartedKernel(
        judge=judge,
        file=_unpacked(file) if judge is Judge.TCG else file,
        config_file=tree.root / f"boot/config-{tree.release}",
    )


def _unpacked(vmlinuz: Path) -> Path:
    """Return the ELF file inside an xz-compressed kernel, which QEMU starts as well (PVH).

    The kernel would take three seconds of every boot to unpack itself on an emulated processor.
    """
    compressed = vmlinuz.read_bytes()
    start = compressed.index(b"\xfd7zXZ\0")

    def make(target: Path) -> None:
        target.write_bytes(lzma.LZMADecompressor().decompress(compressed[start:]))

    return made_once("vmlinux", (vmlinuz.name, str(vmlinuz.parent)), make)
