"""Seven boots through one-shot entries, one of them corrupt; each is attributed to its image."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.vm.boot import End
from tests.vm.efi_variables import LOADER, efi_variables
from tests.vm.guest import Recipe, guest
from tests.vm.journal import JournalBoot, journal
from tests.vm.seven_boots import freed_kib, plan, run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vm.boot import Boot
    from tests.vm.seven_boots import Planned

pytestmark = pytest.mark.vm


def test_seven_boots_are_attributed_to_the_images_they_used(tmp_path: Path) -> None:
    copy = guest(Recipe()).copied_to(tmp_path / "guest")
    planned = plan(copy, tmp_path)
    assert len({each.loaded_kib for each in planned}) == 6, "images that cannot be told apart"

    boots = run(copy, planned, tmp_path)

    kept = {boot.boot_id: boot for boot in journal(copy.disk)}
    for intended, boot in zip(planned, boots, strict=True):
        if intended.is_corrupt:
            _assert_corrupt(intended, boot)
        else:
            assert boot.boot_id
            _assert_attributed(intended, boot, kept[boot.boot_id])
    assert [boot.end for boot in boots] == [*[End.RESTART] * 5, End.PANIC, End.POWER_OFF]
    assert len(kept) == 6, "the corrupt boot left something in the journal"
    assert f"LoaderTimeExecUSec-{LOADER}" in boots[-1].output, "the loader saw a hypervisor"
    assert (LOADER, "LoaderEntryOneShot") not in efi_variables(copy.variables)


def _assert_attributed(planned: Planned, boot: Boot, kept: JournalBoot) -> None:
    assert boot.entry == planned.entry
    assert freed_kib([line.text for line in boot.lines]) == planned.loaded_kib
    assert freed_kib(kept.messages("kernel")) == planned.loaded_kib


def _assert_corrupt(planned: Planned, boot: Boot) -> None:
    """The serial log is the only witness: the loader's choice is on the kernel's command line."""
    assert boot.boot_id is None
    assert boot.find(r"Command line: .*\binitrd=\\trial\\corrupt\.img")
    assert boot.find(r"Initramfs unpacking failed|rootfs image is not initramfs")
    assert freed_kib([line.text for line in boot.lines]) == planned.loaded_kib
