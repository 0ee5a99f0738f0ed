"""The whole loop with a unified kernel image that kernel-install(8) has ukify(1) make."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.vm.applying import UKIFY, boot_unified
from tests.vm.guest import Loader
from tests.vm.loop_boots import applied
from tests.vm.loop_checks import GOOD_IN_UKI, PANICS, SHORT, assert_all_of_it
from tests.vm.loop_guest import prepared

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.vm


@pytest.mark.shows(
    "kernel upgrade, trial that panics, campaign, apply, rollback",
    "systemd-boot, unified kernel image by ukify",
)
def test_what_ukify_makes_unified_goes_through_all_of_it(tmp_path: Path) -> None:
    plan = replace(SHORT, settings=(GOOD_IN_UKI, PANICS))
    guest = prepared(Loader.SYSTEMD_BOOT, tmp_path / "guest", plan.settings, also=UKIFY)
    boot_unified(guest)
    done = applied(guest, tmp_path, plan)
    assert_all_of_it(done, is_uki=True)
    for told in done.campaigned.last, done.used, done.back:
        assert told.look["copies"] == [told.look["image"]]
