"""Today's setting: what the configuration says, held against what the image is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.core.codecs import Codec
from initadvisor.core.settings import Setting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.generators import ConfiguredSetting
    from initadvisor.records.built_image import BuiltImage
    from initadvisor.target.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Today's setting, where that is known from, and what is odd about it.

    ``certain``: it is the setting that made the image; otherwise only the codec is known.
    """

    setting: Setting
    source: str
    certain: bool
    warnings: tuple[str, ...] = ()


def todays_setting(source: Source, configured: ConfiguredSetting | None) -> Baseline:
    """Return what made the image: the configured setting, if the image has its codec."""
    found = Setting(source.contents.main.codec)
    plain = found.codec is Codec.CAT  # it has no level, so nothing is left to know of it
    if configured is None:
        where = "read from the image" + ("" if plain else ", which does not tell the level")
        return Baseline(setting=found, source=where, certain=plain)
    if configured.setting.codec is not found.codec:
        odd = (
            f"{source.path} is compressed with {found}, but {configured.setting} is configured "
            f"({configured.source}): it was built before that changed, or the generator fell back"
        )
        return Baseline(
            setting=found,
            source="read from the image, which is not what is configured",
            certain=plain,
            warnings=(*configured.warnings, odd),
        )
    return Baseline(
        setting=configured.setting,
        source=configured.source,
        certain=True,
        warnings=configured.warnings,
    )


def identified(baseline: Baseline, source: Source, candidates: Sequence[BuiltImage]) -> Baseline:
    """Return the setting whose candidate has the very bytes of the image, if one has."""
    if baseline.certain:
        return baseline
    for candidate in candidates:
        if candidate.sha256 == source.initrd_sha256:
            return Baseline(
                setting=candidate.setting,
                source="read from the image: this setting gives the same bytes",
                certain=True,
                warnings=baseline.warnings,
            )
    return baseline
