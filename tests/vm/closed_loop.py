"""The loop that closes by itself: a kernel is upgraded, and from then on a guest is only rebooted.

initadvisor is enabled with the policy ``apply``. Where there is pacman it is installed as the
package that makepkg builds.
"""

from __future__ import annotations

import shlex
import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fixtures.arch_package import built_package, information_of
from tests.fixtures.cache import made_once
from tests.vm import arch, secure_boot
from tests.vm.boot import End, Then, boot, running
from tests.vm.entries import default_entry
from tests.vm.filesystems import Vfat, read, write
from tests.vm.guest import Generator, Loader, Recipe, guest
from tests.vm.installed import CHECKOUT, WHERE, compiled
from tests.vm.loop_boots import GOES_ON, WATCHDOG, Told, left
from tests.vm.loop_faults import change_armed_image, damage
from tests.vm.loop_guest import (
    KERNEL_PACKAGE,
    NEXT_KERNEL_PACKAGE,
    kernel_package,
    prepared,
    prepared_with_dracut,
    put_advisors,
)
from tests.vm.loop_scripts import (
    AT_REST,
    DPKG_ON_FAT,
    IN_PLACE,
    RECORDED,
    SEEN,
    apply_unproven,
    look,
)
from tests.vm.machine import Bus, Machine
from tests.vm.outside_engine import with_engine
from tests.vm.unified import IMAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tests.vm.boot import Boot
    from tests.vm.guest import Guest
    from tests.vm.unified import Unified

SLOW_BYTES_PER_S = 1_200_000
"""A disk so slow that the host's other work makes no difference to what suits it."""
SETTINGS = ("lz4", "zstd")
"""What is tried, where a test does not say otherwise."""
BEFORE = "xz -0"
"""Which suits neither a slow disk nor a fast one."""
_ROOT = "root=/dev/vda"
_PACKAGES = "/root/packages"
_UNITS = "/etc/systemd/system"
_DAEMON_TIMER = "[Timer]\nOnActiveSec=\nOnActiveSec=1s\nAccuracySec=1s\n"
_DAEMON = "[Unit]\nAfter=initadvisor-measure.service initadvisor-settle.service\n"
_CONTENT = {
    Generator.INITRAMFS_TOOLS: (
        "/etc/initramfs-tools/hooks/content",
        """\
#!/bin/sh
[ "$1" != prereqs ] || exit 0
. /usr/share/initramfs-tools/hook-functions
copy_exec /usr/bin/python3
copy_exec /usr/lib/x86_64-linux-gnu/libcrypto.so.3
""",
    ),
    Generator.DRACUT: (
        "/etc/dracut.conf.d/content.conf",
        'install_items="/usr/bin/python3 /usr/lib/x86_64-linux-gnu/libcrypto.so.3"\n',
    ),
}
"""More content, so that how it is compressed makes a difference to what is read of a slow disk."""
_ENABLE = "initadvisor enable --yes --policy "
_WORKED = f"""
while sleep 10; do
    now=$(systemctl show -P StatusText initadvisord.service)
    [ "$now" = "${{before-}}" ] || echo "the daemon: $now"
    before=$now
done &
telling=$!
{RECORDED}
until is_done initadvisord.service; do sleep 3; done
{AT_REST}
until [ "$(systemctl show -P ActiveState initadvisor-settle.service)" = inactive ]; do sleep 3; done
kill $telling
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """What there was to see: in the boot that upgraded the kernel, and at the end of each after.

    ``failed``: before ``boots``, up to the one after that of a candidate that panics. ``again``: in
    the boot that upgraded it once more, and in the next. ``back``: in the boot after the one in
    which somebody takes the change back.
    """

    upgraded: Told
    boots: tuple[Told, ...]
    failed: tuple[Told, ...] = ()
    again: tuple[Told, ...] = ()
    back: Told | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """How a generator's guest gets its kernels."""

    prepared: Callable[[Path, Sequence[str], tuple[str, ...]], Guest]
    """Return one that was never booted, with today's setting, what to try and more packages."""
    enable: Callable[[str], str]
    """Return the commands of a person who enables initadvisor with a policy."""
    upgrade: str
    upgrade_again: str


