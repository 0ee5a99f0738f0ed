"""The answer of ``inspect``, as text and as JSON."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from initadvisor.cli.rendering.output import print_json
from initadvisor.cli.rendering.text import Table, print_paragraph, print_table
from initadvisor.core.text import shown
from initadvisor.image.contents import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from initadvisor.image.contents import ByteRange, ImageContents, Lint, Segment
    from initadvisor.image.kernel import KernelConfig


_VERDICTS = {
    Verdict.OK: "ok: the kernel would unpack all of it",
    Verdict.REFUSED: "refused: the kernel would not unpack all of it",
    Verdict.UNKNOWN: "unknown: nothing speaks against it, but not all is known",
}


def print_result(
    name: str, contents: ImageContents, verdict: Lint, config: KernelConfig | None
) -> None:
    """Print everything to stdout."""
    click.echo(f"{shown(name)}: {_origin(contents)}\n")
    for table in (_segments(contents), _kinds(contents), _largest(contents)):
        print_table(table)
    held_against = f" (configuration: {config.source})" if config else ""
    click.echo(f"Verdict: {_VERDICTS[verdict.verdict]}{held_against}")
    _print_list(verdict.reasons)
    if notes := (*_notes(contents), *verdict.notes):
        click.echo("Notes:")
        _print_list(notes)


def _origin(contents: ImageContents) -> str:
    what = "unified kernel image" if contents.uki else "initramfs"
    maker = contents.generator or "an unknown generator"
    return f"{what} for kernel {contents.kernel_release or 'unknown'}, made by {maker}"


def _segments(contents: ImageContents) -> Table:
    return Table(
        titles=("segment", "offset", "size MB", "codec", "unpacked MB", "entries"),
        rows=tuple(
            (
                str(number),
                str(segment.offset),
                _mb(segment.size_bytes),
                segment.codec.value,
                _mb(segment.unpacked_bytes),
                str(segment.entries),
            )
            for number, segment in enumerate(contents.segments, 1)
        ),
    )


def _kinds(contents: ImageContents) -> Table:
    total = sum(kind.size_bytes for kind in contents.kinds) or 1
    return Table(
        titles=("what the room goes to", "files", "MB", "%", "already compressed MB"),
        rows=tuple(
            (
                kind.kind.value,
                str(kind.files),
                _mb(kind.size_bytes),
                f"{100 * kind.size_bytes / total:.0f}",
                _mb(kind.compressed_bytes) if kind.compressed_bytes else "",
            )
            for kind in contents.kinds
            if kind.files
        ),
        text=0,
    )


def _largest(contents: ImageContents) -> Table:
    return Table(
        titles=("MB", "largest files"),
        rows=tuple((_mb(file.size_bytes), file.path) for file in contents.ten_largest),
        text=1,
    )


def _notes(contents: ImageContents) -> Iterator[str]:
    """Yield what changes the meaning of the figures above."""
    if contents.microcode:
        yield "microcode in front, where the kernel looks for it"
    if contents.file_system:
        yield f"most files may be in a {contents.file_system} image inside, compressed once already"
    if early := sum(kind.early_compressed_bytes for kind in contents.kinds):
        yield f"{_mb(early)} MB of compressed files in uncompressed segments"
    if contents.bootconfig:
        yield f"{contents.bootconfig.size_bytes} bytes of boot configuration at the end"


def _print_list(lines: Iterable[str]) -> None:
    for line in lines:
        print_paragraph(line, first="  - ", others="    ")


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.2f}"


def print_document(
    name: str, contents: ImageContents, verdict: Lint, config: KernelConfig | None
) -> None:
    """Print the JSON that initadvisor-inspect(1) describes to stdout."""
    print_json(
        {
            "image": name,
            "segments": [_segment(segment) for segment in contents.segments],
            "kernel": contents.kernel_release,
            "kernel_config": config.source if config else None,
            "lint": {
                "verdict": verdict.verdict,
                "reasons": list(verdict.reasons),
                "notes": list(verdict.notes),
            },
            "generator": contents.generator,
            "uki": contents.uki,
            "microcode": contents.microcode,
            "file_system": contents.file_system,
            "kinds": [dataclasses.asdict(kind) for kind in contents.kinds],
            "largest": [dataclasses.asdict(file) for file in contents.ten_largest],
            "initrd": _stretch(contents.initrd),
            "junk": _stretch(contents.junk),
            "bootconfig": _stretch(contents.bootconfig),
        }
    )


def _segment(segment: Segment) -> dict[str, object]:
    return {
        "offset": segment.offset,
        "size_bytes": segment.size_bytes,
        "codec": segment.codec,
        "unpacked_bytes": segment.unpacked_bytes,
        "entries": segment.entries,
        "padding_bytes": segment.padding_bytes,
        "streams": segment.streams,
        "warnings": [dataclasses.asdict(finding) for finding in segment.findings],
    }


def _stretch(stretch: ByteRange | None) -> dict[str, object] | None:
    return dataclasses.asdict(stretch) if stretch else None
