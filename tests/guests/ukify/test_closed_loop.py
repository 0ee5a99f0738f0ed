"""The loop closes by itself where the firmware starts what ukify(1) makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.vm.closed_checks import assert_unified_closes
from tests.vm.unified import BY_UKIFY_FOR_FIRMWARE

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.vm


@pytest.mark.shows(
    "kernel upgrade, trial boot, trial that panics, apply, next kernel, rollback",
    "firmware, unified kernel image by ukify",
)
def test_its_winner_is_configured(tmp_path: Path) -> None:
    assert_unified_closes(BY_UKIFY_FOR_FIRMWARE, tmp_path)
