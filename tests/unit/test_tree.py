"""Conventions of the tree: tests import nothing from tests, and pages name what exists.

What several tests need is in tests/fixtures and tests/fakes.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
ROOMS = ("browser", "guests", "simulated", "story", "tools", "unit")
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


PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
_FENCED = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PLACE = re.compile(r"(?P<path>[\w./-]+\.py)(?:: (?P<names>[\w.]+(?:, [\w.]+)*))?")
"""A file, or a file and what it defines: functions, classes, constants, ``Class.method``."""


def places(page: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the files of Python that a page names, each with the names that are said to be in it.

    Raises ``ValueError`` for what is written in another way.
    """
    for code in re.findall(r"`([^`\n]+)`", _FENCED.sub("", page)):
        if place := _PLACE.fullmatch(code):
            names = place["names"]
            yield place["path"], tuple(names.split(", ")) if names else ()
        elif ".py" in code or "()" in code:
            raise ValueError(code)


def test_no_place_is_broken_over_two_lines() -> None:
    """Such a place is not found, nor are those after it."""
    lines = _FENCED.sub("", PAGE).splitlines()
    assert [line for line in lines if line.count("`") % 2] == []


def paths(page: str) -> Iterator[str]:
    """Yield the other files and the directories that a page names."""
    for code in re.findall(r"`([^`\n ]+)`", _FENCED.sub("", page)):
        if re.match(r"(benchmarks|hooks|initadvisor|man|systemd|tests)/.", code):
            yield code


def found_in(path: str) -> Path:
    """Return what a page means by a path: below the package, or below the checkout."""
    below = ROOT / "initadvisor" / path
    return below if below.exists() else ROOT / path


def defined(source: str) -> set[str]:
    """Return what a module defines, with the methods and fields of its classes."""
    names = set()
    for node in ast.parse(source).body:
        for name in _names(node):
            names.add(name)
            if isinstance(node, ast.ClassDef):
                names |= {f"{name}.{inner}" for member in node.body for inner in _names(member)}
    return names


def _names(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        case _:
            pass


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("calls `a/b.py: run` and `c.py`", [("a/b.py", ("run",)), ("c.py", ())]),
        ("`a.py: one, Two.three`", [("a.py", ("one", "Two.three"))]),
        ("```text\n`x.py: no`\n```\n`--json` of `a`", []),
    ],
)
def test_places_are_found(page: str, expected: list[tuple[str, tuple[str, ...]]]) -> None:
    assert list(places(page)) == expected


@pytest.mark.parametrize("page", ["`a.py:run`", "`a.run()`", "`run` in `b.py, c.py`"])
def test_there_is_one_way_to_write_a_place(page: str) -> None:
    with pytest.raises(ValueError, match=r"a|b"):
        list(places(page))


def test_what_a_module_defines_is_found() -> None:
    source = "A: int = 1\nB = 2\nclass C:\n    d: int\n    def e(self): f = 1\ndef g(): ..."
    assert defined(source) == {"A", "B", "C", "C.d", "C.e", "g"}


@pytest.mark.parametrize("page", ["docs/architecture.md", "SECURITY.md"])
def test_every_place_that_a_page_names_exists(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    missing = []
    for path, names in places(text):
        file = found_in(path)
        if not file.is_file():
            missing.append(path)
        else:
            there = defined(file.read_text(encoding="utf-8"))
            missing += [f"{path}: {name}" for name in names if name not in there]
    missing += [path for path in paths(text) if not found_in(path).exists()]
    assert missing == []


def test_the_architecture_lists_the_packages_in_the_order_in_which_they_import() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = contracts["tool"]["importlinter"]["contracts"]
    [layers] = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    [pure] = [c["source_modules"] for c in contracts if c["name"].startswith("pure packages")]
    lines = [line for block in _FENCED.findall(PAGE) for line in block.splitlines()]
    assert [f"initadvisor.{line.split()[0]}" for line in lines] == layers
    assert {f"initadvisor.{line.split()[0]}" for line in lines if line.endswith(" pure")} == set(
        pure
    )
    assert {
        f"initadvisor.{path.parent.name}" for path in ROOT.glob("initadvisor/*/__init__.py")
    } == {*layers}


def test_the_architecture_fits_on_100_columns() -> None:
    assert [line for line in PAGE.splitlines() if len(line) > 100] == []
