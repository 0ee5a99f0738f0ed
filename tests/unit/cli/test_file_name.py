"""An empty name of a file is a mistake, not this directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from initadvisor.cli.recommend import recommend
from initadvisor.cli.simulate import simulate
from initadvisor.cli.whatif import whatif

if TYPE_CHECKING:
    import click


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (recommend, "--image"),
        (recommend, "--kernel-config"),
        (whatif, "--image"),
        (simulate, "--image"),
    ],
)
def test_an_empty_name_is_a_usage_error(command: click.Command, option: str) -> None:
    done = CliRunner().invoke(command, [option, ""], catch_exceptions=False)
    assert done.exit_code == 2
    assert "the name of the file is empty" in done.stderr
