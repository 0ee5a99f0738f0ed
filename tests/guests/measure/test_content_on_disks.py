"""Less in an image that starts on any machine: nothing goes that the root file system needs.

The image is Debian's own (MODULES=most, udev, the hooks of LVM and LUKS), with its kernel for every
machine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from initadvisor.target.module_index import module_of_path
from tests.vm.boot import Boot, Then, boot
from tests.vm.filesystems import read
from tests.vm.guest import Guest, guest
from tests.vm.installed import install
from tests.vm.machine import Bus, Machine
from tests.vm.stacked_root import RECIPE, Root, image_paths, move_root
from tests.vm.witness import freed_kib, kib_in_pages

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.vm

_NAME = "this-machine"
_LOOK = """
python3 - <<'END'
import json, pathlib
mounts = [line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
modules = pathlib.Path("/proc/modules").read_text().splitlines()
print(json.dumps({
    "loaded": [line.split()[0] for line in modules],
    "root": [mount[:3:2] for mount in mounts if mount[1] == "/"][-1],
}))
END
"""
_ASK_AND_BUILD = f"""
systemctl start initadvisor-measure.service
initadvisor contents --unused --estimate --json >/boot/contents
python3 - <<'END'
import json, pathlib
found = json.loads(pathlib.Path("/boot/contents").read_text())
(line,) = [one for one in found["estimates"] if one["name"] == "{_NAME}"]
with open(line["path"], "a") as file:
    file.write(line["line"] + "\\n")
END
release=$(uname -r)
mkinitramfs -o /var/tmp/less "$release"
mv /var/tmp/less "/boot/debian/$release/initrd.img-$release"
{_LOOK}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What the disk is connected by, what the root file system is, and where the guest has it.

    ``needs``: the modules without which it is not mounted there.
    """

    bus: Bus = Bus.VIRTIO
    root: Root = Root.EXT4
    device: str
    needs: str

    @property
    def file_system(self) -> str:
        """What the kernel calls it."""
        return "btrfs" if self.root is Root.BTRFS else "ext4"


_EXT4 = "ext4 jbd2 mbcache"
_SCSI = "scsi_mod sd_mod"
_CASES = {
    "virtio": Case(device="/dev/vda2", needs=f"virtio_blk {_EXT4}"),
    "SATA": Case(bus=Bus.SATA, device="/dev/sda2", needs=f"libata libahci ahci {_SCSI} {_EXT4}"),
    "NVMe": Case(bus=Bus.NVME, device="/dev/nvme0n1p2", needs=f"nvme_core nvme {_EXT4}"),
    "USB": Case(
        bus=Bus.USB_3,
        device="/dev/sda2",
        needs=f"usbcore xhci_hcd xhci_pci usb_storage {_SCSI} {_EXT4}",
    ),
    # Nothing but the record of a boot keeps this one's driver.
    "LVM": Case(
        bus=Bus.IDE,
        root=Root.LVM,
        device="/dev/mapper/guest-root",
        needs=f"dm_mod libata ata_piix {_SCSI} {_EXT4}",
    ),
    "LUKS": Case(
        root=Root.LUKS,
        device="/dev/mapper/cryptroot",
        needs=f"dm_mod dm_crypt aesni_intel virtio_blk {_EXT4}",
    ),
    "btrfs": Case(
        root=Root.BTRFS, device="/dev/vda2", needs="btrfs xor raid6_pq libcrc32c virtio_blk"
    ),
}


@pytest.mark.shows("less content", "systemd-boot")
@pytest.mark.parametrize("name", _CASES)
def test_what_is_called_unused_is_not_needed_and_less_boots(name: str, tmp_path: Path) -> None:
    case = _CASES[name]
    needs = set(case.needs.split())
    copy = guest(RECIPE).copied_to(tmp_path / "guest")
    install(copy)
    move_root(copy, case.root)

    before = _booted(copy, case, _ASK_AND_BUILD)
    document = json.loads(read(copy.disk.files("/boot"), "/contents"))
    after = _booted(copy, case, _LOOK)

    estimated = {one["name"]: one["size_bytes"] for one in document["estimates"]}
    unused = {module_of_path(one["path"]) for one in document["unused"]["files"]}
    assert document["unused"]["boots"] == 1
    assert unused
    less_bytes = len(read(copy.disk.files("/boot"), image_paths(copy)[1]))
    assert less_bytes < document["image_bytes"] / 2
    assert less_bytes == pytest.approx(estimated[_NAME], rel=0.02)
    assert freed_kib(after.boot) == kib_in_pages(less_bytes)
    for told in (before, after):
        assert told.root == (case.device, case.file_system)
        assert needs <= told.loaded
        assert not unused & told.loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """A boot that was complete, the modules it had then, and what was mounted on /."""

    boot: Boot
    loaded: frozenset[str]
    root: tuple[str, str]


def _booted(copy: Guest, case: Case, script: str) -> _Told:
    done = boot(copy, Machine(bus=case.bus), script=script, then=Then.POWER_OFF)
    assert done.boot_id, done.lines[-40:]
    look: dict[str, Any] = json.loads(done.output[-1])
    device, file_system = look["root"]
    return _Told(boot=done, loaded=frozenset(look["loaded"]), root=(device, file_system))
