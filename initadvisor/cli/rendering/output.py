"""Standard output that names itself in errors, and figures as JSON has them."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from initadvisor.target.kernel_room import KernelRoom


SCHEMA: Final = 3
"""Which fields the documents of ``--json`` have: they are part of the interface."""

_NAME = "standard output"


class _Named(io.FileIO):
    """A file whose first error carries a name; nothing is written after it.

    What could not be written is still in the buffer before this file, and the interpreter would
    try again when it exits, and say so in its own words.
    """

    _failed = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Write like any file; raises ``OSError`` with the name in ``filename``, once."""
        if self._failed:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except OSError as err:
            self._failed = True
            err.filename = _NAME
            raise


def no_output() -> TextIO:
    """Return what stands in for an output that was closed before the program began."""
    return Path(os.devnull).open("w", encoding="utf-8")


def named_output() -> TextIO:
    """Return what is to be used as ``sys.stdout``.

    Something that stands in for it already is left alone. Where it was closed by whoever started
    this, nobody wants what is written to it.
    """
    if sys.stdout is None:
        return no_output()
    if sys.stdout is not sys.__stdout__ or not isinstance(sys.stdout, io.TextIOWrapper):
        return sys.stdout
    return io.TextIOWrapper(
        io.BufferedWriter(_Named(sys.stdout.fileno(), "wb", closefd=False)),
        encoding=sys.stdout.encoding,
        errors=sys.stdout.errors,
        line_buffering=sys.stdout.line_buffering,
    )


def print_json(document: dict[str, Any]) -> None:
    """Print an answer to stdout as one object, with the number of its layout in front."""
    import json

    click.echo(json.dumps({"schema": SCHEMA, **document}, indent=2, allow_nan=False))


def kernel_room_document(room: KernelRoom) -> dict[str, Any]:
    """Return what is free for kernels, and what one takes, as plain values."""
    return {
        "mount_point": room.mount_point,
        "release": room.release,
        "free_bytes": room.free_bytes,
        "kernel_bytes": room.kernel_bytes,
        "more_kernels": room.today,
        "in_place": room.in_place,
    }


def rounded(value: float, digits: int = 3) -> float:
    """Round a figure; what would be -0.0 is 0."""
    return round(value, digits) + 0.0
