"""The loop closes by itself with a unified kernel image that mkinitcpio makes itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.vm.closed_checks import assert_unified_closes
from tests.vm.unified import BY_MKINITCPIO

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.vm


@pytest.mark.shows(
    "kernel upgrade, trial boot, trial that panics, apply, next kernel, rollback",
    "systemd-boot, unified kernel image",
    generator="mkinitcpio 41",
    system="Debian 13, packages by pacman",
)
def test_its_winner_is_configured(tmp_path: Path) -> None:
    assert_unified_closes(BY_MKINITCPIO, tmp_path)
