"""Where GRUB's files are, and its environment block (grubenv).

The programs are called ``grub2`` on Fedora and openSUSE. The block is read and written by
grub-editenv(1) only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.bootloaders.places import file_system_of, is_file, read_bytes
from initadvisor.core.refusals import RefusalKind, refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from initadvisor.host import Host


_TIMEOUT_S = 60
_UNWRITABLE_ABSTRACTIONS = frozenset({"lvm", "diskfilter"})
"""What GRUB reads but does not write (grub-core/disk/diskfilter.c); grub-reboot warns of them."""

_UNWRITABLE_FILE_SYSTEMS = frozenset(
    {"btrfs", "cpiofs", "newc", "odc", "romfs", "squash4", "tarfs", "zfs", "iso9660", "erofs"}
)
"""Those of Debian's /etc/grub.d/00_header (check_writable), and two more that only can be read."""


def environment(host: Host, where: GrubPlace) -> dict[str, str]:
    """Return GRUB's variables by name.

    Raises ``RefusedError`` where there is no block, ``ProgramError`` where it is damaged.
    """
    if not is_file(host, where.environment):
        reason = f"there is no {where.environment}, so that GRUB remembers nothing"
        remedy = f"make it: {where.program('grub-editenv')} {where.environment} create"
        raise refused(RefusalKind.NO_ONE_SHOT, reason, remedy)
    listed = _edit(host, where, "list")
    pairs = (line.partition("=") for line in listed.decode(errors="surrogateescape").splitlines())
    return {name: value for name, equals, value in pairs if equals}


def unset_next_entry(host: Host, where: GrubPlace) -> None:
    """Forget the entry that is selected for the next boot."""
    _edit(host, where, "unset", "next_entry")


def require_grub_writes(host: Host, where: GrubPlace) -> None:
    """Raise ``RefusedError`` where GRUB could not forget the selection when it boots.

    Also where grub-reboot would restore a default that an older one has saved.
    """
    if environment(host, where).get("prev_saved_entry"):
        reason = f"{where.environment} has prev_saved_entry, which changes the default entry"
        editenv = where.program("grub-editenv")
        remedy = f"boot once, or: {editenv} {where.environment} unset prev_saved_entry"
        raise refused(RefusalKind.PENDING_ONE_SHOT, reason, remedy)
    remedy = "have /boot on a plain partition with ext4"
    abstractions = {*_probed(host, where, "abstraction"), *_abstractions(host, where)}
    if found := sorted(abstractions & _UNWRITABLE_ABSTRACTIONS):
        reason = f"{where.environment} is on {', '.join(found)}, which GRUB cannot write"
        raise refused(RefusalKind.NO_ONE_SHOT, reason, remedy)
    file_systems = set(_probed(host, where, "fs"))
    if found := sorted(file_systems & _UNWRITABLE_FILE_SYSTEMS):
        reason = f"{where.environment} is on {', '.join(found)}, which GRUB cannot write"
        raise refused(RefusalKind.NO_ONE_SHOT, reason, remedy)
    if not file_systems:
        reason = f"grub-probe does not tell which file system {where.environment} is on"
        raise refused(RefusalKind.UNREADABLE, reason, remedy)


def _probed(host: Host, where: GrubPlace, target: str) -> tuple[str, ...]:
    done = host.runner.run(
        [where.program("grub-probe"), f"--target={target}", str(host.path(where.environment))],
        timeout_s=_TIMEOUT_S,
    )
    return tuple(done.stdout.decode(errors="replace").split())


def _abstractions(host: Host, where: GrubPlace) -> Iterator[str]:
    """Tell of LVM by what the kernel shows to everybody.

    grub-probe asks the device mapper, which wants CAP_SYS_ADMIN (drivers/md/dm-ioctl.c), and prints
    nothing, with success, where it gets no answer: in the sandbox of the units (observed).
    """
    mount = file_system_of(host, where.environment)
    uuids = _mappings(host.path(f"/sys/dev/block/{mount.major}:{mount.minor}"))
    if any(uuid.startswith(b"LVM-") for uuid in uuids):
        yield "lvm"


def _mappings(device: Path) -> Iterator[bytes]:
    """Yield the names that the makers of mappings gave them, of a device and all below it."""
    yield read_bytes(device / "dm/uuid") or b""
    for part in sorted(device.glob("slaves/*")):
        yield from _mappings(part)


def _edit(host: Host, where: GrubPlace, *words: str) -> bytes:
    done = host.runner.run(
        [where.program("grub-editenv"), str(host.path(where.environment)), *words],
        timeout_s=_TIMEOUT_S,
    )
    return done.stdout


_FLAVOURS = ("grub", "grub2")


@dataclass(frozen=True, slots=True, kw_only=True)
class GrubPlace:
    """GRUB's directory, as a path of this machine."""

    flavour: str

    @property
    def directory(self) -> str:
        """Where everything is."""
        return f"/boot/{self.flavour}"

    @property
    def configuration(self) -> str:
        """The script that is GRUB's menu."""
        return f"{self.directory}/grub.cfg"

    @property
    def custom(self) -> str:
        """The script that it reads at its end."""
        return f"{self.directory}/custom.cfg"

    @property
    def environment(self) -> str:
        """The block of variables that GRUB can write."""
        return f"{self.directory}/grubenv"

    @property
    def how_to_clear(self) -> str:
        """The command that takes a selection back."""
        return f"{self.program('grub-editenv')} {self.environment} unset next_entry"

    def program(self, name: str) -> str:
        """Return what a program of GRUB's is called here."""
        return name.replace("grub-", f"{self.flavour}-", 1)


def place(host: Host) -> GrubPlace:
    """Return where GRUB's files are.

    Raises ``RefusedError`` where there are none, or two sets of them.
    """
    found = [
        candidate
        for candidate in (GrubPlace(flavour=flavour) for flavour in _FLAVOURS)
        if is_file(host, candidate.configuration)
    ]
    if len(found) != 1:
        two = " and ".join(candidate.configuration for candidate in found)
        reason = f"which one GRUB reads is unknown: {two}" if two else "there is no grub.cfg"
        remedy = "remove the one it does not read" if two else "is /boot mounted?"
        raise refused(RefusalKind.UNKNOWN_LOADER, reason, remedy)
    if is_file(host, f"{found[0].configuration}.sig"):
        reason = f"{found[0].configuration} is signed: GRUB may accept no other file without it"
        remedy = "trials are not possible with check_signatures"
        raise refused(RefusalKind.SIGNED_CONFIGURATION, reason, remedy)
    return found[0]
