"""systemd-boot's entries of a guest: trial entries beside the default one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.vm.filesystems import write

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vm.guest import Guest

_ENTRY = """\
title   Trial of {name}
linux   /vmlinuz-{release}
initrd  /trial/{name}.img
options {command_line}{extra}
"""


def default_entry(guest: Guest) -> str:
    """Return the identifier of the entry that is booted when nothing else is asked for."""
    return f"debian-{guest.release}.conf"


def add_trial_entry(guest: Guest, name: str, image: Path, *, options: str = "") -> str:
    """Add an entry that boots this image with the guest's kernel, and return its identifier.

    ``options`` are added to the kernel's command line.
    """
    boot = guest.disk.files("/boot")
    boot.put({f"/trial/{name}.img": image})
    entry = _ENTRY.format(
        name=name,
        release=guest.release,
        command_line=guest.recipe.command_line,
        extra=f" {options}" if options else "",
    )
    identifier = f"trial-{name}.conf"
    write(boot, f"/loader/entries/{identifier}", entry)
    return identifier


def arm(identifier: str) -> str:
    """Return the guest's command that has the next boot, and only that one, use an entry."""
    return f"bootctl set-oneshot {identifier}"
