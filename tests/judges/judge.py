"""The kernels that judge."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from tests.fixtures.variants import Origin, exhibits

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
        """What it judges: not everything where the processor is emulated, which takes its time.

        Of damaged images that is a third. The later kernel gets only what was made by hand, which
        is what differs in more than a level or by chance.
        """
        if self is Judge.UML:
            return list(exhibits())
        by_hand = [exhibit for exhibit in exhibits() if exhibit.origin is Origin.HAND]
        if self is Judge.TCG_LATER:
            return by_hand
        by_tools = [exhibit for exhibit in exhibits() if exhibit.origin is Origin.TOOL]
        damaged = [exhibit for exhibit in exhibits() if exhibit.origin is Origin.DAMAGE]
        return [*by_hand, *by_tools, *damaged[::_OF_DAMAGED]]
