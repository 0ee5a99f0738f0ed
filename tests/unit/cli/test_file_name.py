"""An empty name of a file is a mistake, not this directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from initadvisor.cli import COMMANDS, root
from initadvisor.cli.options import FileName

if TYPE_CHECKING:
    from collections.abc import Iterator


def commands() -> Iterator[tuple[list[str], click.Command]]:
    """Yield every command and subcommand with the words that call it."""
    for name in COMMANDS:
        command = root.get_command(click.Context(root), name)
        assert command is not None
        yield [name], command
        for sub, subcommand in getattr(command, "commands", {}).items():
            yield [name, sub], subcommand


FILES = [
    [*words, *([parameter.opts[0]] if isinstance(parameter, click.Option) else []), ""]
    for words, command in commands()
    for parameter in command.params
    if isinstance(parameter.type, FileName)
]


@pytest.mark.parametrize("words", FILES, ids=" ".join)
def test_an_empty_name_is_a_usage_error(words: list[str]) -> None:
    done = CliRunner().invoke(root, words, catch_exceptions=False)
    assert done.exit_code == 2
    assert "the name of the file is empty" in done.stderr


def test_every_name_of_a_file_is_looked_at() -> None:
    assert len(FILES) >= 13
    for words, command in commands():
        for parameter in command.params:
            assert not isinstance(parameter.type, click.Path) or isinstance(
                parameter.type, FileName
            ), (words, parameter.name)
