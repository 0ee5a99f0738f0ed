"""What goes wrong with images after they were verified and armed: on the disk."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from initadvisor.bootloaders.systemd_boot.menu import key_values
from initadvisor.firmware.efi_variables import boot_option
from initadvisor.image.cpio import CpioWriter
from initadvisor.image.pe import read_uki
from initadvisor.image.scan import scan
from tests.fixtures.owners import OWNER
from tests.vm.efi_variables import GLOBAL, efi_variables
from tests.vm.filesystems import read, write
from tests.vm.secure_boot import signer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.vm.guest import Guest

SLOT = f"/.initadvisor-{OWNER}-trial"
_ENTRY = f"/loader/entries/a-initadvisor-{OWNER}-trial.conf"
FREEZES = "PID 1 freezes"
"""What such a boot says last."""

_HEADER_BYTES = 32
_DAMAGED_BYTES = 4096
_WATCHDOG_US = 10_000_000
_HANG = f"""\
#!/bin/sh
mkdir -p /run/systemd/system/multi-user.target.wants
cat >/run/systemd/system/hang.service <<'END'
[Unit]
Requires=dbus.socket
After=dbus.socket
[Service]
Type=oneshot
ExecStart=busctl set-property org.freedesktop.systemd1 /org/freedesktop/systemd1 \\
 org.freedesktop.systemd1.Manager RuntimeWatchdogUSec t {_WATCHDOG_US}
ExecStart=sh -c 'echo "<1>guest: {FREEZES}" >/dev/kmsg; kill -SEGV 1'
END
ln -s ../hang.service /run/systemd/system/multi-user.target.wants/hang.service
"""
_ORDER = '/scripts/init-bottom/hang\n/scripts/init-bottom/devices "$@"\n'


def damage(image: bytes) -> bytes:
    """Return it with the beginning of its main archive turned round, without which there is no
    /init: a kernel that has got further lets that wait for a root file system, not panic.
    """
    start = scan(io.BytesIO(image)).segments[-1].offset + _HEADER_BYTES
    turned = bytes(byte ^ 0xFF for byte in image[start : start + _DAMAGED_BYTES])
    return image[:start] + turned + image[start + _DAMAGED_BYTES :]


def have_it_hang(image: bytes) -> bytes:
    """Return it with a script that has systemd, in the root file system, stand still.

    After SIGSEGV systemd freezes (systemd(1)) and nobody tells the watchdog any more that all is
    well. That waits for ten minutes in a trial; here it is told to wait for less before.
    """
    more = io.BytesIO()
    with CpioWriter(more) as archive:
        archive.file("scripts/init-bottom/hang", _HANG.encode(), mode=0o755)
        archive.file("scripts/init-bottom/ORDER", _ORDER.encode())
    return image + bytes(-len(image) % 4) + more.getvalue()


def change_armed_image(guest: Guest, change: Callable[[bytes], bytes]) -> None:
    """Change what the next boot of a guest that is switched off is to load, once."""
    boot = guest.disk.files("/boot")
    path = SLOT if guest.recipe.loader.is_grub else _loaded_once(guest)
    data = read(boot, path)
    part = read_uki(io.BytesIO(data), len(data)).initrd if data[:2] == b"MZ" else None
    start, end = (part.offset, part.offset + part.size_bytes) if part else (0, len(data))
    changed = change(data[start:end])
    assert part is None or len(changed) == end - start, "a section stays as large as it is"
    data = data[:start] + changed + data[end:]
    if guest.secure_boot:
        data = signer(guest.directory).signed_anew(data)
    write(boot, path, data, mode=0o600)


def _loaded_once(guest: Guest) -> str:
    """Return what the firmware itself is to start, where it is to, or else what the entry names."""
    variables = efi_variables(guest.variables)
    if (number := variables.get((GLOBAL, "BootNext"))) is not None:
        option = boot_option(variables[GLOBAL, f"Boot{int.from_bytes(number, 'little'):04X}"])
        assert option
        assert option.file
        return option.file.replace("\\", "/")
    (path,) = key_values(read(guest.disk.files("/boot"), _ENTRY).decode()).all("initrd", "efi")
    return path
