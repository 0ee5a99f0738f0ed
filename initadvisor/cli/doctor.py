"""``initadvisor doctor``: what is needed, what was found, and what to do about it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from initadvisor.cli.rendering.output import print_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from initadvisor.doctor.findings import Finding, Topic


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
    grades = Counter(finding.grade for findings in found.values() for finding in findings)
    if as_json:
        print_json(
            {
                "findings": [
                    {
                        "topic": topic.value,
                        "grade": finding.grade.value,
                        "text": finding.text,
                        "advice": finding.advice,
                    }
                    for topic, findings in found.items()
                    for finding in findings
                ]
            }
        )
    else:
        _print_text(found)
        click.echo(
            f"\nIn the way (STOP): {grades[Grade.OBSTACLE]}; "
            f"worth knowing (note): {grades[Grade.NOTE]}."
        )
    if grades[Grade.OBSTACLE]:
        context.exit(1)


def _print_text(found: Mapping[Topic, Sequence[Finding]]) -> None:
    from initadvisor.cli.rendering.text import print_paragraph
    from initadvisor.core.text import shown
    from initadvisor.doctor.findings import Grade

    marks = {Grade.OK: "ok  ", Grade.NOTE: "note", Grade.OBSTACLE: "STOP"}
    indent = " " * 6
    for topic, findings in found.items():
        if findings:
            click.echo(f"{topic.capitalize()}:")
        for finding in findings:
            print_paragraph(shown(finding.text), first=f"{marks[finding.grade]}  ", others=indent)
            if finding.advice:
                print_paragraph(shown(finding.advice), first=f"{indent}-> ", others=f"{indent}   ")
