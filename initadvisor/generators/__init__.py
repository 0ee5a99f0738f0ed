"""The programs that make initramfs images; each is a module that satisfies ``Generator``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from initadvisor.core.settings import Setting
    from initadvisor.host import Host
    from initadvisor.image.contents import FileKind
    from initadvisor.rewrite.files import FileEdit


class Generator(Protocol):
    """What the advisor asks of a generator. The modules of this package are its instances.

    What an instance does not look at it may call by another name, therefore arguments have none.
    """

    @property
    def NAME(self) -> str:
        """The generator's own name."""
        ...

    def detect(self, host: Host, /) -> bool:
        """Tell whether this generator is installed on the host.

        Which of several makes its images is for ``detect.detect_generator`` to decide.
        """
        ...

    def version(self, host: Host, /) -> str | None:
        """Return the installed version, None if it does not tell."""
        ...

    def configured(
        self,
        host: Host,
        kernel_release: str,
        /,
        *,
        texts: Mapping[Path, str] | None = None,
        image: InstalledImage | None = None,
    ) -> ConfiguredSetting:
        """Return the setting that takes effect for one kernel's default image, or for ``image``.

        With ``texts`` the one that would take effect if these files held these texts, also where
        there is no such file yet: the generator's own evaluation tries a change out. Texts are
        decoded as UTF-8 with ``surrogateescape``, carriage returns as they are.

        Raises ``InitadvisorError`` where the configuration cannot be read.
        """
        ...

    def rewritten(
        self,
        host: Host,
        kernel_release: str,
        setting: Setting,
        /,
        *,
        texts: Mapping[Path, str] | None = None,
        image: InstalledImage | None = None,
    ) -> tuple[FileEdit, ...]:
        """Return what to change in which configuration files so that ``setting`` takes effect.

        That is for the kernel's default image, or for ``image``, which may have a configuration of
        its own.

        Nothing is written. ``configured`` was asked whether it would take effect; nothing to change
        means that it does already. Other kernels that use the same files change with this one.
        With ``texts`` it is what to change beside that, as if these files held these texts already.

        Raises ``RefusedRewriteError``, which names the line, for what cannot be changed safely, and
        ``UnsafeError`` where the setting would not take effect all the same.
        """
        ...

    def images(self, host: Host, /) -> tuple[InstalledImage, ...]:
        """Return the images of this host, the running kernel's default image first."""
        ...

    def affected(self, host: Host, edits: Sequence[FileEdit], /) -> tuple[InstalledImage, ...]:
        """Return the images that are made by one of these configuration files, in that order.

        The default images of all kernels and their fallback images: the next time they are built,
        it will be with the new configuration.

        Raises ``NeedsRootError`` where only root may look.
        """
        ...

    def build(
        self, host: Host, image: InstalledImage, target: Path, texts: Mapping[Path, str], /
    ) -> None:
        """Have the generator build what ``image`` would be now, as the file ``target``.

        It reads its configuration in a place of its own, as if some files held ``texts``; without
        any it is what a rebuild would give today (the control build). Nothing installed is touched,
        no post hook runs, and nothing but ``target`` is left behind. Builds into one directory must
        follow one another.

        Raises ``UnsafeError`` or ``NeedsRootError`` where that may not or cannot be done,
        ``ProgramError`` when the generator fails or does not end.
        """
        ...

    def content_variants(
        self, host: Host, image: InstalledImage, unused: Sequence[str], /
    ) -> tuple[ContentVariant, ...]:
        """Return by which lines of its configuration the generator puts less into an image.

        ``unused`` are names of modules that no boot used. Raises ``InitadvisorError`` where the
        configuration cannot be told.
        """
        ...

    def noted_inside(self, host: Host, texts: Mapping[Path, str], /) -> tuple[str, ...]:
        """Return the paths in an image that say how it was made.

        They differ between builds with other ``texts``: copies of the configuration, or of the
        command line.
        """
        ...

    def compressor(self, host: Host, setting: Setting, /) -> tuple[str, ...]:
        """Return the command that turns a cpio on stdin into what the generator would install.

        It is to be run as ``files.with_stream_size`` makes it, as some programs are told the size.
        Stdin has to be a pipe for the same bytes: some programs note the time stamp of a regular
        file. For ``cat`` the command is ``("cat",)``. The program may be missing: the caller finds
        out.
        """
        ...

    def default_level(self, host: Host, setting: Setting, /) -> int | None:
        """Return the level that ``compressor`` ends up with for this setting.

        None for ``cat``, and for options that replace levels by something else (``--fast``).
        """
        ...

    def unusable(self, host: Host, setting: Setting, /) -> str | None:
        """Return why the generator cannot be configured for this setting, None where it can.

        Such a setting can be measured, but not recommended.
        """
        ...

    def build_uncompressed(self, host: Host, image: InstalledImage, target: Path, /) -> None:
        """Have the generator itself build ``image`` without compression, as the file ``target``.

        Raises ``UnsafeError`` or ``NeedsRootError`` where that may not or cannot be done, and
        ``ProgramError`` when the generator fails.
        """
        ...

    def needs_own_uncompressed(self, host: Host, /) -> bool:
        """Tell whether ``cat`` has another layout here than the other settings (mkinitcpio)."""
        ...

    def context(self, host: Host, /) -> tuple[str, ...]:
        """Return in words what in the configuration changes the result more than the codec does."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredSetting:
    """The setting the generator would use now, and where it comes from.

    ``setting`` is what takes effect, after the generator's own fall-backs (a compressor that is not
    installed); ``source`` names the file, the environment or ``default of mkinitcpio 41``;
    ``warnings`` say where what takes effect is not what was written.
    """

    setting: Setting
    source: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledImage:
    """An image that the generator makes for one kernel of this machine.

    ``path`` is below the host's root. ``uki`` tells that the image is a section of a unified kernel
    image; ``fallback`` that it is not the one booted by default. ``copies``: what is named as a
    copy of it that kernel-install(8) made; whether it holds the same, only reading it tells.
    ``made_of``: which installed image ukify(1) has made a unified kernel image of.
    """

    path: Path
    kernel_release: str
    uki: bool = False
    fallback: bool = False
    copies: tuple[Path, ...] = ()
    made_of: Path | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The image, and its copies."""
        return (self.path, *self.copies)


