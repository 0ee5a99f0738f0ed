"""``initadvisor report``: the answer as text that can be given away."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import click

from initadvisor.cli.options import FileName, machine_options
from initadvisor.core.config import Objective

_STDOUT = Path("-")


@click.command()
@click.option(
    "-o",
    "--output",
    type=FileName(),
    help="Write to this file; - is standard output.",
)
@click.option(
    "--image",
    type=FileName(),
    help="Report on this image, of any machine, instead of this machine's own.",
)
@machine_options
@click.option(
    "--objective",
    type=click.Choice([str(objective) for objective in Objective]),
    help="What is to be small: the time of a boot, the image, or boot and build together.",
)
def report(
    *,
    output: Path | None,
    image: Path | None,
    read_speed: float | None,
    overlap: float | None,
    objective: str | None,
) -> None:
    """Write what recommend answers as Markdown, for a forum or a bug report.

    It holds no serial numbers, no IDs of machine or boots, no names of users and no command lines.
    """
    from initadvisor.advise.recommend import Request, recommend
    from initadvisor.cli.explain_text import advice
    from initadvisor.cli.recommend_text import verdict
    from initadvisor.cli.rendering.progress import Progress
    from initadvisor.host import Host
    from initadvisor.measure.catch_up import catch_up
    from initadvisor.report.collect import collect
    from initadvisor.report.markdown import markdown

    path = _STDOUT if output is None else output
    if path != _STDOUT:
        _require_replaceable(path)
    request = Request(
        image=image,
        read_speed_mb_s=read_speed,
        overlap_ms=overlap,
        objective=Objective(objective) if objective else None,
    )
    host = Host()
    with Progress() as progress:
        told = None if image else catch_up(host, observer=progress)
        answer = recommend(host, request, observer=progress)
    if told:
        answer = replace(answer, warnings=(told, *answer.warnings))
    found = collect(host, answer, verdict=verdict, advice=advice)
    _write(path, markdown(found))


def _require_replaceable(path: Path) -> None:
    """Raise ``InitadvisorError`` for what is there and is no ordinary file."""
    from initadvisor.core.errors import UsageError

    try:
        found = path.lstat()
    except OSError:
        return
    if not stat.S_ISREG(found.st_mode):
        msg = f"cannot write {path}: it is no ordinary file"
        raise UsageError(msg, hint="-o - writes to standard output")


def _write(path: Path, text: str) -> None:
    from initadvisor.core.text import shown
    from initadvisor.host.files import failing_as, whole_file

    if path == _STDOUT:
        click.echo(text, nl=False)
        return
    with failing_as(f"cannot write {path}"), whole_file(path) as file:
        file.write(text.encode())
    click.echo(shown(f"{path}: {path.stat().st_size / 1000:.0f} kB"))
