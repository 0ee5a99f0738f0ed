"""The image that a setting gives for one kernel, and settings that were skipped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.core.settings import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltImage:
    """A built image and what building it took.

    ``main_offset`` is where in the file the part starts that the setting compresses; what stands
    before it (microcode, modules that are compressed already) is the same for every setting.
    ``build_s`` is wall time, ``build_cpu_s`` user and system time of the compressor and
    ``build_peak_bytes`` its peak resident memory. ``command`` is the compressor's command line.
    ``derived`` tells that it was made by recompressing an existing image; otherwise the generator
    built it. ``notes`` say in what it may differ from what the generator would install.
    """

    setting: Setting
    path: str
    size_bytes: int
    sha256: str
    main_offset: int
    build_s: float
    build_cpu_s: float
    build_peak_bytes: int
    command: tuple[str, ...]
    derived: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedSetting:
    """A setting that could not be built, and why (a compressor that is not installed, no room)."""

    setting: Setting
    reason: str
