"""A side fact of the machine that is missing, damaged or closed never stops the answer."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from initadvisor.advise.recommend import Request, recommend
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.settings import Setting
from initadvisor.generators import initramfs_tools
from initadvisor.lab.observing import Unseen
from tests.fixtures.booted import RELEASE, Booted
from tests.fixtures.kernels import bzimage
from tests.fixtures.weighable_machine import INSTALLED, boot, with_image

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.advise.recommendation import Recommendation
    from initadvisor.host import Host

CHOICE = (INSTALLED, Setting.parse("lz4 -9"))
CONFIG = "etc/initramfs-tools/initramfs.conf"
NO_ROOM = "the room for images is not known: /proc/self/mountinfo does not tell what /boot is on"
NO_KERNEL_CONFIG = f"which codecs Linux {RELEASE} unpacks is not known"
NO_CONFIGURATION = "the configuration of initramfs-tools is not known: "
NO_STORE = "nothing of the recorded boots is used: "

FACTS = {
    "proc": NO_ROOM,
    "proc/self/mountinfo": NO_ROOM,
    "proc/cmdline": "",
    "proc/cpuinfo": "",
    "proc/meminfo": "",
    "proc/stat": "",
    "proc/sys/kernel/random/boot_id": "",
    "sys": "",
    "sys/firmware/efi/": "",
    "run/systemd/system/": "",
    "var/log/journal": "",
    "etc/machine-id": "",
    "etc/os-release": "",
    "boot/loader/": "",
    f"boot/vmlinuz-{RELEASE}": "",
    f"boot/config-{RELEASE}": NO_KERNEL_CONFIG,
    CONFIG: NO_CONFIGURATION,
    "var/lib/dpkg/": "",
    "state": "",
    "state/initadvisor.sqlite": "",
    "state/campaigns/": "",
    "state/calibration.json": "",
}
"""Each fact, by what holds it, and what is said where that is gone; nothing where nothing rests on
it, or a usual figure stands in, which the assumptions name."""

DAMAGED = FACTS | {
    "state": NO_STORE,
    "state/initadvisor.sqlite": NO_STORE,
    "state/calibration.json": "the shipped calibration is used",
}


@pytest.fixture
def machine(machine: Booted, monkeypatch: pytest.MonkeyPatch) -> Booted:
    """A machine that has an image installed and booted it once, with each fact."""
    monkeypatch.setenv("STATE_DIRECTORY", str(machine.root / "state"))
    booted = with_image(machine, monkeypatch)
    boot(booted, 1, unpack_ms=50)
    for fact in FACTS:
        if fact.endswith("/"):
            (booted.root / fact).mkdir(parents=True, exist_ok=True)
    booted.write("etc/os-release", "ID=debian\n")
    booted.write("proc/meminfo", "MemTotal: 8000000 kB\n")
    booted.write("proc/cpuinfo", "model name : A Processor\n")
    booted.write(f"boot/vmlinuz-{RELEASE}", bzimage(RELEASE))
    return booted


def asked(host: Host, image: Path | None = None) -> Recommendation:
    request = Request(image=image, only=CHOICE, everything=True, explain=True)
    return recommend(host, request, observer=Unseen())


@pytest.mark.exhaustive
@pytest.mark.parametrize("damaged", [False, True], ids=["missing", "damaged"])
@pytest.mark.parametrize("fact", FACTS)
def test_without_one_fact_there_is_an_answer(machine: Booted, fact: str, *, damaged: bool) -> None:
    host = machine.host()
    path = machine.root / fact
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    if damaged:
        machine.write(fact.rstrip("/"), b"\xffgarbage\0" * 1000)
    answer = asked(host)
    assert {row.setting for row in answer.rows} >= set(CHOICE)
    assert answer.baseline.codec is INSTALLED.codec
    said = "\n".join((*answer.warnings, *answer.context))
    words = (DAMAGED if damaged else FACTS)[fact]
    assert said.count(words) == 1 if words else "not known" not in said


def test_what_there_is_without_the_room_is_advised_and_called_unknown(machine: Booted) -> None:
    (machine.root / "proc/self/mountinfo").unlink()
    host = machine.host()
    answer = asked(host)
    assert (answer.storage.free_bytes, answer.storage.room_on) == (None, None)
    assert {row.setting: row.fits for row in answer.rows} == {INSTALLED: True, CHOICE[1]: None}
    fast = Request(only=CHOICE, everything=True, read_speed_mb_s=20_000, overlap_ms=0)
    decision = recommend(host, fast, observer=Unseen()).decision
    assert decision.leader == CHOICE[1]


def test_a_boot_partition_without_room_for_the_next_kernel_is_warned_of(
    machine: Booted, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = machine.root / "proc/self/mountinfo"
    mounts.write_text(f"{mounts.read_text()}23 22 8:1 / /boot rw - ext4 /dev/sda1 rw\n")
    roomy = asked(machine.host())
    assert roomy.room is not None
    assert not any("next kernel" in each for each in roomy.warnings)
    needed = roomy.room.kernel_bytes
    monkeypatch.setattr("initadvisor.target.kernel_room.free_bytes", lambda _path: needed - 1)
    full = asked(machine.host())
    assert full.warnings[0].startswith("the next kernel does not fit on /boot: it takes ")
    assert {row.more_kernels for row in full.rows} == {0}
    monkeypatch.setattr("initadvisor.target.kernel_room.free_bytes", lambda _path: needed)
    fast = Request(only=CHOICE, everything=True, read_speed_mb_s=20_000, overlap_ms=0)
    switch = recommend(machine.host(), fast, observer=Unseen())
    more = {row.setting: row.more_kernels for row in switch.rows}
    assert more == {INSTALLED: 1, CHOICE[1]: 0}


def test_a_disk_that_cannot_be_timed_is_assumed(
    machine: Booted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_host: Host, path: Path) -> None:
        msg = f"cannot read {path}: Input/output error"
        raise InitadvisorError(msg)

    monkeypatch.setattr("initadvisor.target.disk.cold_read", fails)
    answer = asked(machine.host())
    assert answer.storage.read_mb_s.source.startswith("assumed, not measured: ")
    assert "the disk's speed is not known: cannot read " in "\n".join(answer.warnings)
    # Where kernel-install(8) has copied it, the copy is what is loaded.
    machine.write("/etc/kernel/entry-token", "debian\n")
    [image] = initramfs_tools.images(machine.host())
    content = image.path.read_bytes()
    copy = machine.write(f"/efi/debian/{RELEASE}/{image.path.name}", content)
    assert f"cannot read {copy}: " in "\n".join(asked(machine.host()).warnings)


def test_an_image_remains_what_no_answer_can_do_without(machine: Booted) -> None:
    host = machine.host()
    [image] = initramfs_tools.images(host)
    with pytest.raises(InitadvisorError, match=r"cannot read .*: No such file or directory"):
        asked(host, machine.root / "absent")
    os.truncate(image.path, 1000)
    with pytest.raises(InitadvisorError, match="as an initramfs: "):
        asked(host)
    image.path.unlink()
    with pytest.raises(InitadvisorError, match="no image of initramfs-tools was found"):
        asked(host)
