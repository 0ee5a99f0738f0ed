"""The loop that closes by itself: a kernel is upgraded, and from then on a guest is only rebooted.

initadvisor is installed as the package that makepkg builds, and enabled with the policy ``apply``.
"""

from __future__ import annotations

import shlex
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fixtures.arch_package import built_package, information_of
from tests.fixtures.cache import made_once
from tests.vm.arch import CONFIGURATION, kernel_package
from tests.vm.boot import Then, boot
from tests.vm.entries import default_entry
from tests.vm.filesystems import read, write
from tests.vm.guest import Generator, Recipe, guest
from tests.vm.installed import CHECKOUT, WHERE, compiled
from tests.vm.loop_boots import Told, left
from tests.vm.loop_guest import put_patience
from tests.vm.loop_scripts import AT_REST, RECORDED, SEEN, look
from tests.vm.machine import Machine
from tests.vm.outside_engine import put_engine, with_engine

if TYPE_CHECKING:
    from tests.vm.guest import Guest

SLOW_BYTES_PER_S = 1_200_000
"""A disk so slow that the host's other work makes no difference to what suits it."""
_TODAY = "COMPRESSION=xz\nCOMPRESSION_OPTIONS=(-0)\n"
"""Which suits neither a slow disk nor a fast one."""
_SETTINGS = ("lz4", "zstd")
_ROOT = "root=/dev/vdb"
_PACKAGES = "/root/packages"
_CONFIG = f"""\
[candidates]
settings = [{", ".join(f'"{setting}"' for setting in _SETTINGS)}]
"""
_UNITS = "/etc/systemd/system"
_DAEMON_TIMER = "[Timer]\nOnActiveSec=\nOnActiveSec=1s\nAccuracySec=1s\n"
_DAEMON = "[Unit]\nAfter=initadvisor-measure.service initadvisor-settle.service\n"
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
    """What there was to see: in the boot that upgraded the kernel, and at the end of each after."""

    upgraded: Told
    boots: tuple[Told, ...]


def closed(directory: Path, read_bytes_per_s: int | None, *, most_boots: int) -> Closed:
    """Have a guest upgrade its kernel, and reboot it until it has changed its setting.

    ``read_bytes_per_s``: of the disk that its images are on, None for as fast as it goes.
    """
    copy = _prepared(directory / "guest")
    loop = _Loop(copy, directory, read_bytes_per_s)
    upgraded = loop.boot(_upgrade())
    before = upgraded.look["configuration"]
    boots: list[Told] = []
    while len(boots) < most_boots and (boots or [upgraded])[-1].look["configuration"] == before:
        boots.append(loop.boot(_WORKED))
    return Closed(upgraded=upgraded, boots=tuple(boots))


class _Loop:
    def __init__(self, copy: Guest, logs: Path, read_bytes_per_s: int | None) -> None:
        self._guest, self._logs, self._number = copy, logs, 0
        machine = Machine(bare_metal=True, root_beside=True, read_bytes_per_s=read_bytes_per_s)
        self._machine = with_engine(machine)

    def boot(self, script: str) -> Told:
        self._number += 1
        done = boot(
            self._guest,
            self._machine,
            script=script + look(SEEN, self._guest.recipe.generator),
            then=Then.REBOOT,
            log=self._logs / f"boot-{self._number}.log",
        )
        return Told(boot=done, look=left(self._guest, SEEN))


def _prepared(directory: Path) -> Guest:
    """Return a guest that was never booted, with today's setting and both packages beside."""
    copy = guest(Recipe(generator=Generator.MKINITCPIO)).copied_to(directory)
    root = copy.disk.root
    _have_root_beside(copy)
    put_engine(copy)
    put_patience(copy)
    write(root, f"{_UNITS}/initadvisord.timer.d/soon.conf", _DAEMON_TIMER)
    write(root, f"{_UNITS}/initadvisord.service.d/last.conf", _DAEMON)
    write(root, "/etc/initadvisor.toml", _CONFIG)
    text = read(root, CONFIGURATION).decode()
    assert "COMPRESSION=lz4\n" in text
    write(root, CONFIGURATION, text.replace("COMPRESSION=lz4\n", _TODAY))
    root.put(
        {
            f"{_PACKAGES}/linux.pkg.tar": kernel_package(copy.recipe.suite, 2),
            f"{_PACKAGES}/initadvisor.pkg.tar": _package(),
        }
    )
    # Compiled by the guest's Python; the package has what the host's has compiled.
    python = compiled(copy.recipe.suite)
    root.put({f"{WHERE}/{path.relative_to(python)}": path for path in python.rglob("*.pyc")})
    return copy


def _have_root_beside(copy: Guest) -> None:
    """Have everything in a guest name the disk that is the root file system alone."""
    root, esp = copy.disk.root, copy.disk.files("/boot")
    partition = f"PARTUUID={copy.disk.partition('/').guid}"
    places = (
        (root, "/etc/fstab", f"{partition} / ", "/dev/vdb / "),
        (root, "/etc/kernel/cmdline", f"root={partition}", _ROOT),
        (esp, f"/loader/entries/{default_entry(copy)}", f"root={partition}", _ROOT),
    )
    for files, path, before, after in places:
        text = read(files, path).decode()
        assert before in text
        write(files, path, text.replace(before, after))


def _upgrade() -> str:
    """Return what the guest does first: what a person does once, and a kernel's upgrade."""
    depends = information_of(_package())["depend"]
    assumed = shlex.join(f"--assume-installed={name}" for name in depends)
    return f"""
pacman --noconfirm {assumed} --upgrade {_PACKAGES}/initadvisor.pkg.tar
systemctl daemon-reload
initadvisor enable --policy apply --yes
pacman --noconfirm --upgrade {_PACKAGES}/linux.pkg.tar
{_WORKED}
"""


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
