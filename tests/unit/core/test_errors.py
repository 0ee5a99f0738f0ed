"""What a Python module raises while it is loaded is told in one line, everything else is not."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import LibraryError, libraries_told

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("error", ["ImportError", "OSError", "RuntimeError", "SystemError"])
def test_a_module_that_cannot_be_loaded_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str
) -> None:
    name = f"unloadable_{error.lower()}"
    text = f"def _check():\n    raise {error}('this processor is too old')\n_check()\n"
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    why = f"the Python module {name} cannot be loaded: this processor is too old"
    with pytest.raises(LibraryError, match=f"cannot count: {why}"), libraries_told("count"):
        import_module(name)


@pytest.mark.parametrize("error", [OSError("full"), RuntimeError("odd")])
def test_what_is_raised_elsewhere_stays_what_it_is(error: Exception) -> None:
    with pytest.raises(type(error), match=str(error)), libraries_told("count"):
        raise error
