"""initramfs-tools: ``COMPRESS=`` and ``COMPRESSLEVEL=`` (initramfs.conf(5))."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import RefusedRewriteError
from initadvisor.rewrite.edits import DesiredAssignment
from initadvisor.rewrite.files import ReadingRules
from initadvisor.rewrite.plan import rewrite
from initadvisor.rewrite.syntax import Shell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.core.settings import Setting
    from initadvisor.rewrite.files import ConfigFile, DropIn, FileEdit


def desired_assignments(setting: Setting) -> tuple[DesiredAssignment, ...]:
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


def with_setting_in(
    files: Sequence[ConfigFile], setting: Setting, drop_in: DropIn | None = None
) -> tuple[FileEdit, ...]:
    """Return what to change in the files that mkinitramfs sources one after the other.

    What is set nowhere yet is set in the main file, the first. ``drop_in`` is used where the value
    comes from a file not to be edited.

    Raises ``RefusedRewriteError`` where a line has to be changed by hand.
    """
    return rewrite(
        files, desired_assignments(setting), ReadingRules(shell=Shell.SH, drop_in=drop_in)
    )
