"""Which kernel modules a boot loaded, and which its devices asked for."""

from __future__ import annotations

from dataclasses import dataclass

MOST_DEVICES = 256
MOST_CHARACTERS = 8192
"""What a record may hold, in a list and in a text: some 600 modules' names."""

MOST_DEVICES_CHARACTERS = 40_000
"""What the names of devices take at most, so that a record stays within its bounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleUse:
    """What was there a minute after a boot.

    ``loaded``: the names of modules, with spaces between. ``devices``: which kinds there were, by
    the modalias with which udev asks for a module (modules.alias has the patterns); it tells maker
    and model, never a serial number. Both in order, each once. ``complete``: there were no more.
    """

    loaded: str
    devices: tuple[str, ...]
    complete: bool = True
