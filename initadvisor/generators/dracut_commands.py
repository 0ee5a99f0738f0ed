"""The command lines that dracut completes a compressor's name to.

Since 109 dracut has 3cpio(1) make the image where that is installed, and 3cpio has command lines of
its own (dracut-ng ``dracut.sh``, 3cpio ``src/compression.rs``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from initadvisor.core.codecs import Codec

if TYPE_CHECKING:
    from initadvisor.core.settings import Setting


_LEVEL = re.compile(r"^-(\d+e?)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """A program with what stands before and after its level; no level: the program's own."""

    program: str
    before: tuple[str, ...] = ()
    level: int | None = None
    after: tuple[str, ...] = ()

    def completed(self, options: tuple[str, ...]) -> tuple[str, ...]:
        """Return the whole command line; ``options`` replace the level if they have one."""
        own_level = any(_LEVEL.match(option) for option in options)
        level = () if own_level or self.level is None else (f"-{self.level}",)
        return (self.program, *self.before, *level, *options, *self.after)


_PIGZ: Final = CommandLine(program="pigz", level=9, after=("-n", "-T", "-R"))
_LBZIP2: Final = CommandLine(program="lbzip2", level=9)

_LINES: Final = {
    Codec.BZIP2: CommandLine(program="bzip2", level=9),
    Codec.LZMA: CommandLine(program="lzma", level=9, after=("-T0",)),
    Codec.XZ: CommandLine(
        program="xz", before=("--check=crc32",), after=("--lzma2=dict=1MiB", "-T0")
    ),
    # --rsyncable: every GNU gzip since 1.7 has it, which is all that dracut looks for.
    Codec.GZIP: CommandLine(program="gzip", before=("-n",), level=9, after=("--rsyncable",)),
    Codec.LZOP: CommandLine(program="lzop", level=9),
    Codec.LZ4: CommandLine(program="lz4", before=("-l",), level=9),
    Codec.ZSTD: CommandLine(program="zstd", level=15, after=("-q", "-T0")),
}

_PIGZ_3CPIO: Final = CommandLine(program="pigz", level=9)

_LINES_3CPIO: Final = {
    Codec.BZIP2: CommandLine(program="bzip2", level=9),
    Codec.LZMA: CommandLine(program="lzma", level=9, after=("-T0",)),
    Codec.XZ: CommandLine(program="xz", before=("--check=crc32",), after=("-T0",)),
    Codec.GZIP: CommandLine(program="gzip", before=("-n",), level=9),
    Codec.LZOP: CommandLine(program="lzop", level=9),
    Codec.LZ4: CommandLine(program="lz4", before=("-l",), level=9),
    Codec.ZSTD: CommandLine(program="zstd", before=("-q",), level=15, after=("-T0",)),
}


def command_line(codec: Codec, *, pigz: bool, lbzip2: bool, through_3cpio: bool) -> CommandLine:
    """Return the line for a codec, given which of the parallel programs are installed."""
    match codec:
        case Codec.GZIP if pigz:
            return _PIGZ_3CPIO if through_3cpio else _PIGZ
        case Codec.BZIP2 if lbzip2 and not through_3cpio:
            return _LBZIP2
        case _:
            return (_LINES_3CPIO if through_3cpio else _LINES)[codec]


def completed(line: CommandLine, setting: Setting) -> tuple[str, ...]:
    """Return the command line for a setting: dracut's own, or the text for ``compress=``.

    xz forgets a level once a filter chain is given, so ``-9 --lzma2=dict=1MiB`` (dracut's
    compress_level_xz) changes nothing (observed with xz 5.4); the level goes into the chain.
    """
    chain = next((word for word in line.after if word.startswith("--lzma2=")), None)
    levels = [match[1] for option in setting.options if (match := _LEVEL.match(option))]
    if chain is None or not levels:
        return line.completed(setting.options)
    with_level = chain.replace("--lzma2=", f"--lzma2=preset={levels[-1]},")
    others = tuple(option for option in setting.options if not _LEVEL.match(option))
    after = tuple(with_level if word == chain else word for word in line.after)
    return (line.program, *line.before, *others, *after)
