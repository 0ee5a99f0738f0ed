"""What kernel-install(8) placed is told apart: copies of an image, images made there, and UKIs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import NeedsRootError
from initadvisor.generators import dracut, initramfs_tools, mkinitcpio
from tests.fixtures.hosts import RELEASE
from tests.fixtures.journals import MACHINE_ID

if TYPE_CHECKING:
    from types import ModuleType

    from initadvisor.host import Host
    from tests.fixtures.hosts import Write

OTHER = "6.12.94+deb13-amd64"


def found(host: Host, generator: ModuleType) -> list[tuple[str, list[str]]]:
    """Return the images, and the copies of each."""
    return [
        (
            f"/{one.path.relative_to(host.root)}",
            [f"/{p.relative_to(host.root)}" for p in one.copies],
        )
        for one in generator.images(host)
    ]


@pytest.mark.parametrize("token", [MACHINE_ID, "debian", "Default"])
@pytest.mark.parametrize("partition", ["/boot/efi", "/efi", "/boot"])
def test_debian_copies_what_its_hooks_write(
    host: Host, write: Write, token: str, partition: str
) -> None:
    """As systemd-boot's scripts of Debian 12 and 13 have it, for both generators."""
    write("/etc/machine-id", f"{MACHINE_ID}\n")
    write("/etc/os-release", "ID=debian\n")
    write("/etc/kernel/entry-token", 256 * "a")  # no directory may be called so
    for release in (RELEASE, OTHER):
        write(f"/boot/initrd.img-{release}", release)
        write(f"{partition}/{token}/{release}/linux", "kernel")
        write(f"{partition}/{token}/{release}/initrd.img-{release}", release)
    write(f"{partition}/{token}/{RELEASE}/microcode.cpio", "microcode")
    write(f"{partition}/other/{RELEASE}/initrd.img-{RELEASE}", "another system's")
    write(f"{partition}/EFI/Linux/{token}-{RELEASE}.efi", "layout=uki")
    expected = [
        (f"/boot/initrd.img-{release}", [f"{partition}/{token}/{release}/initrd.img-{release}"])
        for release in (RELEASE, OTHER)
    ]
    assert found(host, initramfs_tools) == expected
    uki: tuple[str, list[str]] = (f"{partition}/EFI/Linux/{token}-{RELEASE}.efi", [])
    assert [one for one in found(host, dracut) if one != uki] == expected


def test_what_a_plugin_made_in_the_staging_area_is_an_image_of_its_own(
    host: Host, write: Write
) -> None:
    """As Fedora has it; and Debian 13 with dracut, whose entries load both."""
    write("/etc/machine-id", f"{MACHINE_ID}\n")
    made = f"/efi/{MACHINE_ID}/{RELEASE}/initrd"
    write(made, "x")
    assert found(host, dracut) == [(made, [])]
    assert found(host, initramfs_tools) == []
    written, copy = (
        f"/boot/initrd.img-{RELEASE}",
        f"/efi/{MACHINE_ID}/{RELEASE}/initrd.img-{RELEASE}",
    )
    write(written, "y")
    write(copy, "y")
    assert found(host, dracut) == [(written, [copy]), (made, [])]
    assert found(host, initramfs_tools) == [(written, [copy])]


def test_an_image_beside_the_kernel_s_modules_is_copied_by_dracut_s_plugin(
    host: Host, write: Write
) -> None:
    write("/etc/machine-id", f"{MACHINE_ID}\n")
    write(f"/lib/modules/{RELEASE}/initrd", "x")
    write(f"/boot/{MACHINE_ID}/{RELEASE}/initrd", "x")
    assert found(host, dracut) == [
        (f"/lib/modules/{RELEASE}/initrd", [f"/boot/{MACHINE_ID}/{RELEASE}/initrd"])
    ]


def test_a_preset_s_image_that_kernel_install_is_given_is_copied(host: Host, write: Write) -> None:
    write("/etc/machine-id", f"{MACHINE_ID}\n")
    write(f"/usr/lib/modules/{RELEASE}/pkgbase", "linux\n")
    write(
        "/etc/mkinitcpio.d/linux.preset",
        f"ALL_kver={RELEASE}\nPRESETS=('default')\ndefault_image=/boot/initramfs-linux.img\n",
    )
    write("/boot/initramfs-linux.img", "x")
    copy = f"/efi/{MACHINE_ID}/{RELEASE}/initramfs-linux.img"
    write(copy, "x")
    assert found(host, mkinitcpio) == [("/boot/initramfs-linux.img", [copy])]


def test_a_link_to_the_image_is_no_copy(host: Host, write: Write) -> None:
    write("/etc/machine-id", f"{MACHINE_ID}\n")
    image = write(f"/boot/initrd.img-{RELEASE}", "x")
    link = write(f"/boot/{MACHINE_ID}/{RELEASE}/initrd.img-{RELEASE}", "")
    link.unlink()
    link.symlink_to(image)
    assert found(host, initramfs_tools) == [(f"/boot/initrd.img-{RELEASE}", [])]


def test_who_may_not_look_at_the_partition_still_sees_the_images(
    host: Host, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(_host: object) -> object:
        msg = "only root may look"
        raise NeedsRootError(msg)

    write(f"/boot/initrd.img-{RELEASE}", "x")
    monkeypatch.setattr(initramfs_tools, "entry_images", closed)
    assert found(host, initramfs_tools) == [(f"/boot/initrd.img-{RELEASE}", [])]
