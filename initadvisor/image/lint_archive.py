"""What the kernel's cpio reader makes of an archive (init/initramfs.c)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.core.codecs import Codec
from initadvisor.image.contents import FindingKind

if TYPE_CHECKING:
    from initadvisor.image.contents import ImageFinding, Segment
    from initadvisor.image.lint_report import LintReport


_CRC_SINCE = (5, 19)

_REFUSED = {
    FindingKind.UNTERMINATED_NAME: 'a name without a NUL at its end ("malformed archive")',
    FindingKind.BAD_CHECKSUM: 'data that its checksum contradicts ("bad data checksum")',
    FindingKind.MISALIGNED: 'it starts at an offset that is no multiple of 4 ("broken padding")',
    FindingKind.LEADING_ZEROS: 'the first archive starts with zeros ("no cpio magic")',
    FindingKind.EMPTY: (
        'the first archive unpacks to nothing ("junk at the end of compressed archive")'
    ),
    FindingKind.SPLIT: (
        "one archive in several compressed streams, which the kernel takes for an archive each"
        ' ("junk at the end of compressed archive")'
    ),
}
_NOTED = {
    FindingKind.MISSING_PARENT: (
        "entries whose directory is not in the archive before them; the kernel drops them silently"
    ),
    FindingKind.DROPPED_LINK: "hard links to an entry that the kernel drops; so it drops them",
    FindingKind.DOT_DOT: "names with '..' in them",
    FindingKind.ABSOLUTE: "names that start with a slash, which the kernel ignores",
    FindingKind.NO_TRAILER: "no trailer at the end; the archive may have been cut off",
    FindingKind.LATE_MICROCODE: (
        "microcode or ACPI tables where the kernel does not look for them: they must stand in"
        " front, uncompressed"
    ),
    FindingKind.SEVERAL_KERNELS: "modules of more than one kernel release",
}


def judge_archive(segment: Segment, judgement: LintReport) -> None:
    """Hold what was found in one segment's archive against the kernel's reader."""
    for finding in segment.findings:
        if text := _REFUSED.get(finding.kind):
            judgement.refuse(text + _where(finding))
        elif text := _NOTED.get(finding.kind):
            judgement.note(text + _where(finding))
        else:
            _judge_by_segment(finding, segment, judgement)


def _judge_by_segment(finding: ImageFinding, segment: Segment, judgement: LintReport) -> None:
    """Judge what depends on more than the finding."""
    compressed = segment.codec is not Codec.CAT
    match finding.kind:
        case FindingKind.CRC_FORMAT:
            judgement.needs_since(_CRC_SINCE, "the crc format of cpio")
        case FindingKind.UNPADDED_END:
            # A plain archive ends with the image then; the kernel does not mind.
            if compressed:
                judgement.refuse(
                    "the archive ends before its last entry is padded to a multiple of 4 bytes"
                    ' ("junk at the end of compressed archive")'
                )
        case FindingKind.SKIPPED:
            text = "entries without a name, with a name or link target that is too long, or"
            text += f" with data where none belongs{_where(finding)}"
            if compressed:
                # do_header keeps the state that came before: where a buffer of the decompressor
                # ended inside the header, it goes back to the header.
                judgement.doubt(f"{text}; after such a header the kernel may lose its place")
            else:
                judgement.note(f"{text}; the kernel skips them")
        case _:
            raise ValueError(finding.kind)


def _where(finding: ImageFinding) -> str:
    """Return how often something was found and the first example, in parentheses."""
    parts = [f"{finding.count} times"] if finding.count > 1 else []
    if finding.example:
        parts.append(("first " if finding.count > 1 else "") + f"'{finding.example}'")
    return f" ({', '.join(parts)})" if parts else ""
