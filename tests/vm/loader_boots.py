"""Guests whose boot loader initadvisor has boot an entry once: what is done in which boot.

The images lie where ``apply`` puts them: beside the installed one, under a name with a dot in
front and an ending that says nothing to anybody.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.fixtures.owners import OWNER
from tests.judges.unified import with_sections
from tests.vm.blscfg import put_blscfg
from tests.vm.boot import Then, boot
from tests.vm.candidates import corrupt, recompressed
from tests.vm.filesystems import put_tree, write
from tests.vm.guest import Loader, Recipe, guest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.vm.boot import Boot
    from tests.vm.guest import Guest

LABEL = "zstd -19"

_PACKAGE = Path(__file__).parents[2] / "initadvisor"
_INSIDE = Path(__file__).with_name("inside_loader.py")
_PYTHON = "/usr/lib/python3/dist-packages"
_STUB = "/usr/lib/systemd/boot/efi/linuxx64.efi.stub"
_FREED = re.compile(r"Freeing initrd memory: (\d+)K")
_UKI = "/EFI/Linux/unified.efi"


class Image(StrEnum):
    """Which image a boot used; all differ in size."""

    INSTALLED = "installed"
    NEW = "new"
    OLD = "old"
    CORRUPT = "corrupt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """``paths`` in the guest, ``sizes_kib`` of what the kernel finds in memory."""

    paths: dict[Image, str]
    sizes_kib: dict[Image, int]

    def used(self, booted: Boot) -> Image:
        """Return the image of that size; a stub adds some files of its own to it."""
        said = [match for line in booted.lines if (match := _FREED.search(line.text))]
        (freed,) = {int(match[1]) for match in said}
        return min(self.sizes_kib, key=lambda image: abs(self.sizes_kib[image] - freed))


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A boot: what initadvisor is told in it, and what the shell is told before and after that."""

    words: str = ""
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A boot that is over: which image it used, and each ``look`` that was asked for in it."""

    boot: Boot
    used: Image
    looks: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way of booting, by the loader that ``name`` (``BootLoader.NAME``) is of.

    ``installed`` is the image in the guest, where {release} stands for the kernel's. ``put`` makes
    what is booted of an image. ``first`` is done by the shell in a boot before all others.
    ``select`` has the next boot use the previous image's entry, as a user would. ``clean_up`` has
    others look for what could be removed. ``forget_default`` takes the default entry's name away,
    as a user might, and ``remember_default`` gives it back.
    """

    name: str
    loader: Loader
    installed: str
    select: str
    first: str = ""
    clean_up: str = ""
    forget_default: str = ""
    remember_default: str = ""
    prepare: Callable[[Guest], None] = lambda _: None
    put: Callable[[Guest, Path], Path] = lambda _, image: image


def booted(way: Way, steps: Sequence[Step], directory: Path) -> tuple[Images, list[Told]]:
    """Make the guest and boot it once for each step."""
    copy = guest(Recipe(loader=way.loader)).copied_to(directory / "guest")
    put_tree(copy.disk.root, _PACKAGE, f"{_PYTHON}/initadvisor")
    write(copy.disk.root, "/root/inside_loader.py", _INSIDE.read_bytes())
    images = _put_images(way, copy, directory)
    way.prepare(copy)
    if way.first:
        # What is about EFI's variables takes the firmware, the rest does not.
        boot(copy, direct=way.loader.is_grub, script=way.first, then=Then.POWER_OFF)
    names = {image.value: path for image, path in images.paths.items()} | {"label": LABEL}
    told = []
    for number, step in enumerate(steps):
        script = _script(step, names)
        done = boot(copy, script=script, then=Then.REBOOT, log=directory / f"boot-{number}.log")
        looks = tuple(json.loads(line) for line in done.output if line.startswith('{"loader"'))
        told.append(Told(boot=done, used=images.used(done), looks=looks))
    return images, told


def _script(step: Step, names: dict[str, str]) -> str:
    words = step.words.format_map(names)
    inside = f"python3 /root/inside_loader.py <<'END'\n{words}END\n" if words else ""
    return f"{step.before}\n{inside}{step.after}\n"


