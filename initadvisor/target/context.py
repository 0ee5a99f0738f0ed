"""What changes the result more than a codec does, and what disturbs measurements, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import side_fact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.generators import Generator
    from initadvisor.host import Host
    from initadvisor.target.source import Source


_WORTH_TELLING = 0.01
"""Compressed files below this part of the unpacked image are not worth a word."""


def what_matters_more(
    host: Host, generator: Generator, source: Source, excess: str | None = None
) -> tuple[str, ...]:
    """Return what the configuration says, if the image is this machine's, and what is in the image.

    Files that are compressed already hardly shrink again, whatever compresses the image. Where the
    generator's configuration cannot be read, that is said instead. ``excess``: what files cost more
    than a setting saves, in words; it comes first.
    """
    gaps: list[str] = []
    what = f"the configuration of {generator.NAME}"
    configured = source.installed and side_fact(lambda: generator.context(host), what, gaps)
    return (*((excess,) if excess else ()), *gaps, *(configured or ()), *_seen(source))


def _seen(source: Source) -> Iterator[str]:
    contents = source.contents
    if contents.file_system:
        yield (
            f"a {contents.file_system} image inside holds most files, compressed already: "
            "the image's own compression has little left to do"
        )
    plain = contents.main.codec is Codec.CAT  # then the reader cannot tell front from main
    early = 0 if plain else sum(kind.early_compressed_bytes for kind in contents.kinds)
    late = sum(kind.compressed_bytes for kind in contents.kinds) - early
    least = _WORTH_TELLING * contents.unpacked_bytes
    if early > least:
        yield (
            f"{early / 1e6:.1f} MB of compressed modules and firmware stand uncompressed in front: "
            "they are the same in every candidate"
        )
    if late > least:
        yield (
            f"{late / 1e6:.1f} MB of modules and firmware were compressed before the image was: "
            "decompressed ones would let its compression do more"
        )


_WATCH_S = 0.5
_BUSY_PERCENT = 10.0
_STEAL_PERCENT = 2.0
_SCALING = {"powersave", "ondemand", "conservative", "schedutil"}
_GOVERNOR = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"


def disturbances(host: Host) -> tuple[str, ...]:
    """Watch the machine for half a second and return what would disturb a measurement."""
    import psutil

    times = psutil.cpu_times_percent(interval=_WATCH_S)
    busy = 100.0 - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "steal", 0.0)
    found = []
    if busy > _BUSY_PERCENT:
        found.append(f"other programs use {busy:.0f} % of the processors")
    if (steal := getattr(times, "steal", 0.0)) > _STEAL_PERCENT:
        found.append(f"the hypervisor gives {steal:.0f} % of the processors to others")
    battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    if battery is not None and battery.power_plugged is False:
        found.append("the machine runs on battery")
    governor = (host.read_text(_GOVERNOR) or "").strip()
    if governor in _SCALING:
        found.append(f"the processors' frequency changes (governor {governor})")
    return tuple(found)
