"""Where systemd's own plugin copies images is where copies are looked for."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from initadvisor.bootloaders.systemd_boot.menu import key_values
from initadvisor.generators import dracut, initramfs_tools
from tests.fixtures.debian import RELEASED, Suite, package, program
from tests.fixtures.hosts import RELEASE, Machine
from tests.fixtures.journals import MACHINE_ID
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tools

_PLUGIN = "usr/lib/kernel/install.d/90-loaderentry.install"
_IMAGE = f"/boot/initrd.img-{RELEASE}"


@pytest.mark.parametrize("suite", RELEASED)
def test_an_image_that_is_passed_or_linked_is_copied_and_one_that_is_staged_is_installed(
    suite: Suite, tmp_path: Path
) -> None:
    """It is passed by post-update.d/systemd-boot, linked by 55-initrd.install, and staged by
    50-dracut.install.
    """
    machine = Machine(root=tmp_path)
    directory = f"/efi/{MACHINE_ID}/{RELEASE}"
    write(tmp_path, "/etc/machine-id", f"{MACHINE_ID}\n")
    image = write(tmp_path, _IMAGE, "image")
    copy = machine.path(f"{directory}/initrd.img-{RELEASE}")

    _added(suite, machine, directory, image)
    for generator in initramfs_tools, dracut:
        (found,) = generator.images(machine)
        assert (found.path, found.copies) == (image, (copy,))
    assert copy.read_bytes() == image.read_bytes()
    copy.unlink()
    staging = machine.path("/staging")
    (staging / image.name).symlink_to(image)
    write(tmp_path, "/staging/initrd", "made in the staging area")
    entry = _added(suite, machine, directory)
    (found,) = initramfs_tools.images(machine)
    assert found.copies == (copy,)
    made = machine.path(f"{directory}/initrd")
    assert [one.path for one in dracut.images(machine)] == [image, made]
    # What is refused: which of them a trial replaced would not matter to what is in both.
    loaded = key_values(entry).all("initrd")
    assert [name.rpartition("/")[2] for name in loaded] == ["initrd", copy.name]


def _added(suite: Suite, machine: Machine, directory: str, *initrds: Path) -> str:
    """Run the plugin as ``kernel-install add`` does; return the entry that it wrote."""
    root = machine.root
    kernel = write(root, f"/boot/vmlinuz-{RELEASE}", "kernel")
    machine.path(directory).mkdir(parents=True, exist_ok=True)
    machine.path("/staging").mkdir(exist_ok=True)
    plugin = root / "plugin"
    if not plugin.exists():
        deb = [program("dpkg-deb"), "--fsys-tarfile", str(package(suite, "systemd"))]
        tar = subprocess.run(deb, check=True, capture_output=True).stdout
        unpack = [program("tar"), "-xO", f"./{_PLUGIN}"]
        plugin.write_bytes(
            subprocess.run(unpack, input=tar, check=True, capture_output=True).stdout
        )
    env = {
        "PATH": os.environ["PATH"],
        "KERNEL_INSTALL_LAYOUT": "bls",
        "KERNEL_INSTALL_MACHINE_ID": MACHINE_ID,
        "KERNEL_INSTALL_ENTRY_TOKEN": MACHINE_ID,
        "KERNEL_INSTALL_BOOT_ROOT": str(machine.path("/efi")),
        "KERNEL_INSTALL_STAGING_AREA": str(machine.path("/staging")),
        "KERNEL_INSTALL_VERBOSE": "0",
        "KERNEL_INSTALL_CONF_ROOT": str(root),  # no command line of this machine's
    }
    place = str(machine.path(directory))
    argv = ["/bin/sh", str(plugin), "add", RELEASE, place, str(kernel), *map(str, initrds)]
    subprocess.run(argv, check=True, env=env)
    return machine.path(f"/efi/loader/entries/{MACHINE_ID}-{RELEASE}.conf").read_text()
