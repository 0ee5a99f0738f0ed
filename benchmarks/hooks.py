"""What our hooks add to a transaction of a package manager; the limit is 150 ms each.

    python -m benchmarks.hooks [--runs 15]

A real pacman, a real kernel-install and the run-parts of Debian's kernel packages work over this
machine's files with changes that are thrown away, by turns with our hooks and without. It takes
root, pacman, kernel-install and run-parts.
"""

from __future__ import annotations

import argparse
import io
import shutil
import statistics
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.fixtures.overlay import run_in_overlay

LIMIT_MS = 150.0
HOOKS = Path(__file__).parents[1] / "hooks"
PARTS = 300
"""Files of a generator, each of which is a target of pacman's hook, as when dracut is upgraded."""

SCRIPT = """
cd /mnt/hooks
install -D queue /mnt/ours/queue
mkdir -p /usr/lib/kernel/install.d /usr/share/libalpm/hooks /etc/initramfs/post-update.d
mkdir -p /etc/kernel/postinst.d /etc/kernel/postrm.d /usr/lib/initadvisor /var/lib/pacman/local
rm -f /etc/kernel/*/zz-update-grub /usr/lib/kernel/install.d/85-initrd.install
ours() {
    cp /mnt/hooks/queue /usr/lib/initadvisor/
    cp pacman/* /usr/share/libalpm/hooks/
    cp kernel-install/* /usr/lib/kernel/install.d/
    cp debian/kernel/postinst.d/* /etc/kernel/postinst.d/
}
without() {
    rm -f /usr/lib/initadvisor/queue /usr/share/libalpm/hooks/95-initadvisor* \
        /usr/lib/kernel/install.d/95-initadvisor* /etc/kernel/postinst.d/*initadvisor
}
pacman_() {
    pacman --config /dev/null --noconfirm --upgrade /mnt/kernel.pkg.tar
    pacman --config /dev/null --noconfirm --remove kernel
}
kernel_install() {
    kernel-install add 6.9.1 /mnt/vmlinuz
    kernel-install remove 6.9.1
}
debian() { run-parts --arg=6.9.1 --arg=/boot/vmlinuz-6.9.1 /etc/kernel/postinst.d; }
export KERNEL_INSTALL_MACHINE_ID=0123456789abcdef0123456789abcdef KERNEL_INSTALL_CONF_ROOT=/mnt/conf
mkdir -p /mnt/conf /boot/loader/entries
echo layout=bls >/mnt/conf/install.conf
echo root=/dev/sda1 >/mnt/conf/cmdline
for run in $(seq {runs}); do
    for which in without ours; do
        $which
        for what in pacman_ kernel_install debian; do
            begun=$(date +%s%N)
            $what >/dev/null 2>&1
            echo "took $what $which $(($(date +%s%N) - begun))"
        done
    done
done
ours
rm -rf /var/lib/initadvisor/queue
$what >/dev/null 2>&1
ls /var/lib/initadvisor/queue
"""


def package(path: Path) -> None:
    """Make a package with a kernel and a generator of many files."""
    info = "pkgname = kernel\npkgver = 1-1\npkgdesc = a kernel\narch = any\nsize = 0\n"
    names = ["usr/lib/modules/6.9.1/vmlinuz"]
    names += [f"usr/lib/dracut/part{number}" for number in range(PARTS)]
    with tarfile.open(path, "w") as archive:
        for name, content in {".PKGINFO": info, **dict.fromkeys(names, "content")}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content.encode()))


def main() -> None:
    """Measure and print; fails where a hook takes too long."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        shutil.copytree(HOOKS, work / "hooks")
        (work / "vmlinuz").write_text("a kernel")
        package(work / "kernel.pkg.tar")
        said = run_in_overlay(SCRIPT.replace("{runs}", str(runs)), work)
    if not said.endswith("kernel-added@6.9.1\n"):
        sys.exit(f"the hooks have noted nothing:\n{said[-500:]}")
    times: dict[tuple[str, str], list[float]] = {}
    for line in said.splitlines():
        if line.startswith("took "):
            _, what, which, ns = line.split()
            times.setdefault((what.strip("_"), which), []).append(int(ns) / 1e6)
    slow = False
    for what, calls in (("pacman", 2), ("kernel_install", 2), ("debian", 1)):
        before, after = times[what, "without"], times[what, "ours"]
        added = [(b - a) / calls for a, b in zip(before, after, strict=True)]
        middle = statistics.median(added)
        slow |= middle > LIMIT_MS
        print(
            f"{what:15} {statistics.median(before) / calls:7.1f} ms without, "
            f"{statistics.median(after) / calls:7.1f} ms with: {middle:+6.1f} ms "
            f"({min(added):+.1f} to {max(added):+.1f}) a transaction, {len(added)} pairs"
        )
    print(f"within the limit of {LIMIT_MS:.0f} ms: {'NO' if slow else 'yes'}")
    sys.exit(1 if slow else 0)


if __name__ == "__main__":
    main()
