"""What each generator's variables have to be for a setting.

mkinitcpio: ``COMPRESSION=`` and ``COMPRESSION_OPTIONS=()`` (mkinitcpio.conf(5)).

dracut: ``compress=`` and what replaces or completes it (dracut.conf(5)). ``INITRD_COMPRESS`` set by
a configuration file wins over ``compress`` (dracut.sh); since 109 a plain name takes its level from
``compress_level_NAME``, which is no level at all where it is empty: only unset it is the default.

initramfs-tools: ``COMPRESS=`` and ``COMPRESSLEVEL=`` (initramfs.conf(5)).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import RefusedRewriteError
from initadvisor.rewrite.files import DesiredAssignment, ReadingRules
from initadvisor.rewrite.plan import rewrite
from initadvisor.rewrite.syntax import Shell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.core.settings import Setting
    from initadvisor.rewrite.files import ConfigFile, DropIn, FileEdit


def mkinitcpio_assignments(setting: Setting) -> tuple[DesiredAssignment, ...]:
    """Return what mkinitcpio's variables have to be for a setting."""
    return (
        DesiredAssignment(name="COMPRESSION", values=(setting.codec.value,), quote='"'),
        DesiredAssignment(name="COMPRESSION_OPTIONS", values=setting.options, array=True),
    )


def mkinitcpio_edits(
    files: Sequence[ConfigFile], setting: Setting, drop_in: DropIn | None = None
) -> tuple[FileEdit, ...]:
    """Return what to change in the main file and the drop-ins, which bash reads as one text.

    What is set nowhere yet is set in the main file, the first. ``drop_in`` is used where the value
    comes from a file not to be edited.

    Raises ``RefusedRewriteError`` where a line has to be changed by hand.
    """
    reading = ReadingRules(shell=Shell.BASH, merged=True, drop_in=drop_in)
    return rewrite(files, mkinitcpio_assignments(setting), reading)


def dracut_assignments(
    setting: Setting, command: Sequence[str] | None = None, *, default_level: int | None
) -> tuple[DesiredAssignment, ...]:
    """Return what dracut's variables have to be for a setting.

    ``command`` is the whole command line for a setting with options, as dracut takes it; without
    it the level is all there may be, and goes into ``compress_level_NAME`` (3cpio makes the image).
    ``default_level`` is what dracut takes where that is not set; None: none, and empty is the same.

    Raises ``RefusedRewriteError`` for options that neither of the two can say.
    """
    codec = setting.codec.value
    compress, level = codec, None
    if setting.options and command:
        compress = " ".join(command)
    elif setting.options:
        level = setting.level
    only_a_level = level is not None and len(setting.options) == 1
    if setting.options and (len(compress.split()) != len(command) if command else not only_a_level):
        msg = f"this dracut cannot be configured for {setting}"
        raise RefusedRewriteError(msg, hint="it takes words without blanks, or a level alone")
    wanted = DesiredAssignment(name="compress", values=(compress,), quote='"')
    other = DesiredAssignment(name="INITRD_COMPRESS", quote='"')
    if compress != codec or setting.codec is Codec.CAT:  # it has no level of its own
        return wanted, other
    used = default_level if level is None else level
    values = () if used is None else (str(used),)
    name = f"compress_level_{codec}"
    found = DesiredAssignment(name=name, values=values, quote='"', or_unset=level is None)
    return wanted, found, other


def dracut_edits(
    files: Sequence[ConfigFile],
    setting: Setting,
    command: Sequence[str] | None = None,
    drop_in: DropIn | None = None,
    *,
    default_level: int | None,
) -> tuple[FileEdit, ...]:
    """Return what to change in the files that dracut sources one after the other.

    What is set nowhere yet is set in ``drop_in``: dracut.conf itself asks for files of their own.

    Raises ``RefusedRewriteError`` where a line has to be changed by hand.
    """
    reading = ReadingRules(shell=Shell.BASH, home=None, drop_in=drop_in)
    wanted = dracut_assignments(setting, command, default_level=default_level)
    return rewrite(files, wanted, reading)


def initramfs_tools_assignments(setting: Setting) -> tuple[DesiredAssignment, ...]:
    """Return what initramfs-tools' variables have to be for a setting.

    Raises ``RefusedRewriteError`` for what they cannot say: no compression, or more than a level.
    """
    only_a_level = len(setting.options) == 1 and setting.level is not None
    if setting.codec is Codec.CAT or (setting.options and not only_a_level):
        msg = f"initramfs-tools cannot be configured for {setting}"
        raise RefusedRewriteError(msg, hint="it takes a compressor and a level, nothing else")
    level = () if setting.level is None else (str(setting.level),)
    return (
        DesiredAssignment(name="COMPRESS", values=(setting.codec.value,)),
        DesiredAssignment(name="COMPRESSLEVEL", values=level),
    )


def initramfs_tools_edits(
    files: Sequence[ConfigFile], setting: Setting, drop_in: DropIn | None = None
) -> tuple[FileEdit, ...]:
    """Return what to change in the files that mkinitramfs sources one after the other.

    What is set nowhere yet is set in the main file, the first. ``drop_in`` is used where the value
    comes from a file not to be edited.

    Raises ``RefusedRewriteError`` where a line has to be changed by hand.
    """
    return rewrite(
        files, initramfs_tools_assignments(setting), ReadingRules(shell=Shell.SH, drop_in=drop_in)
    )
