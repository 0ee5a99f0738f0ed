"""The loop closes by itself: after a kernel's upgrade a guest is rebooted, nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.vm.closed_loop import SLOW_BYTES_PER_S, closed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.vm

_MOST_BOOTS = 6


@pytest.mark.shows(
    "kernel upgrade, trial boot",
    "systemd-boot",
    generator="mkinitcpio 41",
    system="Debian 13, packages by pacman",
)
def test_an_upgrade_leads_to_candidates_and_the_next_boot_is_a_rehearsal(tmp_path: Path) -> None:
    outcome = closed(tmp_path, SLOW_BYTES_PER_S, most_boots=1)
    assert [line for line in outcome.upgraded.boot.output if "initadvisor: noted Linux" in line]
    assert {"lz4", "zstd"} <= outcome.upgraded.look["candidates"].keys()
    assert outcome.upgraded.armed
    (rehearsed,) = outcome.boots
    boots = [
        (boot["armed_boot"]["stage"], boot["outcome"]) for boot in rehearsed.campaign["trial_boots"]
    ]
    assert ("rehearsal", "passed") in boots
    for told in outcome.upgraded, rehearsed:
        assert told.look["failed"] == []


@pytest.mark.shows(
    "apply", "systemd-boot", generator="mkinitcpio 41", system="Debian 13, packages by pacman"
)
def test_what_is_better_than_todays_is_configured_by_nothing_but_reboots(tmp_path: Path) -> None:
    outcome = closed(tmp_path, None, most_boots=_MOST_BOOTS)
    last = outcome.boots[-1].look
    (transaction,) = last["transactions"]
    setting = transaction["setting"]
    # Both are faster than today's; which of them is advised, a busy host's measurements change.
    assert (setting["before"], setting["after"]) in {("xz -0", "lz4"), ("xz -0", "zstd")}
    assert f"\nCOMPRESSION={setting['after']}\n" in last["configuration"]
    assert transaction["state"] == "committed"
    for told in outcome.upgraded, *outcome.boots:
        assert told.look["failed"] == []
