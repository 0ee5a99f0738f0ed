"""dracut, the generator of Fedora, openSUSE and others, and an alternative on Debian and Arch.

What it does was read in ``dracut.sh`` of 059 and of 102 to 112. Its installed images are those that
its own kernel hooks write, and kernel-install's.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.generators import (
    InstalledImage,
    KeptModules,
    Leaving,
    VariantName,
    threecpio,
)
from initadvisor.generators.dracut_config import (
    SCRIPTS,
    command_line,
    completed,
    config_paths,
    effective_setting,
    evaluate_config,
    squashes,
)
from initadvisor.generators.files import (
    CommandLine,
    exists,
    has_program,
    in_order,
    level_of,
    modules_suffix,
)
from initadvisor.generators.kernel_install import entry_images, install_conf, with_placed
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
    NO_HOOKS,
    PrivateBuild,
    build_privately,
    require_installed_system,
    run_generator,
    text_for,
    write_text,
)
from initadvisor.generators.ukify import build_of, makes_ukis, with_ukis
from initadvisor.host.files import listing, open_regular
from initadvisor.host.process import SYSTEM_DIRECTORIES
from initadvisor.image.contents import FileKind
from initadvisor.image.findings import printable
from initadvisor.image.inventory import normalised
from initadvisor.image.modules import module_name
from initadvisor.rewrite.variables import dracut_edits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from initadvisor.core.settings import Setting
    from initadvisor.generators import ConfiguredSetting, ContentVariant
    from initadvisor.generators.shell import Evaluation
    from initadvisor.host import Host
    from initadvisor.image.cpio_reader import Entry
    from initadvisor.rewrite.files import FileEdit


NAME: Final = "dracut"

_BUILD_TIMEOUT_S = 900.0
_3CPIO_SINCE = 109
_NEWEST_KNOWN = 112
_VERSION = re.compile(r"^DRACUT_VERSION=['\"]?([^'\"\s]+)", re.MULTILINE)

_IMAGE_NAMES = (
    re.compile(r"^initramfs-(?P<release>.+)\.img$"),
    re.compile(r"^initrd\.img-(?P<release>.+)$"),
    re.compile(r"^initrd-(?P<release>.+)$"),
)
"""dracut's own default, Debian's kernel hook, openSUSE's."""

_NOT_AN_IMAGE = re.compile(r"kdump$|\.(bak|old|tmp|dpkg-.*)$")


def detect(host: Host) -> bool:
    """Tell whether dracut is installed."""
    return has_program(host, "dracut")


def version(host: Host) -> str | None:
    """Return what dracut-version.sh says (``DRACUT_VERSION=059-4``), since 110 dracut itself."""
    programs = (f"{directory}/dracut" for directory in SYSTEM_DIRECTORIES)
    for path in ("/usr/lib/dracut/dracut-version.sh", *programs):
        if match := _VERSION.search(host.read_text(path) or ""):
            return match[1]
    return None


def configured(
    host: Host,
    kernel_release: str,
    *,
    texts: Mapping[Path, str] | None = None,
    image: InstalledImage | None = None,
) -> ConfiguredSetting:
    """Return the setting that dracut run by a kernel hook would use.

    With ``texts``: as it would be if some configuration files held these. Raises
    ``InitadvisorError`` where the configuration cannot be evaluated or names a program whose output
    no kernel unpacks.
    """
    del image  # one configuration for all of them
    config = evaluate_config(host, _major(host), texts)
    return effective_setting(
        host,
        config,
        kernel_release,
        major=_major(host),
        version=version(host) or "of unknown version",
        through_3cpio=_through_3cpio(host),
    )


def rewritten(
    host: Host,
    kernel_release: str,
    setting: Setting,
    *,
    texts: Mapping[Path, str] | None = None,
    image: InstalledImage | None = None,
) -> tuple[FileEdit, ...]:
    """Return what to change in dracut's configuration files.

    Raises ``RefusedRewriteError`` or ``UnsafeError`` where nothing may be changed.
    """
    refuse_unusable(NAME, setting, unusable(host, setting))
    paths = config_paths(host, _major(host), texts)
    command = None if _through_3cpio(host) else compressor(host, setting)
    files = config_files(host, paths.files, texts)
    level = None if setting.codec is Codec.CAT else _line(host, setting.codec).level
    edits = dracut_edits(files, setting, command, paths.drop_in(host), default_level=level)
    after = {**(texts or {}), **texts_of(edits)}
    found = configured(host, kernel_release, texts=after, image=image)
    confirm(NAME, found, setting, (compressor(host, found.setting), compressor(host, setting)))
    return edits


