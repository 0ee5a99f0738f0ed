"""Reboots of a guest in which initadvisor is installed, through images that it knows."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.vm.boot import Then, boot
from tests.vm.entries import add_trial_entry, arm, default_entry
from tests.vm.filesystems import read
from tests.vm.installed import ENABLE, install
from tests.vm.machine import Machine
from tests.vm.witness import Witnessed, witnessed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.vm.guest import Guest

SERVICE, TIMER = "initadvisor-measure.service", "initadvisor-measure.timer"

_CANDIDATES = "/var/cache/initadvisor/candidates"
_SETTINGS = ("lz4 -1", "gzip -1", "zstd -1")
_SEEN = "/root/seen"
_SOON = f"""
mkdir -p /etc/systemd/system/{TIMER}.d
printf '[Timer]\\nOnActiveSec=\\nOnActiveSec=1s\\nAccuracySec=1s\\n' \\
    >/etc/systemd/system/{TIMER}.d/soon.conf
"""
_WAIT_AND_LOOK = f"""
exited() {{ systemctl show -P ExecMainExitTimestampMonotonic {SERVICE}; }}
until [ "$(exited)" != 0 ]; do sleep 0.5; done
seen={_SEEN}/$(tr -d - </proc/sys/kernel/random/boot_id)
mkdir -p $seen
systemctl show {SERVICE} >$seen/service
systemctl show multi-user.target >$seen/target
systemd-analyze critical-chain multi-user.target >$seen/chain
"""
_RUN_AGAIN = f"systemctl start {SERVICE}\n"
_LOOK_BACK = f"""
initadvisor measure --backfill --json >{_SEEN}/backfill
initadvisor measure --backfill --json >{_SEEN}/backfill-again
initadvisor history --json >{_SEEN}/history
systemd-analyze security --no-pager {SERVICE} >{_SEEN}/security
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """An image that a boot used: its path in the guest and the setting that made it, None for the
    generator's own; ``entry`` boots it.
    """

    entry: str
    path: str
    setting: str | None
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reboot:
    """A boot that was measured: what it used, the console's witness, what was seen in the guest.

    ``service`` and ``target`` are what ``systemctl show`` said of the service and of
    multi-user.target, ``chain`` is what ``systemd-analyze critical-chain`` said of the latter.
    """

    used: Used
    kernel: Witnessed
    service: dict[str, str]
    target: dict[str, str]
    chain: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """``before``: the boot before anything was installed. The rest is what was said after all."""

    before: Witnessed
    reboots: tuple[Reboot, ...]
    backfill: dict[str, Any]
    backfill_again: dict[str, Any]
    history: dict[str, Any]
    security: str


def measured(guest: Guest, reboots: int, *, as_installed: bool = False) -> Outcome:
    """Install initadvisor, build candidates, reboot so often and look back in the last boot.

    In every second boot the service is started again. ``as_installed``: the timer waits for its
    minute; otherwise for a second.
    """
    install(guest)
    only = " ".join(f"--only '{each}'" for each in _SETTINGS)
    build = f"initadvisor candidates build {only}\n"
    machine = Machine(bare_metal=True)
    first = boot(guest, machine, script=ENABLE + build + ("" if as_installed else _SOON))
    plan = [*islice(cycle(_images(guest)), reboots)]
    boots = []
    for number, used in enumerate(plan):
        script = _WAIT_AND_LOOK + (_RUN_AGAIN if number % 2 else "")
        is_last = number == reboots - 1
        script += _LOOK_BACK if is_last else arm(plan[number + 1].entry)
        then = Then.POWER_OFF if is_last else Then.REBOOT
        boots.append(boot(guest, machine, script=script, then=then))
        assert boots[-1].entry == used.entry
    (before,) = witnessed(first)
    kernels = [kernel for each in boots for kernel in witnessed(each)]
    return _outcome(guest, before, plan, kernels)


def _images(guest: Guest) -> list[Used]:
    """Return the generator's image and, with an entry for each, the candidates."""
    images = [
        Used(
            entry=default_entry(guest),
            path=f"/boot/initrd.img-{guest.release}",
            setting=None,
            size_bytes=guest.initrd.stat().st_size,
        )
    ]
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch) / "candidates"
        guest.disk.root.fetch(_CANDIDATES, directory)
        for record in directory.glob("*.json"):
            candidate = json.loads(record.read_bytes())["candidate"]
            image = record.with_suffix(".img")
            name = candidate["setting"].replace(" ", "")
            images.append(
                Used(
                    entry=add_trial_entry(guest, name, image),
                    path=f"{_CANDIDATES}/{image.name}",
                    setting=candidate["setting"],
                    size_bytes=image.stat().st_size,
                )
            )
    assert {used.setting for used in images} == {None, *_SETTINGS}
    assert len({used.size_bytes // 4096 for used in images}) == len(images)
    return images


def _outcome(
    guest: Guest, before: Witnessed, plan: Sequence[Used], kernels: Sequence[Witnessed]
) -> Outcome:
    def seen(name: str) -> str:
        return read(guest.disk.root, f"{_SEEN}/{name}").decode()

    return Outcome(
        before=before,
        reboots=tuple(
            Reboot(
                used=used,
                kernel=kernel,
                service=_properties(seen(f"{kernel.boot_id}/service")),
                target=_properties(seen(f"{kernel.boot_id}/target")),
                chain=seen(f"{kernel.boot_id}/chain"),
            )
            for used, kernel in zip(plan, kernels, strict=True)
        ),
        backfill=json.loads(seen("backfill")),
        backfill_again=json.loads(seen("backfill-again")),
        history=json.loads(seen("history")),
        security=seen("security"),
    )


def _properties(shown: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in shown.splitlines())
