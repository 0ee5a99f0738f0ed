"""The codec table: everything the project knows about a compression format, once.

Detection, lint, generators, the command line and the documentation read it. A new codec begins with
a row; docs/architecture.md ("Where to add something") has the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Codec(StrEnum):
    """A compression the kernel can unpack an initramfs from; ``CAT`` is none at all.

    The values are the names that mkinitcpio, dracut and initramfs-tools use in their configuration.
    """

    CAT = "cat"
    GZIP = "gzip"
    BZIP2 = "bzip2"
    LZMA = "lzma"
    XZ = "xz"
    LZOP = "lzop"
    LZ4 = "lz4"
    ZSTD = "zstd"

    @property
    def spec(self) -> CodecSpec:
        """This codec's row of the table."""
        return CODECS[self]

    @property
    def self_extraction_option(self) -> str:
        """The configuration option with which the kernel itself is compressed so."""
        option = self.spec.kernel_option
        return option.replace("_RD_", "_KERNEL_") if option else "CONFIG_KERNEL_UNCOMPRESSED"


@dataclass(frozen=True, slots=True, kw_only=True)
class CodecSpec:
    """One row of the codec table.

    ``kernel_magics``: the two bytes by which the kernel chooses its decompressor
    (lib/decompress.c, ``compressed_formats``); the rest of a format's magic is checked later, by
    the decompressor itself. ``kernel_option``: the configuration option without which the kernel
    refuses. ``since``: the first kernel release that has it.

    ``level``: the level the command line tool uses when it is given none, ``levels``: those it
    accepts. ``worth_trying``: levels tried besides the generator's own default. ``is_candidate``:
    false where the format has lost on every ordinary machine measured so far, so that it is built
    last and on request only.
    """

    codec: Codec
    kernel_magics: tuple[bytes, ...] = ()
    kernel_option: str | None = None
    since: tuple[int, int] = (2, 6)
    level: int | None = None
    levels: range = range(0)
    worth_trying: tuple[int, ...] = ()
    is_candidate: bool = True


CODECS: dict[Codec, CodecSpec] = {
    spec.codec: spec
    for spec in (
        CodecSpec(codec=Codec.CAT),
        CodecSpec(
            codec=Codec.GZIP,
            kernel_magics=(b"\x1f\x8b", b"\x1f\x9e"),
            kernel_option="CONFIG_RD_GZIP",
            level=6,
            levels=range(1, 10),
            worth_trying=(1, 6, 9),
        ),
        CodecSpec(
            codec=Codec.BZIP2,
            kernel_magics=(b"BZ",),
            kernel_option="CONFIG_RD_BZIP2",
            level=9,
            levels=range(1, 10),
            is_candidate=False,
        ),
        CodecSpec(
            codec=Codec.LZMA,
            kernel_magics=(b"\x5d\x00",),
            kernel_option="CONFIG_RD_LZMA",
            level=6,
            levels=range(10),
            is_candidate=False,
        ),
        CodecSpec(
            codec=Codec.XZ,
            kernel_magics=(b"\xfd7",),
            kernel_option="CONFIG_RD_XZ",
            level=6,
            levels=range(10),
            worth_trying=(0, 6),
        ),
        CodecSpec(
            codec=Codec.LZOP,
            kernel_magics=(b"\x89L",),
            kernel_option="CONFIG_RD_LZO",
            level=3,
            levels=range(1, 10),
        ),
        CodecSpec(
            codec=Codec.LZ4,
            kernel_magics=(b"\x02\x21",),
            kernel_option="CONFIG_RD_LZ4",
            since=(3, 11),
            level=1,
            levels=range(1, 13),
            worth_trying=(1, 9),
        ),
        CodecSpec(
            codec=Codec.ZSTD,
            kernel_magics=(b"\x28\xb5",),
            kernel_option="CONFIG_RD_ZSTD",
            since=(5, 9),
            level=3,
            levels=range(1, 23),
            worth_trying=(1, 3, 9, 19),
        ),
    )
}


def codec_of_magic(head: bytes) -> Codec | None:
    """Return the codec the kernel would choose for data that starts with ``head``, if any.

    Like the kernel, only the first two bytes count (lib/decompress.c, ``decompress_method``).
    """
    for spec in CODECS.values():
        if head[:2] in spec.kernel_magics:
            return spec.codec
    return None
