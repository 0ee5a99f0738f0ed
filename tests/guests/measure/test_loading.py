"""What loading modules takes that are stored compressed or not, by the boots of a guest."""

from __future__ import annotations

import json
import logging
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.vm.boot import Then, boot
from tests.vm.filesystems import read
from tests.vm.guest import Generator, Recipe, guest
from tests.vm.installed import ENABLE, install
from tests.vm.machine import Machine
from tests.vm.witness import witnessed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vm.boot import Boot
    from tests.vm.guest import Guest

pytestmark = pytest.mark.vm
log = logging.getLogger(__name__)

_NAME, _BACK = "modules-decompressed", "modules-compressed"
_MACHINE = Machine(deterministic=True)
"""Whose times repeat, and whose time-outs go by its own clock."""

_MODULES = "kvm bcachefs drbd ntfs3"
"""Large ones, which any machine loads."""

_MADE_WITH_THEM = f"""
sed -i 's/^MODULES=(/&{_MODULES} /' /etc/mkinitcpio.conf
mkinitcpio -P
"""
_ASK = """
systemctl start initadvisor-measure.service
initadvisor contents --variants --json >/root/{}
"""
_APPLY = f"""
initadvisor apply --variant {_NAME} --confirm --unverified
"""
_MEASURE = "systemctl start initadvisor-measure.service\n"
_SETTLE = """
systemctl start initadvisor-settle.service
initadvisor settle
"""
_LOOK = """
initadvisor status --json >/root/status
initadvisor history --json >/root/history
sync
"""
_DISK = r"\[ *(\d+)\.(\d{6})\] virtio_blk virtio0: \[vda\]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reboot:
    """A boot, and what it left of the boots; ``loading_us``: from /init until the last module was
    loaded, the disk's, by the console. Nothing is read from the disk before that.
    """

    boot: Boot
    loading_us: int
    status: dict[str, Any]
    records: dict[str, dict[str, Any]]

    @property
    def recorded_us(self) -> int:
        """How long it was in its initramfs by its record."""
        record = self.records[str(self.boot.boot_id)]
        phases = {phase["phase"]: phase["duration_us"] for phase in record["phases"]}
        kernel_us, initrd_us = phases["kernel"], phases.get("initrd", 0)
        return int(kernel_us + initrd_us - record["timestamps"]["run_init_us"])

    @property
    def image(self) -> str:
        """The digest of the image that it certainly used."""
        attribution = self.records[str(self.boot.boot_id)]["attribution"]
        assert attribution["certainty"] == "certain"
        return str(attribution["images"][0]["sha256"])


def rebooted(copy: Guest, script: str) -> Reboot:
    """Boot, do something, and look."""
    done = boot(copy, _MACHINE, script=script + _LOOK, then=Then.REBOOT)
    disk = done.find(_DISK)
    assert disk
    (kernel,) = witnessed(done)
    assert kernel.run_init_us
    root = copy.disk.root
    history = json.loads(read(root, "/root/history"))
    return Reboot(
        boot=done,
        loading_us=int(disk[1]) * 1_000_000 + int(disk[2]) - kernel.run_init_us,
        status=json.loads(read(root, "/root/status")),
        records={record["boot_id"]: record for record in history["boots"]},
    )


@pytest.mark.shows(
    "less content",
    "systemd-boot",
    generator="mkinitcpio 41",
    system="Debian 13, packages by pacman",
)
def test_loading_is_measured_by_the_boots_before_and_after(tmp_path: Path) -> None:
    copy = guest(Recipe(generator=Generator.MKINITCPIO)).copied_to(tmp_path / "guest")
    install(copy)
    rebooted(copy, ENABLE + _MADE_WITH_THEM + _ASK.format("before") + _APPLY)
    boots = [rebooted(copy, script) for script in (_SETTLE, _SETTLE, _MEASURE)]
    boots.append(rebooted(copy, _ASK.format("after")))
    (before,), (after,) = _variants(copy, "before"), _variants(copy, "after")
    rehearsal, *others = boots
    log.info(
        "loading %s, in the initramfs %s us; %s",
        [each.loading_us for each in boots],
        [each.recorded_us for each in boots],
        after["loading"]["words"],
    )

    assert {one.image for one in others} == {others[0].image}
    assert others[0].image != rehearsal.image
    saved_us = [rehearsal.loading_us - one.loading_us for one in others]
    assert min(saved_us) > 0.1 * rehearsal.loading_us
    assert max(saved_us) - min(saved_us) < 0.02 * rehearsal.loading_us
    # Reading from the disk takes as long as a busy host has it take.
    assert all(0 < each.loading_us < each.recorded_us for each in boots)

    assert (before["name"], before["advised"]) == (_NAME, False)
    assert (before["loading"]["saved_ms"], before["loading"]["boots"]) == (None, 0)
    # The way back is offered now, with what the boots before it have shown.
    measured = after["loading"]
    assert (after["name"], measured["boots"]) == (_BACK, 1)
    assert measured["others"] + measured["disturbed"] == len(others)
    if not measured["disturbed"]:
        usual_us = statistics.median(one.recorded_us for one in others)
        saved_ms = (usual_us - rehearsal.recorded_us) / 1000
        assert measured["saved_ms"]["mean"] == pytest.approx(saved_ms, abs=0.1)
    assert [n for n in others[-1].status["notes"] if n.startswith("modules decompressed: ")]


def _variants(copy: Guest, name: str) -> list[dict[str, Any]]:
    found = json.loads(read(copy.disk.root, f"/root/{name}"))["variants"]["variants"]
    return [one for one in found if one["loading"]]
