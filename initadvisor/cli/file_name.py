"""The name of a file as an option's value."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from typing_extensions import override

if TYPE_CHECKING:
    import os


class FileName(click.Path):
    """A file that need not be there; an empty name, which Python takes for ".", is none."""

    def __init__(self) -> None:
        super().__init__(readable=False, path_type=Path)

    @override
    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | bytes | os.PathLike[str]:
        """Return the path; fails as click's own types do."""
        if not str(value):
            self.fail("the name of the file is empty", param, ctx)
        return super().convert(value, param, ctx)
