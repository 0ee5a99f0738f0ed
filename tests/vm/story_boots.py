"""The story in six boots: a kernel is upgraded, one trial boots well and one panics, and a setting
that nobody has tried is applied, proven by a boot, and taken back.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.vm.applying import TODAY
from tests.vm.filesystems import Vfat, read
from tests.vm.guest import Loader
from tests.vm.loop_boots import Campaigned, Loop, Plan, Told, begun, left
from tests.vm.loop_faults import damage
from tests.vm.loop_guest import prepared
from tests.vm.loop_scripts import LOOK_BACK, apply_unproven, going_back

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vm.guest import Guest

GOOD, PANICS, APPLIED = "lz4 -1", "zstd -2", "gzip -1"
PLAN = Plan(settings=(GOOD, PANICS), faults=((PANICS, damage),))
_PROVEN = "/root/proven.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What there was to see, boot by boot.

    ``proven``: the last boot when the setting was installed; ``back``: the same boot when it had
    been taken back. ``esp``: digests of all files on the ESP before the first boot and after the
    last, but for the image, which the new kernel's package has made anew.
    """

    campaigned: Campaigned
    proven: Told
    back: Told
    esp: tuple[dict[str, str], dict[str, str]]

    @property
    def before(self) -> Told:
        """The boot in which today's image was made."""
        return self.campaigned.upgraded

    @property
    def applied(self) -> Told:
        """The boot in which the campaign ended and a setting was applied."""
        return self.campaigned.last


def lived(directory: Path) -> Story:
    """Live it; each boot is a start of QEMU."""
    guest = prepared(Loader.SYSTEMD_BOOT, directory / "guest", PLAN.settings, today=TODAY)
    esp = _esp(guest)
    loop = Loop(guest, directory, apply_unproven(APPLIED) + LOOK_BACK)
    campaigned = begun(loop, PLAN)
    back = loop.boot(going_back(_PROVEN))
    return Story(
        campaigned=campaigned,
        proven=Told(boot=back.boot, look=left(guest, _PROVEN)),
        back=back,
        esp=(esp, _esp(guest)),
    )


def _esp(guest: Guest) -> dict[str, str]:
    files = guest.disk.files("/boot")
    assert isinstance(files, Vfat)
    paths = [path for path in files.paths() if not path.startswith("/initrd.img-")]
    return {path: hashlib.sha256(read(files, path)).hexdigest() for path in paths}
