"""mkinitcpio's configuration and presets: which files bash is given, and what they set.

Presets say which images are made for a kernel, and how. They are read as ``process_preset`` reads
them: ``X_kver`` before ``ALL_kver``, ``X_options`` an array or words with a space between two, a
preset without kernel or image skipped. Of what is given as an option, too, the last counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from initadvisor.core.errors import InitadvisorError
from initadvisor.generators import InstalledImage
from initadvisor.generators.files import COMPRESSORS_OWN, exists, in_order
from initadvisor.generators.mkinitcpio_options import NO_IMAGE, PATHS, parsed
from initadvisor.generators.rewriting import ConfigPaths
from initadvisor.generators.shell import Evaluation, evaluate, functions_of, version_sorted
from initadvisor.host.files import failing_as, is_same_file, listing, open_regular
from initadvisor.rewrite.syntax import Shell

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from initadvisor.generators.mkinitcpio_options import Option
    from initadvisor.host import Host


_CONFIG = "/etc/mkinitcpio.conf"
_DROP_INS = f"{_CONFIG}.d"
_DROP_INS_SINCE = 36

_SCRIPTS = ("/usr/bin/mkinitcpio", "/usr/lib/initcpio/functions")
_COMPRESSION = ("COMPRESSION", "COMPRESSION_OPTIONS")
_VARIABLES = (*_COMPRESSION, "MODULES_DECOMPRESS", "HOOKS")
_MKINITCPIOS_OWN = (
    *("-", "BASHOPTS", "PATH", "KERNELVERSION", "BUILDROOT", "EARLYROOT", "_d_*", "_opt*"),
    *("EXECIGNORE", "FUNCNEST", "*[(][)]"),
)
"""What the script itself goes on to use in the shell that has sourced the configuration."""


def preset_of(host: Host, kernel_release: str) -> Preset | None:
    """Return the preset that makes a kernel's default image."""
    presets = [p for p in installed_presets(host) if p.kernel_release == kernel_release]
    return min(presets, key=lambda preset: preset.fallback, default=None)


def config_paths(
    host: Host, preset: Preset | None, major: int, texts: Mapping[Path, str] | None = None
) -> ConfigPaths:
    """Return which files mkinitcpio makes one text of, in that order.

    ``texts`` may have drop-ins that do not exist yet; ``-c``, or the preset's ``config``, switches
    drop-ins off.

    Raises ``InitadvisorError`` if there is no main file.
    """
    chosen = preset.config if preset else None
    main = host.path(chosen or _CONFIG)
    if not exists(host, chosen or _CONFIG):
        msg = f"mkinitcpio has no configuration: there is no {main}"
        raise InitadvisorError(msg)
    if chosen or major < _DROP_INS_SINCE:
        return ConfigPaths(files=(main,), directory=_DROP_INS, names=None)
    directory = host.path(_DROP_INS)
    if directory.is_symlink():  # find(1) looks into none that it is given
        return ConfigPaths(files=(main,), directory=_DROP_INS, names=None)
    names = _drop_ins(directory)
    names += (path.name for path in texts or () if path.parent == directory)
    read = version_sorted(host, names, unique=True)
    files = (main, *(directory / name for name in read))
    return ConfigPaths(files=files, directory=_DROP_INS, names=tuple(dict.fromkeys(names)))


