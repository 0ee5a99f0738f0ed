"""Real ukify makes today's unified kernel image anew with another initramfs, and nothing else."""

from __future__ import annotations

import os
import ssl
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import UnfitImageError, UnsafeError
from initadvisor.firmware.signers import signers
from initadvisor.generators import InstalledImage, running, ukify
from initadvisor.host import Host
from initadvisor.image.pe import read_uki, sections_of_uki
from tests.fakes.installed import InstalledRunner
from tests.fixtures.cache import hard_linked_copy
from tests.fixtures.debian import Suite, debian
from tests.fixtures.namespace import Tree
from tests.fixtures.signing import make_signer
from tests.fixtures.small_images import guarded_image

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.tools

_TODAY, _NEW = (guarded_image(64, codec=codec) for codec in (Codec.GZIP, Codec.ZSTD))
_WORDS = ("initadvisor.trial=t-1", "panic=30", "--", "-c", '": >/dev/null; exec /init"')
_COMMAND_LINE = "root=UUID=7 ro quiet"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A Debian with ukify, a stub and a kernel."""
    monkeypatch.setattr(running, "require_installed_system", lambda _host, _name: None)
    also = ("systemd-ukify", "systemd-boot-efi", "sbsigntool")
    tree = debian(Suite.TRIXIE, also=also)
    root, work = tmp_path / "system", tmp_path / "staging"
    hard_linked_copy(tree.root, root)
    work.mkdir()
    for name in ("etc/kernel", "boot/EFI/Linux"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "etc/kernel/cmdline").write_text(f"{_COMMAND_LINE}\n")
    copy = Tree(root=root, release=tree.release)
    return Host(root=root, runner=InstalledRunner(tree=copy, work=work))


def installed(host: Host) -> InstalledImage:
    """Return the UKI that is installed."""
    assert isinstance(host.runner, InstalledRunner)
    release = host.runner.tree.release
    path = host.path(f"/boot/EFI/Linux/debian-{release}.efi")
    return InstalledImage(path=path, kernel_release=release, uki=True)


def made_by_kernel_install(host: Host, image: InstalledImage, initramfs: Path) -> None:
    """Have kernel-install itself make it, with all its plugins."""
    assert isinstance(host.runner, InstalledRunner)
    (host.root / "etc/kernel/install.conf").write_text("layout=uki\n")
    kernel = f"/boot/vmlinuz-{image.kernel_release}"
    boot = initramfs.with_name("boot")
    boot.mkdir()
    env = {"BOOT_ROOT": str(boot), "MACHINE_ID": "1" * 32}
    words = ("kernel-install", "--entry-token=literal:debian", "add")
    host.runner.run([*words, image.kernel_release, kernel, initramfs], timeout_s=60, env=env)
    (made,) = boot.glob("EFI/Linux/*.efi")
    assert made.name == image.path.name
    made.rename(image.path)


def made_by_ukify(host: Host, image: InstalledImage, initramfs: Path) -> None:
    """Have ukify make it as mkinitcpio has it."""
    assert isinstance(host.runner, InstalledRunner)
    made = initramfs.with_name("made")
    argv = (
        *("ukify", "build", f"--uname={image.kernel_release}", "--os-release=@/etc/os-release"),
        *("--cmdline=@/etc/kernel/cmdline", f"--linux=/boot/vmlinuz-{image.kernel_release}"),
        *(f"--initrd={initramfs}", f"--output={made}"),
    )
    host.runner.run(argv, timeout_s=60)
    made.rename(image.path)


@pytest.mark.parametrize("make", [made_by_kernel_install, made_by_ukify])
def test_only_the_initramfs_becomes_another(
    host: Host, make: Callable[[Host, InstalledImage, Path], None]
) -> None:
    assert isinstance(host.runner, InstalledRunner)
    image, work = installed(host), host.runner.work
    today, new, target = (work / name for name in ("today", "new", "target"))
    today.write_bytes(_TODAY)
    new.write_bytes(_NEW)
    make(host, image, today)
    ukify.unify(host, image, today, target)
    assert target.read_bytes() == image.path.read_bytes()
    ukify.unify(host, image, new, target)
    data = target.read_bytes()
    with target.open("rb") as file:
        found = read_uki(file, len(data))
        names = {name for name, _ in sections_of_uki(file, len(data))}
        assert {".linux", ".cmdline", ".osrel", ".uname"} <= names
    part = found.initrd
    assert data[part.offset : part.offset + part.size_bytes] == _NEW
    assert (found.command_line or "").split() == _COMMAND_LINE.split()
    (host.root / "etc/kernel/cmdline").write_text("root=UUID=8\n")
    if make is made_by_kernel_install:
        with pytest.raises(UnfitImageError, match=r"another \.cmdline than it has"):
            ukify.unify(host, image, new, target)


_CONFIGURATION = """\
[UKI]
# Of the image alone.
Cmdline=root=UUID=9
OSRelease=NAME=another
SecureBootPrivateKey=/mnt/owner.key
SecureBootCertificate=/mnt/owner.pem
[PCRSignature:all]
PCRPrivateKey=/mnt/no.key
"""


def test_an_addon_has_the_words_alone_and_is_signed_as_the_image_is(host: Host) -> None:
    assert isinstance(host.runner, InstalledRunner)
    image, work = installed(host), host.runner.work
    owner = make_signer(work, "owner")
    certificate = ssl.DER_cert_to_PEM_cert(owner.certificate)
    (work / "owner.pem").write_text(certificate)
    configuration = host.root / "etc/kernel/uki.conf"
    configuration.write_text(_CONFIGURATION.partition("[PCR")[0])
    today, target = work / "today", work / "words.addon.efi"
    today.write_bytes(_TODAY)
    made_by_kernel_install(host, image, today)
    configuration.write_text(_CONFIGURATION)
    assert ukify.can_sign(host)
    ukify.make_addon(host, _WORDS, target)
    with target.open("rb") as file:
        sections = dict(sections_of_uki(file, file.seek(0, os.SEEK_END)))
        part = sections[".cmdline"]
        file.seek(part.offset)
        assert file.read(part.size_bytes).rstrip(b"\0") == " ".join(_WORDS).encode()
    assert sections.keys() & {".osrel", ".pcrsig", ".pcrpkey", ".linux", ".initrd"} == set()
    here = Host()
    assert signers(here, target) == signers(here, image.path) == {owner.sha256}


def test_without_a_key_there_is_no_addon(host: Host, tmp_path: Path) -> None:
    (host.root / "etc/kernel/uki.conf").write_text("[UKI]\nSecureBootSigningTool=sbsign\n")
    with pytest.raises(UnsafeError, match="names no key"):
        ukify.make_addon(host, _WORDS, tmp_path / "addon")
    (host.root / "etc/kernel/uki.conf").write_text("Cmdline\n")
    with pytest.raises(UnsafeError, match=r"cannot read /etc/kernel/uki.conf: .* no section"):
        ukify.can_sign(host)
