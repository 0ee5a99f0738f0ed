"""initramfs-tools, the generator of Debian and Ubuntu.

What it does was read in ``mkinitramfs`` of 0.142, 0.148 and 0.151. They run it differently (a file
as argument, a pipe) with the same flags; 0.151 has 3cpio(1) make the image where it is installed.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.core.settings import Setting
from initadvisor.generators import (
    ConfiguredSetting,
    InstalledImage,
    KeptModules,
    Leaving,
    VariantName,
    threecpio,
)
from initadvisor.generators.files import (
    COMPRESSORS_OWN,
    CommandLine,
    debian_version,
    exists,
    first_kernel_config,
    has_program,
    in_order,
    level_of,
    modules_suffix,
    told,
)
from initadvisor.generators.kernel_install import entry_images, with_copies
from initadvisor.generators.rewriting import (
    ABOUT_CONTENT,
    ONLY_THIS_MACHINE,
    config_files,
    confirm,
    content_variant,
    drop_in_read_last,
    refuse_unusable,
    texts_of,
)
from initadvisor.generators.running import PrivateBuild, build_privately, text_for, write_text
from initadvisor.generators.shell import Evaluation, evaluate, functions_of
from initadvisor.generators.ukify import build_of, with_ukis
from initadvisor.host.files import listing
from initadvisor.rewrite.syntax import Shell
from initadvisor.rewrite.variables import initramfs_tools_edits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from initadvisor.generators import ContentVariant
    from initadvisor.host import Host
    from initadvisor.rewrite.files import FileEdit


NAME: Final = "initramfs-tools"

_SCRIPT = "/usr/sbin/mkinitramfs"
_ETC = "/etc/initramfs-tools"
_SHARE = "/usr/share/initramfs-tools"
_SEARCH_PATH = ("/usr/bin", "/sbin", "/bin")
_DEFAULT_LEVEL: Final = {Codec.LZ4: 9, Codec.ZSTD: 9}
_OPTIONS: Final = ("compress", "compresslevel")
"""Variables of mkinitramfs' own, in which it keeps its options -c and -l."""

_SCRIPTS: Final = (_SCRIPT, f"{_SHARE}/hook-functions", f"{_SHARE}/scripts/functions")
_COMPRESSION: Final = ("COMPRESS", "COMPRESSLEVEL")
_VARIABLES: Final = (*_COMPRESSION, "MODULES", *_OPTIONS)

_COMMANDS: Final = (
    *("basename", "cat", "command", "cpio", "echo", "find", "grep", "maybe_add_conf", "printf"),
    *("sort", "test", "uniq", "pigz", *(codec.value for codec in Codec)),
)
"""What mkinitramfs runs by name, which a function of that name would replace."""

_OWN: Final = (
    *("-", "IFS", "PATH", "CONFDIR", "SOURCE_DATE_EPOCH", *COMPRESSORS_OWN),
    *(f"{name}()" for name in dict.fromkeys(_COMMANDS)),
)
"""What mkinitramfs goes on to use in the shell that has sourced the configuration."""

_FLAGS: Final = {
    Codec.LZ4: ((), ("-l",)),
    Codec.XZ: ((), ("--check=crc32", "--threads=0")),
    Codec.ZSTD: (("-q",), ("-T0",)),
}
"""What stands before and behind the level."""

_DROP_IN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9\\._-]*")
_OTHER_LETTER = re.compile(r"[^\x00-\x7f]")
_IMAGE_NAME = re.compile(r"^initrd\.img-(?P<release>.+)$")
_NOT_AN_IMAGE = re.compile(r"\.(bak|old|new|dpkg-.*|old-dkms)$")


def detect(host: Host) -> bool:
    """Tell whether update-initramfs is installed (mkinitramfs alone makes no installed images)."""
    return has_program(host, "update-initramfs", ("/usr/sbin", "/sbin")) and has_program(
        host, "mkinitramfs", ("/usr/sbin", "/sbin")
    )


def version(host: Host) -> str | None:
    """Return the version of the package initramfs-tools-core."""
    return debian_version(host, "initramfs-tools-core")


