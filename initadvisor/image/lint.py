"""Would this kernel unpack these bytes? Decided from what a scan found, without a kernel.

The rules are those of init/initramfs.c and of the decompressors in lib/, which differ from the
command line tools' in both directions. Quotations are what the kernel prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.image.lint_archive import judge_archive
from initadvisor.image.lint_report import LintReport
from initadvisor.image.lint_streams import judge_stream

if TYPE_CHECKING:
    from initadvisor.image.contents import ImageContents, Lint
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
