"""The room that building images and keeping the old ones takes, by file system."""

from __future__ import annotations

import os
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from initadvisor.apply.plan_values import ApplyStep, Blocker, PartitionSpace
from initadvisor.apply.rollback import kept
from initadvisor.campaign.record import read_campaign
from initadvisor.core.errors import InitadvisorError
from initadvisor.host.files import free_bytes
from initadvisor.host.storage.mounts import machine_path, mount_of, mounts_of_host
from initadvisor.transaction.files import has_links
from initadvisor.trial.recovery import filled_slots

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from initadvisor.apply.plan_values import PlannedImage
    from initadvisor.host import Host


_COPIES_UNPACKED = 2
"""A generator keeps its directory tree and the archive of it at the same time (mkinitramfs does,
the others pipe the archive)."""

_UNPACKED_PER_BYTE = 5
"""Where the content's size is not known: more than compressors make of an initramfs."""


def room_needed(
    host: Host, images: Sequence[PlannedImage], *, unpacked_bytes: int | None, keep: bool
) -> tuple[PartitionSpace, ...]:
    """Return what each file system would need for the images that are rebuilt.

    In the cache an image with today's setting and one with the new, while the generator unpacks its
    work beside them; where the image is, the new one beside the old, and a copy of that for going
    back where it is to be kept (``keep``) and there are no hard links.

    Raises ``InitadvisorError`` where the room on a file system cannot be found out.
    """
    rebuilt = [planned for planned in images if planned.rebuilt]
    if not rebuilt:
        return ()
    largest = max(planned.size_bytes for planned in rebuilt)
    unpacked = unpacked_bytes or largest * _UNPACKED_PER_BYTE
    building = sum(planned.size_bytes + _upper_bytes(planned) for planned in rebuilt)
    wanted = [(host.cache_dir(), building + _COPIES_UNPACKED * unpacked, "building")]
    wanted += [
        (
            path.parent,
            _beside_bytes(host, planned, path.parent, keep=keep),
            "the new images beside the old",
        )
        for planned in rebuilt
        for path in planned.image.paths
    ]
    return tuple(_by_file_system(host, wanted))


def lacking(host: Host, room: Iterable[PartitionSpace]) -> Iterator[Blocker]:
    """Yield what is in the way where there is too little room, and what would make some."""
    for one in room:
        if not one.enough:
            yield Blocker(
                step=ApplyStep.BUILD,
                reason=f"{one.mount_point} has {one.free_bytes / 1e6:.1f} MB left, and "
                f"{one.needed_bytes / 1e6:.1f} MB are needed for {one.purpose}",
                remedy=ways_to_make_room(host, one.mount_point),
            )


def ways_to_make_room(host: Host, mount_point: str) -> str:
    """Say what a trial's image takes of a file system, and what dropping kept files would free.

    Of the latest change's last.
    """
    ways = "make room"
    if trial_bytes := _trial_bytes(host, mount_point):
        ways += f"; initadvisor trial pause frees {trial_bytes / 1e6:.1f} MB"
    for keep, options in ((1, "--drop --keep 1"), (0, "--drop")):
        if freed_bytes := _kept_bytes(host, mount_point, keep=keep):
            way = f"initadvisor rollback {options} --confirm frees {freed_bytes / 1e6:.1f} MB"
            return f"{ways}; {way}" + ("" if keep else " and gives up going back")
    return ways


def _trial_bytes(host: Host, mount_point: str) -> int:
    """Return what lies there for the armed boot of a campaign, as far as it can be seen."""
    mounts = mounts_of_host(host)
    try:
        if read_campaign(host).state.is_over:
            return 0
        slots = [(mount_of(mounts, PurePosixPath(slot)), slot) for slot in filled_slots(host)]
        found = [slot for mount, slot in slots if mount and mount.mount_point == mount_point]
        return sum(host.path(slot).lstat().st_size for slot in found)
    except (InitadvisorError, OSError):  # which those are told who ask for it
        return 0


def _kept_bytes(host: Host, mount_point: str, *, keep: int) -> int:
    mounts = mounts_of_host(host)
    try:
        found = kept(host, keep=keep)
    except InitadvisorError:  # which those are told who ask for it
        return 0
    places = [(mount_of(mounts, PurePosixPath(backup.path)), backup.size_bytes) for backup in found]
    return sum(size for mount, size in places if mount and mount.mount_point == mount_point)


def _beside_bytes(host: Host, planned: PlannedImage, directory: Path, *, keep: bool) -> int:
    is_copied = keep and not has_links(host, directory)
    return _upper_bytes(planned) + (planned.size_bytes if is_copied else 0)


def _upper_bytes(planned: PlannedImage) -> int:
    """Return what the image may take: as much as today where nothing is known."""
    return planned.size_bytes if planned.expected_bytes is None else planned.expected_bytes


def _by_file_system(
    host: Host, wanted: Iterable[tuple[Path, int, str]]
) -> Iterable[PartitionSpace]:
    mounts = mounts_of_host(host)
    sums: dict[int, tuple[Path, int, dict[str, None]]] = {}
    for directory, size_bytes, purpose in wanted:
        place = _existing(directory)
        try:
            device = place.stat().st_dev
        except OSError as err:
            msg = f"cannot find out how much room {place} has: {err.strerror}"
            raise InitadvisorError(msg) from err
        first, total, purposes = sums.get(device, (place, 0, {}))
        sums[device] = (first, total + size_bytes, {**purposes, purpose: None})
    for place, total, purposes in sums.values():
        mount = mount_of(mounts, machine_path(host, place))
        yield PartitionSpace(
            mount_point=mount.mount_point if mount else str(place),
            needed_bytes=total,
            free_bytes=free_bytes(place),
            purpose=" and ".join(purposes),
        )


def _existing(directory: Path) -> Path:
    """Return the directory, or what it would be made in."""
    while not os.path.lexists(directory) and directory != directory.parent:
        directory = directory.parent
    return directory
