"""A guest in which everything is installed as packages would, and in which nothing is faked but the
way to QEMU: Debian's hooks, all units, and a kernel package that waits to be installed.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fixtures.cache import made_once
from tests.fixtures.debian import Suite, debian, package, program
from tests.vm.applying import boot_own_image
from tests.vm.arch import NOT_UPGRADED
from tests.vm.filesystems import read, write
from tests.vm.guest import Generator, Recipe, guest
from tests.vm.installed import install
from tests.vm.outside_engine import put_engine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.vm.guest import Guest, Loader

KERNEL_PACKAGE = "/root/linux-image.deb"
NEXT_KERNEL_PACKAGE = "/root/linux-image-next.deb"
OTHER_KERNEL_PACKAGE = "/root/linux-image-other.deb"

SLOW = "COMPRESS=xz\nCOMPRESSLEVEL=0\n"
"""So slow to unpack that no other load of the host makes up for it."""
_SLOW_BY_DRACUT = 'compress="xz --check=crc32 -0"\n'
_DRACUT = """\
dracutmodules="base dash fs-lib kernel-modules rootfs-block udev-rules"
drivers="virtio_pci virtio_blk ext4"
filesystems="ext4"
"""
"""As little as boots: without KVM, dracut takes a quarter of an hour for all that it has. Whether
it is for this machine only, who runs it decides.
"""
_UNITS = "/etc/systemd/system"
_SOON = "[Timer]\nOnActiveSec=\nOnActiveSec=1s\nAccuracySec=1s\n"
_AT_EACH_BOOT = ("initadvisor-measure", "initadvisor-settle")
_PATIENT = "[Service]\nTimeoutStartSec=1h\nRestartSec=5s\n"
"""Their own minutes are not enough for an emulated guest that gets a tenth of a processor; and what
tries again later, since another program is at work, need not wait for long.
"""
_WATCHDOG_MODULE = "i6300esb"


def prepared(
    loader: Loader,
    directory: Path,
    settings: Sequence[str],
    *,
    today: str = SLOW,
    also: tuple[str, ...] = (),
) -> Guest:
    """Return a guest that was never booted; ``directory`` does not exist yet.

    ``settings`` are the candidates, ``also`` more packages. The next image that is made is today's,
    with the setting ``today``, in the words of initramfs-tools.
    """
    copy = guest(Recipe(loader=loader, also=also)).copied_to(directory)
    boot_own_image(copy, today)
    root = copy.disk.root
    modules = read(root, "/etc/initramfs-tools/modules").decode()
    write(root, "/etc/initramfs-tools/modules", f"{modules}{_WATCHDOG_MODULE}\n")
    install(copy, hooks="kernel-install debian")
    put_advisors(copy, settings)
    root.put({KERNEL_PACKAGE: kernel_package(copy, 1)})
    return copy


def prepared_with_dracut(
    loader: Loader, directory: Path, settings: Sequence[str], *, also: tuple[str, ...] = ()
) -> Guest:
    """Return the like whose images dracut makes; who has it run is not decided yet."""
    recipe = Recipe(generator=Generator.DRACUT, loader=loader, also=also)
    copy = guest(recipe).copied_to(directory)
    write(copy.disk.root, "/etc/dracut.conf", _SLOW_BY_DRACUT)
    write(copy.disk.root, "/etc/dracut.conf.d/guest.conf", _DRACUT)
    install(copy, hooks="kernel-install debian")
    put_advisors(copy, settings)
    copy.disk.root.put({KERNEL_PACKAGE: kernel_package(copy, 1)})
    return copy


def put_advisors(copy: Guest, settings: Sequence[str]) -> None:
    """Give an installed initadvisor an engine, these candidates, and units that wait for nothing
    but their work.
    """
    put_engine(copy)
    named = ", ".join(f'"{setting}"' for setting in settings)
    write(copy.disk.root, "/etc/initadvisor.toml", f"[candidates]\nsettings = [{named}]\n")
    put_patience(copy)


def put_patience(copy: Guest) -> None:
    """Have what runs after each boot begin at once, and take its time."""
    root = copy.disk.root
    for unit in _AT_EACH_BOOT:
        write(root, f"{_UNITS}/{unit}.timer.d/soon.conf", _SOON)
        write(root, f"{_UNITS}/{unit}.service.d/patient.conf", _PATIENT)


def kernel_package(copy: Guest, revision: int) -> Path:
    """Return the package of the guest's kernel as a later revision, which is an upgrade to dpkg.

    It is not compressed, and has fewer modules: without KVM that would take longer than all the
    rest of it.
    """

    def revise(tree: Path) -> None:
        control = tree / "DEBIAN/control"
        lines = control.read_text().splitlines()
        changed = [f"{x}+b{revision}" if x.startswith("Version: ") else x for x in lines]
        assert changed != lines
        control.write_text("\n".join([*changed, ""]))

    return _repacked(copy, f"upgrade-{revision}", (), revise)


def other_kernel_package(copy: Guest) -> Path:
    """Return the like with sid's kernel, which is installed beside the guest's."""
    other = debian(Suite.SID)

    def replace(tree: Path) -> None:
        for path in (tree / "DEBIAN").iterdir():
            path.write_text(path.read_text().replace(copy.release, other.release))
        shutil.rmtree(tree / "boot")
        shutil.rmtree(tree / "usr")
        modules = f"usr/lib/modules/{other.release}"
        shutil.copytree(other.root / modules, tree / modules)
        (tree / "boot").mkdir()
        for name in ("vmlinuz", "config"):
            shutil.copy(tree / modules / name, tree / "boot" / f"{name}-{other.release}")

    return _repacked(copy, f"other-{other.release}", (other.root.name,), replace)


def _repacked(
    copy: Guest, name: str, made_of: tuple[str, ...], change: Callable[[Path], None]
) -> Path:
    original = package(Suite(copy.recipe.suite), f"linux-image-{copy.release}")

    def make(target: Path) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            tree = Path(scratch) / "tree"
            deb = program("dpkg-deb")
            subprocess.run([deb, "-R", original, tree], check=True)
            change(tree)
            (modules,) = tree.glob("usr/lib/modules/*/kernel")
            for directory in NOT_UPGRADED:
                shutil.rmtree(modules / directory, ignore_errors=True)
            build = [deb, "--root-owner-group", "-Znone", "-b", str(tree), str(target)]
            subprocess.run(build, check=True, stdout=subprocess.DEVNULL)

    made_of = (original.name, *made_of, *NOT_UPGRADED)
    return made_once(f"{name}-of-{copy.release}", made_of, make)
