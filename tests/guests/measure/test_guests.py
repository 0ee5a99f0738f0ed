"""Guests of other kinds than the one that most tests use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import initadvisor
from tests.fixtures.debian import Suite
from tests.vm.boot import Then, boot
from tests.vm.filesystems import put_tree, read
from tests.vm.guest import Generator, Loader, Recipe, guest

pytestmark = pytest.mark.vm

_ADD_ENTRY_AND_ARM = """
linux=$(grep -m 1 '^[[:space:]]*linux' /boot/grub/grub.cfg)
initrd=$(grep -m 1 '^[[:space:]]*initrd' /boot/grub/grub.cfg)
printf '%s\\n' "menuentry trial --id trial {" "search --set=root --file /grub/custom.cfg" \
    "$linux trial=1" "$initrd" "}" >/boot/grub/custom.cfg
grub-reboot trial
grub-editenv list
"""


def test_grub_boots_an_entry_once_and_clears_what_asked_for_it(tmp_path: Path) -> None:
    recipe = Recipe(generator=Generator.DRACUT, loader=Loader.GRUB)
    copy = guest(recipe).copied_to(tmp_path / "guest")
    armed = boot(copy, script=_ADD_ENTRY_AND_ARM, then=Then.REBOOT)
    assert "next_entry=trial" in armed.output
    assert not armed.find(r"Command line: .* trial=1")
    trial = boot(copy)
    assert trial.find(r"Command line: .* trial=1")
    assert trial.find("dracut-"), "another generator's image was booted"
    environment = read(copy.disk.files("/boot"), "/grub/grubenv").decode()
    assert "next_entry=\n" in environment


@pytest.mark.shows("image read", "systemd-boot", system="Debian 12")
def test_bookworm_with_kernels_on_xbootldr_runs_initadvisor(tmp_path: Path) -> None:
    recipe = Recipe(suite=Suite.BOOKWORM, loader=Loader.SYSTEMD_BOOT_XBOOTLDR)
    copy = guest(recipe).copied_to(tmp_path / "guest")
    put_tree(copy.disk.root, Path(initadvisor.__file__).parent, "/opt/initadvisor")
    image = f"/boot/initrd.img-{copy.release}"
    command = f'python3 -c "from initadvisor.cli import main; main()" inspect --json {image}'
    script = f"PYTHONPATH=/opt {command} >/root/answer.json; bootctl -x; bootctl -p"
    booted = boot(copy, script=script)
    assert booted.output == ("/boot", "/efi")
    assert booted.entry == f"debian-{copy.release}.conf"
    answer = json.loads(read(copy.disk.root, "/root/answer.json"))
    assert answer["kernel"] == copy.release
    assert read(copy.disk.files("/boot"), image.removeprefix("/boot")) == copy.initrd.read_bytes()
