"""Text for a person, in 80 columns."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import click

from initadvisor.core.text import shown

if TYPE_CHECKING:
    from datetime import datetime


_WIDTH = 80


def print_paragraph(text: str, *, first: str = "", others: str = "") -> None:
    """Print text that is known to be fit for a terminal."""
    click.echo(
        textwrap.fill(
            text,
            width=_WIDTH,
            initial_indent=first,
            subsequent_indent=others,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def print_item(text: str) -> None:
    """Print one line of a list; whatever it holds, it cannot command the terminal."""
    print_paragraph(shown(text), first="  - ", others="    ")


def moment(at: datetime) -> str:
    """Return a moment in the local time."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M")
