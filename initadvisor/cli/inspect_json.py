"""The result of ``inspect`` for programs."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from initadvisor.model.image import Finding, ImageContents, Lint, Segment, Stretch
    from initadvisor.model.kernel import KernelConfig


def print_result(
    name: str, contents: ImageContents, verdict: Lint, config: KernelConfig | None
) -> None:
    """Print the JSON that initadvisor-inspect(1) describes to stdout."""
    document = {
        "schema": 1,
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
        "largest": [dataclasses.asdict(file) for file in contents.largest],
        "initrd": _stretch(contents.initrd),
        "junk": _stretch(contents.junk),
        "bootconfig": _stretch(contents.bootconfig),
    }
    click.echo(json.dumps(document, indent=2))


def _segment(segment: Segment) -> dict[str, object]:
    return {
        "offset": segment.offset,
        "size_bytes": segment.size_bytes,
        "codec": segment.codec,
        "unpacked_bytes": segment.unpacked_bytes,
        "entries": segment.entries,
        "padding_bytes": segment.padding_bytes,
        "streams": segment.streams,
        "warnings": [_finding(finding) for finding in segment.findings],
    }


def _finding(finding: Finding) -> dict[str, object]:
    return dataclasses.asdict(finding)


def _stretch(stretch: Stretch | None) -> dict[str, object] | None:
    return dataclasses.asdict(stretch) if stretch else None
