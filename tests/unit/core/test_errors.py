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


@pytest.mark.parametrize("content", [b"\0" * 4096, b"x = (\n"])
@pytest.mark.parametrize("inner", ["", "import no_python\n"])
def test_a_module_that_is_no_python_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, inner: str
) -> None:
    (tmp_path / "no_python.py").write_bytes(content)
    (tmp_path / "imports_it.py").write_text(inner)
    monkeypatch.syspath_prepend(tmp_path)
    why = "cannot count: the Python module no_python cannot be loaded: "
    with pytest.raises(LibraryError, match=why), libraries_told("count"):
        import_module("imports_it" if inner else "no_python")
    with pytest.raises(LibraryError, match=why), libraries_told("count"):
        import no_python  # type: ignore[import-not-found]  # noqa: F401


@pytest.mark.parametrize("error", [OSError("full"), RuntimeError("odd"), ValueError("wrong")])
def test_what_is_raised_elsewhere_stays_what_it_is(error: Exception) -> None:
    with pytest.raises(type(error), match=str(error)), libraries_told("count"):
        raise error
