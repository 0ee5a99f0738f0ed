"""``initadvisor doctor``: what is needed, what was found, and what to do about it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from initadvisor.cli.rendering.output import SCHEMA

if TYPE_CHECKING:
    from initadvisor.doctor.findings import Diagnosis


@click.command()
@click.option("--try-engines", is_flag=True, help="Start virtual machines to see if they work.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@click.pass_context
def doctor(context: click.Context, *, try_engines: bool, as_json: bool) -> None:
    """Look at everything that finding and applying the best setting needs here.

    Each line says what was found: all is well, something is worth knowing, or something is in the
    way; then the exit status is 1. Nothing is changed. Without root, not all can be looked at.
    """
    from initadvisor.doctor.doctor import diagnose
    from initadvisor.doctor.findings import Grade
    from initadvisor.host import Host

    found = diagnose(Host(), try_engines=try_engines)
    if as_json:
        _print_json(found)
    else:
        _print_text(found)
    if found.graded(Grade.OBSTACLE):
        context.exit(1)


def _print_json(found: Diagnosis) -> None:
    document = {
        "schema": SCHEMA,
        "findings": [
            {
                "topic": finding.topic.value,
                "grade": finding.grade.value,
                "text": finding.text,
                "advice": finding.advice,
            }
            for finding in found.findings
        ],
    }
    click.echo(json.dumps(document, indent=2, allow_nan=False))


def _print_text(found: Diagnosis) -> None:
    from initadvisor.cli.rendering.paragraphs import print_paragraph
    from initadvisor.core.text import shown
    from initadvisor.doctor.findings import Grade

    timestamps = {Grade.OK: "ok  ", Grade.NOTE: "note", Grade.OBSTACLE: "STOP"}
    indent = " " * 6
    topic = None
    for finding in found.findings:
        if finding.topic is not topic:
            topic = finding.topic
            click.echo(f"{topic.capitalize()}:")
        print_paragraph(shown(finding.text), first=f"{timestamps[finding.grade]}  ", others=indent)
        if finding.advice:
            print_paragraph(shown(finding.advice), first=f"{indent}-> ", others=f"{indent}   ")
    notes, obstacles = len(found.graded(Grade.NOTE)), len(found.graded(Grade.OBSTACLE))
    click.echo(f"\nIn the way (STOP): {obstacles}; worth knowing (note): {notes}.")
