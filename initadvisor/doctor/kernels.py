"""How many more kernels fit on the boot partition: today, and with each setting that was built."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from initadvisor.candidates.cache import Cache
from initadvisor.target.kernel_room import KernelRoom, kernel_room

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from initadvisor.generators import InstalledImage
    from initadvisor.host import Host


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreKernels:
    """The room, and how many kernels fit after a switch to a setting."""

    room: KernelRoom
    switched: Mapping[str, int] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """Both in one sentence."""
        return self.room.words(self.switched)


def more_kernels(host: Host, images: Sequence[InstalledImage]) -> MoreKernels | None:
    """Return how many more fit; None where there is no boot partition, or it is closed.

    Raises ``InitadvisorError`` where it cannot be told.
    """
    room = kernel_room(host, images)
    if room is None:
        return None
    default = images[0].path
    if images[0].uki:  # candidates are as large as its initramfs, whose size only a scan tells
        return MoreKernels(room=room)
    today_bytes = default.stat().st_size
    built = [one for one in Cache(host).all() if one.image == str(default)]
    return MoreKernels(
        room=room,
        switched={
            str(one.candidate.setting): room.after_switch(today_bytes, one.candidate.size_bytes)
            for one in built
        },
    )
