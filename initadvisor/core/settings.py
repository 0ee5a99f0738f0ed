"""A setting: what stands in the generator's configuration, a codec and its options."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Self

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import UsageError

_OTHER_WORK = frozenset(
    {
        *("--decompress", "--uncompress", "--test", "--list", "--info", "--robot", "--train"),
        *("--help", "--long-help", "--version", "--license", "--recursive", "--rm"),
        *("--files", "--files0", "--filelist", "--patch-from"),
    }
)
"""What compressors can be told besides how to compress stdin: other work, or other files."""


def _is_other_work(codec: Codec, option: str) -> bool:
    if option.startswith("--"):
        return option.partition("=")[0] in _OTHER_WORK
    letters = "dtVhH" if codec is Codec.LZ4 else "dtVhHl"  # lz4 -l is the format kernels read
    return option[1:].isalpha() and not set(letters).isdisjoint(option[1:])


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """A codec and the options the user gives its program; no options: the generator's default.

    Written ``zstd``, ``zstd -19``, ``zstd --ultra -22``, ``cat``.
    """

    codec: Codec
    options: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``zstd -19``.

        Raises ``UsageError`` for an unknown codec, an option that is none, or a level the codec
        does not have.
        """
        try:
            words = shlex.split(text)
        except ValueError as err:
            msg = f"setting {text!r} cannot be read: {err}"
            raise UsageError(msg) from err
        known = ", ".join(Codec)
        if not words or words[0] not in set(Codec):
            msg = f"setting {text!r} does not start with a known codec"
            raise UsageError(msg, hint=f"one of: {known}")
        codec, options = Codec(words[0]), tuple(words[1:])
        if codec is Codec.CAT and options:
            msg = f"setting {text!r}: cat takes no options"
            raise UsageError(msg)
        if bad := next((word for word in options if not word.startswith("-") or word == "-"), None):
            msg = f"setting {text!r}: {bad!r} is not an option"
            raise UsageError(msg, hint="write for example 'zstd -19'")
        if other := next((word for word in options if _is_other_work(codec, word)), None):
            msg = f"setting {text!r}: {other} does not say how to compress"
            raise UsageError(msg, hint="write for example 'zstd -19'")
        setting = cls(codec, options)
        if setting.level is not None and setting.level not in codec.spec.levels:
            levels = codec.spec.levels
            msg = f"setting {text!r}: {codec} has no level {setting.level}"
            raise UsageError(
                msg,
                hint=f"{levels.start} to {levels.stop - 1}",
            )
        return setting

    @classmethod
    def at_level(cls, codec: Codec, level: int) -> Self:
        """Return the setting for a codec at one level: ``zstd -19``."""
        return cls(codec, (f"-{level}",))

    @property
    def level(self) -> int | None:
        """The level the options ask for (the last one given), or None."""
        options = (option[1:] for option in self.options if option.isascii())
        levels = [int(option) for option in options if option.isdecimal()]
        return levels[-1] if levels else None

    def __str__(self) -> str:
        """Return the form that ``parse`` reads."""
        return shlex.join((self.codec.value, *self.options))