def closed(
    generator: Generator,
    directory: Path,
    read_bytes_per_s: int | None,
    *,
    most_boots: int,
    settings: Sequence[str] = SETTINGS,
    again: bool = False,
    faulty: bool = False,
    unified: Unified | None = None,
) -> Closed:
    """Have a guest upgrade its kernel, and reboot it until it has changed its setting.

    ``read_bytes_per_s``: of the disk that its images are on, None for as fast as it goes.
    ``again``: have it upgrade its kernel once more then, reboot it once, and take the change back.
    ``faulty``: damage the first candidate that it is to boot, once. ``unified``: it boots a unified
    kernel image.
    """
    loop = ClosedLoop.begun(generator, directory, read_bytes_per_s, settings, unified=unified)
    upgraded = loop.upgrade()
    failed = loop.until_failed(upgraded, most_boots=most_boots) if faulty else ()
    boots = loop.until_configured((upgraded, *failed)[-1], most_boots=most_boots)
    more = (loop.upgrade_again(), loop.go_back()) if again else ()
    back = loop.reboot() if again else None
    return Closed(upgraded=upgraded, boots=boots, failed=failed, again=more, back=back)


@dataclass(slots=True, kw_only=True)
class ClosedLoop:
    """A guest, and how it is booted; ``logs`` is where the console's lines go."""

    guest: Guest
    logs: Path
    machine: Machine
    unified: Unified | None = None
    boots: int = field(default=0)

    @classmethod
    def begun(
        cls,
        generator: Generator,
        directory: Path,
        read_bytes_per_s: int | None,
        settings: Sequence[str] = SETTINGS,
        *,
        unified: Unified | None = None,
    ) -> ClosedLoop:
        """Return a guest that was never booted, except to make its unified kernel image."""
        also = unified.packages if unified else ()
        copy = _WAYS[generator].prepared(directory / "guest", settings, also)
        _have_root_beside(copy)
        if unified and unified.secure_boot:
            secure_boot.put_keys(copy)
        root = copy.disk.root
        if read_bytes_per_s is not None and generator in _CONTENT:
            path, text = _CONTENT[generator]
            write(root, path, text, mode=0o755)
        write(root, "/etc/modules-load.d/disk.conf", "nvme\n")
        write(root, f"{_UNITS}/initadvisord.timer.d/soon.conf", _DAEMON_TIMER)
        write(root, f"{_UNITS}/initadvisord.service.d/last.conf", _DAEMON)
        # By virtio a loader reads all of a file at once, and what one request takes QEMU holds back
        # the next for: how long a file takes would be a matter of what is read after it. By NVMe
        # no request is larger than 512 KiB.
        machine = Machine(
            bare_metal=True,
            bus=Bus.NVME,
            root_beside=True,
            read_bytes_per_s=read_bytes_per_s,
            also=WATCHDOG,
        )
        machine = with_engine(machine)
        loop = cls(guest=copy, logs=directory, machine=machine, unified=unified)
        if unified:
            boot(copy, machine, script=unified.script, log=loop._log())
            if unified.secure_boot:
                loop.guest = secure_boot.turn_on(copy, "/boot")
        return loop

    def copied_to(self, directory: Path) -> ClosedLoop:
        """Return another guest that goes on from here."""
        directory.mkdir(exist_ok=True)
        return replace(self, guest=self.guest.copied_to(directory / "guest"), logs=directory)

    def upgrade(self) -> Told:
        """Boot, enable initadvisor, and have the kernel upgraded."""
        way = self._way
        return self.reboot(f"{way.enable('apply')}\n{way.upgrade}\n{_WORKED}")

    def apply(self, setting: str) -> Told:
        """Boot, have initadvisor change nothing by itself, and apply a setting."""
        return self.reboot(f"{self._way.enable('advise')}\n{apply_unproven(setting)}")

    def upgrade_again(self) -> Told:
        """Boot, and have the kernel upgraded when there is nothing more to do."""
        return self.reboot(f"{_WORKED}\n{self._way.upgrade_again}\n{AT_REST}")

    def upgrade_at_once(self) -> Told:
        """Boot, and have the kernel upgraded while it is found out how that boot went."""
        return self.reboot(f"{self._way.upgrade_again}\n{_WORKED}")

    def until_armed(self, told: Told, *, most_boots: int) -> tuple[Told, ...]:
        """Boot until the next boot is a candidate's."""
        boots: list[Told] = []
        while len(boots) < most_boots and not _is_candidates(told):
            told = self.reboot()
            boots.append(told)
        assert _is_candidates(told), told.look["said"]
        return tuple(boots)

    def until_failed(self, told: Told, *, most_boots: int) -> tuple[Told, ...]:
        """Boot until a candidate was damaged, has panicked, and the default entry has booted."""
        boots = self.until_armed(told, most_boots=most_boots)
        change_armed_image(self.guest, damage)
        assert self.fail().end is End.PANIC
        return (*boots, self.reboot())

    def until_configured(self, told: Told, *, most_boots: int) -> tuple[Told, ...]:
        """Boot until the configuration is not what it was in ``told``."""
        before = told.look["configuration"]
        boots: list[Told] = []
        while len(boots) < most_boots and told.look["configuration"] == before:
            told = self.reboot()
            boots.append(told)
        return tuple(boots)

    def go_back(self) -> Told:
        """Boot, look, and take the last change back."""
        return self.reboot(after=f"initadvisor rollback --confirm\n{AT_REST}")

    def reboot(self, script: str = _WORKED, *, after: str = "", hangs: bool = False) -> Told:
        """Boot, do that, look, and do what comes after; what ``hangs`` comes back by itself."""
        done = boot(
            self.guest,
            replace(self.machine, also=(*self.machine.also, *GOES_ON)) if hangs else self.machine,
            script=script
            + look(SEEN, self.guest.recipe.generator, image=IMAGES if self.unified else None)
            + after,
            then=Then.POWER_OFF if hangs else Then.REBOOT,
            log=self._log(),
        )
        return Told(boot=done, look=left(self.guest, SEEN))

    def fail(self) -> Boot:
        """Boot what does not come up, and ends by itself."""
        return boot(self.guest, self.machine, log=self._log())

    def cut(self, word: str) -> Boot:
        """Boot, and cut the power when the machine has said a word."""
        with running(self.guest, self.machine, log=self._log()) as started:
            started.wait_for(word)
            started.kill()
            return started.wait_for_end()

    @property
    def _way(self) -> _Way:
        return _WAYS[self.guest.recipe.generator]

    def _log(self) -> Path:
        self.boots += 1
        return self.logs / f"boot-{self.boots}.log"


