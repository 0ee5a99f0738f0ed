"""The boot option that the firmware tries first, and what it starts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from initadvisor.bootloaders.efi import boot_options
from initadvisor.bootloaders.entry import BootEntry, BootFile, command_line_of
from initadvisor.bootloaders.places import device_of_partition, file_named, mount_of_partition
from initadvisor.core.refusals import RefusalKind, RefusedError, refused

if TYPE_CHECKING:
    from initadvisor.bootloaders.efi.boot_options import Numbered
    from initadvisor.host import Host


INITRD: Final = re.compile(r"(?<!\S)initrd=(\S+)")
"""What the kernel's EFI stub reads an image by."""

_REMEDY = "put the kernel's boot option first: efibootmgr --bootorder"


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultOption:
    """An option as an entry, and where it is.

    ``handed``: what it hands over, which a unified kernel image does without. ``mount_point`` and
    ``device`` (``nvme0n1p1``) are those of the partition that it starts from.
    """

    entry: BootEntry
    handed: str
    mount_point: str
    device: str


def default_option(host: Host) -> DefaultOption:
    """Return what the first active option of BootOrder starts.

    Raises ``RefusedError`` where that is nothing on a mounted partition, or a file of it is gone.
    """
    first = first_option(host)
    option = first.option
    device = device_of_partition(host, option.partition_uuid or "")
    mount = mount_of_partition(host, option.partition_uuid or "")
    if option.file is None or mount is None or device is None:
        reason = f"{first.identifier} ({option.description}) starts nothing on a mounted partition"
        remedy = "mount the partition that the kernel is on, or see efibootmgr -v"
        raise refused(RefusalKind.OTHER_PARTITION, reason, remedy)
    kernel = _file(host, first, option.file, mount.mount_point)
    handed = boot_options.data_text(option)
    named = INITRD.findall(handed)
    is_uki = not named
    own = command_line_of(host, kernel.path) if is_uki else ""
    start = BootEntry(
        identifier=first.identifier,
        title=option.description,
        kernel=kernel,
        initrds=tuple(_file(host, first, name, mount.mount_point) for name in named),
        options=handed or own,
        source=f"EFI variable {first.identifier}",
        is_uki=is_uki,
    )
    return DefaultOption(entry=start, handed=handed, mount_point=mount.mount_point, device=device)


def first_option(host: Host) -> Numbered:
    """Return the first option of BootOrder that the firmware would try.

    Raises ``RefusedError`` where there is none, or it is ours.
    """
    for number in boot_options.boot_order(host):
        found = boot_options.option(host, number)
        if found and found.option.active:
            if found.kind:
                raise ours_in_order(found)
            return found
    reason = "the firmware's BootOrder names no boot option that could be started"
    raise refused(RefusalKind.NO_DEFAULT, reason, _REMEDY)


def ours_in_order(found: Numbered) -> RefusedError:
    """Return the error for an option of ours that somebody has put into BootOrder."""
    reason = f"{found.identifier} ({found.option.description}) has got into BootOrder"
    remedy = f"remove it: efibootmgr --bootnum {found.number:04X} --delete-bootnum"
    return refused(RefusalKind.TRIAL_MAY_BECOME_DEFAULT, reason, remedy)


def _file(host: Host, found: Numbered, named: str, mount_point: str) -> BootFile:
    path = file_named(host, named, mount_point)
    if path is None:
        reason = f"{found.identifier} ({found.option.description}) starts {named}: not found"
        raise refused(RefusalKind.UNCLEAR_DEFAULT, reason, _REMEDY)
    return BootFile(named=named, path=path)
