"""Which of several installed generators makes the images, and which systems are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.core.settings import Setting
from initadvisor.generators import InstalledImage, unknown
from initadvisor.generators.detect import GENERATORS, detect_generator, generator_of_image

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host
    from tests.fixtures.hosts import Install, Write

_HOOK = "/usr/share/libalpm/hooks/90-mkinitcpio-install.hook"


def _name(host: Host) -> str | None:
    generator = detect_generator(host)
    return generator.NAME if generator else None


def test_an_empty_machine_has_none(host: Host) -> None:
    assert _name(host) is None


def test_the_only_one_installed_it_is(host: Host, install: Install) -> None:
    install("dracut")
    assert _name(host) == "dracut"


def test_debians_kernel_hook_decides_against_dracut_core(
    host: Host, install: Install, write: Write
) -> None:
    install("dracut", "update-initramfs", "mkinitramfs")
    install("update-initramfs", "mkinitramfs", directory="/usr/sbin")
    write("/usr/lib/kernel/install.d/50-dracut.install", "").chmod(0o755)
    write("/etc/kernel/postinst.d/initramfs-tools", "").chmod(0o755)
    assert _name(host) == "initramfs-tools"


def test_a_hook_left_behind_by_a_removed_package_decides_nothing(
    host: Host, install: Install, write: Write
) -> None:
    install("dracut")
    write("/etc/kernel/postinst.d/initramfs-tools", "").chmod(0o755)
    write("/etc/kernel/postinst.d/dracut", "").chmod(0o755)
    assert _name(host) == "dracut"


def test_on_arch_mkinitcpios_hook_decides_until_it_is_masked(
    host: Host, install: Install, write: Write
) -> None:
    install("mkinitcpio", "dracut")
    write(_HOOK, "[Trigger]\n")
    write("/etc/mkinitcpio.d/linux.preset", "")
    write("/usr/lib/kernel/install.d/50-dracut.install", "").chmod(0o755)
    assert _name(host) == "mkinitcpio"
    mask = host.path("/etc/pacman.d/hooks/90-mkinitcpio-install.hook")
    mask.parent.mkdir(parents=True)
    mask.symlink_to("/dev/null")
    assert _name(host) == "dracut"


def test_a_masked_kernel_install_plugin_does_not_count(
    host: Host, install: Install, write: Write
) -> None:
    install("mkinitcpio", "dracut")
    for name in ("50-dracut.install", "50-mkinitcpio.install"):
        write(f"/usr/lib/kernel/install.d/{name}", "").chmod(0o755)
    assert _name(host) == "dracut"
    mask = host.path("/etc/kernel/install.d/50-dracut.install")
    mask.parent.mkdir(parents=True)
    mask.symlink_to("/dev/null")
    assert _name(host) == "mkinitcpio"


def test_kernel_installs_configuration_decides_first(
    host: Host, install: Install, write: Write
) -> None:
    install("mkinitcpio", "dracut")
    write(_HOOK, "[Trigger]\n")
    write("/etc/mkinitcpio.d/linux.preset", "")
    write("/usr/lib/kernel/install.conf", "initrd_generator=mkinitcpio\n")
    write("/etc/kernel/install.conf", "layout=bls\n#initrd_generator=mkinitcpio\n")
    write("/usr/lib/kernel/install.conf.d/50-x.conf", "initrd_generator=dracut\n")
    assert _name(host) == "dracut"
    write("/etc/kernel/install.conf.d/50-x.conf", "initrd_generator='mkinitcpio'\n")
    assert _name(host) == "mkinitcpio"


@pytest.mark.parametrize(
    ("mark", "words"),
    [("/run/ostree-booted", "ostree"), ("/ostree/repo", "ostree"), ("/etc/NIXOS", "NixOS")],
)
def test_systems_made_another_way_are_refused_with_the_reason(
    host: Host, install: Install, write: Write, mark: str, words: str
) -> None:
    install("dracut")
    write(mark, "")
    with pytest.raises(UnsafeError, match=words):
        detect_generator(host)


def test_booster_alone_is_refused_but_not_beside_another(host: Host, install: Install) -> None:
    install("booster")
    with pytest.raises(UnsafeError, match="booster"):
        detect_generator(host)
    install("mkinitcpio")
    assert _name(host) == "mkinitcpio"


def test_the_generator_of_an_image_is_found_by_name() -> None:
    for generator in GENERATORS:
        assert generator_of_image(generator.NAME) is generator
    assert generator_of_image(None) is unknown
    assert generator_of_image("booster") is unknown


@pytest.mark.parametrize("codec", Codec)
def test_without_a_generator_command_lines_are_what_the_kernel_accepts(
    host: Host, codec: Codec
) -> None:
    argv = unknown.compressor(host, Setting(codec))
    assert argv[0] == codec.value
    assert ("-l" in argv) is (codec is Codec.LZ4)
    assert ("--check=crc32" in argv) is (codec is Codec.XZ)
    assert unknown.default_level(host, Setting(codec)) == codec.spec.level
    assert unknown.unusable(host, Setting(codec)) is None


def test_without_a_generator_nothing_is_configured_or_built(host: Host, tmp_path: Path) -> None:
    assert unknown.images(host) == ()
    assert unknown.context(host) == ()
    assert unknown.version(host) is None
    assert not unknown.detect(host)
    assert not unknown.needs_own_uncompressed(host)
    with pytest.raises(InitadvisorError, match="no generator"):
        unknown.configured(host, "6.1")
    image = InstalledImage(path=tmp_path / "i", kernel_release="6.1")
    with pytest.raises(UnsafeError):
        unknown.build_uncompressed(host, image, tmp_path / "t")