def images(host: Host) -> tuple[InstalledImage, ...]:
    """Return the images under the names of the distributions' kernel hooks, and kernel-install's.

    Raises ``NeedsRootError`` where only root may look.
    """
    found = [image for file in listing(host, "/boot") if (image := _image(file))]
    beside_modules = [
        InstalledImage(path=directory / "initrd", kernel_release=directory.name)
        for directory in listing(host, "/lib/modules")
        if exists(host, f"/lib/modules/{directory.name}/initrd")
    ]
    placed = entry_images(host)
    written = with_ukis(host, (*found, *beside_modules), placed)
    return in_order(host, with_placed(written, placed))


def affected(host: Host, edits: Sequence[FileEdit]) -> tuple[InstalledImage, ...]:
    """Return all images: dracut knows one configuration for all kernels."""
    return images(host) if edits else ()


def build(host: Host, image: InstalledImage, target: Path, texts: Mapping[Path, str]) -> None:
    """Have dracut build one kernel's image with configuration files of its own."""
    _require_no_hooks(host)
    files = config_paths(host, _major(host), texts).files
    configured_uefi = evaluate_config(host, _major(host), texts).value("uefi") == "yes"
    has_uefi = configured_uefi or install_conf(host).get("uki_generator") == NAME
    if image.uki and not has_uefi and makes_ukis(host):
        plain = replace(image, uki=False)
        build_of(host, image, target, lambda initramfs: build(host, plain, initramfs, texts))
        return
    prepare = partial(private_build, host, image, files, texts, has_uefi)
    build_privately(host, NAME, target, prepare)


def content_variants(
    host: Host, _image: InstalledImage, unused: Sequence[str]
) -> tuple[ContentVariant, ...]:
    """Return ``hostonly``, then its strict mode, and what can be omitted.

    That is by ``omit_drivers`` what no boot used, and two of dracut's own modules.
    """
    config = evaluate_config(host, _major(host))
    paths = config_paths(host, _major(host))
    variant = partial(content_variant, host, paths.files, paths.drop_in(host, ABOUT_CONTENT))
    found: list[ContentVariant] = []
    if config.value("hostonly") != "yes":
        found.append(
            variant(
                name=VariantName.THIS_MACHINE,
                line='hostonly="yes"',
                loses=ONLY_THIS_MACHINE,
                leaving=Leaving(
                    kept=KeptModules.IN_USE,
                    besides=_KEPT | _KEPT_IF_SLOPPY,
                    kinds=frozenset({FileKind.HWDB}),
                ),
            )
        )
    elif config.value("hostonly_mode") != "strict":
        found.append(
            variant(
                name=VariantName.IN_USE,
                line='hostonly_mode="strict"',
                loses=f"what is plugged in later is not known; {ONLY_THIS_MACHINE}",
                leaving=Leaving(kept=KeptModules.IN_USE, besides=_KEPT),
            )
        )
    omitted = {module_name(word) for word in config.value("omit_drivers").split()}
    names = sorted(name for name in unused if _MODULE.fullmatch(name) and name not in omitted)
    if names:
        found.append(
            variant(
                name=VariantName.NO_UNUSED,
                line=f'omit_drivers+=" {" ".join(names)} "',
                loses="what these modules drive does not work before the root file system is there",
                leaving=Leaving(gone=frozenset(names)),
            )
        )
    for module, name, kind, loses in _OMITTED:
        if _takes(host, config, module):
            line = f'omit_dracutmodules+=" {module} "'
            leaving = Leaving(kinds=frozenset({kind}))
            found.append(variant(name=name, line=line, loses=loses, leaving=leaving))
    return tuple(found)


_KEPT = frozenset(
    {"crypto", "hid_generic", "unix", "sg", "sr_mod", "sd_mod", "scsi_dh", "ata_piix"}
)
"""What its module kernel-modules takes with ``hostonly``, used or not."""
_KEPT_IF_SLOPPY = frozenset(
    {"ehci_hcd", "ehci_pci", "ehci_platform", "ohci_hcd", "ohci_pci", "uhci_hcd", "usbhid"}
    | {"xhci_hcd", "xhci_pci", "xhci_plat_hcd", "drivers/hid", "drivers/tty/serial"}
    | {"drivers/input/serio", "drivers/input/keyboard", "drivers/pci/host", "drivers/pinctrl"}
    | {"drivers/pci/controller", "drivers/usb/typec", "drivers/watchdog"}
)

