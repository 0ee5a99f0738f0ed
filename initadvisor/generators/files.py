"""What generators ask of the machine: programs, package versions, default levels, and images."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, UsageError
from initadvisor.core.settings import Setting
from initadvisor.host.files import os_failure
from initadvisor.host.process import SYSTEM_DIRECTORIES
from initadvisor.image.kernel import KernelConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from initadvisor.generators import InstalledImage
    from initadvisor.host import Host


COMPRESSORS_OWN = (
    *("BZIP", "BZIP2", "GZIP", "LZ4_CLEVEL", "LZ4_NBWORKERS", "LZOP", "PIGZ"),
    *("XZ_DEFAULTS", "XZ_OPT", "ZSTD_CLEVEL", "ZSTD_NBTHREADS"),
)
"""Variables with which compressors take options beside those of their command line."""

_NUMBERS = re.compile(r"(\d+)")


def has_program(host: Host, program: str, directories: Iterable[str] = SYSTEM_DIRECTORIES) -> bool:
    """Tell whether a shell with this search path finds ``program``; a path is looked up as it is.

    Only what lies below the host's root counts, so that the answer is the generator's, which has a
    search path of its own.
    """
    if not program:
        return False
    paths = [program] if "/" in program else [f"{place}/{program}" for place in directories]
    return any(host.path(path).is_file() and os.access(host.path(path), os.X_OK) for path in paths)


def exists(host: Host, path: str | Path) -> bool:
    """Tell whether a path of the host exists.

    Raises ``NeedsRootError`` where only root may find out.
    """
    try:
        host.path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as err:
        raise os_failure(err, f"cannot look at {host.path(path)}", only_root=True) from err
    return True


def debian_version(host: Host, package: str) -> str | None:
    """Return the version of an installed Debian package (dpkg's status file)."""
    status = host.read_text("/var/lib/dpkg/status") or ""
    for stanza in status.split("\n\n"):
        lines = stanza.splitlines()
        if f"Package: {package}" in lines and any(
            line.startswith("Status: ") and line.endswith(" installed") for line in lines
        ):
            return next((line[9:] for line in lines if line.startswith("Version: ")), None)
    return None


def modules_suffix(host: Host, release: str) -> str | None:
    """Return how compressed kernel modules end (``.ko.zst``), None if they are not compressed."""
    listed = host.read_text(f"/lib/modules/{release}/modules.dep") or ""
    first = listed.partition(":")[0]
    match = re.search(r"\.ko\.\w+$", first)
    return match[0] if match else None


def first_kernel_config(host: Host, places: Iterable[str]) -> KernelConfig | None:
    """Return the kernel configuration that is in the first of these files there is, be it empty."""
    texts = ((place, host.read_text(place)) for place in places)
    found = ((place, text) for place, text in texts if text is not None)
    return next((KernelConfig.parse(text, source=place) for place, text in found), None)


def version_key(name: str) -> tuple[tuple[int, int | str], ...]:
    """Return a key that sorts names like ``sort -V`` does for names made of words and numbers."""
    return tuple(
        (1, int(part)) if part.isdecimal() else (0, part) for part in _NUMBERS.split(name) if part
    )


_LEVEL = re.compile(r"^-(\d+)e?$", re.ASCII)
_HIGHEST = {Codec.LZ4: 12, Codec.ZSTD: 19}
_HIGHEST_ULTRA = 22
_DIGIT_BY_DIGIT = frozenset({"bzip2", "gzip", "lzma", "xz"})
_EXTREME = (Codec.LZMA, Codec.XZ)
_PLAIN_LEVEL = (
    re.compile(r"^-(0|[1-9]\d{0,8})$", re.ASCII),
    re.compile(r"^-(0|[1-9]\d{0,8})e?$", re.ASCII),
)
"""No number of more than 32 bits: zstd fails with one."""
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_UNTOLD = ("--fast", "--best", "--lzma1", "--lzma2")


def level_of(setting: Setting, otherwise: int | None) -> int | None:
    """Return the level the setting's options ask for, ``otherwise`` if they ask for none.

    None for ``cat``, and where an option replaces the level by something else (``--fast``, a
    filter chain of xz).
    """
    if setting.codec is Codec.CAT:
        return None
    level = otherwise
    for option in setting.options:
        if match := _LEVEL.match(option):
            level = int(match[1])
        elif option.startswith(_UNTOLD):
            level = None
    return level


def as_run(setting: Setting, program: str, warnings: list[str]) -> Setting:
    """Return the setting with the levels that a program makes of those it does not have.

    zstd goes above 19 with ``--ultra`` only (zstdcli.c), lz4 no higher than 12 (lz4hc.h). Those who
    read their options digit by digit take the last one (observed with gzip 1.12, xz 5.4).
    """
    highest = _HIGHEST.get(setting.codec, 0)
    if setting.codec is Codec.ZSTD and "--ultra" in setting.options:
        highest = _HIGHEST_ULTRA

    def run(option: str) -> str:
        match = _LEVEL.match(option)
        if match and highest and int(match[1]) > highest:
            return f"-{highest}"
        if match and program in _DIGIT_BY_DIGIT and len(match[1]) > 1:
            digits = {int(digit) for digit in match[1]}
            return f"-{option[-1]}" if digits <= {*setting.codec.spec.levels} else option
        return option

    found = replace(setting, options=tuple(run(option) for option in setting.options))
    if found != setting:
        warnings.append(f"{program} makes {found} of {setting}")
    return found


def words_of(text: str, *, written: str) -> tuple[str, ...]:
    """Return the words that a shell makes of a value; ``written`` is how the configuration has it.

    Raises what ``refuse_control`` does.
    """
    words = tuple(word for word in re.split(r"[ \t\n]+", text) if word)
    refuse_control(words, written=written)
    return words


def refuse_control(words: Iterable[str], *, written: str) -> None:
    """Raise ``InitadvisorError`` for control characters but tabs: programs differ on them."""
    if found := _CONTROL.search("".join(words)):
        msg = f"cannot tell what comes of {written!r}: it holds the character {found[0]!r}"
        raise InitadvisorError(msg, hint="write the file with lines that end as on Linux")


def refuse_relative(program: str, *, written: str) -> None:
    """Raise ``InitadvisorError`` for a path that leads where the generator happens to be."""
    if "/" in program and not program.startswith("/"):
        msg = f"cannot tell which program {program!r} is ({written}): it is no absolute path"
        raise InitadvisorError(msg, hint="name the program alone")


def told(codec: Codec, level: str, *, program: str, written: str, warnings: list[str]) -> Setting:
    """Return what comes of a level that a generator puts behind a dash, as words of its own.

    ``written`` is what the configuration says. Raises ``InitadvisorError`` where the program fails.
    """
    setting = Setting(codec, words_of(f"-{level}", written=written))
    try:
        if not _PLAIN_LEVEL[codec in _EXTREME].match(setting.options[0]):
            msg = f"{program} would be given {' '.join(setting.options)}, and fail"
            raise UsageError(msg)
        return Setting.parse(str(as_run(setting, program, warnings)))
    except UsageError as err:
        msg = f"cannot tell what comes of {written}: {err.message}"
        raise InitadvisorError(msg, hint="set it to a level, without a dash") from err


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """A program with what stands before and after its level; no level: the program's own."""

    program: str
    before: tuple[str, ...] = ()
    level: int | None = None
    after: tuple[str, ...] = ()

    def completed(self, options: Sequence[str]) -> tuple[str, ...]:
        """Return the command for some options, which replace the level if they have one."""
        own = self.level if not any(map(_LEVEL.match, options)) else None
        level = () if own is None else (f"-{own}",)
        return (self.program, *self.before, *level, *options, *self.after)


STREAM_SIZE = "--stream-size=N"
"""What stands in a command line for the option of zstd(1) that says how long its input is."""


def with_stream_size(argv: Sequence[str], size_bytes: int) -> tuple[str, ...]:
    """Return what to run for an input of this size: with another one zstd fails."""
    told = f"--stream-size={size_bytes}"
    return tuple(told if word == STREAM_SIZE else word for word in argv)


def in_order(host: Host, images: Iterable[InstalledImage]) -> tuple[InstalledImage, ...]:
    """Return images with the running kernel's default image first, then newest first.

    Fallback and rescue images come last.
    """
    running = host.kernel_release()
    newest = sorted(images, key=lambda image: version_key(image.kernel_release), reverse=True)
    return tuple(
        sorted(newest, key=lambda image: (image.fallback, image.kernel_release != running))
    )
