"""mkinitcpio: ``COMPRESSION=`` and ``COMPRESSION_OPTIONS=()`` (mkinitcpio.conf(5))."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.rewrite.edits import DesiredAssignment
from initadvisor.rewrite.files import ReadingRules
from initadvisor.rewrite.plan import rewrite
from initadvisor.rewrite.syntax import Shell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.core.settings import Setting
    from initadvisor.rewrite.files import ConfigFile, DropIn, FileEdit


def desired_assignments(setting: Setting) -> tuple[DesiredAssignment, ...]:
    """Return what mkinitcpio's variables have to be for a setting."""
    return (
        DesiredAssignment(name="COMPRESSION", values=(setting.codec.value,), quote='"'),
        DesiredAssignment(name="COMPRESSION_OPTIONS", values=setting.options, array=True),
    )


def with_setting_in(
    files: Sequence[ConfigFile], setting: Setting, drop_in: DropIn | None = None
) -> tuple[FileEdit, ...]:
    """Return what to change in the main file and the drop-ins, which bash reads as one text.

    What is set nowhere yet is set in the main file, the first. ``drop_in`` is used where the value
    comes from a file not to be edited.

    Raises ``RefusedRewriteError`` where a line has to be changed by hand.
    """
    reading = ReadingRules(shell=Shell.BASH, merged=True, drop_in=drop_in)
    return rewrite(files, desired_assignments(setting), reading)
