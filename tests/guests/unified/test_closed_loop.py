"""The loop closes by itself with a unified kernel image that the generator makes itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.vm.closed_checks import assert_unified_closes
from tests.vm.unified import BY_DRACUT, BY_MKINITCPIO

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vm.unified import Unified

pytestmark = pytest.mark.vm


@pytest.mark.shows(
    "kernel upgrade, trial boot, trial that panics, apply, next kernel, rollback",
    "systemd-boot, unified kernel image",
    generator="mkinitcpio 41",
    system="Debian 13, packages by pacman",
)
@pytest.mark.shows(
    "kernel upgrade, trial boot, trial that panics, apply, next kernel, rollback",
    "systemd-boot, unified kernel image",
    generator="dracut 106",
)
@pytest.mark.parametrize("unified", [BY_MKINITCPIO, BY_DRACUT], ids=lambda found: found.maker)
def test_its_winner_is_configured(unified: Unified, tmp_path: Path) -> None:
    assert_unified_closes(unified, tmp_path)
