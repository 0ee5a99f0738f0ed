"""The loop closes by itself: after a kernel's upgrade a guest is rebooted, nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.vm.closed_checks import (
    MOST_BOOTS,
    assert_back,
    assert_failed,
    assert_kept,
    assert_nothing_failed,
    configured,
)
from tests.vm.closed_loop import SLOW_BYTES_PER_S, armed, closed
from tests.vm.guest import Generator

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.vm


@pytest.mark.shows("kernel upgrade, trial boot, apply, next kernel, rollback", "systemd-boot")
@pytest.mark.shows(
    "kernel upgrade, trial boot, trial that panics, apply, next kernel, rollback",
    "systemd-boot with kernel-install",
    generator="dracut 106",
)
@pytest.mark.shows(
    "kernel upgrade, trial boot, apply, next kernel",
    "systemd-boot",
    generator="mkinitcpio 41",
    system="Debian 13, packages by pacman",
)
@pytest.mark.parametrize("generator", list(Generator))
def test_a_slow_disk_s_winner_is_configured_by_nothing_but_reboots(
    generator: Generator, tmp_path: Path
) -> None:
    """Of dracut's candidates one panics, which is none of its own doing."""
    faulty = generator is Generator.DRACUT
    outcome = closed(
        *(generator, tmp_path, SLOW_BYTES_PER_S),
        most_boots=MOST_BOOTS,
        again=True,
        faulty=faulty,
    )
    sizes = outcome.upgraded.look["candidates"]
    # What is read of lz4's image beyond zstd's takes longer than to unpack all of either.
    assert (sizes["lz4"] - sizes["zstd"]) / SLOW_BYTES_PER_S > 1
    assert [line for line in outcome.upgraded.boot.output if "initadvisor: noted Linux" in line]
    found = armed(outcome.upgraded)
    assert found
    assert found["stage"] == "rehearsal"
    assert configured(outcome, generator) == "zstd"
    assert_kept(outcome)
    assert_failed(outcome, faulty=faulty)
    assert_back(outcome)
    assert_nothing_failed(outcome)


def test_a_fast_disk_s_winner_is_what_unpacks_soonest(tmp_path: Path) -> None:
    """bzip2's image is the smallest, and takes longer to unpack than all of lz4's boot."""
    settings = ("lz4", "bzip2")
    outcome = closed(Generator.MKINITCPIO, tmp_path, None, most_boots=MOST_BOOTS, settings=settings)
    sizes = outcome.upgraded.look["candidates"]
    assert sizes["bzip2"] < sizes["lz4"]
    assert configured(outcome, Generator.MKINITCPIO) == "lz4"
    assert_nothing_failed(outcome)
