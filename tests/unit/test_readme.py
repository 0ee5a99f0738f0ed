"""README says of guests what their tests say, no more."""

from __future__ import annotations

import runpy
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools/write_tested.py"
README = TOOL.parents[1] / "README.md"


def test_the_table_of_what_guests_show_is_what_their_tests_say() -> None:
    written = README.read_text(encoding="utf-8")
    told = f"{README} is not what {TOOL} {README} writes"
    assert runpy.run_path(str(TOOL))["with_table"](written) == written, told