_OMITTED = (
    ("plymouth", VariantName.NO_SPLASH, FileKind.SPLASH, NO_SPLASH_LOSES),
    (
        "hwdb",
        VariantName.NO_HWDB,
        FileKind.HWDB,
        "until the root file system is there, keys and devices that udev has data of their own for "
        "are like any other",
    ),
)


def _takes(host: Host, config: Evaluation, module: str) -> bool:
    """Tell whether a module of dracut's, one of ``_OMITTED``, would be in an image."""
    chosen, added, forced, omitted = (
        {*config.value(f"{what}dracutmodules").split()}
        for what in ("", "add_", "force_add_", "omit_")
    )
    files = listing(host, "/usr/lib/dracut/modules.d")
    if module in omitted or not any(re.fullmatch(rf"\d\d{module}", one.name) for one in files):
        return False
    if module in chosen | added | forced:
        return True
    if chosen - {"auto"}:
        return False
    if module == "hwdb":  # its check() leaves it out with hostonly
        return config.value("hostonly") != "yes"
    return has_program(host, "plymouthd")


_MODULE = re.compile(r"[\w-]+", re.ASCII)


def noted_inside(_host: Host, _texts: Mapping[Path, str]) -> tuple[str, ...]:
    """Return where dracut keeps its command line."""
    return NOTED_INSIDE


def compressor(host: Host, setting: Setting) -> tuple[str, ...]:
    """Return the command dracut pipes the cpio into; joined, it is valid text for ``compress=``.

    A plain codec gives the line that dracut completes its name to. Options replace the level in it
    and keep the rest, among it what the kernel needs (``lz4 -l``, ``xz --check=crc32``).
    """
    if setting.codec is Codec.CAT:
        return ("cat",)
    return completed(_line(host, setting.codec), setting)


def default_level(host: Host, setting: Setting) -> int | None:
    """Return the level of the setting; dracut has defaults of its own for most codecs."""
    if setting.codec is Codec.CAT:
        return None
    own = _line(host, setting.codec).level
    return level_of(setting, setting.codec.spec.level if own is None else own)


def unusable(host: Host, setting: Setting) -> str | None:
    """Return why dracut could not be configured for a setting."""
    return threecpio.unusable(setting) if _through_3cpio(host) else None


def build_uncompressed(host: Host, image: InstalledImage, target: Path) -> None:
    """Have dracut build an image for the same kernel with ``--no-compress``.

    The configuration decides what is in it, as it does for the installed image.
    """
    _require_no_hooks(host)
    require_installed_system(host, NAME)
    options = ("--force", *added_configuration(host, image), "--no-compress")
    argv: tuple[str | Path, ...] = ("dracut", *options, "--kver", image.kernel_release, target)
    run_generator(host, argv, directory=target.parent, timeout_s=_BUILD_TIMEOUT_S)


def _require_no_hooks(host: Host) -> None:
    """Raise ``UnsafeError`` where dracut would have what it builds installed (``NO_HOOKS``)."""
    for script in SCRIPTS:
        text = host.read_text(script) or ""
        if _POST_UPDATE in text and NO_HOOKS not in text:
            msg = f"not building an image: {script} runs the scripts of {_POST_UPDATE} with it"
            raise UnsafeError(msg, hint="they would install it; a later dracut can do without")


def needs_own_uncompressed(_host: Host) -> bool:
    """Tell that ``cat`` has the same layout as every other setting."""
    return False


def context(host: Host) -> tuple[str, ...]:
    """Return what squash, hostonly and compressed modules do to the image."""
    config = evaluate_config(host, _major(host))
    told: list[str] = []
    if squashes(config):
        told.append(
            "a squash or erofs module is configured: the image holds a file system compressed on "
            "its own, and dracut forces cat"
        )
    if config.value("hostonly") == "yes":
        told.append("hostonly=yes keeps only this machine's modules: a small image")
    else:
        told.append("hostonly is not set: the modules of many machines are in the image")
    if suffix := modules_suffix(host, host.kernel_release()):
        told.append(
            f"kernel modules are already compressed ({suffix}): compressing again gains little"
        )
    if _through_3cpio(host):
        told.append("3cpio is installed: it makes the image, with command lines of its own")
    return tuple(told)


def _major(host: Host) -> int:
    match = re.match(r"\d+", version(host) or "")
    return int(match[0]) if match else _NEWEST_KNOWN


def _through_3cpio(host: Host) -> bool:
    return _major(host) >= _3CPIO_SINCE and has_program(host, threecpio.PROGRAM)


def _line(host: Host, codec: Codec) -> CommandLine:
    if _through_3cpio(host):
        return _line_3cpio(host, codec)
    return command_line(codec, pigz=has_program(host, "pigz"), lbzip2=has_program(host, "lbzip2"))


