"""Tests stand alone: what several of them need is in tests/fixtures and tests/fakes."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
ROOMS = ("guests", "simulated", "story", "tools", "unit")
"""Where tests are, and nothing that others may use."""

_MENTION = re.compile(rf"\btests(?: import\b|\.(?:{'|'.join(ROOMS)})\b)")


def imported(source: str) -> Iterator[str]:
    """Return the modules that a source imports, and what it takes from them, with their dots."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name.name}" for name in node.names)


def is_of_tests(name: str) -> bool:
    """Tell whether a name belongs to a test, or stands beside tests."""
    top, _, rest = name.partition(".")
    return top == "tests" and rest.split(".")[0] in ROOMS


@pytest.mark.parametrize(
    ("source", "taken"),
    [
        ("import tests.unit.test_a", True),
        ("from tests.unit.cli import test_a", True),
        ("from tests import tools", True),
        ("from tests.tools.conftest import value", True),
        ("def f() -> None:\n    from tests.unit.test_a import f", True),
        ("from tests.fixtures.trees import write\nfrom tests import failures", False),
        ("import unit.test_a", False),
    ],
)
def test_what_is_taken_from_tests_is_found(source: str, taken: bool) -> None:
    assert any(map(is_of_tests, imported(source))) is taken


def test_nothing_is_imported_from_tests() -> None:
    found = {}
    for directory in ("benchmarks", "tests", "tools"):
        for path in sorted((ROOT / directory).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            source = path.read_text(encoding="utf-8")
            if _MENTION.search(source):
                found[name] = sorted(filter(is_of_tests, imported(source)))
    assert {name: taken for name, taken in found.items() if taken} == {}
