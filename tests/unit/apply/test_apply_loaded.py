"""What real loaders' configurations load by default is what is replaced, or a copy of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.apply.loaded import require_loaded
from initadvisor.apply.plan_values import PlannedImage
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import UnsafeError
from initadvisor.core.settings import Setting
from initadvisor.generators import ConfiguredSetting, InstalledImage
from tests.fixtures.hosts import RELEASE
from tests.fixtures.loader_machines import (
    Machine,
    grub_machine,
    systemd_boot_machine,
    unified,
)
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from pathlib import Path


def planned(machine: Machine, path: str, *copies: str) -> PlannedImage:
    """Return an image that is to be rebuilt."""
    return PlannedImage(
        image=InstalledImage(
            path=machine.host.path(path),
            kernel_release=RELEASE,
            copies=tuple(map(machine.host.path, copies)),
        ),
        rebuilt=True,
        after=ConfiguredSetting(setting=Setting(Codec.ZSTD), source="a test"),
        size_bytes=1,
        expected_bytes=None,
    )


def test_what_is_not_known_as_a_copy_is_not_the_image(tmp_path: Path) -> None:
    machine = systemd_boot_machine(tmp_path)
    written = f"/boot/initrd.img-{RELEASE}"
    write(tmp_path, written, (tmp_path / machine.installed.lstrip("/")).read_bytes())
    with pytest.raises(UnsafeError, match=f"the next boot would not use .*{written}") as caught:
        require_loaded(machine.host, [planned(machine, written)])
    assert f"the default entry loads /efi/ucode.img, {machine.installed}" in str(caught.value)
    require_loaded(machine.host, [planned(machine, written, machine.installed)])
    both = [planned(machine, written), planned(machine, machine.installed)]
    require_loaded(machine.host, both)


def test_a_unified_kernel_image_is_loaded_as_a_whole(tmp_path: Path) -> None:
    machine = systemd_boot_machine(tmp_path, loader_conf="default *.efi\n")
    unified(machine)
    machine.programs.listed = ""
    written = f"/boot/initrd.img-{RELEASE}"
    write(tmp_path, written, "image")
    with pytest.raises(UnsafeError, match=r"the default entry loads /efi/EFI/Linux/arch\.efi"):
        require_loaded(machine.host, [planned(machine, written)])
    require_loaded(machine.host, [planned(machine, machine.installed)])


def test_grub_loads_what_the_generator_writes(tmp_path: Path) -> None:
    machine = grub_machine(tmp_path)
    require_loaded(machine.host, [planned(machine, machine.installed)])
    write(tmp_path, "/boot/elsewhere", "image")
    with pytest.raises(UnsafeError, match="the default entry loads"):
        require_loaded(machine.host, [planned(machine, "/boot/elsewhere")])