def _line_3cpio(host: Host, codec: Codec) -> CommandLine:
    """Ask the configuration only where a reproducible image is compressed in another way."""
    reproducible = False
    if codec in threecpio.REPRODUCED:
        reproducible = evaluate_config(host, _major(host)).value("reproducible") == "yes"
    level = command_line(codec, pigz=False, lbzip2=False).level
    pigz = has_program(host, "pigz")
    return threecpio.command_line(codec, level=level, pigz=pigz, reproducible=reproducible)


def _image(file: Path) -> InstalledImage | None:
    for pattern in _IMAGE_NAMES:
        match = pattern.match(file.name)
        if match and not _NOT_AN_IMAGE.search(match["release"]):
            release = match["release"]
            return InstalledImage(
                path=file, kernel_release=release, fallback=release.startswith("0-rescue")
            )
    return None


NOTED_INSIDE = ("lib/dracut/build-parameter.txt", "usr/lib/dracut/build-parameter.txt")
"""Where dracut keeps its command line for ``--rebuild``, on a merged /usr or not."""

_MAIN = "/etc/dracut.conf"
_POST_UPDATE = "/etc/initramfs/post-update.d"
_ADDED = "--add-confdir"
_NOTED_BYTES = 1 << 16


class _NotedCommandLine:
    """Takes every entry of an image (``scan``) for the command line that dracut has noted."""

    def __init__(self) -> None:
        self._is_noted = False
        self.text = bytearray()

    def begin_segment(self, _codec: Codec) -> None:
        """Pass over the beginning of a segment."""

    def visit(self, entry: Entry) -> None:
        """Take one entry."""
        self._is_noted = printable(normalised(entry.name)) in NOTED_INSIDE

    def data(self, piece: bytes | memoryview) -> None:
        """Take a piece of the data of the last entry."""
        if self._is_noted and len(self.text) + len(piece) <= _NOTED_BYTES:
            self.text += piece

    def trailer(self) -> None:
        """Pass over a trailer."""


def added_configuration(host: Host, image: InstalledImage) -> tuple[str, ...]:
    """Return the words that had dracut read one more directory for an installed image.

    Some versions' kernel-install plugin has ``--add-confdir hostonly`` (106 in Debian 13): without
    it the same configuration makes an image with other modules. What a kernel hook ran says the
    image only; what cannot be read tells nothing.
    """
    from initadvisor.image.scan import scan  # takes long; measuring a boot needs none of it

    noted = _NotedCommandLine()
    try:
        with open_regular(image.path) as file:
            scan(file, listing=noted)
        words = shlex.split(noted.text.decode(errors="surrogateescape"))
    except (InitadvisorError, OSError, ValueError):
        return ()
    if _ADDED not in words[:-1]:
        return ()
    name = words[len(words) - words[::-1].index(_ADDED)]
    own = f"{_MAIN}.d/{name}"
    return _ADDED, own if exists(host, own) else name


def private_build(
    host: Host,
    image: InstalledImage,
    files: Sequence[Path],
    texts: Mapping[Path, str],
    has_uefi: bool,
    place: Path,
) -> PrivateBuild:
    """Put the files below ``/etc`` into ``place`` and return the command that reads them there.

    Those of other directories dracut reads as ever, unless ``--confdir`` has one of their name. A
    main file must be given, or it would be the installed one.

    Raises ``UnsafeError`` for a unified kernel image that dracut is not configured to make: then it
    is another program's work.
    """
    if image.uki and not has_uefi:
        msg = f"not building {image.path}: dracut is not configured to make unified kernel images"
        raise UnsafeError(msg, hint="kernel-install(8) has another program make it")
    main, drop_ins, built = place / "dracut.conf", place / "dracut.conf.d", place / "image"
    drop_ins.mkdir()
    write_text(main, "")
    for file in files:
        if file == host.path(_MAIN):
            write_text(main, text_for(host, file, texts))
        elif file.parent == host.path(f"{_MAIN}.d"):
            write_text(drop_ins / file.name, text_for(host, file, texts))
    for path in listing(host, f"{_MAIN}.d"):
        if path.is_dir():
            (drop_ins / path.name).mkdir()  # it hides a packaged file of its name
    argv = ("dracut", "--force", "--conf", main, "--confdir", drop_ins, "--tmpdir", place)
    kind = ("--uefi" if image.uki else "--no-uefi", *added_configuration(host, image))
    return PrivateBuild(argv=(*argv, *kind, "--kver", image.kernel_release, built), image=built)
