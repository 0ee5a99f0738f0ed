"""Would this kernel unpack these bytes? Decided from what a scan found, without a kernel.

The rules are those of init/initramfs.c, whose reader of cpio is followed here, and of the
decompressors in lib/ (lib/decompress_*.c and what they call), which differ from the command line
tools' in both directions. Quotations are what the kernel prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.core.codecs import Codec
from initadvisor.image.contents import FindingKind, Lint, Verdict
from initadvisor.image.decompressors import gunzip, lzop
from initadvisor.image.decompressors.unxz import LZMA2, USUAL_PROPERTIES
from initadvisor.image.kernel import kernel_version
from initadvisor.image.stream_facts import (
    Bzip2Facts,
    GzipFacts,
    Lz4Facts,
    LzmaFacts,
    LzopFacts,
    StreamFacts,
    XzFacts,
    ZstdFacts,
)

if TYPE_CHECKING:
    from initadvisor.image.contents import ImageContents, ImageFinding, Segment
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
    if contents.followed and contents.main.codec is Codec.LZ4:
        judgement.refuse(
            "lz4 in a unified kernel image: what systemd's stub loads behind it since 257, the"
            ' kernel takes for a block ("Decoding failed")'
        )
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


class LintReport:
    """Reasons and notes about one image; ``subject`` is the part of it they are about."""

    def __init__(self, *, config: KernelConfig | None, release: str | None) -> None:
        self.subject = ""
        self._config = config
        self._version = kernel_version(release) if release else None
        # Dictionaries keep the order and drop what several segments have in common.
        self._refused: dict[str, None] = {}
        self._unknown: dict[str, None] = {}
        self._unknown_options: dict[str, None] = {}
        self._notes: dict[str, None] = {}

    def refuse(self, reason: str) -> None:
        """Note why every such kernel gives up."""
        self._refused[self._about(reason)] = None

    def doubt(self, reason: str) -> None:
        """Note what is not known and decides."""
        self._unknown[self._about(reason)] = None

    def note(self, text: str) -> None:
        """Note what does not decide."""
        self._notes[self._about(text)] = None

    def needs(self, option: str, what: str, *, or_else: str | None = None) -> None:
        """Say that ``what`` takes a configuration option (``or_else``: or another one)."""
        if self._config is None:
            self._unknown_options[option] = None
        elif not self._config.enabled(option) and not (or_else and self._config.enabled(or_else)):
            self._refused[f"{option}, needed for {what}, is not set in {self._config.source}"] = (
                None
            )

    def needs_since(self, version: tuple[int, int], what: str) -> None:
        """Say that kernels know ``what`` since a version; it is assumed of one that is unknown."""
        if self.is_before(version):
            self.refuse(f"{what} is known to kernels since {version[0]}.{version[1]}")

    def is_before(self, version: tuple[int, int]) -> bool | None:
        """Tell whether the kernel is older than ``version``, None if its version is not known."""
        return self._version < version if self._version else None

    def lint(self) -> Lint:
        """Return the verdict."""
        notes = tuple(self._notes)
        if self._refused:
            return Lint(verdict=Verdict.REFUSED, reasons=tuple(self._refused), notes=notes)
        unknown = tuple(self._unknown)
        if self._unknown_options:
            options = ", ".join(self._unknown_options)
            unknown = (f"the kernel's configuration is not known: it needs {options}", *unknown)
        verdict = Verdict.UNKNOWN if unknown else Verdict.OK
        return Lint(verdict=verdict, reasons=unknown, notes=notes)

    def _about(self, text: str) -> str:
        return f"{self.subject}: {text}" if self.subject else text


ZSTD_WINDOW_MAX_BYTES = (1 << 27) + 1
"""ZSTD_MAXWINDOWSIZE_DEFAULT (lib/zstd/decompress/zstd_decompress.c), which is what stops large
windows; the limit that decompress_unzstd.c itself compares with is 2 GiB or more."""

LZOP_BLOCK_MAX_BYTES = 256 << 10
"""LZO_BLOCK_SIZE, lib/decompress_unlzo.c."""

_XZ_CHECKS = {0: "none", 1: "CRC32", 4: "CRC64", 10: "SHA-256"}
_XZ_CHECK_CRC32 = 1
_XZ_DICTIONARY_MAX_BYTES = 3 << 30  # properties up to 39, xz_dec_lzma2_reset
_XZ_BCJ = {
    0x04: "X86",
    0x05: "POWERPC",
    0x06: "IA64",
    0x07: "ARM",
    0x08: "ARMTHUMB",
    0x09: "SPARC",
    0x0A: "ARM64",
    0x0B: "RISCV",
}
"""Filter IDs and the last part of CONFIG_XZ_DEC_*."""

_LZ4_PADDING_SINCE = (5, 14)
_LZMA_DICTIONARY_MIN_BYTES = 1 << 12
_INT_MAX = (1 << 31) - 1
_NOTABLE_MEMORY_BYTES = 64 << 20


def judge_stream(facts: StreamFacts, judgement: LintReport) -> None:
    """Hold one stream against the kernel's decompressor for it."""
    match facts:
        case GzipFacts():
            _gzip(facts, judgement)
        case Bzip2Facts():
            _bzip2(facts, judgement)
        case LzmaFacts():
            _lzma(facts, judgement)
        case XzFacts():
            _xz(facts, judgement)
        case LzopFacts():
            _lzop(facts, judgement)
        case Lz4Facts():
            _lz4(facts, judgement)
        case ZstdFacts():
            _zstd(facts, judgement)


