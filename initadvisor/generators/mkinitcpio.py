"""mkinitcpio, Arch Linux's generator.

What it does was read in its source (script ``mkinitcpio``, versions 30 to 41) and tried with
version 41: ``validate_compression`` chooses the compressor, ``build_image`` adds its flags,
``create_image`` pipes the cpio through it.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import BadImageError, InitadvisorError, UnsafeError
from initadvisor.core.settings import Setting
from initadvisor.firmware.efi_variables import enforces_signatures
from initadvisor.generators import (
    ConfiguredSetting,
    InstalledImage,
    KeptModules,
    Leaving,
    VariantName,
)
from initadvisor.generators.files import (
    has_program,
    level_of,
    modules_suffix,
    refuse_control,
    refuse_relative,
)
from initadvisor.generators.kernel_install import entry_images, with_placed
from initadvisor.generators.mkinitcpio_config import (
    Preset,
    config_paths,
    evaluate_config,
    installed_presets,
    left_out,
    preset_images,
    preset_of,
)
from initadvisor.generators.rewriting import (
    ABOUT_CONTENT,
    NO_SPLASH_LOSES,
    ONLY_THIS_MACHINE,
    config_files,
    confirm,
    content_variant,
    refuse_unusable,
    texts_of,
)
from initadvisor.generators.running import (
    PrivateBuild,
    build_privately,
    require_installed_system,
    run_generator,
    text_for,
    write_text,
)
from initadvisor.host.files import open_regular
from initadvisor.image.contents import FileKind
from initadvisor.image.kernel import kernel_version
from initadvisor.image.pe import read_uki
from initadvisor.rewrite.variables import mkinitcpio_edits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from initadvisor.generators import ContentVariant
    from initadvisor.generators.shell import Evaluation
    from initadvisor.host import Host
    from initadvisor.rewrite.files import FileEdit


NAME: Final = "mkinitcpio"

_SCRIPT = "/usr/bin/mkinitcpio"
_SEARCH_PATH = ("/usr/bin", "/bin")
_BUILD_TIMEOUT_S = 900.0

_FLAGS: Final = {
    Codec.XZ: ("--check=crc32",),
    Codec.LZ4: ("-l",),
    Codec.ZSTD: ("-T0",),
}
"""What ``build_image`` puts before the user's COMPRESSION_OPTIONS."""

_KERNEL_CHECK_SINCE = 39
_EARLY_CPIO_SINCE = 39
_XZ_THREADS = range(35, 40)


def detect(host: Host) -> bool:
    """Tell whether mkinitcpio is installed."""
    return has_program(host, "mkinitcpio", ("/usr/bin", "/usr/local/bin"))


def version(host: Host) -> str | None:
    """Return the version that the script itself declares (``declare -r version='41'``)."""
    script = host.read_text(_SCRIPT) or ""
    match = re.search(r"""^declare -r version=['"]?(\d[^'"\s]*)""", script, re.MULTILINE)
    return match[1] if match else None


def configured(
    host: Host,
    kernel_release: str,
    *,
    texts: Mapping[Path, str] | None = None,
    image: InstalledImage | None = None,
) -> ConfiguredSetting:
    """Return the setting of the preset that makes the image, this kernel's default one or another.

    With ``texts``: as it would be if some configuration files held these. Raises
    ``InitadvisorError`` where mkinitcpio would stop, or would run a program whose output no kernel
    unpacks.
    """
    preset = _preset_making(host, image) if image else preset_of(host, kernel_release)
    if preset and preset.fault:
        msg = f"the preset {preset.name} in {preset.file} stops mkinitcpio: {preset.fault}"
        raise InitadvisorError(msg, hint="correct it: no image is made until then")
    paths = config_paths(host, preset, _major(host), texts)
    config = evaluate_config(host, paths, kernel_release, texts)
    found = _effective(host, config, preset, kernel_release)
    doubt = left_out(paths)
    return replace(found, warnings=(*found.warnings, doubt)) if doubt else found


