"""What is known of the program that makes this machine's images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.model.setting import Setting


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
    image; ``fallback`` that it is not the one booted by default.
    """

    path: Path
    kernel_release: str
    uki: bool = False
    fallback: bool = False
