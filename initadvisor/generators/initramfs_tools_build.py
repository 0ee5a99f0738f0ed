"""How mkinitramfs is called so that it reads a configuration directory of its own."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.generators.files import listing
from initadvisor.generators.private import PrivateBuild, text_for, write_text
from initadvisor.model.errors import UnsafeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from initadvisor.host import Host
    from initadvisor.model.generator import InstalledImage

_ETC = "/etc/initramfs-tools"
_MAIN = "initramfs.conf"
_DROP_INS = "conf.d"


def private_build(
    host: Host, image: InstalledImage, texts: Mapping[Path, str], place: Path
) -> PrivateBuild:
    """Make a configuration directory in ``place`` and return the command that reads it.

    Configuration files are copied, because the image gets copies of them as they are, with their
    modes; links stay links, hooks and scripts are those of the installed directory.

    Raises ``UnsafeError`` where the image would show where it was made.
    """
    if host.path(f"{_ETC}/DSDT.aml").exists():
        msg = f"not building {image.path}: {_ETC}/DSDT.aml would get another path inside"
        raise UnsafeError(msg)
    own, built = place / "conf", place / "image"
    (own / _DROP_INS).mkdir(parents=True)
    for entry in listing(host, _ETC):
        if entry.name == _MAIN:
            shutil.copy2(entry, own / _MAIN)
        elif entry.name != _DROP_INS:
            (own / entry.name).symlink_to(f"{_ETC}/{entry.name}")
    for entry in listing(host, f"{_ETC}/{_DROP_INS}"):
        _copy(entry, own / _DROP_INS / entry.name)
    for path in texts:
        _put(host, path, own / path.relative_to(host.path(_ETC)), texts)
    argv = ("mkinitramfs", "-d", own, "-o", built, image.kernel_release)
    return PrivateBuild(argv=argv, image=built)


def _copy(entry: Path, target: Path) -> None:
    if entry.is_symlink():
        target.symlink_to(Path(f"{_ETC}/{_DROP_INS}") / entry.readlink())
    elif entry.is_dir():
        target.mkdir()  # it hides a shared file of its name
    elif entry.is_file():
        shutil.copy2(entry, target)


def _put(host: Host, path: Path, target: Path, texts: Mapping[Path, str]) -> None:
    """Write a text over a copy, which keeps its mode, or as a new file."""
    mode = target.stat().st_mode & 0o7777 if target.exists() else 0o644
    write_text(target, text_for(host, path, texts))
    target.chmod(mode)
