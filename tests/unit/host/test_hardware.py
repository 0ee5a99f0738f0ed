"""Memory is what the kernel says, and not known where it says nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.host import Host
from initadvisor.host.hardware import Memory, memory

if TYPE_CHECKING:
    from pathlib import Path


def said(tmp_path: Path, text: str) -> Memory | None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text(text)
    return memory(Host(root=tmp_path))


def test_the_kernel_s_kilobytes_are_kibibytes(tmp_path: Path) -> None:
    text = (
        "MemTotal:        1000 kB\nMemFree:   100 kB\nMemAvailable:    700 kB\nHugePages_Total: 0\n"
    )
    assert said(tmp_path, text) == Memory(total_bytes=1_024_000, available_bytes=716_800)


def test_a_kernel_that_does_not_estimate_has_all_of_it(tmp_path: Path) -> None:
    assert said(tmp_path, "MemTotal: 1000 kB\n") == Memory(
        total_bytes=1_024_000, available_bytes=1_024_000
    )


@pytest.mark.parametrize(
    "text", ["", "MemTotal: 0 kB\n", "MemTotal: many kB\n", "MemTotal: 5\n", ":\n", "MemTotal\n"]
)
def test_what_makes_no_sense_is_not_known(tmp_path: Path, text: str) -> None:
    assert said(tmp_path, text) is None


def test_without_proc_it_is_not_known(tmp_path: Path) -> None:
    assert memory(Host(root=tmp_path)) is None
