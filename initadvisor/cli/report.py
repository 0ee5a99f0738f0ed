"""``initadvisor report``: the answer as a page to look at and to give away, or as Markdown."""

from __future__ import annotations

import contextlib
import stat
from dataclasses import replace
from pathlib import Path

import click

from initadvisor.cli.options import FileName, machine_options, tables_beginning_with
from initadvisor.core.config import Objective

_STDOUT = Path("-")
_PAGE = Path("initadvisor-report.html")


@click.command()
@click.option(
    "-o",
    "--output",
    type=FileName(),
    help="Write to this file [initadvisor-report.html]; - is standard output.",
)
@click.option("--markdown", is_flag=True, help="Print Markdown, for a forum or a bug report.")
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
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME|FILE",
    shell_complete=tables_beginning_with,
    help="Show also what a table of whatif says: a built-in one, or a TOML or CSV file.",
)
def report(
    *,
    output: Path | None,
    markdown: bool,
    image: Path | None,
    read_speed: float | None,
    overlap: float | None,
    objective: str | None,
    tables: tuple[str, ...],
) -> None:
    """Write what recommend answers, with pictures, to one file that can be given away.

    It holds no serial numbers, no IDs of machine or boots, no names of users and no command lines.
    """
    from initadvisor.advise.recommend import Request, recommend
    from initadvisor.cli.explain_text import advice
    from initadvisor.cli.recommend_text import verdict
    from initadvisor.cli.rendering.progress import Progress
    from initadvisor.host import Host
    from initadvisor.measure.catch_up import catch_up
    from initadvisor.report.collect import collect
    from initadvisor.report.published import published_tables

    if markdown:
        from initadvisor.report.markdown import markdown as text_of
    else:
        from initadvisor.report.page import page as text_of

    path = output or (_STDOUT if markdown else _PAGE)
    if path != _STDOUT:
        _require_writable(path)
    request = Request(
        image=image,
        read_speed_mb_s=read_speed,
        overlap_ms=overlap,
        objective=Objective(objective) if objective else None,
    )
    host, published = Host(), published_tables(tables)
    with Progress() as progress:
        told = None if image else catch_up(host, observer=progress)
        answer = recommend(host, request, observer=progress)
    if told:
        answer = replace(answer, warnings=(told, *answer.warnings))
    found = collect(host, answer, verdict=verdict, advice=advice, published=published)
    _write(path, text_of(found))


def _require_writable(path: Path) -> None:
    """Raise ``InitadvisorError`` for what is no ordinary file, and where none can be written."""
    import tempfile

    from initadvisor.core.errors import UsageError
    from initadvisor.host.files import failing_as

    with contextlib.suppress(OSError):
        if not stat.S_ISREG(path.lstat().st_mode):
            msg = f"cannot write {path}: it is no ordinary file"
            raise UsageError(msg, hint="-o - writes to standard output")
    with failing_as(f"cannot write {path}"), tempfile.TemporaryFile(dir=path.parent):
        pass


def _write(path: Path, text: str) -> None:
    from initadvisor.core.text import shown
    from initadvisor.host.files import failing_as, whole_file

    if path == _STDOUT:
        click.echo(text, nl=False)
        return
    with failing_as(f"cannot write {path}"), whole_file(path) as file:
        file.write(text.encode())
    click.echo(shown(f"{path}: {path.stat().st_size / 1000:.0f} kB"))