def rewritten(
    host: Host,
    kernel_release: str,
    setting: Setting,
    *,
    texts: Mapping[Path, str] | None = None,
    image: InstalledImage | None = None,
) -> tuple[FileEdit, ...]:
    """Return what to change in the files that ``configured`` evaluates for this image.

    Raises ``RefusedRewriteError`` or ``UnsafeError`` where nothing may be changed.
    """
    refuse_unusable(NAME, setting, unusable(host, setting))
    preset = _preset_making(host, image) if image else preset_of(host, kernel_release)
    paths = config_paths(host, preset, _major(host), texts)
    if doubt := left_out(paths):
        msg = f"not configuring {NAME} for {setting}: {doubt}"
        raise UnsafeError(msg, hint="rename or remove one of them")
    if preset and "/" in (preset.compress or ""):
        msg = f"not configuring {NAME} for {setting}: {preset.file} has the path {preset.compress}"
        raise UnsafeError(msg, hint="give -z a name there: of a path mkinitcpio leaves options out")
    edits = mkinitcpio_edits(config_files(host, paths.files, texts), setting, paths.drop_in(host))
    after = {**(texts or {}), **texts_of(edits)}
    found = configured(host, kernel_release, texts=after, image=image)
    confirm(NAME, found, setting, (compressor(host, found.setting), compressor(host, setting)))
    return edits


def images(host: Host) -> tuple[InstalledImage, ...]:
    """Return the images that the presets name and that exist, and kernel-install's."""
    return with_placed(preset_images(host), entry_images(host))


def affected(host: Host, edits: Sequence[FileEdit]) -> tuple[InstalledImage, ...]:
    """Return the images of the presets, and kernel-install's, that read an edited file.

    A preset with a configuration of its own reads nothing but that.
    """
    texts = texts_of(edits)
    return tuple(
        image
        for image in images(host)
        if not texts.keys().isdisjoint(
            config_paths(host, _preset_making(host, image), _major(host), texts).files
        )
    )


def build(host: Host, image: InstalledImage, target: Path, texts: Mapping[Path, str]) -> None:
    """Have mkinitcpio build one image of a preset with a configuration file of its own."""
    preset = _preset_making(host, image)
    files = config_paths(host, preset, _major(host), texts).files
    prepare = partial(private_build, host, image, preset, files, texts)
    build_privately(host, NAME, target, prepare)


def content_variants(
    host: Host, image: InstalledImage, _unused: Sequence[str]
) -> tuple[ContentVariant, ...]:
    """Return HOOKS with autodetect, before microcode, without kms, and without a splash screen.

    And MODULES_DECOMPRESS the other way round.
    """
    preset = _preset_making(host, image)
    paths = config_paths(host, preset, _major(host))
    config = evaluate_config(host, paths, image.kernel_release)
    hooks = config.get("HOOKS")
    words = list(hooks.words) if hooks else []
    variant = partial(content_variant, host, paths.files, paths.drop_in(host, ABOUT_CONTENT))
    found: list[ContentVariant] = []
    if words and all(_HOOK.fullmatch(word) for word in words):
        found += _of_hooks(host, words, variant)
    if modules_suffix(host, image.kernel_release):
        decompresses = config.value("MODULES_DECOMPRESS") == "yes"
        name, value, loses = _KEPT_COMPRESSED if decompresses else _DECOMPRESSED
        found.append(variant(name=name, line=f'MODULES_DECOMPRESS="{value}"', loses=loses))
    return tuple(found)


_KEPT_COMPRESSED = (
    VariantName.MODULES_COMPRESSED,
    "no",
    "each module is decompressed when it is loaded",
)
_DECOMPRESSED = (
    VariantName.MODULES_DECOMPRESSED,
    "yes",
    "early in the boot modules and firmware take more memory",
)


