"""What each setting gives for the image at hand, and for the fallback images beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.candidates.run_times import run_s_of
from initadvisor.candidates.search_space import estimated_candidate_set, open_search_space
from initadvisor.core.codecs import Codec
from initadvisor.target.target import Target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from initadvisor.candidates.sampler import SampleObserver
    from initadvisor.candidates.search_space import Candidate
    from initadvisor.core.config import Config
    from initadvisor.core.settings import Setting
    from initadvisor.host import Host
    from initadvisor.records.built_image import SkippedSetting


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsideredImage:
    """An image and all settings that are considered for it, slow ones as well, smallest first.

    ``uncompressed_bytes`` is what it has with ``cat``; ``kernel_release`` is None where nothing
    tells. ``run_s`` has how long the generator's own whole run took, where one was timed.
    """

    path: str
    sha256: str
    generator: str
    kernel_release: str | None
    fallback: bool
    uncompressed_bytes: float
    candidates: tuple[Candidate, ...]
    skipped: tuple[SkippedSetting, ...]
    run_s: Mapping[Setting, float]

    def part(self, candidate: Candidate) -> float:
        """Return the candidate's size as a part of the uncompressed one."""
        return candidate.size.median / self.uncompressed_bytes


def considered_image(
    host: Host, target: Target, config: Config, *, observer: SampleObserver
) -> ConsideredImage:
    """Take the candidates that are built, and estimate the others from a sample; build none.

    Raises what ``open_search_space`` and ``estimated_candidate_set`` do.
    """
    with open_search_space(
        host, target, config, only=(), everything=True, observer=observer
    ) as search_space:
        found = estimated_candidate_set(host, search_space, observer=observer)
    source = found.source
    sizes = [one.size.median for one in found.candidates if one.codec is Codec.CAT]
    unpacked = source.prefix_bytes + source.contents.main.unpacked_bytes
    return ConsideredImage(
        path=str(target.path),
        sha256=source.sha256,
        generator=found.generator.NAME,
        kernel_release=found.kernel_release,
        fallback=bool(target.installed and target.installed.fallback),
        uncompressed_bytes=sizes[0] if sizes else float(unpacked),
        candidates=tuple(sorted(found.candidates, key=lambda one: one.size.median)),
        skipped=found.skipped,
        run_s={
            one.setting: run_s
            for one in found.candidates
            if (run_s := run_s_of(host, target.path, one.setting)) is not None
        },
    )


def fallback_targets(host: Host, target: Target) -> tuple[Target, ...]:
    """Return the fallback images that are made for the same kernel as this one."""
    generator, installed = target.generator, target.installed
    if generator is None or installed is None:
        return ()
    return tuple(
        Target(path=image.path, generator=generator, installed=image)
        for image in generator.images(host)
        if image.fallback
        and image.kernel_release == installed.kernel_release
        and image.path != installed.path
    )
