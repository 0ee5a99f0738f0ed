"""Installs Debian into archives: one of the root file system, one of what was in its /boot."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from tests.fixtures.cache import made_once
from tests.vm.debian import mmdebstrap

if TYPE_CHECKING:
    from pathlib import Path

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
_INITRAMFS_SCRIPTS = "/etc/initramfs-tools/scripts/init-top"
_FEW_EVENTS = """\
#!/bin/sh
[ "$1" != prereqs ] || exit 0
SYSTEMD_LOG_LEVEL=notice /usr/lib/systemd/systemd-udevd --daemon --resolve-names=never
udevadm trigger --type=devices --action=add \\
    --subsystem-match=pci --subsystem-match=virtio --subsystem-match=usb \\
    --subsystem-match=scsi --subsystem-match=block
udevadm settle
"""
"""Instead of initramfs-tools' own, which has udev look at each of 64 virtual terminals and the
like: a third of the time from /init to the root file system.
"""
_BEFORE_PACKAGES = (
    # A host-only image would be one for the machine that builds the guest.
    'mkdir -p "$1/etc/dracut.conf.d"',
    'echo \'hostonly="no"\' >"$1/etc/dracut.conf.d/guest.conf"',
    f'mkdir -p "$1{_INITRAMFS_SCRIPTS}"',
    f'printf %s {shlex.quote(_FEW_EVENTS)} >"$1{_INITRAMFS_SCRIPTS}/udev"',
    f'chmod 755 "$1{_INITRAMFS_SCRIPTS}/udev"',
)
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


def bootstrapped(suite: Suite, packages: tuple[str, ...]) -> Path:
    """Return a directory with ``root.tar`` and, of what it lacks, ``boot.tar``."""
    hooks = (
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in _LEFT_OUT),
        *(f"--essential-hook={hook}" for hook in _BEFORE_PACKAGES),
        *(f"--customize-hook={hook}" for hook in _AFTER_PACKAGES),
    )

    def make(target: Path) -> None:
        target.mkdir()
        parting = (
            f"--customize-hook=tar-out /boot {target}/boot.tar",
            '--customize-hook=rm -rf "$1"/boot/*',
        )
        mmdebstrap(suite, target / "root.tar", packages, *hooks, *parting, variant="minbase")

    return made_once(f"guest-root-{suite}", (suite, *packages, *hooks), make)