def _drop_ins(directory: Path) -> list[str]:
    """Return the names of the drop-ins in the directory's own order, as find(1) does.

    Raises ``NeedsRootError`` where only root may look into it.
    """
    with failing_as(f"cannot look into {directory}", only_root=True):
        try:
            files = list(directory.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [file.name for file in files if file.name.endswith(".conf") and file.is_file()]


def left_out(paths: ConfigPaths) -> str:
    """Say which drop-ins mkinitcpio does not read because ``sort -Vu`` takes two for the same.

    Which of them it is depends on the directory's order, and may change. Empty: none.
    """
    read = {file.name for file in paths.files[1:]}
    names = " and ".join(name for name in paths.names or () if name not in read)
    return names and f"of drop-ins with names like {names} mkinitcpio reads one, whichever is first"


_OPTIONS: Final = {"BASHOPTS": "extglob"}
"""What the script sets before it sources anything; dracut does so later."""


def evaluate_config(
    host: Host,
    paths: ConfigPaths,
    kernel_release: str,
    texts: Mapping[Path, str] | None = None,
) -> Evaluation:
    """Source the files as mkinitcpio does, with ``texts`` in place of what some of them hold.

    Raises ``InitadvisorError`` where mkinitcpio would stop.
    """
    config = evaluate(
        host,
        Shell.BASH,
        paths.files,
        (*_VARIABLES, *_MKINITCPIOS_OWN, *COMPRESSORS_OWN),
        merged=True,
        env={"KERNELVERSION": kernel_release, **_OPTIONS},
        texts=texts,
    )
    if config.status != 0:
        msg = (
            "mkinitcpio would refuse its configuration "
            f"({' + '.join(str(file) for file in paths.files)}): "
            f"sourcing it returns {config.status}"
        )
        hint = "files without a newline at their end run into the next one; see `bash -n`"
        raise InitadvisorError(msg, hint=hint)
    config.require_unchanged(*_VARIABLES, program="mkinitcpio")
    functions = functions_of(host, *_SCRIPTS)
    config.require_known(*_COMPRESSION, program="mkinitcpio", functions=functions)
    return config


_DIRECTORY = "/etc/mkinitcpio.d"
_NAMES = (
    *("PRESETS", "*_kver", "*_config", "*_image", "*_uki", "*_efi_image", "*_options"),
    *("*_cmdline", "*_splash"),
)
_PROCESS_PRESETS_OWN = (
    *("BASH_ARGV0", "BASH_ENV", "OPTREST", "MKINITCPIO_*"),
    *("p", "pr", "preset", "preset_*", "ret"),
    *(*_VARIABLES, *_MKINITCPIOS_OWN, *COMPRESSORS_OWN),
)
"""What ``process_preset``, which sources the file, and mkinitcpio, which it runs, go on to use."""

_VERSION_POINTER = 0x20E
_HEADER_BYTES = 0x200 + 0x10000 + 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """One preset: what ``process_preset`` would call mkinitcpio with.

    ``kernel`` is its ``-k`` (a release or the path of a kernel), ``kernel_release`` the release
    that stands for, None where it cannot be told; ``image`` and ``uki`` are absolute paths on the
    host; ``cmdline`` and ``splash`` go into the latter. ``compress`` is the option ``-z``. What is
    in these is not among ``options``, but ``-z`` is. ``fault``: why mkinitcpio would stop at the
    options. ``fallback``: not what boots by default.
    """

    file: Path
    name: str
    kernel: str
    kernel_release: str | None
    config: str | None
    image: str | None
    uki: str | None
    options: tuple[str, ...] = ()
    compress: str | None = None
    fault: str = ""
    cmdline: str | None = None
    splash: str | None = None
    fallback: bool = False

    def makes(self, host: Host, file: Path) -> bool:
        """Tell whether ``file`` is what this preset writes, by this name or another."""
        paths = [host.path(target) for target in (self.image, self.uki) if target]
        return any(path == file or is_same_file(path, file) for path in paths)


def installed_presets(host: Host) -> tuple[Preset, ...]:
    """Return the presets of all files in ``/etc/mkinitcpio.d`` that make an image.

    Which of a kernel's presets makes what boots by default, the default boot entry says; where it
    cannot be told, or is another kernel's, that is the first of a file not named ``fallback``.

    Raises ``InitadvisorError`` where one cannot be evaluated.
    """
    presets = tuple(
        preset
        for file in listing(host, _DIRECTORY)
        if file.suffix == ".preset"
        for preset in _presets_in(host, file)
    )
    kernels = [preset.kernel_release for preset in presets]
    if len(set(kernels)) == len(kernels):
        return presets
    loaded = _loaded_by_default(host)
    booted = {
        preset.kernel_release: preset
        for preset in presets
        if any(preset.makes(host, file) for file in loaded)
    }
    return tuple(
        replace(preset, fallback=preset is not booted[preset.kernel_release])
        if preset.kernel_release in booted
        else preset
        for preset in presets
    )


def preset_images(host: Host) -> tuple[InstalledImage, ...]:
    """Return the images of the presets that exist, the running kernel's default image first.

    Raises ``NeedsRootError`` where only root may see whether they exist.
    """
    found = {
        host.path(target): InstalledImage(
            path=host.path(target),
            kernel_release=preset.kernel_release,
            uki=target == preset.uki,
            fallback=preset.fallback,
        )
        for preset in installed_presets(host)
        for target in (preset.image, preset.uki)
        if target and preset.kernel_release and exists(host, target)
    }
    return in_order(host, found.values())


def kernel_image_release(head: bytes) -> str | None:
    """Return the release in an x86 kernel's header (Documentation/arch/x86/boot.rst), if any.

    ``head`` is the start of the file. At 0x20e stands, less 0x200, where the version string is.
    """
    if head[0x202:0x206] != b"HdrS":
        return None
    start = int.from_bytes(head[_VERSION_POINTER : _VERSION_POINTER + 2], "little") + 0x200
    words = head[start : start + 128].split(b"\0")[0].split()
    text = words[0].decode("ascii", errors="replace") if words else ""
    return text if text[:1].isdecimal() else None


def _loaded_by_default(host: Host) -> tuple[Path, ...]:
    """Return the files that the default boot entry loads; nothing where that cannot be told."""
    from initadvisor.bootloaders.detect import detect_boot_loader  # few need any of it

    try:
        entry = detect_boot_loader(host).default_entry(host)
    except InitadvisorError:
        return ()
    return tuple(host.path(file.path) for file in (entry.kernel, *entry.initrds))


def _presets_in(host: Host, file: Path) -> Iterable[Preset]:
    names_asked = (*_NAMES, *_PROCESS_PRESETS_OWN)
    values = evaluate(host, Shell.BASH, [file], names_asked, env=_OPTIONS)
    presets = values.get("PRESETS")
    names = presets.values if presets else ()
    first = next((name for name in names if name != "fallback"), "fallback")
    common_fault = f"sourcing it returns {values.status}" if values.status else ""
    if changed := values.changed(*_NAMES):
        common_fault = f"it sets {changed[1]}, which mkinitcpio itself looks at"
    elif unknown := values.depends_on(*_NAMES, functions=functions_of(host, *_SCRIPTS)):
        common_fault = f"it looks at {unknown}, which may be another for mkinitcpio"
    for name in names:
        if not _NAME.fullmatch(name):
            return  # bash stops at ${!name}
        options, fault = _options(values, name)
        config, cmdline, splash = (
            values.value(f"{name}_{what}") or values.value(f"ALL_{what}")
            for what in ("config", "cmdline", "splash")
        )
        configs = (config, *(value or "" for option, value in options if option == "-c"))
        others = (value or "" for option, value in options if option in PATHS)
        needed = (path for path in (*configs, cmdline, splash, *others) if path)
        if missing := next((path for path in needed if not exists(host, path)), None):
            fault = fault or f"there is no {missing}"
        given = dict(options)
        kernel = given.get("-k") or values.value(f"{name}_kver") or values.value("ALL_kver")
        is_old = values.get(f"{name}_uki") is None
        uki = given.get("-U") or values.value(f"{name}_efi_image" if is_old else f"{name}_uki")
        image = given.get("-g") or values.value(f"{name}_image")
        if not kernel or not (image or uki):
            continue
        yield Preset(
            file=file,
            name=name,
            kernel=kernel,
            kernel_release=_release_of(host, kernel, file.stem),
            config=configs[-1] or None,
            image=image or None,
            uki=uki or None,
            options=tuple(
                word
                for option in options
                if option[0] not in _IN_FIELDS
                for word in option
                if word is not None
            ),
            compress=given.get("-z"),
            fault=common_fault or fault,
            cmdline=cmdline or None,
            splash=splash or None,
            fallback=name != first,
        )


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_IN_FIELDS = ("-k", "-c", "-g", "-U")


def _options(values: Evaluation, name: str) -> tuple[tuple[Option, ...], str]:
    """Return a preset's options, and why mkinitcpio makes no image with them, if it does not."""
    variable = values.get(f"{name}_options")
    if variable is None:
        return (), ""
    words = variable.values
    if "a" not in variable.attributes:
        words = tuple(variable.first.removesuffix(" ").split(" "))
    try:
        options = parsed(words)
    except InitadvisorError as err:
        return (), err.message
    useless = next((option for option, _ in options if option in NO_IMAGE), None)
    return options, f"with {useless} it makes no image" if useless else ""


def _release_of(host: Host, kernel: str, package: str) -> str | None:
    """Return the release that a ``kver`` stands for.

    A kernel file says it itself on x86; elsewhere, and where it may not be read, Arch's module
    directories name the package (``pkgbase``) whose kernel they belong to.
    """
    if not kernel.startswith("/"):
        return kernel
    try:
        with open_regular(host.path(kernel)) as file:
            release = kernel_image_release(file.read(_HEADER_BYTES))
    except (InitadvisorError, OSError):
        release = None
    if release:
        return release
    if Path(kernel).parent.parent.name == "modules":
        return Path(kernel).parent.name
    for directory in listing(host, "/usr/lib/modules"):
        pkgbase = host.read_text(f"/usr/lib/modules/{directory.name}/pkgbase")
        if pkgbase and pkgbase.strip() == package:
            return directory.name
    return None
