"""What a campaign has on a guest's boot partition and in its firmware, and what that has to be."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from tests.fixtures.owners import OWNER
from tests.vm.efi_variables import GLOBAL, LOADER, efi_variables, variables_in
from tests.vm.filesystems import Vfat, read

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.vm.guest import Guest

TRIAL = f"a-initadvisor-{OWNER}-trial.conf"
ENTRY = f"/loader/entries/{TRIAL}"
SLOT = f"/.initadvisor-{OWNER}-trial"

_UNFINISHED = f"/loader/entries/.partial-initadvisor-{OWNER}-"
_ONE_SHOT = (LOADER, "LoaderEntryOneShot")
_LOADERS_OWN = "LoaderEntryLastBooted"
"""systemd-boot writes it in every boot."""
_INITRD = re.compile(r"^initrd (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """``files``: the digests of what is on the boot partition, by path in it; ``entry``: the text
    of the trial's entry. ``variables``: what the firmware keeps about booting.
    """

    files: Mapping[str, str]
    entry: str
    variables: Mapping[tuple[uuid.UUID, str], bytes]

    @property
    def one_shot(self) -> str | None:
        """The entry that is selected for one boot."""
        return _one_shot(self.variables)

    @property
    def trial_image(self) -> str | None:
        """The digest of the image that the trial's entry loads, None where there is none."""
        named = _INITRD.search(self.entry)
        return self.files.get(named[1]) if named else None


@cache
def selected(variables: bytes) -> str | None:
    """Return the entry that is selected for one boot, by the firmware's store."""
    return _one_shot(variables_in(variables))


def standing(guest: Guest) -> Standing:
    """Look at a guest that does not run, or has written everything; nothing is changed."""
    boot = guest.disk.files("/boot")
    assert isinstance(boot, Vfat)
    contents = {path: _content(boot, path) for path in boot.paths()}
    return Standing(
        files={path: _digest(content) for path, content in contents.items()},
        entry=(contents.get(ENTRY) or b"").decode(errors="replace"),
        variables=dict(_about_booting(guest.variables)),
    )


def default_is_as_before(now: Standing, before: Standing) -> Iterator[str]:
    """Say what of the files that were there is not what it was."""
    for path, digest in before.files.items():
        if now.files.get(path) != digest:
            yield f"{path} is not what it was"


def only_a_trial_is_added(now: Standing, before: Standing) -> Iterator[str]:
    """Say what else there is but a trial's entry, image and selection."""
    for path in now.files.keys() - before.files.keys() - {ENTRY, SLOT}:
        if not path.startswith(_UNFINISHED):
            yield f"{path} was added"
    if now.one_shot not in {None, TRIAL}:
        yield f"{now.one_shot} is selected for the next boot"
    yield from _changed_variables(now, before, apart_from={_ONE_SHOT})


def armed_is_whole(now: Standing, verified: frozenset[str]) -> Iterator[str]:
    """Where a trial is selected, say what its boot would lack; ``verified``: digests of images."""
    if now.one_shot is not None and now.trial_image not in verified:
        yield f"what is armed would boot {now.trial_image}: {now.entry!r}"


def nothing_is_left(now: Standing, before: Standing) -> Iterator[str]:
    """Say what is not as it was before there was any campaign."""
    yield from default_is_as_before(now, before)
    for path in now.files.keys() - before.files.keys():
        yield f"{path} is left"
    yield from _changed_variables(now, before, apart_from=set())


def _changed_variables(
    now: Standing, before: Standing, apart_from: set[tuple[uuid.UUID, str]]
) -> Iterator[str]:
    for key in (now.variables.keys() | before.variables.keys()) - apart_from:
        if now.variables.get(key) != before.variables.get(key):
            yield f"the variable {key[1]} is not what it was"


def _one_shot(variables: Mapping[tuple[uuid.UUID, str], bytes]) -> str | None:
    value = variables.get(_ONE_SHOT)
    return value.decode("utf-16-le").rstrip("\0") if value is not None else None


def _about_booting(store: Path) -> Iterator[tuple[tuple[uuid.UUID, str], bytes]]:
    for (vendor, name), value in efi_variables(store).items():
        is_about = vendor in {LOADER, GLOBAL} and name.startswith(("Boot", "Loader"))
        if is_about and name != _LOADERS_OWN:
            yield (vendor, name), value


def _content(boot: Vfat, path: str) -> bytes | None:
    try:
        return read(boot, path)
    except FileNotFoundError:
        return None


def _digest(content: bytes | None) -> str:
    """Return the digest, or that a name leads to clusters that it does not have."""
    return "unreadable" if content is None else hashlib.sha256(content).hexdigest()
