"""The loop closes by itself: after a kernel's upgrade a guest is rebooted, nothing else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.vm.closed_loop import SLOW_BYTES_PER_S, closed
from tests.vm.guest import Generator

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.vm, pytest.mark.xdist_group("closed-loop")]


@pytest.mark.parametrize("generator", [Generator.MKINITCPIO, Generator.INITRAMFS_TOOLS])
@pytest.mark.parametrize(
    ("read_bytes_per_s", "winner"),
    [(SLOW_BYTES_PER_S, "zstd"), (None, "lz4")],
    ids=["slow disk", "fast disk"],
)
def test_the_setting_that_suits_the_disk_is_configured_within_six_boots(
    tmp_path: Path, generator: Generator, read_bytes_per_s: int | None, winner: str
) -> None:
    outcome = closed(tmp_path, generator, read_bytes_per_s)
    last = outcome.boots[-1].look
    assert re.search(rf'(?m)^COMPRESS(ION)?="?{winner}"?$', outcome.configured)
    assert last["transactions"][-1]["setting"]["after"] == winner
    assert last["transactions"][-1]["state"] == "committed"
    assert last["failed"] == []
    assert last["slot"] == []
    assert not {"campaign-active", "trial-entry"} & {*last["notes"]}
