"""By which lines of its configuration a generator puts less into an image."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import UnsafeError
from initadvisor.generators import InstalledImage, dracut, initramfs_tools, mkinitcpio, unknown
from tests.fixtures.hosts import RELEASE

if TYPE_CHECKING:
    from initadvisor.generators import ContentVariant, Generator
    from initadvisor.host import Host
    from tests.fixtures.hosts import Write

TOOLS = "/etc/initramfs-tools/initramfs.conf"
TOOLS_CONTENT = "/etc/initramfs-tools/conf.d/90-content"
DRACUT = "/etc/dracut.conf"
DRACUT_CONTENT = "/etc/dracut.conf.d/90-content.conf"
MKINITCPIO = "/etc/mkinitcpio.conf"
MKINITCPIO_CONTENT = "/etc/mkinitcpio.conf.d/90-content.conf"


@pytest.fixture(autouse=True)
def _versions(write: Write) -> None:
    write("/usr/bin/mkinitcpio", "declare -r version='41'\n").chmod(0o755)
    write("/usr/lib/dracut/dracut-version.sh", "DRACUT_VERSION=106\n")


def variants(generator: Generator, host: Host, *unused: str) -> tuple[ContentVariant, ...]:
    image = InstalledImage(path=host.path("/boot/image"), kernel_release=RELEASE)
    return generator.content_variants(host, image, unused)


@pytest.mark.parametrize(
    ("generator", "config", "text", "where", "lines"),
    [
        (initramfs_tools, TOOLS, "MODULES=most\n", TOOLS_CONTENT, ["MODULES=dep"]),
        (initramfs_tools, TOOLS, "COMPRESS=gzip\n", TOOLS_CONTENT, ["MODULES=dep"]),
        (initramfs_tools, TOOLS, "MODULES=dep\n", "", []),
        (
            dracut,
            DRACUT,
            "compress=gzip\n",
            DRACUT_CONTENT,
            ['hostonly="yes"', 'omit_drivers+=" b_a radeon "'],
        ),
        (
            dracut,
            DRACUT,
            "hostonly=yes\n",
            DRACUT_CONTENT,
            ['hostonly_mode="strict"', 'omit_drivers+=" b_a radeon "'],
        ),
        (
            dracut,
            DRACUT,
            "hostonly=yes\nhostonly_mode=strict\n",
            DRACUT_CONTENT,
            ['omit_drivers+=" b_a radeon "'],
        ),
        (
            mkinitcpio,
            MKINITCPIO,
            "HOOKS=(base udev kms plymouth block)\n",
            MKINITCPIO_CONTENT,
            [
                "HOOKS=(base udev autodetect kms plymouth block)",
                "HOOKS=(base udev plymouth block)",
                "HOOKS=(base udev kms block)",
            ],
        ),
        (mkinitcpio, MKINITCPIO, "HOOKS=(base autodetect microcode block)\n", "", []),
        (
            mkinitcpio,
            MKINITCPIO,
            "HOOKS=(base microcode udev autodetect block)\n",
            MKINITCPIO_CONTENT,
            ["HOOKS=(base udev autodetect microcode block)"],
        ),
        (mkinitcpio, MKINITCPIO, 'HOOKS="base;reboot kms"\n', "", []),
        (mkinitcpio, MKINITCPIO, "COMPRESSION=gzip\n", "", []),
        (unknown, TOOLS, "MODULES=most\n", "", []),
    ],
)
def test_only_what_is_not_so_already_is_a_variant(
    generator: Generator,
    config: str,
    text: str,
    where: str,
    lines: list[str],
    host: Host,
    write: Write,
) -> None:
    write(config, text)
    found = variants(generator, host, "radeon", "b_a", "$(reboot)")
    assert [one.line for one in found] == lines
    assert {one.path for one in found} <= {host.path(where)}
    assert all(one.text == f"{one.line}\n" for one in found)


def test_what_hooks_of_initramfs_tools_always_add_stays(host: Host, write: Write) -> None:
    write(TOOLS, "MODULES=most\n")
    write("/usr/share/initramfs-tools/hooks/cryptroot", "manual_add_modules dm_mod dm_crypt\n")
    (variant,) = variants(initramfs_tools, host)
    assert variant.leaving
    assert {"dm_crypt", "psmouse"} <= variant.leaving.besides
    assert "raid456" not in variant.leaving.besides


def test_modules_are_stored_the_other_way_round_where_they_are_installed_compressed(
    host: Host, write: Write
) -> None:
    write(f"/lib/modules/{RELEASE}/modules.dep", "kernel/a.ko.zst:\n")
    for text, line in (
        ("COMPRESSION=xz\n", 'MODULES_DECOMPRESS="yes"'),
        ("MODULES_DECOMPRESS=no\n", 'MODULES_DECOMPRESS="yes"'),
        ("MODULES_DECOMPRESS=yes\n", 'MODULES_DECOMPRESS="no"'),
    ):
        write(MKINITCPIO, text)
        assert [one.line for one in variants(mkinitcpio, host)] == [line]


@pytest.mark.parametrize(
    ("text", "omitted"),
    [
        ("hostonly=no\n", ["plymouth", "hwdb"]),
        ("hostonly=yes\n", ["plymouth"]),
        ('hostonly=yes\nadd_dracutmodules+=" hwdb "\n', ["plymouth", "hwdb"]),
        ('hostonly=no\nomit_dracutmodules+=" plymouth hwdb "\n', []),
        ('hostonly=yes\ndracutmodules+=" base hwdb "\n', ["hwdb"]),
    ],
)
def test_dracuts_own_modules_are_omitted_that_it_would_take(
    host: Host, write: Write, text: str, omitted: list[str]
) -> None:
    write(DRACUT, f"{text}hostonly_mode=strict\n")
    before = variants(dracut, host)
    for name in ("45plymouth", "95hwdb"):
        write(f"/usr/lib/dracut/modules.d/{name}/module-setup.sh", "")
    write("/usr/sbin/plymouthd", "").chmod(0o755)
    found = [one.line for one in variants(dracut, host) if one not in before]
    assert found == [f'omit_dracutmodules+=" {name} "' for name in omitted]


def test_drivers_that_are_omitted_already_are_no_variant(host: Host, write: Write) -> None:
    write(DRACUT, 'hostonly=yes\nhostonly_mode=strict\nomit_drivers+=" b-a "\n')
    assert [one.line for one in variants(dracut, host, "b_a", "c")] == ['omit_drivers+=" c "']
    assert variants(dracut, host, "b_a") == ()


def test_without_drop_ins_it_is_the_last_line_of_the_administrators_file(
    host: Host, write: Write
) -> None:
    write("/usr/bin/mkinitcpio", "declare -r version='35'\n")
    path = write(MKINITCPIO, "# ours\nHOOKS=(base kms)")
    found = variants(mkinitcpio, host)[-1]
    assert (found.path, found.text) == (path, "# ours\nHOOKS=(base kms)\nHOOKS=(base)\n")
    path.unlink()
    path.symlink_to(write("/usr/share/mkinitcpio.conf", "HOOKS=(base kms)\n"))
    with pytest.raises(UnsafeError, match="is a package's"):
        variants(mkinitcpio, host)


@pytest.mark.parametrize(("options", "kept"), [("-S autodetect", True), ("", False)])
def test_a_fallback_image_keeps_what_autodetect_drops_where_it_skips_that(
    host: Host, write: Write, options: str, kept: bool
) -> None:
    write(MKINITCPIO, "HOOKS=(base)\n")
    write(
        "/etc/mkinitcpio.d/linux.preset",
        f"PRESETS=(default fallback)\nALL_kver={RELEASE}\ndefault_image=/boot/image\n"
        f'fallback_image=/boot/fallback\nfallback_options="{options}"\n',
    )
    (only,) = variants(mkinitcpio, host)
    assert only.in_fallback is kept
