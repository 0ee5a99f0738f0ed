"""The kernels that judge."""

from __future__ import annotations

from enum import StrEnum


class Judge(StrEnum):
    """A kernel and what runs it.

    ``UML``: Linux 6.1 as a process of its own (Debian's package user-mode-linux), about a second
    for an image. ``TCG``: the stock kernel of Debian 12, ``TCG_LATER``: that of Debian 13, for the
    cloud, both on an emulated processor, about three seconds.
    """

    UML = "uml"
    TCG = "tcg"
    TCG_LATER = "tcg-6.12"
