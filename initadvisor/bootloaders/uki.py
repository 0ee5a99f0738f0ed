"""Unified kernel images as a loader's entries name them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from initadvisor.core.errors import BadImageError
from initadvisor.core.refusals import RefusalKind, refused
from initadvisor.host.files import open_regular
from initadvisor.image.pe import read_uki

if TYPE_CHECKING:
    from initadvisor.host import Host


def command_line_of(host: Host, path: str) -> str:
    """Return the command line that a unified kernel image brings with it.

    Raises ``RefusedError`` where the file is none, or says it in a way that cannot be copied.
    """
    remedy = "have a kernel be the default"
    with open_regular(host.path(path)) as file:
        try:
            uki = read_uki(file, os.fstat(file.fileno()).st_size)
        except BadImageError as err:
            reason = f"{path}, which is booted by default, is no unified kernel image: {err.reason}"
            raise refused(RefusalKind.UNCLEAR_DEFAULT, reason, remedy) from err
    if uki.kernel is None or not uki.command_line:
        reason = f"{path}, which is booted by default, does not say its kernel and command line"
        raise refused(RefusalKind.UNCLEAR_DEFAULT, reason, remedy)
    return uki.command_line
