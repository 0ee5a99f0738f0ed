"""``initadvisor contents``: what an image holds, and what that costs each boot."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from initadvisor.cli.options import FileName
from initadvisor.cli.rendering.output import print_json, rounded
from initadvisor.cli.rendering.text import (
    Table,
    figure,
    interval,
    print_item,
    print_paragraph,
    print_table,
    short,
)
from initadvisor.core.text import shown

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.advise.contents import ContentsCost
    from initadvisor.core.estimates import Estimate


_LARGE_BYTES = 10_000_000


@click.command()
@click.argument("image", type=FileName(), required=False)
@click.option("--files", is_flag=True, help="List the largest files of each purpose, too.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def contents(*, image: Path | None, files: bool, as_json: bool) -> None:
    """Show what IMAGE holds by purpose, and what that costs each boot of this machine.

    IMAGE is an initramfs or a unified kernel image; without it, what this machine boots. The times
    are those that recommend has of the image as it is, to read and to unpack it.
    """
    from initadvisor.advise.recommend import price_contents
    from initadvisor.cli.rendering.progress import Progress
    from initadvisor.host import Host

    with Progress() as progress:
        cost = price_contents(Host(), image, observer=progress)
    if as_json:
        print_json(_document(cost))
    else:
        _print(cost, files=files)


def _print(cost: ContentsCost, *, files: bool) -> None:
    first = cost.kinds[0]
    name, digits = str(first.use.kind), 0 if cost.image_bytes >= _LARGE_BYTES else 1
    print_paragraph(
        f"{name[0].upper()}{name[1:]}: {_mb(first.use.stored_bytes, digits)} of "
        f"{_mb(cost.image_bytes, digits)} MB, about {short(first.boot_ms.middle)} ms to "
        f"read and unpack (95 %: {interval(first.boot_ms)})"
    )
    click.echo(f"\n{shown(str(cost.image))}\n")
    again = cost.contents.repeated
    rows = [
        _row(one.use.kind, one.use.files, one.use.unpacked_bytes, one.use.stored_bytes, one.boot_ms)
        for one in cost.kinds
    ]
    unpacked_bytes = sum(one.use.unpacked_bytes for one in cost.kinds)
    count = sum(one.use.files for one in cost.kinds)
    rows.append(_row("all", count, unpacked_bytes, cost.image_bytes, cost.boot_ms))
    print_table(
        Table(
            titles=("purpose", "files", "unpacked MB", "in image MB", "ms a boot (95 %)"),
            rows=tuple(rows),
            text=0,
        )
    )
    if again.files:
        what = "file is" if again.files == 1 else "files are"
        print_paragraph(
            f"{again.files} {what} there once more, counted above: {_mb(again.size_bytes)} MB "
            f"unpacked, {_mb(again.stored_bytes)} in the image, {figure(cost.repeated_ms)} ms."
        )
    if files:
        _print_files(cost)
    for warning in cost.warnings:
        print_item(warning)


def _row(
    kind: str, files: int, unpacked_bytes: int, stored_bytes: int, boot_ms: Estimate
) -> tuple[str, ...]:
    return (str(kind), str(files), _mb(unpacked_bytes), _mb(stored_bytes), figure(boot_ms))


def _print_files(cost: ContentsCost) -> None:
    for one in cost.kinds:
        largest = [file for file in cost.contents.largest if file.kind is one.use.kind]
        if largest:
            click.echo(f"{one.use.kind}, MB unpacked:")
        for file in largest:
            click.echo(f"{file.size_bytes / 1e6:8.2f}  {file.path}")
        if largest:
            click.echo()


def _mb(size_bytes: int, digits: int = 1) -> str:
    return f"{size_bytes / 1e6:.{digits}f}"


def _document(cost: ContentsCost) -> dict[str, Any]:
    return {
        "image": str(cost.image),
        "image_bytes": cost.image_bytes,
        "boot_ms": _estimate(cost.boot_ms),
        "kinds": [{**asdict(one.use), "boot_ms": _estimate(one.boot_ms)} for one in cost.kinds],
        "repeated": {**asdict(cost.contents.repeated), "boot_ms": _estimate(cost.repeated_ms)},
        "largest": [asdict(file) for file in cost.contents.largest],
        "warnings": list(cost.warnings),
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {
        name: rounded(value) if isinstance(value, float) else value
        for name, value in asdict(estimate).items()
    }
