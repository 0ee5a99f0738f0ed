"""Runs a generator in a place of its own: what is installed is not touched.

It runs outside of any sandbox, at idle priority, and hooks are told that it is our doing. It is not
run where it would see another system than the installed one; some systems are not supported at all.
"""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError, NeedsRootError, ProgramError, UnsafeError
from initadvisor.core.text import encoded
from initadvisor.generators.rewriting import config_files
from initadvisor.host.files import PARTIAL_PREFIX
from initadvisor.host.sandbox import run_outside

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from initadvisor.host import Host


_TIMEOUT_S = 3600.0
_PLACE = f"{PARTIAL_PREFIX}build"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateBuild:
    """How a generator is called so that it writes ``image`` and reads a configuration of its own.

    ``env`` is added to what every program gets.
    """

    argv: tuple[str | Path, ...]
    image: Path
    env: Mapping[str, str] = field(default_factory=dict)


def build_privately(
    host: Host, generator: str, target: Path, prepare: Callable[[Path], PrivateBuild]
) -> None:
    """Have a generator build an image in a directory of its own and name it ``target``.

    ``prepare`` puts the configuration into that directory, which is beside ``target``, always has
    the same name, and is gone afterwards, whatever happens. So are the generator's own temporary
    files, if it takes ``TMPDIR`` for an answer. Builds that share a directory must not run at the
    same time: what a generator notes of its command line is the same in all of them.

    Raises ``NeedsRootError`` or ``UnsafeError`` where it may not be run, ``ProgramError`` when it
    fails, takes too long or writes nothing, ``InitadvisorError`` where the directory cannot be
    used.
    """
    require_installed_system(host, generator)
    # mkinitramfs takes what lies behind a symbolic link for a link, too.
    place = Path(os.path.realpath(target.parent)) / _PLACE
    try:
        _remove(place)
        place.mkdir(mode=0o700)
        try:
            build = prepare(place)
            env = {"TMPDIR": str(place), **build.env}
            run_generator(host, build.argv, directory=place, timeout_s=_TIMEOUT_S, env=env)
            _require_image(generator, build.image)
            build.image.replace(target)
        finally:
            _remove(place)
    except OSError as err:
        msg = f"cannot have {generator} build {target}: {err.filename}: {err.strerror}"
        raise InitadvisorError(msg) from err


def text_for(host: Host, path: Path, texts: Mapping[Path, str]) -> str:
    """Return what a configuration file is to hold: one of ``texts``, or what it holds now."""
    return config_files(host, [path], texts)[0].text


def write_text(path: Path, text: str) -> None:
    """Write a configuration file as one that everybody may read."""
    path.write_bytes(encoded(text))
    path.chmod(0o644)


def _require_image(generator: str, image: Path) -> None:
    try:
        status = image.lstat()
    except FileNotFoundError as err:
        msg = f"{generator} ended without an error and wrote no image"
        raise ProgramError(msg) from err
    if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
        msg = f"{generator} ended without an error and wrote nothing that is an image"
        raise ProgramError(msg)


def _remove(place: Path) -> None:
    if place.is_symlink() or place.is_file():
        place.unlink()
    elif place.exists():
        shutil.rmtree(place)


REBUILDING = "INITADVISOR_REBUILDING"
"""The variable that is ``1`` for every generator that we run, and so for all that it starts.

Hooks of ours look at it and do nothing: what they would be told of is our own doing. A variable,
not a file, because it ends with the run, however that ends, and reaches a transient unit, too.
"""

NO_HOOKS = "NO_POST_UPDATE_HOOKS"
"""The variable that keeps Debian's dracut from running /etc/initramfs/post-update.d.

It does so with every image that it has made, wherever that is (read and run: 106 of Debian 13):
the script of Debian's systemd-boot has kernel-install(8) copy it and the default entry load that.
"""


def run_generator(
    host: Host,
    argv: Sequence[str | Path],
    *,
    directory: Path,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run a generator to its end; ``directory`` is where it writes.

    Raises ``UnsafeError`` in a sandbox without a way out, ``ProgramError`` when it fails.
    """
    run_outside(
        host,
        argv,
        directory=directory,
        timeout_s=timeout_s,
        env={REBUILDING: "1", NO_HOOKS: "1", **(env or {})},
    )


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


class Elsewhere(StrEnum):
    """What is no installed system that runs, in words."""

    CONTAINER = "a container"
    LIVE = "a live system"
    CHROOT = "a chroot"


def elsewhere(host: Host) -> Elsewhere | None:
    """Return what this is if it is not an installed system that runs; else None.

    Raises ``NeedsRootError`` where only root may look.
    """
    if any(host.path(mark).exists() for mark in _CONTAINER_MARKS):
        return Elsewhere.CONTAINER
    if any(host.path(mark).exists() for mark in _LIVE_MARKS):
        return Elsewhere.LIVE
    if _is_chroot(host):
        return Elsewhere.CHROOT
    if host.runner.which("systemd-detect-virt") is None:
        return None
    done = host.runner.run(
        ["systemd-detect-virt", "--container", "--quiet"], timeout_s=_VIRT_TIMEOUT_S, check=False
    )
    return Elsewhere.CONTAINER if done.returncode == 0 else None


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