def armed(told: Told) -> dict[str, Any] | None:
    """Return what the next boot is of, by a campaign or to prove a setting: stage and setting."""
    if told.look["campaign"] and (found := told.armed):
        return {"stage": found["armed_boot"]["stage"], "setting": found["setting"]}
    for transaction in told.look["transactions"]:
        if transaction["state"] == "proving":
            stage = transaction["armed_boot"]["stage"]
            return {"stage": stage, "setting": transaction["setting"]["after"]}
    return None


def _is_candidates(told: Told) -> bool:
    found = armed(told)
    return found is not None and found["stage"] != "rehearsal" and found["setting"] in SETTINGS


def _have_root_beside(copy: Guest) -> None:
    """Have everything in a guest name the disk that is the root file system alone."""
    root, esp = copy.disk.root, copy.disk.files("/boot")
    partition = f"PARTUUID={copy.disk.partition('/').guid}"
    places = (
        (root, "/etc/fstab", f"{partition} / ", "/dev/vda / "),
        (root, "/etc/kernel/cmdline", f"root={partition}", _ROOT),
        (esp, f"/loader/entries/{default_entry(copy)}", f"root={partition}", _ROOT),
    )
    for files, path, before, after in places:
        text = read(files, path).decode()
        assert before in text
        write(files, path, text.replace(before, after))


def _with_pacman(directory: Path, settings: Sequence[str], also: tuple[str, ...]) -> Guest:
    copy = guest(Recipe(generator=Generator.MKINITCPIO, also=also)).copied_to(directory)
    root = copy.disk.root
    put_advisors(copy, settings)
    text = read(root, arch.CONFIGURATION).decode()
    assert "COMPRESSION=lz4\n" in text
    today = "COMPRESSION=xz\nCOMPRESSION_OPTIONS=(-0)\n"
    write(root, arch.CONFIGURATION, text.replace("COMPRESSION=lz4\n", today))
    root.put(
        {
            f"{_PACKAGES}/linux.pkg.tar": arch.kernel_package(copy.recipe.suite, 2),
            f"{_PACKAGES}/linux-next.pkg.tar": arch.kernel_package(copy.recipe.suite, 3),
            f"{_PACKAGES}/initadvisor.pkg.tar": _package(),
        }
    )
    # Compiled by the guest's Python; the package has what the host's has compiled.
    python = compiled(copy.recipe.suite)
    root.put({f"{WHERE}/{path.relative_to(python)}": path for path in python.rglob("*.pyc")})
    return copy