def configured(
    host: Host,
    kernel_release: str,
    *,
    texts: Mapping[Path, str] | None = None,
    image: InstalledImage | None = None,
) -> ConfiguredSetting:
    """Return the setting that update-initramfs would use for a kernel.

    With ``texts``: as it would be if some configuration files held these. Raises
    ``InitadvisorError`` where mkinitramfs would stop.
    """
    del image  # one configuration for all of them
    config = _evaluate_config(host, texts)
    if given := [name for name in _OPTIONS if config.value(name)]:
        msg = f"cannot tell what mkinitramfs does: {config.origin(*given)} sets its own variable "
        raise InitadvisorError(msg + " and ".join(given), hint="COMPRESS is written in capitals")
    config.require_unchanged(*_VARIABLES, program="mkinitramfs")
    functions = functions_of(host, *_SCRIPTS)
    config.require_known(*_COMPRESSION, program="mkinitramfs", functions=functions)
    origin = config.origin("COMPRESS")
    written, level = config.value("COMPRESS"), config.value("COMPRESSLEVEL")
    if not config.get("COMPRESS"):
        msg = f"mkinitramfs would stop: nothing below {host.path(_ETC)} sets COMPRESS"
        raise InitadvisorError(msg)
    warnings = list(config.warnings)
    codec = _usable_codec(host, written, kernel_release, warnings)
    source = str(origin)
    setting = Setting(codec)
    if level:
        other = config.origin("COMPRESSLEVEL")
        source += f", COMPRESSLEVEL in {other}" if other != origin else ""
        setting = _told(host, codec, level, warnings)
    return ConfiguredSetting(setting=setting, source=source, warnings=tuple(warnings))


def rewritten(
    host: Host,
    kernel_release: str,
    setting: Setting,
    *,
    texts: Mapping[Path, str] | None = None,
    image: InstalledImage | None = None,
) -> tuple[FileEdit, ...]:
    """Return what to change in the files that ``configured`` evaluates.

    Raises ``RefusedRewriteError`` or ``UnsafeError`` where nothing may be changed.
    """
    refuse_unusable(NAME, setting, unusable(host, setting))
    files, hooks = _config_paths(host, texts)
    names, directory = [path.name for path in files], host.path(f"{_ETC}/conf.d")
    drop_in = drop_in_read_last(directory, names, sorted, position=len(files))
    edits = initramfs_tools_edits(config_files(host, [*files, *hooks], texts), setting, drop_in)
    after = {**(texts or {}), **texts_of(edits)}
    found = configured(host, kernel_release, texts=after, image=image)
    confirm(NAME, found, setting, (compressor(host, found.setting), compressor(host, setting)))
    return edits


def images(host: Host) -> tuple[InstalledImage, ...]:
    """Return what update-initramfs wrote to ``/boot``, with the copies that this user may see.

    In front of them come unified kernel images that ukify makes of them.

    Raises ``NeedsRootError`` where only root may look into ``/boot``.
    """
    found = [
        InstalledImage(path=file, kernel_release=match["release"])
        for file in listing(host, "/boot")
        if (match := _IMAGE_NAME.match(file.name)) and not _NOT_AN_IMAGE.search(file.name)
    ]
    placed: tuple[InstalledImage, ...] = ()
    with contextlib.suppress(InitadvisorError):
        placed = entry_images(host)
    copied = [with_copies(image, placed) for image in found]
    return in_order(host, with_ukis(host, copied, placed))


def affected(host: Host, edits: Sequence[FileEdit]) -> tuple[InstalledImage, ...]:
    """Return all images: mkinitramfs knows one configuration for all kernels."""
    return images(host) if edits else ()


def build(host: Host, image: InstalledImage, target: Path, texts: Mapping[Path, str]) -> None:
    """Have mkinitramfs build one kernel's image with a configuration directory of its own."""
    if image.uki:
        plain = replace(image, uki=False)
        build_of(host, image, target, lambda initramfs: build(host, plain, initramfs, texts))
        return
    build_privately(host, NAME, target, partial(private_build, host, image, texts))


