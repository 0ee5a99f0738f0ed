"""Where GRUB's files are, and what its programs are called: ``grub2`` on Fedora and openSUSE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.bootloaders.places import is_file
from initadvisor.core.refusals import RefusalKind, refused

if TYPE_CHECKING:
    from initadvisor.host import Host


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
