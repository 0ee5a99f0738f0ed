"""How long the generator's own runs took, from start to end, kept for each image and setting."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.host.cached import keep, read_cached

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.core.settings import Setting
    from initadvisor.host import Host


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorRun:
    """The last run of a generator that made an image: seconds, at idle priority."""

    run_s: float


def keep_run(host: Host, image: Path, setting: Setting, *, since_ns: int) -> None:
    """Keep how long the run took that began at ``since_ns`` of the monotonic clock and is over."""
    run_s = (host.clock.monotonic_ns() - since_ns) / 1e9
    keep(_file(host, image, setting), GeneratorRun(run_s=run_s), what="the time of a run")


def run_s_of(host: Host, image: Path, setting: Setting) -> float | None:
    """Return the seconds that the generator's last run took, None where none was timed."""
    kept = read_cached(_file(host, image, setting), GeneratorRun)
    return kept.run_s if kept and kept.run_s >= 0 else None


def _file(host: Host, image: Path, setting: Setting) -> Path:
    key = hashlib.sha256(f"{image}\0{setting}".encode(errors="surrogateescape")).hexdigest()
    return host.cache_dir() / "runs" / f"{key[:32]}.json"