def _of_hooks(
    host: Host, words: list[str], variant: Callable[..., ContentVariant]
) -> Iterator[ContentVariant]:
    in_fallback = _fallbacks_skip_autodetect(host)
    if "autodetect" not in words:
        at = max((i + 1 for i, word in enumerate(words) if word in _BEFORE_AUTODETECT), default=0)
        after = "microcode" in words[at:]
        yield variant(
            name=VariantName.THIS_MACHINE,
            line=_hooks_line([*words[:at], "autodetect", *words[at:]]),
            loses=ONLY_THIS_MACHINE,
            in_fallback=in_fallback,
            leaving=Leaving(
                kept=KeptModules.IN_USE,
                besides=frozenset().union(*(_TAKEN.get(word, ()) for word in words)),
                kinds=_MICROCODE if after else frozenset(),
            ),
        )
    elif "microcode" in words[: words.index("autodetect")]:
        others = [word for word in words if word != "microcode"]
        at = others.index("autodetect") + 1
        yield variant(
            name=VariantName.OWN_MICROCODE,
            line=_hooks_line([*others[:at], "microcode", *others[at:]]),
            loses="with another processor its microcode is as the firmware has it",
            in_fallback=in_fallback,
            leaving=Leaving(kinds=_MICROCODE),
        )
    for hook, name, leaving, loses in _LEFT_OUT:
        if hook in words:
            line = _hooks_line([word for word in words if word != hook])
            yield variant(name=name, line=line, loses=loses, leaving=leaving)


_HOOK = re.compile(r"[\w.-]+", re.ASCII)
_BEFORE_AUTODETECT = ("base", "systemd", "udev")
_TAKEN = {
    "block": frozenset(
        {"ahci", "sd_mod", "usb_storage", "uas", "mmc_block", "nvme", "virtio_scsi", "virtio_blk"}
    ),
    "keyboard": frozenset({"usbhid"}),
}
"""What hooks take (``add_module``) whatever autodetect has found."""
_MICROCODE = frozenset({FileKind.MICROCODE})
_LEFT_OUT = (
    (
        "kms",
        VariantName.NO_GRAPHICS,
        Leaving(gone=frozenset({"drivers/gpu"})),
        "until the root file system is there, the screen stays as the firmware set it",
    ),
    (
        "plymouth",
        VariantName.NO_SPLASH,
        Leaving(kinds=frozenset({FileKind.SPLASH})),
        NO_SPLASH_LOSES,
    ),
)


def _fallbacks_skip_autodetect(host: Host) -> bool:
    """Tell whether fallback images are made without the hook, whatever HOOKS says."""
    fallbacks = [preset for preset in installed_presets(host) if preset.name == "fallback"]
    return bool(fallbacks) and all(
        any(word.startswith(("-S", "--skiphooks")) for word in preset.options)
        and any("autodetect" in word for word in preset.options)
        for preset in fallbacks
    )


def _hooks_line(words: Iterable[str]) -> str:
    return f"HOOKS=({' '.join(words)})"


def noted_inside(_host: Host, _texts: Mapping[Path, str]) -> tuple[str, ...]:
    """Return where ``parse_config`` puts the whole configuration."""
    return ("buildconfig",)


def compressor(host: Host, setting: Setting) -> tuple[str, ...]:
    """Return the last program of ``create_image``'s pipe; fed by a pipe it gives the same bytes.

    (gzip and lzop write the time stamp of a regular file on stdin into their header.)
    """
    if setting.codec is Codec.CAT:
        return ("cat",)
    flags = _FLAGS.get(setting.codec, ())
    if setting.codec is Codec.XZ and _major(host) in _XZ_THREADS:
        flags = ("-T0", *flags)
    return (setting.codec.value, *flags, *setting.options)


def default_level(_host: Host, setting: Setting) -> int | None:
    """Return the level of the setting; mkinitcpio leaves it to the compressor where none is set."""
    return level_of(setting, setting.codec.spec.level)


def unusable(_host: Host, _setting: Setting) -> str | None:
    """Return None: COMPRESSION and COMPRESSION_OPTIONS can say everything a setting can."""
    return None