def content_variants(
    host: Host, _image: InstalledImage, _unused: Sequence[str]
) -> tuple[ContentVariant, ...]:
    """Return ``MODULES=dep``, where it is something else."""
    if _evaluate_config(host).value("MODULES") == "dep":
        return ()
    files, _hooks = _config_paths(host)
    directory = host.path(f"{_ETC}/conf.d")
    names = [path.name for path in files[1:]]
    drop_in = drop_in_read_last(directory, names, sorted, position=len(files), about=ABOUT_CONTENT)
    hooks = (path.name for path in listing(host, f"{_SHARE}/hooks"))
    besides = _BESIDE_ROOT.union(*(_ADDED.get(hook, ()) for hook in hooks))
    variant = content_variant(
        host,
        files,
        drop_in,
        name=VariantName.THIS_MACHINE,
        line="MODULES=dep",
        loses=ONLY_THIS_MACHINE,
        leaving=Leaving(kept=KeptModules.ROOT, besides=besides),
    )
    return (variant,)


_BESIDE_ROOT: Final = frozenset({"fan", "thermal", "psmouse", "vmd"})
"""By hooks/thermal, and by ``hidden_dep_add_modules`` beside keyboards and NVMe."""
_ADDED: Final = {
    "cryptroot": ("dm_mod", "dm_crypt"),
    "lvm2": (
        *("dm_mod", "dm_snapshot", "dm_mirror", "dm_raid"),
        *("raid0", "raid1", "raid10", "raid456"),
    ),
}
"""What hooks add whatever the root file system is on: of cryptsetup-initramfs 2.7.5, which adds
ciphers as well, some 60 kB, and of lvm2 2.03.31.
"""


def noted_inside(host: Host, texts: Mapping[Path, str]) -> tuple[str, ...]:
    """Return where mkinitramfs puts its copies of these configuration files."""
    return tuple(f"conf/{path.relative_to(host.path(_ETC))}" for path in texts)


def compressor(host: Host, setting: Setting) -> tuple[str, ...]:
    """Return mkinitramfs' command, without the variant for reproducible builds.

    Fed by a pipe it gives what 0.148 makes, byte by byte. Older releases name a file, whose name
    and time gzip and lzop note in their header, and its length zstd.
    """
    codec = setting.codec
    if codec is Codec.CAT:
        return ("cat",)
    own = _own_level(host, codec)
    pigz = codec is Codec.GZIP and has_program(host, "pigz", _SEARCH_PATH)
    if _through_3cpio(host):
        line = threecpio.command_line(codec, level=own, pigz=pigz)
    else:
        program = "pigz" if pigz else codec.value
        before, after = _FLAGS.get(codec, ((), ()))
        line = CommandLine(program=program, before=before, level=own, after=(*after, "-c"))
    return line.completed(setting.options)


def default_level(host: Host, setting: Setting) -> int | None:
    """Return the level of the setting; mkinitramfs has defaults of its own for lz4 and zstd."""
    own = _own_level(host, setting.codec)
    return level_of(setting, setting.codec.spec.level if own is None else own)


def unusable(host: Host, setting: Setting) -> str | None:
    """Return why mkinitramfs cannot be configured for a setting."""
    if setting.codec is Codec.CAT:
        return "initramfs-tools has no uncompressed images: COMPRESS=cat falls back to gzip"
    if setting.options and (len(setting.options) > 1 or setting.level is None):
        return "COMPRESSLEVEL holds a level and no other options"
    return threecpio.unusable(setting) if _through_3cpio(host) else None


def build_uncompressed(_host: Host, image: InstalledImage, _target: Path) -> None:
    """Raise ``UnsafeError``: mkinitramfs falls back to gzip when told ``cat``."""
    msg = f"initramfs-tools cannot build {image.path} uncompressed"
    raise UnsafeError(msg)


def needs_own_uncompressed(_host: Host) -> bool:
    """Tell that there is no layout of its own for what cannot be built."""
    return False


