"""Would this kernel unpack these bytes? Decided from what a scan found, without a kernel.

The rules are those of init/initramfs.c, whose reader of cpio is followed here, and of the
decompressors in lib/, which differ from the command line tools' in both directions. Quotations are
what the kernel prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.core.codecs import Codec
from initadvisor.image.contents import FindingKind
from initadvisor.image.lint_report import LintReport
from initadvisor.image.lint_streams import judge_stream

if TYPE_CHECKING:
    from initadvisor.image.contents import ImageContents, ImageFinding, Lint, Segment
    from initadvisor.image.kernel import KernelConfig


_BOOTCONFIG_SINCE = (5, 6)


def lint(contents: ImageContents, config: KernelConfig | None, kernel_release: str | None) -> Lint:
    """Judge an image for a kernel of which the configuration and the release may be unknown.

    ``refused``: the kernel stops before the end of the image or does not look at it at all. What
    it unpacked until then stays, so such a system may even boot; it is refused all the same,
    because which part of it works is left to chance. ``unknown``: nothing speaks against it, but
    something it depends on is not known. ``ok``: every byte is unpacked.

    Notes do not change the verdict. Files that the kernel drops silently are among them: the rest
    is unpacked, images in daily use have such entries (microcode archives without directories),
    and only the image's owner can tell what a lost file means. So is a wrong checksum that the
    kernel does not compute.
    """
    judgement = LintReport(config=config, release=kernel_release)
    judgement.needs("CONFIG_BLK_DEV_INITRD", "any initramfs that a boot loader passes")
    if config and config.enabled("CONFIG_INITRAMFS_FORCE"):
        judgement.refuse(f"CONFIG_INITRAMFS_FORCE is set in {config.source}: images are ignored")
    for number, segment in enumerate(contents.segments, 1):
        judgement.subject = f"segment {number} ({segment.codec}, offset {segment.offset})"
        if option := segment.codec.spec.kernel_option:
            judgement.needs_since(segment.codec.spec.since, segment.codec)
            judgement.needs(option, segment.codec, or_else=option.replace("_RD_", "_DECOMPRESS_"))
        for facts in segment.facts:
            judge_stream(facts, judgement)
        judge_archive(segment, judgement)
    judgement.subject = ""
    if junk := contents.junk:
        judgement.refuse(
            f"{junk.size_bytes} bytes at offset {junk.offset} are no segment"
            ' ("invalid magic at start of compressed archive")'
        )
    if contents.bootconfig:
        judgement.needs_since(_BOOTCONFIG_SINCE, "boot configuration at the end of the image")
    return judgement.lint()


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
