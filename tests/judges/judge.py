"""The kernels that judge."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from tests.fixtures.variants import exhibits

if TYPE_CHECKING:
    from tests.fixtures.variants import Exhibit

_OF_DAMAGED = 3


class Judge(StrEnum):
    """A kernel and what runs it.

    ``UML``: Linux 6.1 as a process of its own (Debian's package user-mode-linux), about a second
    for an image. ``TCG``: the stock kernel of Debian 12, ``TCG_LATER``: that of Debian 13, for the
    cloud, both on an emulated processor, about three seconds.
    """

    UML = "uml"
    TCG = "tcg"
    TCG_LATER = "tcg-6.12"

    @property
    def description(self) -> str:
        """What it is, for a table."""
        match self:
            case Judge.UML:
                return "user-mode Linux, Debian 12"
            case Judge.TCG:
                return "QEMU's emulation, Debian 12's stock kernel"
            case Judge.TCG_LATER:
                return "QEMU's emulation, Debian 13's kernel for the cloud"

    @property
    def shown(self) -> list[Exhibit]:
        """What it judges: everything; on an emulated processor a third of what is damaged."""
        everything = exhibits()
        if self is Judge.UML:
            return everything
        whole = [exhibit for exhibit in everything if not exhibit.damaged]
        damaged = [exhibit for exhibit in everything if exhibit.damaged]
        return [*whole, *damaged[::_OF_DAMAGED]]