class VariantName(StrEnum):
    """What less content for an image is called where it is asked for."""

    THIS_MACHINE = "this-machine"
    IN_USE = "in-use"
    NO_UNUSED = "no-unused"
    NO_GRAPHICS = "no-graphics"
    NO_SPLASH = "no-splash"
    NO_HWDB = "no-hwdb"
    OWN_MICROCODE = "own-microcode"
    MODULES_COMPRESSED = "modules-compressed"
    MODULES_DECOMPRESSED = "modules-decompressed"

    @property
    def description(self) -> str:
        """What the image then holds, in words."""
        return _DESCRIPTIONS[self]


_DESCRIPTIONS = {
    VariantName.THIS_MACHINE: "this machine's modules only",
    VariantName.IN_USE: "what is in use now only",
    VariantName.NO_UNUSED: "without unused modules",
    VariantName.NO_GRAPHICS: "without graphics drivers",
    VariantName.NO_SPLASH: "without a splash screen",
    VariantName.NO_HWDB: "without the hardware database",
    VariantName.OWN_MICROCODE: "this processor's microcode only",
    VariantName.MODULES_COMPRESSED: "modules as they are installed",
    VariantName.MODULES_DECOMPRESSED: "modules decompressed",
}


class KeptModules(StrEnum):
    """Which modules of an image stay where a generator keeps those of this machine only."""

    IN_USE = "in use"
    """What is loaded or asked for by a device, with all that needs."""
    ROOT = "root"
    """What the disks of the root file system and of /usr, their buses and keyboards ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """What goes, as far as that is known before it is built; firmware goes with its modules.

    ``kept``: which modules stay, None for all. ``besides``: so do those below these directories of
    the kernel's source, and modules of these names. ``gone``: of what is left, those go that are
    below these directories or have these names, with what only they need. ``kinds``: files that go.
    """

    kept: KeptModules | None = None
    besides: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    kinds: frozenset[FileKind] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentVariant:
    """Less content for an image: ``line``, the last one of ``text``, which ``path`` is to hold.

    ``loses`` tells what stops working, ``in_fallback`` whether a fallback image that is there keeps
    what goes. ``leaving``: None where what it is cannot be told before it is built.
    """

    name: VariantName
    path: Path
    text: str
    line: str
    loses: str
    in_fallback: bool = False
    leaving: Leaving | None = None
