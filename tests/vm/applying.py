"""A guest that applies a setting, goes back, and at last does what nobody should.

It is saved when its images are built and nothing is replaced yet. From there it can be resumed as
often as wanted, each time within a second or two, with what it writes recorded.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tests.fixtures.cache import made_once
from tests.vm.boot import ScriptFailedError, boot, running
from tests.vm.filesystems import Vfat, read, write
from tests.vm.guest import Guest, Loader, Recipe, guest
from tests.vm.installed import ENABLE, install
from tests.vm.machine import Machine
from tests.vm.qmp import Qmp, controlled
from tests.vm.recording import Recording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.vm.boot import Running

SETTING = "gzip -2"
CONFIGURATION = "/etc/initramfs-tools/initramfs.conf"
_DEBIANS = "COMPRESS=zstd\n"
TODAY = "COMPRESS=zstd\nCOMPRESSLEVEL=1\n"
"""The guest's setting. With Debian's level, 9, an image takes twice as long to make there."""

_REBUILD = """
rm -f /etc/initramfs/post-update.d/systemd-boot
update-initramfs -u
rm -rf /boot/debian
sync -f /boot
"""
"""The script of the package systemd-boot would have kernel-install(8) copy each new image to where
this guest's entry does not look for it.
"""
_COPY = """
update-initramfs -u
sync -f /boot
"""
"""That script copies the image to where the entry looks for it, as on machines of Debian's."""
_UNIFY = """
update-initramfs -u
rm -r {esp}/loader/entries/* {esp}/debian/*
ls -l {esp}/EFI/Linux
sync -f {esp}
"""
UKIFY = ("systemd-ukify",)
"""The packages that a guest with such an image needs besides."""
_BUILT = "/var/cache/initadvisor/apply/0/new"
_SCRIPT = f"""
{ENABLE}
image=/boot/initrd.img-$(uname -r)
initadvisor apply '{SETTING}' --confirm --immediate --unverified >/run/apply 2>&1 &
until [ -e {_BUILT} ] || ! kill -0 $! 2>/dev/null; do sleep 0.2; done
echo built
wait $! || {{ cat /run/apply; exit 1; }}
echo applied
cp $image {CONFIGURATION} /run
sleep 2
echo going back
initadvisor rollback --confirm
echo back
sleep 2
# The way that leaves half a file behind, to see that whoever looks for such files finds them. ext4
# hides it from those who close a file at once ("auto_da_alloc" in ext4(5)).
: >$image
: >{CONFIGURATION}
sync
cat /run/initrd.img-* >$image
cat /run/initramfs.conf >{CONFIGURATION}
sync
echo overwritten
sleep infinity
"""


class Word(StrEnum):
    """What the guest says when something is over, or begins."""

    BUILT = "built"
    APPLIED = "applied"
    GOING_BACK = "going back"
    BACK = "back"
    OVERWRITTEN = "overwritten"


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """The guest as it was saved, ``guest`` with its disk and variables and ``memory`` the rest."""

    guest: Guest
    memory: Path

    @contextlib.contextmanager
    def resumed(self, directory: Path) -> Iterator[tuple[Running, Recording]]:
        """Have a copy go on, in a directory that does not exist yet, and record what it writes."""
        copy = self.guest.copied_to(directory)
        recording = Recording(base=self.guest.disk.path, log=directory / "writes")
        recording.log.touch()
        machine = Machine(recording=recording, saved=self.memory)
        with controlled(machine) as machine, running(copy, machine, script=_SCRIPT) as started:
            with Qmp(machine) as qmp:
                qmp.resume()
            yield started, recording


def applying_guest(loader: Loader) -> Guest:
    """Return a guest whose default entry boots the image where its generator makes it; nobody but
    its copies may be booted.
    """

    def prepare(made: Guest) -> None:
        boot_own_image(made, TODAY)
        boot(made, direct=True, script=_REBUILD)

    recipe = Recipe(loader=loader)
    return _prepared(recipe, f"guest-applying-{loader}", (TODAY, _REBUILD), prepare)


def copying_guest() -> Guest:
    """Return a guest whose default entry boots the copy of that image that kernel-install(8) made;
    nobody but its copies may be booted.
    """

    def prepare(made: Guest) -> None:
        configure(made, TODAY)
        boot(made, direct=True, script=_COPY)

    return _prepared(Recipe(), "guest-applying-copies", (TODAY, _COPY), prepare)


