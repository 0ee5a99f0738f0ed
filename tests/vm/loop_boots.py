"""The boots of the whole loop: a kernel is upgraded, candidates are tried, the best is applied and
taken back. Each is a start of QEMU with what the guest's loader, units and daemon have made of the
one before.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from initadvisor.image.scan import scan
from tests.vm.boot import Then, boot
from tests.vm.filesystems import read
from tests.vm.loop_faults import change_armed_image, damage, have_it_hang
from tests.vm.loop_guest import prepared
from tests.vm.loop_scripts import (
    APPLY,
    GO_BACK,
    HISTORY,
    IS_OVER,
    JUDGED,
    LOOK_BACK,
    OTHER_KERNEL,
    RECOMMENDATION,
    RECORDED,
    SEEN,
    UPGRADE,
    begin,
    going_back,
    look,
)
from tests.vm.machine import Machine
from tests.vm.outside_engine import with_engine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from initadvisor.core.codecs import Codec
    from tests.vm.boot import Boot
    from tests.vm.guest import Guest, Loader

    Fault = Callable[[bytes], bytes]

WATCHDOG = ("-device", "i6300esb")
GOES_ON = ("-action", "reboot=reset")
"""Have a reset be what it is elsewhere, in the same QEMU: the watchdog remembers that it did it."""

_MOST_BOOTS = 12
_KEPT = "/root/kept.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is tried: these settings, in this order. Each fault happens once to its setting."""

    settings: tuple[str, ...]
    faults: tuple[tuple[str, Fault], ...]

    @property
    def most_boots(self) -> int:
        """So many boots, and each setting has booted well once or has failed for good."""
        return len(self.settings) + len(self.faults) - len({name for name, _ in self.faults})


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A boot, or two where the first one hung: the console's words, and what there was to see at
    its end.
    """

    boot: Boot
    look: dict[str, Any]

    @property
    def campaign(self) -> dict[str, Any]:
        """The record of the campaign."""
        found: dict[str, Any] = self.look["campaign"]
        return found

    @property
    def armed(self) -> dict[str, Any] | None:
        """What the campaign has armed for the next boot."""
        if self.campaign["state"] != "armed":
            return None
        found: dict[str, Any] = self.campaign["trial_boots"][-1]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What was armed, the boot of it, and the first boot after that came up: the same one, if all
    is well.
    """

    arming: dict[str, Any]
    boot: Boot
    after: Told


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaigned:
    """A kernel is upgraded, candidates are built and a campaign begins; then its boots."""

    guest: Guest
    upgraded: Told
    tried: tuple[Tried, ...]

    @property
    def history(self) -> dict[str, Any]:
        """What ``initadvisor history`` said in the guest's last boot."""
        return left(self.guest, HISTORY)

    @property
    def last(self) -> Told:
        """The boot in which it ended."""
        return self.tried[-1].after


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """In a campaign's last boot, what is best is applied.

    ``used``: that boots, and is taken back. ``back``: what was there before boots.

    ``other``: with another kernel, which is installed in the boot before, that is taken back one
    boot later: in this one. ``kept``: what there was to see in it before. ``codecs``: of the images
    that the generator has written to /boot, at the boot's beginning and at the end of all.
    """

    campaigned: Campaigned
    recommendation: dict[str, Any]
    used: Told
    back: Told
    other: Told | None = None
    kept: dict[str, Any] | None = None
    codecs: tuple[list[Codec], list[Codec]] = ([], [])