def build_uncompressed(host: Host, image: InstalledImage, target: Path) -> None:
    """Have mkinitcpio build the image's preset with ``-z cat``; see ``uncompressed_command``."""
    require_installed_system(host, NAME)
    argv = uncompressed_command(host, image, target)
    run_generator(host, argv, directory=target.parent, timeout_s=_BUILD_TIMEOUT_S)


def uncompressed_command(host: Host, image: InstalledImage, target: Path) -> tuple[str, ...]:
    """Return the command that builds what the preset of ``image`` builds, uncompressed.

    A preset cannot be given to ``-p`` here, because that builds all images of the file to one
    target; so its options are passed as ``process_preset`` passes them. Post hooks (signing,
    copying) are for the installed image only.
    """
    preset = _preset_making(host, image)
    if preset is None:
        return ("mkinitcpio", "-k", image.kernel_release, *_uncompressed(target))
    config = ("-c", preset.config) if preset.config else ()
    return (
        "mkinitcpio",
        *("-k", preset.kernel),
        *config,
        *preset.options,
        *_uncompressed(target),
    )


def needs_own_uncompressed(host: Host) -> bool:
    """Tell whether this version moves compressed files out of the way of every codec but cat."""
    return _major(host) >= _EARLY_CPIO_SINCE


def context(host: Host) -> tuple[str, ...]:
    """Return what MODULES_DECOMPRESS and the autodetect hook do to the image."""
    paths = config_paths(host, None, _major(host))
    config = evaluate_config(host, paths, host.kernel_release())
    told: list[str] = []
    if config.value("MODULES_DECOMPRESS") == "yes":
        told.append(
            "MODULES_DECOMPRESS=yes: modules and firmware are stored decompressed, so the image's "
            "own compression applies to them"
        )
    elif needs_own_uncompressed(host):
        told.append(
            "MODULES_DECOMPRESS is not yes: files that are already compressed (.ko.zst) go into an "
            "uncompressed part in front, which the image's own compression does not touch"
        )
    hooks = config.get("HOOKS")
    if hooks and "autodetect" in hooks.words:
        told.append("the autodetect hook keeps only this machine's modules: a small image")
    elif hooks:
        told.append("no autodetect hook: the modules of every machine are in the image")
    return tuple(told)


def _uncompressed(target: Path) -> tuple[str, ...]:
    return ("-z", "cat", "-g", str(target), "--nopost")


def _preset_making(host: Host, image: InstalledImage) -> Preset | None:
    """Return the preset that writes the image, the last if several do: that is what stays."""
    presets = reversed(installed_presets(host))
    return next((preset for preset in presets if preset.makes(host, image.path)), None)


def _major(host: Host) -> int:
    """Return the major version, that of the newest one known where the script does not tell."""
    match = re.match(r"\d+", version(host) or "")
    return int(match[0]) if match else 41


def _effective(
    host: Host, config: Evaluation, preset: Preset | None, kernel_release: str
) -> ConfiguredSetting:
    """Follow ``validate_compression``: ``-z``, then COMPRESSION, then the default."""
    warnings = list(config.warnings)
    written = config.value("COMPRESSION")
    options = config.get("COMPRESSION_OPTIONS")
    chosen = (preset.compress if preset else None) or ""
    source = f"option -z in {preset.file}" if preset and chosen else ""
    if not chosen and options and not config.get("COMPRESSION"):
        warnings.append("COMPRESSION_OPTIONS is set without COMPRESSION")
    if options and not set(options.attributes) <= set("ax"):
        declared = f"COMPRESSION_OPTIONS, which is declared with -{options.attributes}"
        msg = f"cannot tell what mkinitcpio makes of {declared}"
        raise InitadvisorError(msg, hint="make it a plain array: COMPRESSION_OPTIONS=()")
    release = kernel_version(kernel_release) or (0, 0)  # an image for no kernel, "none", is old
    old = _major(host) >= _KERNEL_CHECK_SINCE and release < (5, 9)
    fallback = "gzip" if old else "zstd"
    if old and (chosen or written) == "zstd":
        warnings.append(f"Linux {kernel_release} does not unpack zstd: mkinitcpio uses gzip")
        chosen, written, options = "", "", None
    if not chosen:
        origin = config.origin("COMPRESSION", "COMPRESSION_OPTIONS")
        source = str(origin) if written and origin else f"default of mkinitcpio {version(host)}"
        chosen = written or fallback
    setting = _setting(host, chosen, options.words if options else (), source, warnings)
    return ConfiguredSetting(setting=setting, source=source, warnings=tuple(warnings))


