"""The whole loop where GRUB reads its entries from files: initramfs-tools, and as on Fedora."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.vm.blscfg import put_blscfg
from tests.vm.guest import Loader
from tests.vm.loop_boots import applied
from tests.vm.loop_checks import SHORT, assert_all_of_it, assert_next_kernel
from tests.vm.loop_guest import (
    OTHER_KERNEL_PACKAGE,
    other_kernel_package,
    prepared,
    prepared_with_dracut,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.vm


@pytest.mark.shows(
    "kernel upgrade, trial that panics, campaign, apply, next kernel, rollback",
    "GRUB with blscfg",
    system="Debian 13, GRUB 2.14 of sid",
)
def test_grub_that_reads_its_entries_from_files_does_all_of_it(tmp_path: Path) -> None:
    guest = prepared(Loader.GRUB, tmp_path / "guest", SHORT.settings)
    put_blscfg(guest)
    guest.disk.root.put({OTHER_KERNEL_PACKAGE: other_kernel_package(guest)})
    done = applied(guest, tmp_path, SHORT, other_kernel=True)
    assert_all_of_it(done)
    assert_next_kernel(done)


@pytest.mark.shows(
    "kernel upgrade, trial that panics, campaign, apply, next kernel, rollback",
    "GRUB with blscfg",
    generator="dracut 106",
    system="Debian 13, GRUB 2.14 of sid",
)
def test_what_fedora_has_does_all_of_it(tmp_path: Path) -> None:
    """GRUB with blscfg, kernel-install(8), which has dracut make an image in /boot."""
    guest = prepared_with_dracut(Loader.GRUB, tmp_path / "guest", SHORT.settings)
    put_blscfg(guest)
    guest.disk.root.put({OTHER_KERNEL_PACKAGE: other_kernel_package(guest)})
    done = applied(guest, tmp_path, SHORT, other_kernel=True)
    assert_all_of_it(done, configuration='compress="lz4 -l -1"\n')
    assert_next_kernel(done)
