"""3cpio(1), which dracut and initramfs-tools have make the image where it is installed.

They tell it a codec and a level; its command lines were read in ``src/compression.rs`` of 0.14.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from initadvisor.core.codecs import Codec
from initadvisor.core.settings import Setting
from initadvisor.generators.files import STREAM_SIZE, CommandLine, refuse_control

PROGRAM: Final = "3cpio"

_NUMBER = re.compile(r"^-[+-]?\d{1,18}$", re.ASCII)

_LINES: Final = {
    Codec.BZIP2: CommandLine(program="bzip2"),
    # -T0 or -T1 comes behind these two.
    Codec.LZMA: CommandLine(program="lzma"),
    Codec.XZ: CommandLine(program="xz", before=("--check=crc32",)),
    Codec.GZIP: CommandLine(program="gzip", before=("-n",)),
    Codec.LZOP: CommandLine(program="lzop"),
    Codec.LZ4: CommandLine(program="lz4", before=("-l",)),
    Codec.ZSTD: CommandLine(program="zstd", before=("-q",), after=("-T0", STREAM_SIZE)),
}

REPRODUCED: Final = frozenset({Codec.GZIP, Codec.LZMA, Codec.XZ})
"""For these it has another command line when SOURCE_DATE_EPOCH is set: no threads.

For zstd, too, but with the same bytes.
"""


def levels(codec: Codec) -> range:
    """Return the levels that it passes on: all but those of ``zstd --ultra``."""
    return range(1, 20) if codec is Codec.ZSTD else codec.spec.levels


def unusable(setting: Setting) -> str | None:
    """Return why it could not be told a setting: it knows nothing but levels."""
    if not setting.options:
        return None
    if len(setting.options) > 1 or setting.level is None:
        return "3cpio makes the image, which takes a level and no other options"
    known = levels(setting.codec)
    if setting.level not in known:
        return f"3cpio makes the image, which knows no level above {known[-1]}"
    return None


def told_3cpio(codec: Codec, level: str, *, written: str, warnings: list[str]) -> Setting:
    """Return what comes of ``-LEVEL`` behind the codec's name: the last number, within bounds.

    Without a number the program's own default level applies. ``written`` is what the configuration
    says, for the warning where that is not what comes of it.
    """
    words = f"-{level}".split()
    refuse_control([level.strip(" \t\n")], written=written)
    numbers = [int(word[1:]) for word in words if _NUMBER.match(word)]
    known = levels(codec)
    taken = max(known[0], min(numbers[-1], known[-1])) if numbers else codec.spec.level
    if words != [f"-{taken}"]:
        warnings.append(f"{written}: 3cpio has {codec} compress at level {taken}")
    return Setting(codec, (f"-{taken}",))


def command_line(
    codec: Codec, *, level: int | None, pigz: bool, reproducible: bool = False
) -> CommandLine:
    """Return its line for a codec; ``reproducible``: with a SOURCE_DATE_EPOCH."""
    if codec is Codec.GZIP and pigz and not reproducible:
        return CommandLine(program="pigz", level=level)
    line = replace(_LINES[codec], level=level)
    if codec in {Codec.LZMA, Codec.XZ}:
        return replace(line, after=("-T1" if reproducible else "-T0",))
    return line
