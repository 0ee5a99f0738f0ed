"""What makes a Debian one whose kernels pacman installs, with images that mkinitcpio makes."""

from __future__ import annotations

import hashlib
import io
import shlex
import tarfile
from typing import TYPE_CHECKING

from tests.fixtures.cache import made_once
from tests.fixtures.debian import debian
from tests.fixtures.mkinitcpio import install_mkinitcpio, mkinitcpio_source

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.fixtures.debian import Suite

NOT_UPGRADED = (
    *("drivers/comedi", "drivers/hid", "drivers/infiniband", "drivers/leds", "drivers/md"),
    *("drivers/net/ethernet", "drivers/scsi", "drivers/target", "drivers/thermal", "drivers/xen"),
    *("fs/btrfs", "fs/ceph", "fs/nfs", "fs/nfsd", "fs/smb", "fs/xfs"),
    *("net/bridge", "net/ceph", "net/dccp", "net/ipv4", "net/ipv6", "net/l2tp", "net/netfilter"),
    *("net/openvswitch", "net/sched", "net/sunrpc", "net/vmw_vsock"),
)
"""Modules that no guest here has a use for; depmod looks into each."""

CONFIGURATION = "/etc/mkinitcpio.conf"
_CONFIG = """\
MODULES=(virtio_pci virtio_blk ext4)
BINARIES=()
# Content, so that how it is compressed makes a difference.
FILES=(/usr/lib/x86_64-linux-gnu/libcrypto.so.3 /usr/bin/python3)
HOOKS=(base)
COMPRESSION=lz4
"""
_SCRIPTS = ("libalpm/hooks/60-mkinitcpio-remove.hook", "libalpm/hooks/90-mkinitcpio-install.hook")


def kernel_release(suite: Suite) -> str:
    """Return the release of the kernel that is packaged."""
    return debian(suite).release


def kernel_package(suite: Suite, revision: int) -> Path:
    """Return Debian's kernel as a package of pacman's, ``linux``, laid out as Arch's are."""
    tree = debian(suite)

    def make(target: Path) -> None:
        modules = tree.root / "usr/lib/modules" / tree.release
        left_out = {modules / "kernel" / name for name in NOT_UPGRADED}
        files = {
            str(path.relative_to(tree.root)): path.read_bytes()
            for path in sorted(modules.rglob("*"))
            if path.is_file() and not left_out & {*path.parents}
        }
        where = f"usr/lib/modules/{tree.release}"
        files[f"{where}/pkgbase"] = b"linux\n"
        files[f"{where}/vmlinuz"] = (tree.root / f"boot/vmlinuz-{tree.release}").read_bytes()
        _write_package(target, "linux", f"{tree.release.partition('+')[0]}-{revision}", files)

    return made_once(f"linux-{tree.release}-{revision}", (tree.root.name, *NOT_UPGRADED), make)


def install_arch(suite: Suite) -> tuple[str, ...]:
    """Return hooks of mmdebstrap's that put mkinitcpio and a kernel into a root file system.

    pacman installs the kernel there, and its hook has mkinitcpio make the image.
    """
    source = mkinitcpio_source()
    kernel = kernel_package(suite, 1)
    names = [*_SCRIPTS, "libalpm/scripts/mkinitcpio", "mkinitcpio.d/hook.preset", "mkinitcpio"]
    names += ["functions", "init", "init_functions", "install/base"]
    contents = [(source / name).read_text() for name in names]
    digest = hashlib.sha256("\0".join([*contents, _CONFIG]).encode()).hexdigest()

    def make(target: Path) -> None:
        install_mkinitcpio(source, target)
        (target / CONFIGURATION[1:]).write_text(_CONFIG)
        places = {name: f"usr/share/{name}" for name in names[:3]}
        for name, place in {**places, names[3]: "usr/share/mkinitcpio/hook.preset"}.items():
            path = target / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes((source / name).read_bytes())
            path.chmod(0o755 if "scripts" in place else 0o644)

    files = shlex.quote(str(made_once("arch-files", (digest,), make)))
    package = "/kernel.pkg.tar"
    return (
        f'cp -r --no-preserve=ownership {files}/. "$1/"',
        'cp "$1/usr/bin/busybox" "$1/usr/lib/initcpio/busybox"',
        'mkdir -p "$1/var/lib/pacman/local"',
        f'cp {shlex.quote(str(kernel))} "$1{package}"',
        f'chroot "$1" pacman --config /dev/null --noconfirm --upgrade {package}',
        f'rm "$1{package}"',
    )


def _write_package(target: Path, name: str, version: str, files: Mapping[str, bytes]) -> None:
    """Write a package that is not compressed: an emulated machine would take minutes for that."""
    info = (
        f"pkgname = {name}\npkgbase = {name}\npkgver = {version}\npkgdesc = a kernel\n"
        "arch = any\nsize = 0\n"
    )
    with tarfile.open(target, "w") as archive:
        for path, content in {".PKGINFO": info.encode(), **files}.items():
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