def unified_guest() -> Guest:
    """Return a guest whose default entry is a unified kernel image that kernel-install(8) has had
    ukify make; nobody but its copies may be booted.
    """

    def prepare(made: Guest) -> None:
        configure(made, TODAY)
        _have_uki(made, "/boot")

    recipe = Recipe(also=UKIFY)
    return _prepared(recipe, "guest-applying-unified", (TODAY, _UNIFY), prepare)


def _prepared(
    recipe: Recipe, name: str, made_of: tuple[str, ...], prepare: Callable[[Guest], None]
) -> Guest:
    base = guest(recipe)
    directory = made_once(
        name,
        (base.directory.name, *made_of),
        lambda target: prepare(base.copied_to(target)),
    )
    return Guest(recipe=base.recipe, directory=directory, release=base.release)


def configure(made: Guest, setting: str) -> None:
    """Have the guest's generator make the next image with a setting, in the words of its
    configuration.
    """
    root = made.disk.root
    text = read(root, CONFIGURATION).decode()
    assert _DEBIANS in text
    write(root, CONFIGURATION, text.replace(_DEBIANS, setting))


def boot_own_image(made: Guest, setting: str) -> None:
    """Do that, and have the default entry name the image where its generator puts it."""
    configure(made, setting)
    if made.recipe.loader.is_grub:  # its entry has it so already
        return
    directory = f"/debian/{made.release}"
    _change_entry(
        made,
        ((f"{directory}/linux", f"/vmlinuz-{made.release}"), (f"{directory}/initrd", "/initrd")),
    )


def boot_copy(made: Guest) -> None:
    """Have /boot on the root file system and the ESP at /boot/efi, as Debian's installer does, and
    the default entry name the copy of the image that kernel-install(8) makes again.
    """
    directory = f"/debian/{made.release}"
    _change_entry(
        made,
        ((f"/vmlinuz-{made.release}", f"{directory}/linux"), ("/initrd", f"{directory}/initrd")),
    )
    root, esp = made.disk.root, made.disk.files("/boot")
    assert isinstance(esp, Vfat)
    table = read(root, "/etc/fstab").decode()
    assert table.count(" /boot vfat ") == 1
    write(root, "/etc/fstab", table.replace(" /boot vfat ", " /boot/efi vfat "))
    write(root, "/boot/efi/here", "the ESP is not mounted\n")
    for name in esp.names("/"):
        if made.release in name:
            write(root, f"/boot/{name}", read(esp, f"/{name}"))
            esp.remove(f"/{name}")


def boot_unified(made: Guest) -> None:
    """Do that, and have kernel-install(8) make a unified kernel image, by ukify, the default."""
    boot_copy(made)
    _have_uki(made, "/boot/efi")


def _have_uki(made: Guest, esp: str) -> None:
    write(made.disk.root, "/etc/kernel/install.conf", "layout=uki\n")
    boot(made, direct=True, script=_UNIFY.format(esp=esp))
    files = made.disk.files("/boot")
    write(files, "/loader/loader.conf", f"timeout 0\ndefault debian-{made.release}.efi\n")


def _change_entry(made: Guest, changes: tuple[tuple[str, str], ...]) -> None:
    files = made.disk.files("/boot")
    path = f"/loader/entries/debian-{made.release}.conf"
    text = read(files, path).decode()
    for before, after in changes:
        assert text.count(before) == 1
        text = text.replace(before, after)
    write(files, path, text)


def saved(made: Guest, directory: Path, *, prepare: Callable[[Guest], None] | None = None) -> Saved:
    """Install initadvisor, have it build the images, and save the machine at that moment.

    ``made``: an ``applying_guest``, ``copying_guest`` or ``unified_guest``. ``directory`` does not
    exist yet. ``prepare``: what else is done to it before.
    """
    directory.mkdir()
    copy = made.copied_to(directory / "guest")
    install(copy)
    if prepare:
        prepare(copy)
    memory = directory / "memory"
    with controlled(Machine()) as machine, running(copy, machine, script=_SCRIPT) as started:
        wait_for(started, Word.BUILT)
        with Qmp(machine) as qmp:
            qmp.save(memory)
    return Saved(guest=copy, memory=memory)


def wait_for(started: Running, word: StrEnum) -> None:
    """Wait until the guest says a word. Raises ``ScriptFailedError`` when it gives up before."""
    if started.wait_for(rf"guest: (> {word}|done status=\d+)$")[1].startswith("done"):
        said = "\n".join(started.output)
        msg = f"before it was {word}:\n{said}"
        raise ScriptFailedError(msg)