def _enable_with_pacman(policy: str) -> str:
    depends = information_of(_package())["depend"]
    assumed = shlex.join(f"--assume-installed={name}" for name in depends)
    return f"""
pacman --noconfirm {assumed} --upgrade {_PACKAGES}/initadvisor.pkg.tar
systemctl daemon-reload
{_ENABLE}{policy}
"""


def _with_dpkg(directory: Path, settings: Sequence[str], also: tuple[str, ...]) -> Guest:
    copy = prepared(Loader.SYSTEMD_BOOT, directory, settings, also=also)
    copy.disk.root.put({NEXT_KERNEL_PACKAGE: kernel_package(copy, 2)})
    return copy


def _with_kernel_install(directory: Path, settings: Sequence[str], also: tuple[str, ...]) -> Guest:
    """Return one whose entry loads the image where dracut's plugin has it put."""
    copy = prepared_with_dracut(Loader.SYSTEMD_BOOT, directory, settings, also=also)
    root, esp = copy.disk.root, copy.disk.files("/boot")
    write(root, "/etc/kernel/install.conf", "layout=bls\ninitrd_generator=dracut\n")
    entry, where = f"/loader/entries/{default_entry(copy)}", f"/debian/{copy.release}"
    image = f"{where}/{copy.recipe.image_name.format(release=copy.release)}"
    text = read(esp, entry).decode()
    assert image in text
    write(esp, entry, text.replace(image, f"{where}/initrd"))
    esp.put({f"{where}/initrd": copy.initrd})
    assert isinstance(esp, Vfat)
    esp.remove(image)
    root.put({NEXT_KERNEL_PACKAGE: kernel_package(copy, 2)})
    return copy


_WAYS = {
    Generator.MKINITCPIO: _Way(
        prepared=_with_pacman,
        enable=_enable_with_pacman,
        upgrade=f"pacman --noconfirm --upgrade {_PACKAGES}/linux.pkg.tar",
        upgrade_again=f"pacman --noconfirm --upgrade {_PACKAGES}/linux-next.pkg.tar",
    ),
    Generator.INITRAMFS_TOOLS: _Way(
        prepared=_with_dpkg,
        enable=lambda policy: f"{IN_PLACE}\nmodprobe i6300esb\n{_ENABLE}{policy}",
        upgrade=f"{DPKG_ON_FAT}\ndpkg -i {KERNEL_PACKAGE}",
        upgrade_again=f"{DPKG_ON_FAT}\ndpkg -i {NEXT_KERNEL_PACKAGE}",
    ),
    # Debian's hook has the image in /boot, and a plugin of its systemd, 55-initrd.install, adds
    # what lies there; without both, systemd-boot's hook has dracut's plugin make the image.
    Generator.DRACUT: _Way(
        prepared=_with_kernel_install,
        enable=lambda policy: (
            f"rm -f /etc/kernel/postinst.d/dracut /boot/initrd.img-*\n{_ENABLE}{policy}"
        ),
        upgrade=f"{DPKG_ON_FAT}\ndpkg -i {KERNEL_PACKAGE}",
        upgrade_again=f"{DPKG_ON_FAT}\ndpkg -i {NEXT_KERNEL_PACKAGE}",
    ),
}


def _package() -> Path:
    """Return the package of this checkout."""

    def make(target: Path) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            shutil.copy(built_package(Path(scratch)), target)

    names = ("initadvisor", "hooks", "systemd", "packaging", "tools", "man", "completions", "docs")
    files = [CHECKOUT / "Makefile", CHECKOUT / "pyproject.toml"]
    for name in names:
        files += sorted(path for path in (CHECKOUT / name).rglob("*") if path.is_file())
    texts = [path.read_text(errors="replace") for path in files if path.suffix != ".pyc"]
    return made_once("arch-package", texts, make)
