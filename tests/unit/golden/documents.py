"""Golden files: documents of plain values that stay as they are until somebody writes them anew.

``INITADVISOR_GOLDEN=write pytest tests/unit/golden`` writes them; a test that wrote one fails.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from datetime import datetime
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[2] / "golden"
WRITING = os.environ.get("INITADVISOR_GOLDEN") == "write"

_TOLERANCE = 1e-6
_BEGAN_S = int(time.time())
_COUNTED = re.compile(
    r"\b[0-9a-f]{64}\b"  # a digest: the same content may be compressed otherwise
    r"|(?<=/candidates/)[0-9a-f]{32}\b"  # a name in the cache, which is one, too
    r"|(?<=\btrial-\d-)[0-9a-f]{8}\b"  # each arming has another
)


def check(path: Path, document: object) -> None:
    """Require that a document is the one in the file; figures may differ by a millionth."""
    if WRITING:
        text = json.dumps(document, indent=2, allow_nan=False)
        written(path, f"{text}\n".encode())
    was, found = _leaves(json.loads(path.read_text())), _leaves(document)
    differences = [
        f"{where}: was {was.get(where, 'not there')!r}, is {found.get(where, 'not there')!r}"
        for where in {**was, **found}
        if where not in was or where not in found or not _is_same(was[where], found[where])
    ]
    assert not differences, "\n".join([f"{path} (INITADVISOR_GOLDEN=write)", *differences])


def written(path: Path, content: bytes) -> None:
    """Write a golden file, and fail: no run that writes holds anything against anything."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    pytest.fail(f"wrote {path}", pytrace=False)


def steady(document: object, root: Path) -> object:
    """Return a document without what each run has another of.

    The path of the directory that the test works in is ``@`` and a moment of the test's run is
    ``now``. Digests and names that are drawn are counted: the same one has the same number.
    """
    numbers: dict[str, str] = {}

    def counted(found: re.Match[str]) -> str:
        return numbers.setdefault(found[0], f"#{len(numbers) + 1}")

    def of(value: object) -> object:
        if isinstance(value, dict):
            return {of(name): of(each) for name, each in value.items()}
        if isinstance(value, list):
            return [of(each) for each in value]
        if _is_now(value):
            return "now"
        if isinstance(value, str):
            return _COUNTED.sub(counted, value.replace(str(root), "@"))
        return value

    return of(document)


def _is_now(value: object) -> bool:
    """Tell whether it is a moment since the tests began: seconds since 1970, or a text."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError, OverflowError):
            value = int(datetime.fromisoformat(value).timestamp())
    return isinstance(value, int) and _BEGAN_S <= value <= time.time()


def _leaves(value: object, where: str = "") -> dict[str, object]:
    """Return all that is in a document by where it stands; empty objects and arrays, too."""
    if not value or not isinstance(value, dict | list):
        return {where: value}
    named = value.items() if isinstance(value, dict) else enumerate(value)
    return {
        place: leaf
        for name, each in named
        for place, leaf in _leaves(each, f"{where}/{name}").items()
    }


def _is_same(was: object, found: object) -> bool:
    if isinstance(was, float) or isinstance(found, float):
        return _is_number(was) and _is_number(found) and found == pytest.approx(was, _TOLERANCE)
    return type(was) is type(found) and was == found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
