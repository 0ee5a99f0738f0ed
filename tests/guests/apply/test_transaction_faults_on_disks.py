"""Transactions on a real vfat partition and a real ext4 one, with faults and real SIGKILLs."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.vm.boot import boot
from tests.vm.disk import MIB, format_ext4
from tests.vm.filesystems import put_tree
from tests.vm.guest import Recipe, guest
from tests.vm.machine import Drive, Machine

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.vm
log = logging.getLogger(__name__)

_CHECKOUT = Path(__file__).parents[3]
_WHERE = "/opt/faults"
_ROOT_BYTES, _BOOT_BYTES = 32 * MIB, 6 * MIB
SEED = 22
_SHARE = 0.005
_SCRIPT = f"""
mkfs.vfat /dev/disk/by-id/virtio-boot >/dev/null
mkdir /run/root
mount /dev/disk/by-id/virtio-root /run/root
mkdir /run/root/boot
mount /dev/disk/by-id/virtio-boot /run/root/boot
cd {_WHERE}
for what in room points; do
    python3 -m tests.faults $what /run/root vfat {SEED} {_SHARE}
done
umount /run/root/boot
fsck.vfat -n /dev/disk/by-id/virtio-boot >/dev/null
"""


def test_images_on_vfat_and_the_configuration_on_ext4_are_old_or_new_after_any_fault(
    tmp_path: Path,
) -> None:
    copy = guest(Recipe()).copied_to(tmp_path / "guest")
    for part in ("initadvisor", "tests/fakes", "tests/faults", "tests/fixtures"):
        put_tree(copy.disk.root, _CHECKOUT / part, f"{_WHERE}/{part}")
    drives = (_drive(tmp_path / "root", _ROOT_BYTES), _drive(tmp_path / "boot", _BOOT_BYTES))
    format_ext4(drives[0].path, 0, _ROOT_BYTES)
    done = boot(copy, Machine(drives=drives), direct=True, script=_SCRIPT)
    room, points = _results(done.output)
    log.info("tried %d points in the guest", points["tried"])
    assert room == {"tried": 3, "bad": []}
    assert points["bad"] == []
    assert points["tried"] > 80


def _drive(path: Path, size_bytes: int) -> Drive:
    with path.open("wb") as file:
        file.truncate(size_bytes)
    return Drive(path=path, serial=path.name)


def _results(output: Sequence[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output if line.startswith("{")]
