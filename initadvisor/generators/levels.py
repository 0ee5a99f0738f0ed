"""Which level a compressor ends up with, told from its command line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from initadvisor.core.codecs import Codec

if TYPE_CHECKING:
    from initadvisor.core.settings import Setting


_LEVEL = re.compile(r"^-(\d+)e?$")
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
