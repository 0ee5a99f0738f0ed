"""The loop closes by itself with a unified kernel image that dracut makes: in two guests, since
dracut takes an emulated machine half a minute for each image.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.vm.closed_checks import assert_applied_lasts, assert_unified_closes
from tests.vm.unified import BY_DRACUT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.vm


@pytest.mark.shows(
    "kernel upgrade, trial boot, trial that panics, apply",
    "systemd-boot, unified kernel image",
    generator="dracut 106",
)
def test_its_winner_is_configured(tmp_path: Path) -> None:
    assert_unified_closes(BY_DRACUT, tmp_path, to_the_end=False)


@pytest.mark.shows(
    "trial boot, apply, next kernel, rollback",
    "systemd-boot, unified kernel image",
    generator="dracut 106",
)
def test_the_next_kernel_keeps_what_a_person_applies(tmp_path: Path) -> None:
    assert_applied_lasts(BY_DRACUT, tmp_path)
