"""Other images of the same initramfs: compressed otherwise, or damaged."""

from __future__ import annotations

import random
import subprocess
from typing import TYPE_CHECKING

from tests.fixtures.debian import program
from tests.fixtures.payload import early_bytes, main_bytes, main_payload

if TYPE_CHECKING:
    from pathlib import Path

_MAGIC_BYTES = 6
"""As long as the longest magic of a compressed stream."""


def recompressed(image: Path, target: Path, *compressor: str) -> Path:
    """Write the image with its main part through a filter; without one it stays as it is."""
    content = main_payload(image)
    if compressor:
        argv = [program(compressor[0]), *compressor[1:]]
        done = subprocess.run(argv, input=content, capture_output=True, check=True, timeout=300)
        content = done.stdout
    target.write_bytes(early_bytes(image) + content)
    return target


def corrupt(image: Path, target: Path) -> Path:
    """Write the image with noise for its main part, from behind the magic on and half as long: no
    kernel finds an init in it.
    """
    early, main = early_bytes(image), main_bytes(image)
    noise = random.Random(0).randbytes(len(main) // 2)
    target.write_bytes(early + main[:_MAGIC_BYTES] + noise)
    return target