def _gzip(facts: GzipFacts, judgement: LintReport) -> None:
    """The kernel skips ten bytes and a file name; what else a header has, it takes for data."""
    for flag, what in (
        (gunzip.FEXTRA, "an extra field"),
        (gunzip.FCOMMENT, "a comment"),
        (gunzip.FHCRC, "a checksum of its own"),
    ):
        if facts.flags & flag:
            judgement.refuse(f'the gzip header has {what} ("uncompression error")')
    if not facts.checksum_ok:
        judgement.note("the checksum of the gzip data is wrong; the kernel does not look at it")


def _bzip2(facts: Bzip2Facts, judgement: LintReport) -> None:
    if facts.randomised:
        judgement.refuse("a randomised bzip2 block, which the kernel does not read")
    if facts.overflows:
        judgement.refuse(
            "a bzip2 block that is full to the last byte and ends with a run, as lbzip2 and 7-Zip"
            ' write them; the kernel takes that for an overflow ("decompressor failed")'
        )


def _lzma(facts: LzmaFacts, judgement: LintReport) -> None:
    if facts.properties != USUAL_PROPERTIES or facts.dictionary_bytes & 0xFF:
        judgement.refuse(
            "LZMA whose first two bytes are not 5d 00"
            ' ("invalid magic at start of compressed archive")'
        )
    if facts.dictionary_bytes < _LZMA_DICTIONARY_MIN_BYTES:
        judgement.refuse(f"LZMA with a dictionary of {facts.dictionary_bytes} bytes")
    if facts.end_marker:
        judgement.refuse(
            "LZMA that declares its length and has an end marker as well, which the kernel takes"
            ' for something new ("invalid magic at start of compressed archive")'
        )
    # The buffer's size is the smaller of the two, kept in an int.
    buffer_bytes = facts.dictionary_bytes
    if facts.declared_bytes is not None:
        buffer_bytes = min(buffer_bytes, facts.declared_bytes)
    if buffer_bytes > _INT_MAX:
        judgement.refuse('LZMA that needs a buffer of 2 GiB or more ("decompressor failed")')
    _memory(buffer_bytes, judgement)


def _xz(facts: XzFacts, judgement: LintReport) -> None:
    unsupported = '("Input was encoded with settings that are not supported by this XZ decoder")'
    if facts.check > _XZ_CHECK_CRC32:
        name = _XZ_CHECKS.get(facts.check, f"number {facts.check}")
        judgement.refuse(f"xz check {name}; the kernel knows none and CRC32 only {unsupported}")
    for *others, last in facts.chains:
        if last != LZMA2 or len(others) > 1 or not _XZ_BCJ.keys() >= set(others):
            chain = ", ".join(f"{identifier:#x}" for identifier in (*others, last))
            judgement.refuse(f"xz filters {chain} {unsupported}")
        for identifier in others:
            if bcj := _XZ_BCJ.get(identifier):
                judgement.needs(f"CONFIG_XZ_DEC_{bcj}", f"the {bcj} filter of xz")
    if facts.filter_options:
        judgement.refuse(f"an xz filter with options (a start offset) {unsupported}")
    if facts.dictionary_bytes > _XZ_DICTIONARY_MAX_BYTES:
        judgement.refuse(f"an xz dictionary of more than 3 GiB {unsupported}")
    _memory(facts.dictionary_bytes, judgement)


def _lzop(facts: LzopFacts, judgement: LintReport) -> None:
    """The kernel ignores method and flags, and takes each block to have exactly one checksum."""
    if facts.flags & lzop.F_EXTRA_FIELD:
        judgement.refuse("the lzop header has an extra field, which the kernel takes for data")
    if not facts.block_bytes:
        return
    if facts.block_bytes > LZOP_BLOCK_MAX_BYTES:
        judgement.refuse(
            f"lzop blocks of {facts.block_bytes} bytes, the kernel takes {LZOP_BLOCK_MAX_BYTES}"
            ' ("dest len longer than block size")'
        )
    plain = (facts.flags & lzop.F_ADLER32_D != 0) + (facts.flags & lzop.F_CRC32_D != 0)
    packed = facts.flags & (lzop.F_ADLER32_C | lzop.F_CRC32_C)
    if plain != 1 or (packed and facts.compressed_blocks):
        judgement.refuse(
            "lzop blocks with other than one checksum, of the plain data"
            ' ("Compressed data violation")'
        )
    if not facts.checksum_ok:
        judgement.note("a checksum of the lzop data is wrong; the kernel does not look at it")


def _lz4(facts: Lz4Facts, judgement: LintReport) -> None:
    if not facts.legacy:
        judgement.refuse(
            "lz4, but not in the legacy frame format (lz4 -l)"
            ' ("invalid magic at start of compressed archive")'
        )
    if facts.runs_on:
        judgement.refuse(
            "lz4 directly followed by other data, which the kernel takes for a block"
            ' ("Decoding failed")'
        )
    if facts.zero_padded and judgement.is_before(_LZ4_PADDING_SINCE):
        judgement.doubt(
            "lz4 followed by zeros: without a fix of 5.14, which some older kernels received,"
            ' the kernel stops there ("Decoding failed")'
        )


def _zstd(facts: ZstdFacts, judgement: LintReport) -> None:
    if facts.skippable:
        judgement.refuse(
            'a skippable zstd or lz4 frame ("invalid magic at start of compressed archive")'
        )
    if facts.window_bytes > ZSTD_WINDOW_MAX_BYTES:
        judgement.refuse(
            f"a zstd window of {facts.window_bytes >> 20} MiB, the kernel takes 128"
            ' ("ZSTD-compressed data is probably corrupt")'
        )
    else:
        _memory(facts.window_bytes, judgement)


def _memory(size_bytes: int, judgement: LintReport) -> None:
    if size_bytes >= _NOTABLE_MEMORY_BYTES:
        judgement.note(f"the kernel needs {size_bytes >> 20} MiB of memory to decompress it")