def _put_images(way: Way, copy: Guest, directory: Path) -> Images:
    installed = way.installed.format(release=copy.release)
    beside = installed.rpartition("/")[0]
    paths = {
        Image.INSTALLED: installed,
        Image.NEW: f"{beside}/.initadvisor-{OWNER}-2-0.new",
        Image.OLD: f"{beside}/.initadvisor-{OWNER}-1-0.old",
        Image.CORRUPT: f"{beside}/.initadvisor-{OWNER}-3-0.new",
    }
    made = {
        Image.INSTALLED: copy.initrd,
        Image.NEW: recompressed(copy.initrd, directory / "new", "gzip", "-1"),
        Image.OLD: recompressed(copy.initrd, directory / "old", "lz4", "-l", "-1"),
        Image.CORRUPT: corrupt(copy.initrd, directory / "corrupt"),
    }
    boot_partition = copy.disk.files("/boot")
    for image, path in made.items():
        boot_partition.put({paths[image].removeprefix("/boot"): way.put(copy, path)})
    return Images(
        paths=paths,
        sizes_kib={image: path.stat().st_size // 1024 for image, path in made.items()},
    )


def _unified(copy: Guest, initrd: Path) -> Path:
    """Make a unified kernel image of the guest's own parts."""
    stub = copy.directory / "stub"
    if not stub.exists():
        copy.disk.root.fetch(_STUB, stub)
    sections = {
        ".osrel": b"ID=debian\nVERSION_ID=13\nPRETTY_NAME=Debian\n",
        ".cmdline": copy.recipe.command_line.encode() + b"\0",
        ".initrd": initrd.read_bytes(),
        ".linux": copy.kernel.read_bytes(),  # the last: the kernel may use the room behind it
    }
    image = copy.directory / f"{initrd.name}.efi"
    image.write_bytes(with_sections(stub.read_bytes(), sections))
    return image


def _unified_is_default(copy: Guest) -> None:
    write(copy.disk.files("/boot"), "/loader/loader.conf", "timeout 0\ndefault unified.efi\n")


_LOADER_CONF = "/boot/loader/loader.conf"
_SELECT_PREVIOUS = f"bootctl set-oneshot a-initadvisor-{OWNER}-previous.conf"
_SELECT_PREVIOUS_IN_GRUB = f"grub-reboot initadvisor-{OWNER}-previous"
_SAVED_DEFAULT = """
sed -i 's/^GRUB_DEFAULT=.*/GRUB_DEFAULT=saved\\nGRUB_SAVEDEFAULT=true/' /etc/default/grub
update-grub 2>&1
grub-set-default "$(sed -n "s/.*menuentry_id_option '\\(gnulinux-simple-[^']*\\)'.*/\\1/p" \\
    /boot/grub/grub.cfg)"
"""
_STUB_OPTION = r"""
entry=/boot/loader/entries/debian-*.conf
value() { sed -n "s/^$1 *//p" $entry | tr / '\\'; }
options=$(sed -n 's/^options *//p' $entry)
efibootmgr --create --disk /dev/vda --part 1 --label Linux --loader "$(value linux)" \
    --unicode "$options initrd=$(value initrd)"
"""
_SELECT_PREVIOUS_OPTION = r"""
number=$(efibootmgr | sed -n 's/^Boot\(....\). initadvisor: previous image.*/\1/p')
efibootmgr --bootnext "$number"
"""

WAYS = {
    "systemd-boot": Way(
        name="systemd-boot",
        loader=Loader.SYSTEMD_BOOT,
        installed="/boot/debian/{release}/initrd.img-{release}",
        select=_SELECT_PREVIOUS,
        clean_up="bootctl cleanup --dry-run --no-pager",
        forget_default=f"cp {_LOADER_CONF} /root; sed -i /^default/d {_LOADER_CONF}",
        remember_default=f"cp /root/loader.conf {_LOADER_CONF}",
    ),
    "grub": Way(
        name="grub",
        loader=Loader.GRUB,
        installed="/boot/initrd.img-{release}",
        select=_SELECT_PREVIOUS_IN_GRUB,
        first=_SAVED_DEFAULT,
        forget_default="grub-editenv /boot/grub/grubenv unset saved_entry",
    ),
    "grub-bios": Way(
        name="grub",
        loader=Loader.GRUB_BIOS,
        installed="/boot/initrd.img-{release}",
        select=_SELECT_PREVIOUS_IN_GRUB,
    ),
    "grub-blscfg": Way(
        name="grub",
        loader=Loader.GRUB,
        installed="/boot/initrd.img-{release}",
        select=_SELECT_PREVIOUS_IN_GRUB,
        prepare=put_blscfg,
    ),
    "systemd-boot-uki": Way(
        name="systemd-boot",
        loader=Loader.SYSTEMD_BOOT,
        installed=f"/boot{_UKI}",
        select=_SELECT_PREVIOUS,
        prepare=_unified_is_default,
        put=_unified,
    ),
    "efi-stub": Way(
        name="efi-bootnext",
        loader=Loader.SYSTEMD_BOOT,
        installed="/boot/debian/{release}/initrd.img-{release}",
        select=_SELECT_PREVIOUS_OPTION,
        first=_STUB_OPTION,
    ),
}
