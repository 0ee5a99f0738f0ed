"""dracut's configuration: which files, in which order, and what it makes of ``compress=``.

A plain name it completes to a command line. Since 109 dracut has 3cpio(1) make the image where that
is installed (dracut-ng ``dracut.sh``).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.settings import Setting
from initadvisor.generators import ConfiguredSetting
from initadvisor.generators.files import (
    COMPRESSORS_OWN,
    CommandLine,
    as_run,
    first_kernel_config,
    has_program,
    level_of,
    refuse_relative,
    told,
    words_of,
)
from initadvisor.generators.rewriting import ConfigPaths
from initadvisor.generators.shell import Evaluation, evaluate, functions_of, version_sorted
from initadvisor.generators.threecpio import told_3cpio
from initadvisor.host.files import listing
from initadvisor.rewrite.syntax import Shell

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.image.kernel import KernelConfig


_DROP_INS = "/etc/dracut.conf.d"
_DROP_IN_NAME = re.compile(r"[^. \t\n][^ \t\n]*\.conf")
_EXPANDED = frozenset("*?[\\")
"""What the shell takes for a pattern, as dracut does not quote the names of its drop-ins."""
_NOT_ONLY_SPLIT = _EXPANDED | frozenset("'\"")
"""Where a line has one of them, its words are not what stands between the spaces."""

_RUN_DIRECTORY_SINCE = 109
_LEVELS_SINCE = 109
_ZSTD_FIRST_SINCE = 103
_ALL_CHECKED_SINCE = 104

_PROGRAMS: Final = {
    **{codec.value: codec for codec in Codec},
    "pigz": Codec.GZIP,
    "lbzip2": Codec.BZIP2,
    "lzo": Codec.LZOP,
}

_REPLACED: Final = {f"DRACUT_COMPRESS_{name.upper()}": name for name in _PROGRAMS if name != "lzo"}
"""Variables that put another program in the place of one."""

SCRIPTS: Final = ("/usr/bin/dracut", "/usr/sbin/dracut")
"""What the configuration is read by, before any of dracut's other files."""

_COMPRESSION: Final = ("compress", "compress_level_??*", "INITRD_COMPRESS")
_VARIABLES: Final = (
    *_COMPRESSION,
    *("hostonly", "hostonly_mode", "uefi", "*dracutmodules", "omit_drivers"),
    *("reproducible", "DRACUT_COMPRESS_*"),
)
_OWN: Final = (
    *("add_confdir", "confdir", "dracutbasedir", "dracutsysrootdir"),
    *("_no_compress_l", "compress_3cpio", "compress_l", "compress_level_l"),
    *("-", "BASHOPTS", "EXECIGNORE", "FUNCNEST", "IFS", "PATH", "SOURCE_DATE_EPOCH", "*[(][)]"),
    *COMPRESSORS_OWN,
)
"""What dracut goes on to use in the shell that has sourced the configuration.

Where it reads that, what replaces ``compress=``, and what is the shell's and the compressors'.
Which functions it and its modules call by name nobody can tell in advance: any is refused.
"""

_FALLBACK_ORDER: Final = (
    "pigz", "gzip", "lz4", "lzop", "zstd", "lzma", "xz", "lbzip2", "bzip2", "cat",
)  # fmt: skip
"""What 059 tries when nothing usable is configured; later releases try zstd first."""

_CARRIED_BY_LINE: Final = frozenset(
    {"-q", "-T0", "-l", "-n", "-T", "-R", "-c", "--rsyncable", "--check=crc32", "--lzma2=dict=1MiB"}
)
"""Flags that dracut's own command lines have: they are no part of a setting."""

_SAME_BYTES: Final = frozenset({"-q", "-n", "-T", "-c"})
"""Flags that change nothing in what is written to a pipe."""

_NEEDED: Final = {Codec.LZ4: "-l", Codec.XZ: "--check=crc32"}
"""Without these the output is in a form that the kernel does not unpack."""

