"""The kernel an image is for: its release and its build configuration."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping


_SET = re.compile(r"^(CONFIG_[A-Za-z0-9_]+)=(.*)$")
_UNSET = re.compile(r"^# (CONFIG_[A-Za-z0-9_]+) is not set$")


ASYNCHRONOUS_SINCE = (5, 13)
"""populate_rootfs only begins to unpack, and initcalls go on (init/initramfs.c)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelConfig:
    """A kernel's configuration, and in words where it was read.

    ``options`` maps each option mentioned to its value: ``y``, ``m``, a number, a string without
    its quotes, or None for ``is not set``.
    """

    source: str
    options: Mapping[str, str | None] = field(repr=False)

    @classmethod
    def parse(cls, text: str, *, source: str) -> Self:
        """Read the text of a ``.config``; lines that speak of no option are skipped."""
        options: dict[str, str | None] = {}
        for line in text.splitlines():
            if match := _SET.match(line):
                options[match[1]] = match[2].strip().strip('"')
            elif match := _UNSET.match(line):
                options[match[1]] = None
        return cls(source=source, options=options)

    def enabled(self, option: str) -> bool:
        """Tell whether the option is built in; one that the configuration never mentions is not."""
        return self.options.get(option) == "y"


def kernel_version(release: str) -> tuple[int, int] | None:
    """Return (6, 1) for ``6.1.0-44-amd64``, None for what does not start like a kernel release."""
    match = re.match(r"^(\d+)\.(\d+)", release)
    return (int(match[1]), int(match[2])) if match else None
