"""A machine that is emulated and deterministic, its images, and what they cost when they boot.

Its clock counts instructions, and it unpacks before it does anything else: in the same time,
whatever the host does. Its firmware reads from a slow disk, which is on USB and so goes by the same
clock, in the same time within some percent (more where the host is busy), and from a fast one.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import subprocess
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from initadvisor.core.settings import Setting
from tests.fixtures.debian import program
from tests.vm.boot import boot
from tests.vm.entries import add_trial_entry
from tests.vm.filesystems import write
from tests.vm.machine import Bus, Machine
from tests.vm.reporter import loader_variable, reported
from tests.vm.witness import witnessed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vm.boot import Boot
    from tests.vm.guest import Guest
    from tests.vm.witness import Witnessed

log = logging.getLogger(__name__)

COMPRESSORS = {
    "cat": (),
    "lz4 -9": ("lz4", "-l", "-9", "-c"),
    "zstd -3": ("zstd", "-q", "-3", "-c"),
    "xz": ("xz", "--check=crc32", "-c"),
}

_DISTURBED_US = 4_500_000
"""What is read here takes 1.8 to 2.9 s; firmware that waits in vain for a stick, to reset it then,
waits 3 s or 5 s (EDK II: MdeModulePkg/Bus/Usb/UsbMassStorageDxe).
"""
_MOST_TRIES = 3

_WITHOUT = (
    *("trace_eval_init", "bpf_tcp_ca_kfunc_init", "crypto_algapi_init", "jent_mod_init"),
    "load_system_certificate_list",
)
OPTIONS = f"initcall_blacklist={','.join(_WITHOUT)}"
"""Self-tests and keys, without which a boot is a third shorter."""


class Disk(Enum):
    """What the images are read from: 10 MB/s, or as fast as the firmware can."""

    SLOW = Machine(deterministic=True, bare_metal=True, bus=Bus.USB_2)
    FAST = Machine(deterministic=True, bare_metal=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An image of the content; ``entry`` boots it."""

    setting: Setting
    image: Path
    entry: str

    @property
    def size_bytes(self) -> int:
        """How large it is."""
        return self.image.stat().st_size

    @property
    def sha256(self) -> str:
        """Its digest."""
        return hashlib.sha256(self.image.read_bytes()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """A boot that is over: what the candidate cost by the clocks of loader and kernel.

    ``left``: the files that show it, by path.
    """

    candidate: Candidate
    read_us: int
    kernel: Witnessed
    boot: Boot
    left: dict[str, bytes]

    @property
    def total_us(self) -> int:
        """From the start of the loader to /init, without the kernel's way to the initramfs."""
        return self.read_us + self.kernel.begin_to_init_us


def candidates(guest: Guest, content: bytes, directory: Path) -> tuple[Candidate, ...]:
    """Compress the content in each way, and add an entry for each image."""
    return tuple(
        add_candidate(guest, setting.partition(" ")[0], content, directory, setting=setting)
        for setting in COMPRESSORS
    )


def add_candidate(
    guest: Guest,
    name: str,
    content: bytes,
    directory: Path,
    *,
    setting: str,
    before: bytes = b"",
) -> Candidate:
    """Compress the content, and add an entry of that name for an image of what is to be before it
    as it is, and of that.
    """
    image = directory / f"{name}.img"
    image.write_bytes(before + compressed(content, setting))
    return Candidate(
        setting=Setting.parse(setting),
        image=image,
        entry=add_trial_entry(guest, name, image, options=OPTIONS),
    )


def compressed(content: bytes, setting: str) -> bytes:
    """Return the content as the kernel can unpack it."""
    if not COMPRESSORS[setting]:
        return content
    argv = [program(COMPRESSORS[setting][0]), *COMPRESSORS[setting][1:]]
    return subprocess.run(argv, input=content, capture_output=True, check=True, timeout=300).stdout


def booted(
    guest: Guest, candidate: Candidate, disk: Disk, *, disturbed_us: int = _DISTURBED_US
) -> Costs:
    """Boot a candidate with firmware and loader, which read it from the disk.

    Again where the firmware waited in vain and reset the stick: its clock goes on while the host,
    busy with others, does not get round to answer (observed: once in hundreds of boots).
    """
    configuration = f"timeout 0\ndefault {candidate.entry}\n"
    write(guest.disk.files("/boot"), "/loader/loader.conf", configuration)
    for _ in range(_MOST_TRIES):
        costs = _booted(guest, candidate, disk)
        if costs.read_us < disturbed_us:
            return costs
        log.warning("reading %s took %d us, with a time-out", candidate.setting, costs.read_us)
    msg = f"the firmware ran into a time-out in {_MOST_TRIES} boots of {candidate.setting}"
    raise AssertionError(msg)


def _booted(guest: Guest, candidate: Candidate, disk: Disk) -> Costs:
    done = boot(guest, disk.value)
    left = reported(done)
    begin, end = (int(loader_variable(left, f"LoaderTime{name}USec")) for name in ("Init", "Exec"))
    assert loader_variable(left, "LoaderEntrySelected") == candidate.entry
    [kernel] = witnessed(done)
    return Costs(candidate=candidate, read_us=end - begin, kernel=kernel, boot=done, left=left)


def unpacked_us(guest: Guest, candidate: Candidate) -> int:
    """Return how long the machine's kernel unpacks a candidate when nothing but QEMU loads it."""
    shutil.copyfile(candidate.image, guest.initrd)
    machine = Machine(deterministic=True, extra_command_line=f"{OPTIONS} rdinit=/none root=none")
    [kernel] = witnessed(boot(guest, machine, direct=True))
    return kernel.unpack_us
