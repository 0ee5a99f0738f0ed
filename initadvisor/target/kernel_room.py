"""How many more kernels the boot partition has room for, measured by what one takes there now."""

from __future__ import annotations

import re
import stat
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from initadvisor.core.errors import InitadvisorError
from initadvisor.host.files import failing_as, free_bytes, os_failure
from initadvisor.host.storage.mounts import machine_path, mount_of, mounts_of_host

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from initadvisor.generators import InstalledImage
    from initadvisor.host import Host
    from initadvisor.host.storage.mounts import Mount


FEW: Final = 9
"""Of more kernels than this, nobody who reads an answer has to hear."""

_TOPS = ("/boot", "/efi")
"""Below them is every file that a loader reads for a kernel of this machine."""

_MOST_FILES = 20_000
_IMAGE = re.compile(r"(initrd|initramfs)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRoom:
    """What is free on a boot partition, and what the default kernel ``release`` takes there.

    ``images_bytes``: its initramfs images, the fallback's included. ``ukis``: so many unified
    kernel images, of ``ukis_bytes``. ``others_bytes``: kernel, configuration, symbols.
    ``in_place``: no file is named by its release, so that an upgrade writes over them.
    """

    mount_point: str
    release: str
    free_bytes: int
    images_bytes: int
    others_bytes: int
    ukis: int = 0
    ukis_bytes: int = 0
    in_place: bool = False

    @property
    def kernel_bytes(self) -> int:
        """What another kernel takes at today's setting."""
        return self.others_bytes + self._images_bytes(1, 1)

    @property
    def today(self) -> int:
        """How many more kernels fit at today's setting."""
        return self.free_bytes // max(self.kernel_bytes, 1)

    @property
    def is_full(self) -> bool:
        """Whether the next kernel does not fit; one that writes over today's may."""
        return self.today == 0 and not self.in_place

    def after_switch(self, today_bytes: int, size_bytes: int) -> int:
        """Return how many more fit once an image of ``today_bytes`` is one of ``size_bytes``.

        Today's images stay beside the new ones, for going back.
        """
        images_bytes = self._images_bytes(today_bytes, size_bytes)
        return max(self.free_bytes - images_bytes, 0) // max(self.others_bytes + images_bytes, 1)

    def _images_bytes(self, today_bytes: int, size_bytes: int) -> int:
        """Return what the images take; what is around the initramfs in a unified one stays."""
        scaled = round(self.images_bytes * size_bytes / max(today_bytes, 1))
        return max(scaled + self.ukis_bytes + self.ukis * (size_bytes - today_bytes), 0)

    def words(self, switched: Mapping[str, int]) -> str:
        """Say how many more fit today, and after a switch to other settings."""
        fits = {0: "none fits", 1: "1 more fits"}.get(self.today, f"{self.today} more fit")
        after = "".join(f", {more} with {setting}" for setting, more in switched.items())
        return (
            f"{self.mount_point}: {self.free_bytes / 1e6:.0f} MB are free, another kernel like "
            f"Linux {self.release} takes {self.kernel_bytes / 1e6:.0f} MB: {fits}{after}"
        )


def kernel_room(host: Host, images: Sequence[InstalledImage]) -> KernelRoom | None:
    """Return the boot partition with room for the fewest kernels like that of the first image.

    None where there is none of its own (what a kernel takes of a root file system is mostly its
    modules), or where this user may not look into it.

    Raises ``InitadvisorError`` where it cannot be told.
    """
    if not images:
        return None
    release = images[0].kernel_release
    sizes, closed = _files(host)
    mounts = mounts_of_host(host)
    root = mount_of(mounts, machine_path(host, host.path("/")))
    left_out = {_number(mount_of(mounts, machine_path(host, path))) for path in closed}
    left_out |= {None, _number(root)}
    found: dict[tuple[int, int] | None, list[Path]] = defaultdict(list)
    points: dict[tuple[int, int] | None, str] = {}
    for path in _of_kernel(host, sizes, images, release):
        mount = mount_of(mounts, machine_path(host, path.parent))
        found[_number(mount)].append(path)
        points.setdefault(_number(mount), mount.mount_point if mount else "")
    rooms = [
        _room(points[number], release, {path: sizes[path] for path in paths}, images)
        for number, paths in found.items()
        if number not in left_out
    ]
    return min((room for room in rooms if room.kernel_bytes), key=_today, default=None)


def _today(room: KernelRoom) -> int:
    return room.today


def _room(
    mount_point: str, release: str, files: Mapping[Path, int], images: Sequence[InstalledImage]
) -> KernelRoom:
    """Return the room beside these files of the kernel's, all of one file system."""
    made = {image.path: image.uki for image in images}
    unified = {path: size for path, size in files.items() if made.get(path)}
    plain = {
        path: size
        for path, size in files.items()
        if path not in unified and (path in made or _IMAGE.match(path.name))
    }
    directory = next(iter(files)).parent
    with failing_as(f"cannot find out how much room {directory} has"):
        free = free_bytes(directory)
    return KernelRoom(
        mount_point=mount_point,
        release=release,
        free_bytes=free,
        images_bytes=sum(plain.values()),
        others_bytes=sum(files.values()) - sum(plain.values()) - sum(unified.values()),
        ukis=len(unified),
        ukis_bytes=sum(unified.values()),
        in_place=not any(release in f"{path.parent.name}/{path.name}" for path in files),
    )


def _number(mount: Mount | None) -> tuple[int, int] | None:
    """Return the file system that is mounted, whatever part of it is mounted again elsewhere."""
    return (mount.major, mount.minor) if mount else None


def _of_kernel(
    host: Host, sizes: Mapping[Path, int], images: Sequence[InstalledImage], release: str
) -> Iterator[Path]:
    """Yield the files of a kernel: its images, and what is named by its release or its package."""
    releases = {image.kernel_release for image in images} - {release}
    # "6.1.0" is part of "6.1.0-2-amd64", too.
    longer = [re.compile(rf"{re.escape(one)}(?!\w)") for one in releases if release in one]
    own = re.compile(rf"(?<![\w.]){re.escape(release)}(?!\w)")
    package = (host.read_text(f"/usr/lib/modules/{release}/pkgbase") or "").strip()
    made = {image.path for image in images if image.kernel_release == release}
    for path in sizes:
        inside = str(path.relative_to(host.root))
        is_own = own.search(inside) and not any(other.search(inside) for other in longer)
        if is_own or path in made or (package and path.name == f"vmlinuz-{package}"):
            yield path


def _files(host: Host) -> tuple[dict[Path, int], list[Path]]:
    """Return the size of each file, by one of its names, and the directories that are closed."""
    sizes: dict[Path, int] = {}
    closed: list[Path] = []
    seen: set[tuple[int, int]] = set()
    waiting = [host.path(top) for top in _TOPS]
    while waiting:
        directory = waiting.pop()
        try:
            inside = sorted(directory.iterdir())
        except PermissionError:
            closed.append(directory)
            continue
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as err:
            raise os_failure(err, f"cannot look into {directory}") from err
        for path in inside:
            with failing_as(f"cannot look at {path}"):
                status = path.lstat()
            number = (status.st_dev, status.st_ino)
            if stat.S_ISDIR(status.st_mode) and path.name != "lost+found":
                waiting.append(path)
            elif stat.S_ISREG(status.st_mode) and number not in seen:
                sizes[path] = status.st_size
                seen.add(number)
        if len(sizes) + len(waiting) > _MOST_FILES:
            msg = f"cannot tell what a kernel takes in {directory}: more than {_MOST_FILES} files"
            raise InitadvisorError(msg)
    return sizes, closed
