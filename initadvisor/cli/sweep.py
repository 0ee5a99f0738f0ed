"""``initadvisor candidates sweep``: size, time to build and time to boot by level and threads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from initadvisor.cli.options import FileName
from initadvisor.cli.rendering.output import print_json, rounded
from initadvisor.cli.rendering.text import print_paragraph, short
from initadvisor.core.codecs import Codec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from initadvisor.advise.sweep import Sweep, SweptSetting
    from initadvisor.core.estimates import Estimate


_PART = re.compile(r"(\d{1,3})(?:\.\.(\d{1,3}))?", re.ASCII)


def _numbers(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...]:
    """Read ``1..19`` and ``1,2,4``, in any mixture; raises ``click.BadParameter``."""
    numbers: list[int] = []
    for part in value.split(",") if value is not None else ():
        found = _PART.fullmatch(part)
        stretch = range(int(found[1]), int(found[2] or found[1]) + 1) if found else range(0)
        if not stretch:
            msg = f"{part!r} is neither a number nor a range like 1..9"
            raise click.BadParameter(msg, ctx=ctx, param=param)
        numbers += stretch
    return tuple(dict.fromkeys(numbers))


@click.command()
@click.option(
    "--codec",
    type=click.Choice([str(codec) for codec in Codec if codec is not Codec.CAT]),
    default=str(Codec.ZSTD),
    show_default=True,
    help="The codec.",
)
@click.option(
    "--levels",
    callback=_numbers,
    metavar="NUMBERS",
    help="Its levels, for example 1..19 or 1,3,9; by default those worth trying.",
)
@click.option(
    "--threads",
    callback=_numbers,
    metavar="NUMBERS",
    help="Numbers of threads, for example 1,2,4; by default what the generator uses.",
)
@click.option("--image", type=FileName(), help="Of this image instead of this machine's own.")
@click.option("--build", is_flag=True, help="Build and keep each; time nothing on samples.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def sweep(
    *,
    codec: str,
    levels: tuple[int, ...],
    threads: tuple[int, ...],
    image: Path | None,
    build: bool,
    as_json: bool,
) -> None:
    """Compare levels and threads of a codec: size, time to build, time to boot.

    Builds are timed twice each, one after the other. What one thread takes long for is timed on two
    samples instead of the whole content.
    """
    from initadvisor.advise.sweep import sweep as ask
    from initadvisor.advise.sweep import sweep_settings
    from initadvisor.cli.rendering.progress import Progress
    from initadvisor.host import Host

    settings = sweep_settings(Codec(codec), levels, threads)
    with Progress() as progress:
        found = ask(Host(), settings, image=image, build=build, observer=progress)
    if as_json:
        print_json(_as_document(found))
    else:
        _print(found)


def _as_document(found: Sweep) -> dict[str, Any]:
    answer = found.answer
    return {
        "image": str(answer.image),
        "generator": answer.generator,
        "baseline": str(answer.baseline),
        "advised": str(answer.decision.setting),
        "boots_per_upgrade": rounded(answer.pace.boots),
        "boots_per_upgrade_source": answer.pace.source,
        "settings": [_row(swept) for swept in found.settings],
        "skipped": [{"setting": str(s.setting), "reason": s.reason} for s in found.skipped],
        "warnings": list(found.warnings),
    }


def _row(swept: SweptSetting) -> dict[str, Any]:
    from initadvisor.advise.sweep import threads_given

    row, build = swept.row, swept.build
    return {
        "setting": str(row.setting),
        "codec": row.setting.codec,
        "level": row.setting.level,
        "threads": threads_given(row.setting),
        "size_bytes": _estimate(swept.size_bytes, 0),
        "build_cpu_s": build and _estimate(build.cpu_s),
        "build_wall_s": build and _estimate(build.wall_s),
        "unpack_ms": _estimate(row.unpack_ms),
        "boot_ms": _estimate(row.total_ms),
        "saving_ms": _estimate(row.saving_ms),
        "pareto": swept.pareto,
        "today": swept.today,
        "advised": swept.advised,
        "unusable": row.unusable,
    }


def _estimate(figure: Estimate, digits: int = 3) -> dict[str, Any]:
    return {
        "value": rounded(figure.middle, digits),
        "low": rounded(figure.low, digits),
        "high": rounded(figure.high, digits),
        "source": figure.source,
    }


def _print(found: Sweep) -> None:
    for sentence in _verdict(found):
        print_paragraph(sentence)
    click.echo()
    width = max(len("setting"), *(len(str(swept.row.setting)) for swept in found.settings))
    click.echo(
        f"    {'setting':{width}} {'MB':>6}  {'build CPU s':^15}  {'build wall s':^15}"
        f" {'unpack':>6} {'boot':>5}"
    )
    for swept in found.settings:
        click.echo(_line(swept, width))
    print_paragraph("Unpack and boot in ms; builds with their 95 % intervals.")
    print_paragraph("= today's, > advised, * no other is as good in size, build and boot together.")
    if any(_sampled(swept) for swept in found.settings):
        print_paragraph("~ timed on two samples, not on the whole content as with --build.")
    unfit = [swept.row for swept in found.settings if not swept.today and swept.row.unfit]
    for reason in dict.fromkeys(row.unfit for row in unfit):
        first, *more = [str(row.setting) for row in unfit if row.unfit == reason]
        those = f"{first} and {len(more)} more" if more else first
        print_paragraph(f"No choice here: {those}: {reason}")
    for skipped in found.skipped:
        print_paragraph(f"{skipped.setting}: left out: {skipped.reason}")
    for warning in found.warnings:
        print_paragraph(f"Note: {warning}.")


def _line(swept: SweptSetting, width: int) -> str:
    row, build = swept.row, swept.build
    cpu, wall = (_times(build.cpu_s), _times(build.wall_s)) if build else ("-", "-")
    known = {"=": swept.today, ">": swept.advised, "*": swept.pareto, "~": _sampled(swept)}
    marks = "".join(mark for mark, given in known.items() if given)
    return (
        f"{marks:4}{row.setting!s:{width}} {swept.size_bytes.middle / 1e6:6.2f}"
        f"  {cpu:^15}  {wall:^15}"
        f" {short(row.unpack_ms.middle):>6} {short(row.total_ms.middle):>5}"
    )


def _times(figure: Estimate) -> str:
    return f"{_s(figure.middle)} {_s(figure.low)}..{_s(figure.high)}"


def _s(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds >= 100 else f"{seconds:.{1 if seconds >= 10 else 2}f}"


def _sampled(swept: SweptSetting) -> bool:
    return swept.build is not None and swept.build.main_bytes is None


def _verdict(found: Sweep) -> Iterator[str]:
    """Yield what the sweep comes to, then how often an image is built and how often it boots."""
    answer, today, advised = found.answer, found.today, found.advised
    choices = [swept for swept in found.settings if swept.today or not swept.row.unfit]
    quickest = min(choices, key=lambda swept: swept.row.total_ms.middle)
    saved = quickest.row.saving_ms.middle
    if not advised.today:
        yield (
            f"{advised.row.setting} is built {_built(advised)} and saves "
            f"{short(advised.row.saving_ms.middle)} ms of each boot."
        )
    elif choices == [today]:
        yield f"Keep {today.row.setting}: nothing swept may be chosen here."
    elif quickest.today or saved <= 0:
        yield f"Keep {today.row.setting}: nothing swept boots sooner."
    else:
        yield (
            f"Keep {today.row.setting}, as nothing swept is sure to save enough: "
            f"{quickest.row.setting}, built {_built(quickest)}, may save {saved:.1f} ms of each "
            "boot."
        )
    yield f"One build serves the boots until the next kernel: {answer.pace.words}."


def _built(swept: SweptSetting) -> str:
    return f"in {_s(swept.build.wall_s.middle)} s" if swept.build else "as today"
