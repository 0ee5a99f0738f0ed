"""Which file system a path is on (/proc/self/mountinfo, proc_pid_mountinfo(5))."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.host import Host


_MOUNTINFO = "/proc/self/mountinfo"
_ESCAPED = re.compile(r"\\([0-7]{3})")
_FIELDS_BEFORE_DASH = 6
_FIELDS_AFTER_DASH = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One mounted file system; ``major`` is 0 where no block device is directly behind it."""

    mount_point: str
    fs_type: str
    source: str
    major: int
    minor: int


def parse_mountinfo(text: str) -> tuple[Mount, ...]:
    """Read the lines of mountinfo, later mounts last; lines of another form are skipped."""
    mounts = []
    for line in text.splitlines():
        before, dash, after = line.partition(" - ")
        left, right = before.split(" "), after.split(" ")
        if not dash or len(left) < _FIELDS_BEFORE_DASH or len(right) < _FIELDS_AFTER_DASH:
            continue
        major, _, minor = left[2].partition(":")
        if major.isdecimal() and minor.isdecimal():
            mounts.append(
                Mount(
                    mount_point=_unescaped(left[4]),
                    fs_type=right[0],
                    source=_unescaped(right[1]),
                    major=int(major),
                    minor=int(minor),
                )
            )
    return tuple(mounts)


def mount_of(mounts: Sequence[Mount], path: PurePosixPath) -> Mount | None:
    """Return the mount an absolute path without symbolic links is on; the latest of the deepest."""
    best: Mount | None = None
    for mount in mounts:
        point = PurePosixPath(mount.mount_point)
        if path.is_relative_to(point) and (
            best is None or len(point.parts) >= len(PurePosixPath(best.mount_point).parts)
        ):
            best = mount
    return best


def mounts_of_host(host: Host) -> tuple[Mount, ...]:
    """Return what is mounted; nothing where /proc is not."""
    return parse_mountinfo(host.read_text(_MOUNTINFO) or "")


def machine_path(host: Host, path: Path) -> PurePosixPath:
    """Return the path as the machine sees it: absolute, resolved, without the host's root."""
    resolved, root = path.resolve(), host.root.resolve()
    if resolved.is_relative_to(root):
        return PurePosixPath("/") / resolved.relative_to(root)
    return PurePosixPath(resolved)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)
