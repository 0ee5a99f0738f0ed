"""What all tests of guests rely on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Name the seed of a test that failed: its module's ``SEED``."""
    report = yield
    seed = getattr(getattr(item, "module", None), "SEED", None)
    if report.failed and seed is not None:
        report.sections.append(("seed", f"what was left to chance was chosen with seed {seed}"))
    return report