def _setting(
    host: Host, chosen: str, options: tuple[str, ...], source: str, warnings: list[str]
) -> Setting:
    refuse_relative(chosen, written=source)
    if not has_program(host, chosen, _SEARCH_PATH):
        missing = "a program with options in its name" if " " in chosen else "not installed"
        warnings.append(
            f"{chosen!r} ({source}) is {missing}: mkinitcpio silently builds uncompressed images"
        )
        return Setting(Codec.CAT)
    refuse_control(options, written="COMPRESSION_OPTIONS")
    if chosen in set(Codec):
        codec = Codec(chosen)
        return Setting(codec, () if codec is Codec.CAT else options)
    codec_name = {"pigz": "gzip", "lbzip2": "bzip2", "pbzip2": "bzip2", "pixz": "xz"}.get(
        chosen.rpartition("/")[2], chosen.rpartition("/")[2]
    )
    if codec_name not in set(Codec) or (codec_name == "cat" and options):
        msg = f"{source} has mkinitcpio compress with {chosen!r}: no format that a kernel unpacks"
        raise InitadvisorError(msg)
    codec = Codec(codec_name)
    lost = " ".join(_FLAGS.get(codec, ()))
    warnings.append(
        f"{chosen!r} ({source}) is not the plain name {codec.value!r}"
        + (f": mkinitcpio leaves out {lost}" if lost else "")
    )
    return Setting(codec, options)


def private_build(
    host: Host,
    image: InstalledImage,
    preset: Preset | None,
    files: Sequence[Path],
    texts: Mapping[Path, str],
    place: Path,
) -> PrivateBuild:
    """Put the configuration into ``place`` and return the command that makes ``image`` of it.

    mkinitcpio makes one text of ``files``, without a newline between them; ``-c`` with that text
    is the same, because it switches drop-ins off. The rest is as ``process_preset`` passes it: of
    options that are given twice mkinitcpio takes the last, therefore ours stand behind the
    preset's. Post hooks (signing, copying) are for installed images, but for a unified kernel image
    that is signed, or where Secure Boot is on: they sign it, and it could not take the other's
    place otherwise.

    Raises ``UnsafeError`` for a unified kernel image that no preset describes.
    """
    config, built = place / "mkinitcpio.conf", place / "image"
    write_text(config, "".join(text_for(host, file, texts) for file in files))
    signed = image.uki and (_is_signed(image.path) or enforces_signatures(host))
    hooks = () if signed else ("--nopost",)
    ours = ("-c", config, "-U" if image.uki else "-g", built, *hooks)
    if preset is None:
        if image.uki:
            msg = (
                f"not building {image.path}: no preset tells how that unified kernel image is made"
            )
            raise UnsafeError(msg)
        return PrivateBuild(argv=("mkinitcpio", "-k", image.kernel_release, *ours), image=built)
    parts: list[str] = []
    if image.uki:
        parts += ["--cmdline", preset.cmdline] if preset.cmdline else []
        parts += ["--splash", preset.splash] if preset.splash else []
    return PrivateBuild(
        argv=("mkinitcpio", "-k", preset.kernel, *parts, *preset.options, *ours),
        image=built,
        # A unified kernel image says in its os-release section which preset it is of.
        env={"MKINITCPIO_PROCESS_PRESET": f"{preset.file.stem}-{preset.name}"},
    )


def _is_signed(path: Path) -> bool:
    """Tell whether a unified kernel image is installed and signed, whoever signed it."""
    if not path.exists():
        return False
    with open_regular(path) as file, contextlib.suppress(BadImageError):
        return read_uki(file, file.seek(0, os.SEEK_END)).signed
    return False
