"""The result of ``inspect`` for a person, in 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from initadvisor.model.image import Verdict

if TYPE_CHECKING:
    from initadvisor.model.image import ImageContents, Lint
    from initadvisor.model.kernel import KernelConfig

_VERDICTS = {
    Verdict.OK: "ok: the kernel would unpack all of it",
    Verdict.REFUSED: "refused: the kernel would not unpack all of it",
    Verdict.UNKNOWN: "unknown: nothing speaks against it, but not all is known",
}


def print_result(
    name: str, contents: ImageContents, verdict: Lint, config: KernelConfig | None
) -> None:
    """Print everything to stdout."""
    console = Console(highlight=False, markup=False, emoji=False)
    console.print(f"{name}: {_origin(contents)}\n")
    console.print(_segments(contents))
    console.print(_kinds(contents))
    console.print(_largest(contents))
    held_against = f" (configuration: {config.source})" if config else ""
    console.print(f"Verdict: {_VERDICTS[verdict.verdict]}{held_against}")
    _list(console, verdict.reasons)
    if notes := (*_notes(contents), *verdict.notes):
        console.print("Notes:")
        _list(console, notes)


def _list(console: Console, lines: tuple[str, ...]) -> None:
    for line in lines:
        console.print(Padding(f"- {line}", (0, 0, 0, 2), expand=False))


def _origin(contents: ImageContents) -> str:
    what = "unified kernel image" if contents.uki else "initramfs"
    maker = contents.generator or "an unknown generator"
    return f"{what} for kernel {contents.kernel_release or 'unknown'}, made by {maker}"


def _segments(contents: ImageContents) -> Table:
    table = _table("segment", "offset", "size MB", "codec", "unpacked MB", "entries")
    for number, segment in enumerate(contents.segments, 1):
        table.add_row(
            str(number),
            str(segment.offset),
            _mb(segment.size_bytes),
            segment.codec,
            _mb(segment.unpacked_bytes),
            str(segment.entries),
        )
    return table


def _kinds(contents: ImageContents) -> Table:
    table = _table("what the room goes to", "files", "MB", "%", "already compressed MB")
    table.columns[0].justify = "left"
    total = sum(kind.size_bytes for kind in contents.kinds) or 1
    for kind in contents.kinds:
        table.add_row(
            kind.kind,
            str(kind.files),
            _mb(kind.size_bytes),
            f"{100 * kind.size_bytes / total:.0f}",
            _mb(kind.compressed_bytes) if kind.compressed_bytes else "",
        )
    return table


def _largest(contents: ImageContents) -> Table:
    table = _table("MB", "largest files")
    table.columns[1].justify = "left"
    table.columns[1].overflow = "fold"
    for file in contents.largest:
        table.add_row(_mb(file.size_bytes), file.path)
    return table


def _notes(contents: ImageContents) -> list[str]:
    """Return what changes the meaning of the figures above."""
    notes = []
    if contents.microcode:
        notes.append("microcode in front, where the kernel looks for it")
    if contents.file_system:
        notes.append(
            f"most files may be in a {contents.file_system} image inside, compressed once already"
        )
    early = sum(kind.early_compressed_bytes for kind in contents.kinds)
    if early:
        notes.append(f"{_mb(early)} MB of compressed files in uncompressed segments")
    if contents.bootconfig:
        notes.append(f"{contents.bootconfig.size_bytes} bytes of boot configuration at the end")
    return notes


def _table(*titles: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in titles:
        table.add_column(title, justify="right")
    return table


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.2f}"
