"""Where a generator may not be run, and which systems are not supported at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.core.errors import NeedsRootError, UnsafeError

if TYPE_CHECKING:
    from initadvisor.host import Host


_VIRT_TIMEOUT_S = 10.0

_CONTAINER_MARKS = ("/run/.containerenv", "/.dockerenv", "/run/systemd/container")
_LIVE_MARKS = ("/run/archiso", "/run/live", "/run/initramfs/live", "/cdrom/casper")

_UNSUPPORTED = {
    "/run/ostree-booted": "this system is an ostree deployment: its initramfs is part of the tree",
    "/ostree/repo": "this system is an ostree deployment: its initramfs is part of the tree",
    "/etc/NIXOS": "NixOS builds its initramfs from the system configuration",
}
"""Systems whose images no command of the running system may replace, by a mark they have."""


def refuse_unsupported(host: Host) -> None:
    """Raise ``UnsafeError`` on a system whose images are not made by a supported generator."""
    for mark, reason in _UNSUPPORTED.items():
        if host.path(mark).exists():
            msg = f"not supported: {reason} (found {mark})"
            raise UnsafeError(msg, hint="an image can still be examined with --image FILE")


def require_installed_system(host: Host, generator: str) -> None:
    """Make sure that ``generator`` may be run: by root, on the installed system.

    In a chroot or container it would see another machine's hardware and kernel, on a live system
    one that is gone after the next boot. Raises ``NeedsRootError`` or ``UnsafeError``.
    """
    if not host.is_root:
        msg = f"cannot run {generator}: only root may build an image of this system"
        raise NeedsRootError(msg)
    if place := elsewhere(host):
        msg = f"not running {generator}: this is {place}, not an installed system"
        raise UnsafeError(msg)


def elsewhere(host: Host) -> str | None:
    """Return what this is if it is not an installed system that runs, in words; else None.

    Raises ``NeedsRootError`` where only root may look.
    """
    if any(host.path(mark).exists() for mark in _CONTAINER_MARKS):
        return "a container"
    if any(host.path(mark).exists() for mark in _LIVE_MARKS):
        return "a live system"
    if _is_chroot(host):
        return "a chroot"
    if host.runner.which("systemd-detect-virt") is None:
        return None
    done = host.runner.run(
        ["systemd-detect-virt", "--container", "--quiet"], timeout_s=_VIRT_TIMEOUT_S, check=False
    )
    return "a container" if done.returncode == 0 else None


def _is_chroot(host: Host) -> bool:
    """Tell whether process 1 has another root directory; unknown (no /proc) counts as one.

    Where even root may not look (proc(5): it takes CAP_SYS_PTRACE), a unit's sandbox is in the way,
    and no chroot. Raises ``NeedsRootError`` where others may not.
    """
    try:
        own, first = host.path("/").stat(), host.path("/proc/1/root").stat()
    except PermissionError as err:
        if host.is_root:
            return False
        msg = "cannot tell an installed system from a chroot: only root may look at /proc/1/root"
        raise NeedsRootError(msg) from err
    except OSError:
        return True
    return (own.st_dev, own.st_ino) != (first.st_dev, first.st_ino)