def context(host: Host) -> tuple[str, ...]:
    """Return what MODULES and compressed modules do to the image."""
    config = _evaluate_config(host)
    told: list[str] = []
    match config.value("MODULES"):
        case "dep":
            told.append("MODULES=dep keeps only this machine's modules: a small image")
        case "list":
            told.append("MODULES=list keeps only the modules that were listed")
        case other:
            told.append(f"MODULES={other or 'most'}: the modules of many machines are in the image")
    if suffix := modules_suffix(host, host.kernel_release()):
        told.append(
            f"kernel modules are already compressed ({suffix}): 0.142 stores them decompressed, "
            "later releases put them into an uncompressed part in front"
        )
    return tuple(told)


def _evaluate_config(host: Host, texts: Mapping[Path, str] | None = None) -> Evaluation:
    files, hooks = _config_paths(host, texts)
    return evaluate(host, Shell.SH, [*files, *hooks], (*_VARIABLES, *_OWN), texts=texts)


def _config_paths(
    host: Host, texts: Mapping[Path, str] | None = None
) -> tuple[list[Path], list[Path]]:
    """Return the files in mkinitramfs' order, and the packages' hooks that it sources after them.

    /etc masks drop-ins of the same name. ``texts`` may have drop-ins that do not exist yet.
    """
    main = host.path(f"{_ETC}/initramfs.conf")
    directory = host.path(f"{_ETC}/conf.d")
    new = {path for path in texts or () if path.parent == directory}
    local = sorted({*_drop_ins(host, f"{_ETC}/conf.d"), *new})
    masked = {path.name for path in (*listing(host, f"{_ETC}/conf.d"), *new) if path.exists()}
    shared = [p for p in _drop_ins(host, f"{_SHARE}/conf.d") if p.name not in masked]
    hooks = [path for path in listing(host, f"{_SHARE}/conf-hooks.d") if path.is_file()]
    hooks = [path for path in hooks if not path.name.startswith(".")]
    return [main, *shared, *local], hooks


def _drop_ins(host: Host, directory: str) -> list[Path]:
    return [
        path for path in listing(host, directory) if path.is_file() and _is_read(path, path.name)
    ]


def _is_read(path: Path, name: str) -> bool:
    """Tell whether mkinitramfs takes a name for a drop-in's: grep(1) looks at it line by line.

    Raises ``InitadvisorError`` where that depends on the locale, as it does for other letters.
    """
    is_read = any(_DROP_IN_NAME.fullmatch(x) and ".dpkg-" not in x for x in name.split("\n"))
    if not is_read and _OTHER_LETTER.search(name) and _is_read(path, _OTHER_LETTER.sub("a", name)):
        msg = f"cannot tell whether mkinitramfs reads {path}: its locale decides on that name"
        raise InitadvisorError(msg, hint="rename that file")
    return is_read


