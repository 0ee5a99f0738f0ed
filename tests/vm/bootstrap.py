"""Installs Debian into archives: one of the root file system, one of what was in its /boot."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fixtures.cache import made_once
from tests.vm.debian import mmdebstrap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fixtures.debian import Suite

_LEFT_OUT = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*")
_MASKED = (
    # Nothing that is tested needs these, and without KVM they are seconds of every boot.
    *("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer"),
    *("e2scrub_reap.service", "fstrim.timer", "getty@tty1.service", "serial-getty@ttyS0.service"),
    *("ldconfig.service", "systemd-binfmt.service", "systemd-hwdb-update.service"),
    *("systemd-journal-catalog-update.service", "systemd-logind.service"),
    *("modprobe@configfs.service", "modprobe@drm.service", "modprobe@fuse.service"),
    *("dev-hugepages.mount", "dev-mqueue.mount", "sys-fs-fuse-connections.mount"),
    *("sys-kernel-config.mount", "sys-kernel-debug.mount", "sys-kernel-tracing.mount"),
    *("proc-sys-fs-binfmt_misc.automount", "proc-sys-fs-binfmt_misc.mount"),
    *("getty.target", "remote-fs.target", "run-lock.mount", "tmp.mount"),
    *("kmod-static-nodes.service", "systemd-firstboot.service", "systemd-hibernate-clear.service"),
    *("systemd-machine-id-commit.service", "systemd-modules-load.service"),
    *("systemd-random-seed.service", "systemd-sysctl.service", "systemd-sysusers.service"),
    *("systemd-tmpfiles-clean.timer", "systemd-tmpfiles-setup-dev-early.service"),
    *("systemd-tmpfiles-setup-dev.service", "systemd-udev-load-credentials.service"),
    *("systemd-update-done.service", "systemd-user-sessions.service"),
    *("systemd-ask-password-console.path", "systemd-ask-password-wall.path"),
    *("systemd-bootctl.socket", "systemd-creds.socket", "systemd-hostnamed.socket"),
    *("systemd-initctl.socket", "systemd-pcrextend.socket", "systemd-pcrlock.socket"),
    "systemd-sysext.socket",
    # Writes to the ESP in every boot; what a test finds there, it put there.
    "systemd-boot-random-seed.service",
)
_GENERATOR = "systemd-fstab-generator"
"""The only one of systemd's that has something to find here."""
_INITRAMFS_TOOLS = "/usr/share/initramfs-tools"
_LEFT_OUT_OF_IMAGES = (
    *("hooks/fsck", "hooks/keymap", "hooks/resume", "hooks/thermal", "hooks/udev"),
    *("scripts/init-top/*", "scripts/init-bottom/udev", "scripts/local-premount/*"),
)
"""What would be most of an image of initramfs-tools', and of the time to make and to boot it."""
_MODULES = ("virtio_pci", "virtio_blk", "ext4")
"""What the root file system is found with."""
_HOOK = '#!/bin/sh\n[ "$1" != prereqs ] || exit 0\n'
_IN_IMAGES = {
    # A host-only image would be one for the machine that builds the guest.
    "/etc/dracut.conf.d/guest.conf": (
        f'hostonly="no"\ndrivers="{" ".join(_MODULES)}"\nfilesystems="ext4"\n'
    ),
    "/etc/initramfs-tools/conf.d/guest": "MODULES=list\n",
    f"{_INITRAMFS_TOOLS}/modules.d/guest": "".join(f"{name}\n" for name in _MODULES),
    # There is no udev to find the root file system; who has none moves the devices by himself.
    "/etc/initramfs-tools/hooks/blkid": (
        f"{_HOOK}. {_INITRAMFS_TOOLS}/hook-functions\ncopy_exec /sbin/blkid /sbin\n"
    ),
    "/etc/initramfs-tools/scripts/init-bottom/devices": (
        f'{_HOOK}mount -n -o move /dev "$rootmnt/dev"\n'
    ),
}
"""What is in them instead. What is on a PCI bus has its node when its module is loaded."""


def _written(files: dict[str, str]) -> Iterator[str]:
    """Return hooks of mmdebstrap's that write these files, which anybody may execute."""
    for path, content in files.items():
        yield f'mkdir -p "$1{Path(path).parent}"'
        yield f'printf %s {shlex.quote(content)} >"$1{path}"'
        yield f'chmod 755 "$1{path}"'


_BEFORE_PACKAGES = (*_written(_IN_IMAGES),)
_AFTER_PACKAGES = (
    f'chroot "$1" systemctl --quiet mask {" ".join(_MASKED)}',
    'chroot "$1" systemctl --quiet set-default multi-user.target',
    'mkdir -p "$1/etc/systemd/system-generators"',
    'ls "$1/usr/lib/systemd/system-generators" | '
    f"while read -r name; do [ $name = {_GENERATOR} ] || "
    'ln -s /dev/null "$1/etc/systemd/system-generators/$name"; done',
    'ln -s ../guest-agent.service "$1/etc/systemd/system/multi-user.target.wants/"',
    'touch "$1/etc/.updated" "$1/var/.updated"',
    'mkdir -p "$1/var/log/journal"',
)


def bootstrapped(
    suite: Suite,
    packages: tuple[str, ...],
    at_last: tuple[str, ...] = (),
    *,
    stock: bool = False,
) -> Path:
    """Return a directory with ``root.tar`` and, of what it lacks, ``boot.tar``.

    ``at_last`` are more hooks of mmdebstrap's, run when all packages are installed. With ``stock``
    images are what Debian's packages make them.
    """
    of_images = () if stock else _LEFT_OUT_OF_IMAGES
    left_out = (*_LEFT_OUT, *(f"{_INITRAMFS_TOOLS}/{name}" for name in of_images))
    before_packages = () if stock else _BEFORE_PACKAGES
    hooks = (
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in left_out),
        *(f"--essential-hook={hook}" for hook in before_packages),
        *(f"--customize-hook={hook}" for hook in (*_AFTER_PACKAGES, *at_last)),
    )

    def make(target: Path) -> None:
        target.mkdir()
        parting = (
            f"--customize-hook=tar-out /boot {target}/boot.tar",
            '--customize-hook=rm -rf "$1"/boot/*',
        )
        mmdebstrap(suite, target / "root.tar", packages, *hooks, *parting, variant="minbase")

    return made_once(f"guest-root-{suite}", (suite, *packages, *hooks), make)