class Loop:
    """Boots the guest; ``at_end`` is what it does when the campaign is over."""

    def __init__(self, guest: Guest, logs: Path, at_end: str) -> None:
        self.guest = guest
        self._logs = logs
        self._go_on = f"{JUDGED}\nif {IS_OVER}; then\n{at_end}\nfi\n"
        self._boots = 0

    def boot(self, script: str, *, hangs: bool = False) -> Told:
        """Boot to the end, and look; what ``hangs`` comes back by itself."""
        done = boot(
            self.guest,
            _machine(hangs=hangs),
            script=script + look(SEEN, self.guest.recipe.generator),
            then=Then.POWER_OFF if hangs else Then.REBOOT,
            log=self._log(),
        )
        return Told(boot=done, look=left(self.guest, SEEN))

    def campaign(self, told: Told, plan: Plan) -> tuple[Tried, ...]:
        """Boot as long as something is armed."""
        faults = list(plan.faults)
        tried: list[Tried] = []
        while (arming := told.armed) is not None:
            assert len(tried) < _MOST_BOOTS, told.campaign
            found = next((fault for fault in faults if fault[0] == arming["setting"]), None)
            if found:
                faults.remove(found)
            tried.append(self._try(arming, found[1] if found else None))
            told = tried[-1].after
        assert not faults, told.campaign
        return tuple(tried)

    def _try(self, arming: dict[str, Any], fault: Fault | None) -> Tried:
        """Boot what is armed, with a fault in it, and again where that does not come up."""
        if fault:
            change_armed_image(self.guest, fault)
        if fault is damage:
            failed = boot(self.guest, _machine(), log=self._log())
            return Tried(arming=arming, boot=failed, after=self.boot(self._go_on))
        after = self.boot(self._go_on, hangs=fault is have_it_hang)
        return Tried(arming=arming, boot=after.boot, after=after)

    def _log(self) -> Path:
        self._boots += 1
        return self._logs / f"boot-{self._boots}.log"


def campaigned(loader: Loader, directory: Path, plan: Plan) -> Campaigned:
    """Have a guest upgrade its kernel and try candidates."""
    loop = Loop(prepared(loader, directory / "guest", plan.settings), directory, LOOK_BACK)
    return begun(loop, plan)


def applied(guest: Guest, directory: Path, plan: Plan, *, other_kernel: bool = False) -> Applied:
    """Have a guest that was never booted do the same, apply what is best, use it and go back.

    ``other_kernel``: install the one that it has the package of, and boot it, before going back.
    """
    loop = Loop(guest, directory, APPLY)
    done = begun(loop, plan)
    other, kept, before = None, None, []
    if other_kernel:
        used = loop.boot(JUDGED + OTHER_KERNEL)
        before = _codecs(guest)
        other = loop.boot(going_back(_KEPT, guest.recipe.generator))
        kept = left(guest, _KEPT)
    else:
        used = loop.boot(GO_BACK)
    return Applied(
        campaigned=done,
        recommendation=left(guest, RECOMMENDATION),
        used=used,
        back=loop.boot(RECORDED + LOOK_BACK),
        other=other,
        kept=kept,
        codecs=(before, _codecs(guest)),
    )


def _codecs(guest: Guest) -> list[Codec]:
    """Return how each kernel's image in /boot is compressed, by the images' names."""
    boot = guest.disk.files("/boot")
    names = [name for name in boot.names("/") if name.startswith(("initrd.img-", "initramfs-"))]
    return [scan(io.BytesIO(read(boot, f"/{name}"))).main.codec for name in names]


def begun(loop: Loop, plan: Plan) -> Campaigned:
    """Have the guest of a loop upgrade its kernel and try candidates."""
    upgraded = loop.boot(UPGRADE + begin(plan.settings, plan.most_boots))
    return Campaigned(
        guest=loop.guest,
        upgraded=upgraded,
        tried=loop.campaign(upgraded, plan),
    )


def left(guest: Guest, path: str) -> dict[str, Any]:
    """Return what the guest has left in a file."""
    found: dict[str, Any] = json.loads(read(guest.disk.root, path))
    return found


def _machine(*, hangs: bool = False) -> Machine:
    also = (*WATCHDOG, *(GOES_ON if hangs else ()))
    return with_engine(Machine(bare_metal=True, also=also))