_SHELLS_OWN = frozenset(
    {"!", ".", ":", "[", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done"}
    | {"elif", "else", "esac", "eval", "exec", "exit", "export", "fg", "fi", "for", "getopts"}
    | {"hash", "if", "in", "jobs", "local", "read", "readonly", "return", "set", "shift", "then"}
    | {"times", "trap", "type", "ulimit", "umask", "unalias", "unset", "until", "wait", "while"}
    | {"{", "}", "echo", "false", "kill", "printf", "pwd", "test", "true"}
)
"""Words that ``command -v`` finds in dash, be there a program of the name or not."""


def _usable_codec(host: Host, written: str, release: str, warnings: list[str]) -> Codec:
    """Follow mkinitramfs: a missing program, then a kernel without the format, mean gzip."""
    codec = Codec(written) if written in set(Codec) else None
    own = written in functions_of(host, *_SCRIPTS) or written in _SHELLS_OWN
    if not own and not has_program(host, written, _SEARCH_PATH):
        warnings.append(f"COMPRESS={written!r} is not installed: mkinitramfs uses gzip")
        codec = Codec.GZIP
    places = (f"/lib/modules/{release}/config-{release}", f"/boot/config-{release}")
    if place := next((x for x in places if exists(host, x) and host.path(x).is_dir()), None):
        msg = f"mkinitramfs would stop: {place} is a directory"
        raise InitadvisorError(msg)
    config = first_kernel_config(host, places)
    if codec in {None, Codec.CAT} and config is None:
        msg = f"mkinitramfs would stop: it does not know how to run COMPRESS={written!r}"
        raise InitadvisorError(msg)
    if codec is None or codec is Codec.CAT:
        warnings.append(f"COMPRESS={written!r} is unknown to mkinitramfs: it uses gzip")
        return Codec.GZIP
    if config and not config.enabled(codec.spec.kernel_option or ""):
        if codec is not Codec.GZIP:
            warnings.append(f"Linux {release} does not unpack {codec}: mkinitramfs uses gzip")
        if not config.enabled(Codec.GZIP.spec.kernel_option or ""):
            msg = f"mkinitramfs would stop: Linux {release} does not unpack gzip ({config.source})"
            raise InitadvisorError(msg)
        return Codec.GZIP
    return codec


def _through_3cpio(host: Host) -> bool:
    """Tell whether it would be 3cpio that makes the image: later releases know it."""
    script = host.read_text(_SCRIPT) or ""
    return "3cpio --create" in script and has_program(host, threecpio.PROGRAM, _SEARCH_PATH)


def _told(host: Host, codec: Codec, level: str, warnings: list[str]) -> Setting:
    written = f"COMPRESSLEVEL={level}"
    if _through_3cpio(host):
        return threecpio.told_3cpio(codec, level, written=written, warnings=warnings)
    pigz = codec is Codec.GZIP and has_program(host, "pigz", _SEARCH_PATH)
    program = "pigz" if pigz else codec.value
    return told(codec, level, program=program, written=written, warnings=warnings)


def _own_level(host: Host, codec: Codec) -> int | None:
    """Return the level in ``zstd) compresslevel="-${compresslevel:-9}"`` of the script itself.

    Distributions have changed it, so the installed script is asked first.
    """
    script = host.read_text(_SCRIPT) or ""
    pattern = rf'^{codec.value}\)\s*compresslevel="-\$\{{compresslevel:-(\d+)\}}"'
    match = re.search(pattern, script, re.MULTILINE)
    return int(match[1]) if match else _DEFAULT_LEVEL.get(codec)


_MAIN = "initramfs.conf"
_DROP_INS = "conf.d"


def private_build(
    host: Host, image: InstalledImage, texts: Mapping[Path, str], place: Path
) -> PrivateBuild:
    """Make a configuration directory in ``place`` and return the command that reads it.

    Configuration files are copied, because the image gets copies of them as they are, with their
    modes; links stay links, hooks and scripts are those of the installed directory.

    Raises ``UnsafeError`` where the image would show where it was made.
    """
    if host.path(f"{_ETC}/DSDT.aml").exists():
        msg = f"not building {image.path}: {_ETC}/DSDT.aml would get another path inside"
        raise UnsafeError(msg)
    own, built = place / "conf", place / "image"
    (own / _DROP_INS).mkdir(parents=True)
    for entry in listing(host, _ETC):
        if entry.name == _MAIN:
            shutil.copy2(entry, own / _MAIN)
        elif entry.name != _DROP_INS:
            (own / entry.name).symlink_to(f"{_ETC}/{entry.name}")
    for entry in listing(host, f"{_ETC}/{_DROP_INS}"):
        _copy(entry, own / _DROP_INS / entry.name)
    for path in texts:
        _put(host, path, own / path.relative_to(host.path(_ETC)), texts)
    argv = ("mkinitramfs", "-d", own, "-o", built, image.kernel_release)
    return PrivateBuild(argv=argv, image=built)


def _copy(entry: Path, target: Path) -> None:
    if entry.is_symlink():
        target.symlink_to(Path(f"{_ETC}/{_DROP_INS}") / entry.readlink())
    elif entry.is_dir():
        target.mkdir()  # it hides a shared file of its name
    elif entry.is_file():
        shutil.copy2(entry, target)


def _put(host: Host, path: Path, target: Path, texts: Mapping[Path, str]) -> None:
    """Write a text over a copy, which keeps its mode, or as a new file."""
    mode = target.stat().st_mode & 0o7777 if target.exists() else 0o644
    write_text(target, text_for(host, path, texts))
    target.chmod(mode)
