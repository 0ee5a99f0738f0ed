"""The kernel of a run or a verdict in a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.model.lab import LabKernel
from initadvisor.store.rows import text

if TYPE_CHECKING:
    import sqlite3

    from initadvisor.store.rows import Value


def kernel_columns(kernel: LabKernel) -> dict[str, Value]:
    """Return a kernel as the columns that every table with one has."""
    return {
        "kernel_path": kernel.path,
        "kernel_sha256": kernel.sha256,
        "kernel_release": kernel.release,
    }


def kernel_of(row: sqlite3.Row) -> LabKernel:
    """Return the kernel of a row."""
    return LabKernel(
        path=text(row, "kernel_path"),
        sha256=text(row, "kernel_sha256"),
        release=text(row, "kernel_release"),
    )
