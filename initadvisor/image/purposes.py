"""What a file in an image is for, by its path: the rules, and nothing that is guessed.

Directories of modules are those of the kernel's source, directories of firmware those of
linux-firmware. What no rule names is another module, other firmware, or just another file.
"""

from __future__ import annotations

import functools
import re
from typing import Final

from initadvisor.image.contents import FileKind

_KERNEL = "lib/modules/*/kernel"
_FIRMWARE = "lib/firmware"

_RULES: Final = {
    (FileKind.STORAGE, _KERNEL): (
        "drivers/ata drivers/block drivers/cdrom drivers/dax drivers/md drivers/memstick "
        "drivers/message drivers/mmc drivers/mtd drivers/nvdimm drivers/nvme drivers/s390/block "
        "drivers/s390/scsi drivers/scsi drivers/target drivers/ufs drivers/usb/storage"
    ),
    (FileKind.FILE_SYSTEMS, _KERNEL): "fs",
    (FileKind.GRAPHICS, _KERNEL): "drivers/gpu drivers/video",
    (FileKind.NETWORK, _KERNEL): (
        "drivers/bluetooth drivers/infiniband drivers/isdn drivers/net drivers/vhost net"
    ),
    (FileKind.CRYPTO, _KERNEL): (
        "arch/*/crypto crypto drivers/char/tpm drivers/crypto lib/crypto security/keys"
    ),
    (FileKind.SOUND, _KERNEL): "drivers/soundwire sound",
    (FileKind.INPUT, _KERNEL): "drivers/hid drivers/input",
    (FileKind.MODULES, ""): "lib/modules",
    (FileKind.GRAPHICS_FIRMWARE, _FIRMWARE): (
        "amdgpu arm/mali i915 matrox nouveau nvidia powervr r128 radeon xe"
    ),
    (FileKind.NETWORK_FIRMWARE, _FIRMWARE): (
        "airoha ar3k ath10k ath11k ath12k ath6k ath9k_htc bnx2 bnx2x brcm carl9170fw cxgb3 cxgb4 "
        "cypress e100 intel/ice intel/iwlwifi libertas liquidio mediatek mellanox mrvl mwl8k "
        "mwlwifi netronome qca qed rsi rtl_bt rtl_nic rtlwifi rtw88 rtw89 slicoss tigon "
        "ti-connectivity ueagle-atm wfx"
    ),
    (FileKind.SOUND, _FIRMWARE): (
        "asihpi cirrus ctefx ea ess intel/avs intel/catpt intel/sof intel/sof-ace-tplg "
        "intel/sof-ipc4 intel/sof-ipc4-lib intel/sof-tplg korg sb16 yamaha"
    ),
    (FileKind.MICROCODE, _FIRMWARE): "amd-ucode intel-ucode",
    (FileKind.FIRMWARE, ""): "kernel lib/firmware",
    (FileKind.MICROCODE, ""): "kernel/x86/microcode",
    (FileKind.HWDB, ""): "etc/udev/hwdb.d lib/udev/hwdb.d",
    (
        FileKind.INPUT,
        "",
    ): "etc/libinput share/X11/xkb share/kbd/keymaps share/keymaps share/libinput",
    (FileKind.SPLASH, ""): (
        "etc/fonts etc/plymouth lib/plymouth libexec/plymouth share/consolefonts share/fontconfig "
        "share/fonts share/kbd/consolefonts share/plymouth"
    ),
    (FileKind.PROGRAMS, ""): "bin lib/systemd/system-generators libexec sbin",
}
"""Directories, below one they share, without a leading ``usr``. The longest that fits counts."""

_BY_DIRECTORY: Final = {
    f"{base}/{directory}".lstrip("/").encode(): kind
    for (kind, base), directories in _RULES.items()
    for directory in directories.split()
}

_BY_NAME: Final = (
    (FileKind.MODULES, b"nvidia", FileKind.GRAPHICS),
    (FileKind.MODULES, b"zfs.ko", FileKind.FILE_SYSTEMS),
    (FileKind.FIRMWARE, b"iwlwifi-", FileKind.NETWORK_FIRMWARE),
    (FileKind.OTHER, b"hwdb.bin", FileKind.HWDB),
    (FileKind.PROGRAMS, b"plymouth", FileKind.SPLASH),
)
"""What the beginning of a file's name tells, where its directory tells no more than this kind."""

_LIBRARY = re.compile(rb"\.so(\.|$)")
_ELF = b"\x7fELF"
_RELEASE = re.compile(rb"^lib/modules/[^/]+")
_ARCHITECTURE = re.compile(rb"^(lib/modules/\*/kernel/arch)/[^/]+")
_MULTIARCH = re.compile(rb"^lib(?:64|32|/[^/]+-linux-[^/]+)(?=/|$)")


def purpose(directory: bytes, leaf: bytes, head: bytes) -> FileKind:
    """Return what a file is for; ``head`` is what it begins with."""
    kind = _of_directory(directory)
    for general, beginning, special in _BY_NAME:
        if kind is general and leaf.startswith(beginning):
            return special
    if kind in {FileKind.OTHER, FileKind.PROGRAMS} and _LIBRARY.search(leaf):
        return FileKind.LIBRARIES
    if kind is FileKind.OTHER and head.startswith(_ELF):
        return FileKind.PROGRAMS
    return kind


@functools.lru_cache(maxsize=256)
def _of_directory(path: bytes) -> FileKind:
    path = _MULTIARCH.sub(b"lib", path.removeprefix(b"usr/"))
    path = _ARCHITECTURE.sub(rb"\1/*", _RELEASE.sub(b"lib/modules/*", path))
    while path:
        if kind := _BY_DIRECTORY.get(path):
            return kind
        path = path.rpartition(b"/")[0]
    return FileKind.OTHER
