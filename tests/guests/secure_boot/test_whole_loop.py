"""The whole loop where the firmware starts nothing that is not signed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.vm import secure_boot
from tests.vm.applying import UKIFY, boot_unified
from tests.vm.guest import Loader
from tests.vm.loop_boots import Loop, applied
from tests.vm.loop_checks import (
    GOOD_IN_UKI,
    PANICS,
    SHORT,
    assert_all_of_it,
    assert_nothing_left,
)
from tests.vm.loop_guest import prepared
from tests.vm.loop_scripts import begin

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.vm


@pytest.mark.shows(
    "kernel upgrade, trial that panics, campaign, apply, rollback",
    "systemd-boot, signed unified kernel image by ukify, Secure Boot",
)
def test_what_is_signed_goes_through_all_of_it_with_secure_boot_on(tmp_path: Path) -> None:
    plan = replace(SHORT, settings=(GOOD_IN_UKI, PANICS))
    also = (*UKIFY, *secure_boot.PACKAGES)
    made = prepared(Loader.SYSTEMD_BOOT, tmp_path / "guest", plan.settings, also=also)
    secure_boot.put_keys(made)
    boot_unified(made)
    guest = secure_boot.turn_on(made, "/boot/efi")
    done = applied(guest, tmp_path, plan)
    assert_all_of_it(done, is_uki=True)
    for told in done.campaigned.last, done.used, done.back:
        assert told.look["copies"] == [told.look["image"]]
        assert told.boot.find("secureboot: Secure boot enabled")
    (tmp_path / "unsigned").mkdir()
    unsigned = Loop(guest, tmp_path / "unsigned", "").boot(
        f"{secure_boot.ANOTHER_KEY}\n! {begin((GOOD_IN_UKI,), 1)}ls /sys/firmware/efi/efivars\n"
    )
    said = "\n".join(unsigned.boot.output)
    assert "is signed, and what was built is not signed with the same key" in said
    assert "LoaderEntryOneShot" not in said
    assert_nothing_left(unsigned)