_CHAIN: Final = re.compile(r"^--lzma2=preset=(\d+e?),dict=1MiB$")

_SQUASH_MODULES: Final = frozenset({"squash", "squash-lib", "squash-squashfs", "squash-erofs"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """What the choice depends on besides the configuration."""

    host: Host
    kernel: KernelConfig | None
    major: int

    def usable(self, program: str) -> bool:
        return has_program(self.host, program) and self.unpacks(program)

    def unpacks(self, program: str) -> bool:
        """Follow ``check_kernel_config``: without a kernel configuration everything is there.

        Until 103 only zstd was checked.
        """
        codec = _PROGRAMS.get(program.rpartition("/")[2])
        option = codec.spec.kernel_option if codec else None
        if self.kernel is None or option is None:
            return True
        if self.major < _ALL_CHECKED_SINCE and codec is not Codec.ZSTD:
            return True
        return self.kernel.options.get(option) is not None


def config_paths(host: Host, major: int, texts: Mapping[Path, str] | None = None) -> ConfigPaths:
    """Return which files dracut reads: dracut.conf, then the drop-ins as ``dropindirs_sort`` does.

    That is by name, and of files of the same name the first directory's; directories take part, and
    give nothing. ``texts`` may have drop-ins that do not exist yet.

    Raises ``InitadvisorError`` where a name stands for other files, too.
    """
    main = host.path("/etc/dracut.conf")
    directories = [_DROP_INS, "/usr/lib/dracut/dracut.conf.d"]
    if major >= _RUN_DIRECTORY_SINCE:
        directories.append("/run/initramfs/dracut.conf.d")
    own = host.path(_DROP_INS)
    first = {path.name: path for path in texts or () if path.parent == own}
    for directory in directories:
        for path in listing(host, directory):
            # A name with a blank is two to the shell, and neither is there.
            if _DROP_IN_NAME.fullmatch(path.name) and path.exists():
                first.setdefault(path.name, path)
    if pattern := next((path for name, path in first.items() if _EXPANDED & {*name}), None):
        msg = f"cannot tell which files dracut reads: it takes the name of {pattern} for a pattern"
        raise InitadvisorError(msg, hint="rename that file")
    names = version_sorted(host, first, unique=True)
    files = [main] if main.is_file() else []
    files += [first[name] for name in names if not first[name].is_dir()]
    return ConfigPaths(files=tuple(files), directory=_DROP_INS, names=names)


def evaluate_config(host: Host, major: int, texts: Mapping[Path, str] | None = None) -> Evaluation:
    """Source dracut.conf and the drop-ins as dracut does, without what hooks pass as options.

    ``texts`` takes the place of what some of them hold.
    """
    files = config_paths(host, major, texts).files
    return evaluate(host, Shell.BASH, files, (*_VARIABLES, *_OWN), texts=texts)


def squashes(config: Evaluation) -> bool:
    """Tell whether a module is asked for that packs the content into a file system image."""
    wanted = {
        word
        for name in ("dracutmodules", "add_dracutmodules", "force_add_dracutmodules")
        for word in config.value(name).split()
    }
    return bool(_SQUASH_MODULES & (wanted - set(config.value("omit_dracutmodules").split())))


def effective_setting(
    host: Host,
    config: Evaluation,
    kernel_release: str,
    *,
    major: int,
    version: str,
    through_3cpio: bool,
) -> ConfiguredSetting:
    """Follow dracut from ``compress=`` to the compressor it runs.

    Raises ``InitadvisorError`` for a compressor that makes what no kernel unpacks.
    """
    replaced = [name for name in _REPLACED if config.value(name) not in {"", _REPLACED[name]}]
    if replaced:
        msg = f"cannot tell what dracut compresses with: {config.origin(*replaced)} sets "
        raise InitadvisorError(msg + " and ".join(replaced))
    config.require_unchanged(*_VARIABLES, program="dracut")
    functions = functions_of(host, *SCRIPTS)
    config.require_known(*_COMPRESSION, program="dracut", functions=functions)
    for name, variable in config.steps[-1].items():
        if name.startswith("compress") and not set(variable.attributes) <= set("ax"):
            msg = f"cannot tell what dracut makes of {name}, declared with -{variable.attributes}"
            raise InitadvisorError(msg)
    facts = _Facts(host=host, kernel=_kernel_config(host, kernel_release, major), major=major)
    name = "INITRD_COMPRESS" if config.value("INITRD_COMPRESS") else "compress"
    written = config.value(name)
    origin = config.origin(name)
    source = str(origin) if written and origin else f"default of dracut {version}"
    warnings = list(config.warnings)
    if inherited := os.environ.get("INITRD_COMPRESS"):
        warnings.append(
            f"INITRD_COMPRESS={inherited} in this environment would replace the configured "
            "compression in a dracut started from here"
        )
    if squashes(config):
        if written and written != "cat":
            warnings.append(f"a squash module is configured: dracut ignores compress={written!r}")
        return ConfiguredSetting(
            setting=Setting(Codec.CAT), source=source, warnings=tuple(warnings)
        )
    command = _usable_command(facts, written, kernel_release, warnings)
    if written and command != written:
        source = f"fallback of dracut {version}"
    if command in _PROGRAMS or through_3cpio:
        setting = _named(facts, command, config, through_3cpio=through_3cpio, warnings=warnings)
        level = f"compress_level_{setting.codec}"
        other = config.origin(level) if setting.options else None
        source += f", {level} in {other}" if other not in {None, origin} else ""
    else:
        setting = _verbatim(facts.host, command, source, warnings)
    return ConfiguredSetting(setting=setting, source=source, warnings=tuple(warnings))


def _kernel_config(host: Host, release: str, major: int) -> KernelConfig | None:
    """Return the configuration that ``check_kernel_config`` would read."""
    places = [f"/lib/modules/{release}/config"]
    if major >= _ALL_CHECKED_SINCE:
        places += [
            f"/lib/modules/{release}/build/.config",
            f"/lib/modules/{release}/source/.config",
            f"/usr/src/linux-{release}/.config",
        ]
    return first_kernel_config(host, (*places, f"/boot/config-{release}"))


def _usable_command(facts: _Facts, written: str, release: str, warnings: list[str]) -> str:
    """Return what is configured if it can be used, else what dracut falls back to."""
    program = written.partition(" ")[0]
    refuse_relative(program, written=f"compress={written}")
    if written == "cat" or (written and facts.usable(program)):
        return written
    if written and not facts.unpacks(program):
        warnings.append(f"compress={written!r}: Linux {release} does not unpack it")
    elif written:
        warnings.append(f"compress={written!r}: {program} is not installed")
    order = list(_FALLBACK_ORDER)
    if facts.major >= _ZSTD_FIRST_SINCE:
        order.sort(key=lambda name: name != "zstd")
    chosen = next((name for name in order if facts.usable(name)), "cat")
    if written:
        warnings.append(f"dracut falls back to {chosen}")
    return chosen


def _named(
    facts: _Facts,
    command: str,
    config: Evaluation,
    *,
    through_3cpio: bool,
    warnings: list[str],
) -> Setting:
    """Return the setting for a plain name: dracut's level, or that of ``compress_level_*``.

    3cpio gets nothing else of a command line than which program it starts with.
    """
    codec = _codec(command.split(maxsplit=1)[0], command)
    if " " in command:
        warnings.append(f"compress={command!r}: 3cpio makes the image and ignores the options")
    name = f"compress_level_{codec.value}"
    variable = config.get(name)
    level = variable.first if variable else ""
    if codec is Codec.CAT or variable is None or (codec is Codec.XZ and not level):
        return Setting(codec)
    ignored = None
    if facts.major < _LEVELS_SINCE:
        ignored = "not known before dracut 109"
    elif codec is Codec.XZ and not through_3cpio:
        ignored = "dracut's filter chain makes xz ignore it"
    if ignored:
        warnings.append(f"{name}={level}: {ignored}")
        return Setting(codec)
    written = f"{name}={level}"
    if through_3cpio:
        return told_3cpio(codec, level, written=written, warnings=warnings)
    if not level.strip():
        own = f"-{codec.spec.level}"
        warnings.append(f"{name} is empty: dracut gives {codec} no level, which makes it {own}")
        return Setting(codec, (own,))
    pigz = codec is Codec.GZIP and (command == "pigz" or has_program(facts.host, "pigz"))
    program = "pigz" if pigz else codec.value
    return told(codec, level, program=program, written=written, warnings=warnings)


def _verbatim(host: Host, command: str, source: str, warnings: list[str]) -> Setting:
    """Return the setting that a command line amounts to, without what dracut's own lines carry.

    Raises ``InitadvisorError`` where the shell, which splits it, makes other words of it.
    """
    if not _NOT_ONLY_SPLIT.isdisjoint(command):
        msg = f"cannot tell what comes of compress={command}: dracut splits it, and keeps quotes"
        raise InitadvisorError(msg, hint="write words without quotes, patterns and backslashes")
    program, *words = words_of(command, written=f"compress={command}")
    codec = _codec(program, command)
    needed = _NEEDED.get(codec)
    if needed and needed not in words and "--check=none" not in words:
        warnings.append(f"{source}: the kernel cannot unpack what {program} makes without {needed}")
    options = tuple(_CHAIN.sub(r"-\1", word) for word in words if word not in _CARRIED_BY_LINE)
    name = program.rpartition("/")[2]
    if codec is Codec.CAT:
        if words:
            msg = (
                f"dracut is configured to compress with {command!r}, which does not read the image"
            )
            raise InitadvisorError(msg)
        return Setting(codec)
    options = as_run(Setting(codec, options), name, warnings).options
    own = codec.spec.level
    completed_to = _LINES[codec].level
    if completed_to not in {None, own} and level_of(Setting(codec, options), -1) == -1:
        # Where there is no name to complete, the program's own default applies, not dracut's.
        options = (f"-{own}", *options)
    setting = Setting(codec, options)
    pigz, lbzip2 = (has_program(host, parallel) for parallel in ("pigz", "lbzip2"))
    line = command_line(codec, pigz=pigz, lbzip2=lbzip2)
    unlike = {name, *words} ^ {*completed(line, setting)}
    same = {*_SAME_BYTES, *(("-T0",) if codec in {Codec.LZMA, Codec.ZSTD} else ())}
    if any(word not in same and not _LEVEL.match(word) for word in unlike):
        warnings.append(
            f"compress={command!r} is not the line that dracut completes {codec} to: what is said "
            f"of today's setting is of {' '.join(completed(line, setting))}"
        )
    return setting


def _codec(program: str, command: str) -> Codec:
    codec = _PROGRAMS.get(program.rpartition("/")[2])
    if codec is None:
        msg = f"dracut is configured to compress with {command!r}: no format that a kernel unpacks"
        raise InitadvisorError(msg)
    return codec


_LEVEL = re.compile(r"^-(\d+e?)$", re.ASCII)


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


def command_line(codec: Codec, *, pigz: bool, lbzip2: bool) -> CommandLine:
    """Return the line for a codec, given which of the parallel programs are installed."""
    match codec:
        case Codec.GZIP if pigz:
            return _PIGZ
        case Codec.BZIP2 if lbzip2:
            return _LBZIP2
        case _:
            return _LINES[codec]


def completed(line: CommandLine, setting: Setting) -> tuple[str, ...]:
    """Return the command line for a setting: dracut's own, or the text for ``compress=``.

    The setting's options replace the level if they have one.

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
