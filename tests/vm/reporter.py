"""An initramfs that is a whole system: it says what firmware, loader and kernel left, and powers
off.

So a boot ends as soon as /init has run, which is all that compression can change.
"""

from __future__ import annotations

import lzma
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fixtures.images import archive
from tests.vm.efi_variables import LOADER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.vm.boot import Boot
    from tests.vm.filesystems import Ext4
    from tests.vm.guest import Guest

_EFI_VARIABLES = "/sys/firmware/efi/efivars"
_SHOWN = (
    f"{_EFI_VARIABLES}/*-{LOADER}",
    "/sys/kernel/boot_params/data",
    "/proc/cmdline",
    "/proc/sys/kernel/bootloader_type",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/version",
)
_INIT = f"""\
#!/bin/sh
say() {{
    echo "<1>guest: > $*" >/dev/kmsg
}}

mkdir /dev /proc /sys
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
echo on >/proc/sys/kernel/printk_devkmsg
if [ -d {_EFI_VARIABLES} ]; then
    insmod /efivarfs.ko
    mount -t efivarfs variables {_EFI_VARIABLES}
fi
for file in {" ".join(_SHOWN)}; do
    [ -e "$file" ] || continue
    say "file $file"
    od -An -v -tx1 -w256 "$file" | while read -r line; do
        say "$line"
    done
done
poweroff -f
"""
_LIBRARIES = "/usr/lib/x86_64-linux-gnu"
_PROGRAMS = ("sh", "cat", "insmod", "mkdir", "mount", "poweroff")
_FILES = {
    "bin/od": "/usr/bin/od",
    "lib64/ld-linux-x86-64.so.2": f"{_LIBRARIES}/ld-linux-x86-64.so.2",
    "lib/x86_64-linux-gnu/libc.so.6": f"{_LIBRARIES}/libc.so.6",
}
_WEIGHT = ("libcrypto.so.3", "libm.so.6", "systemd/libsystemd-shared-257.so")
"""Nobody needs these; with them the content is about as large as that of a small real image."""
_MORE_WEIGHT = (
    f"{_LIBRARIES}/systemd/libsystemd-core-257.so",
    "/usr/bin/perl",
    "/usr/bin/python3.13",
    "/usr/lib/python3/dist-packages/numpy/_core/_multiarray_umath.cpython-313-x86_64-linux-gnu.so",
)


def content(guest: Guest, *, heavy: bool = False) -> bytes:
    """Return the archive, made of a trixie guest's files, 15 MB of them; ``heavy``: 39 MB."""
    files = {f"weight/{Path(name).name}": f"{_LIBRARIES}/{name}" for name in _WEIGHT}
    if heavy:
        files |= {f"weight/{Path(path).name}": path for path in _MORE_WEIGHT}
    return reporter(guest, files)


def reporter(guest: Guest, more: Mapping[str, str] | None = None) -> bytes:
    """Return an archive with the system alone, and more files of the guest; behind another archive
    it takes the place of what that one boots.
    """
    root = guest.disk.root
    files = {f"bin/{name}": f"/usr/lib/klibc/bin/{name}" for name in _PROGRAMS}
    files |= {f"usr/lib/{name}": f"/usr/lib/{name}" for name in _klibc(root)}
    files |= _FILES
    files |= more or {}
    module = f"/usr/lib/modules/{guest.release}/kernel/fs/efivarfs/efivarfs.ko.xz"
    read = dict(_read(root, {**files, "efivarfs.ko": module}))
    read["efivarfs.ko"] = lzma.decompress(read["efivarfs.ko"])
    return archive({**read, "init": _INIT.encode()})


def _klibc(root: Ext4) -> Iterator[str]:
    """Name the library that klibc's programs ask for by its digest."""
    return (name for name in root.names("/usr/lib") if name.startswith("klibc-"))


def _read(root: Ext4, files: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    with tempfile.TemporaryDirectory() as scratch:
        for number, (name, source) in enumerate(files.items()):
            target = Path(scratch) / str(number)
            root.fetch(source, target)
            yield name, target.read_bytes()


def reported(booted: Boot) -> dict[str, bytes]:
    """Return what was in the files that a boot has shown, by their paths."""
    found: dict[str, bytes] = {}
    path = ""
    for line in booted.output:
        if line.startswith("file "):
            path = line.removeprefix("file ")
            found[path] = b""
        elif path:
            found[path] += bytes.fromhex(line)
    return found


def loader_variable(files: dict[str, bytes], name: str) -> str:
    """Return a variable of systemd-boot's: attributes, then text in UTF-16 with a NUL behind it."""
    return files[f"{_EFI_VARIABLES}/{name}-{LOADER}"][4:].decode("utf-16-le").rstrip("\0")
