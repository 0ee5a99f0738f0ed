"""Reads which modules are loaded and what devices there are, from /proc and /sys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.records.modules import (
    MOST_CHARACTERS,
    MOST_DEVICES,
    MOST_DEVICES_CHARACTERS,
    ModuleUse,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from initadvisor.host import Host


_MODALIASES = ("sys/bus/*/devices/*/modalias", "sys/class/*/*/modalias")
_INPUT = "input:"
"""What is typed and pointed with: long names, and its modules are kept whatever boots say."""


def module_use(host: Host) -> ModuleUse | None:
    """Return what is loaded and present now; None where the kernel has no modules."""
    modules = host.read_text("/proc/modules")
    if modules is None:
        return None
    loaded = " ".join(sorted({line.split()[0] for line in modules.splitlines() if line.strip()}))
    fits = len(loaded) <= MOST_CHARACTERS
    devices = sorted(set(_devices(host.root)))
    fitting: list[str] = []
    room = MOST_DEVICES_CHARACTERS
    for name in devices[:MOST_DEVICES]:
        room -= len(name)
        if len(name) <= MOST_CHARACTERS and room >= 0:
            fitting.append(name)
    return ModuleUse(
        loaded=loaded if fits else loaded[:MOST_CHARACTERS].rpartition(" ")[0],
        devices=tuple(fitting),
        complete=fits and fitting == devices,
    )


def _devices(root: Path) -> Iterator[str]:
    for pattern in _MODALIASES:
        for path in root.glob(pattern):
            try:
                # Some devices say their name anew at each reading, and some fail to.
                name = path.read_text(encoding="utf-8", errors="replace").strip()
            except OSError:
                continue
            if name and name.isascii() and name.isprintable() and not name.startswith(_INPUT):
                yield name
