"""Those that are weighed: today's image and its candidates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.model.setting import Setting
from initadvisor.workflow.bench import Stream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.generators import Generator
    from initadvisor.host import Host
    from initadvisor.model.candidate import Candidate
    from initadvisor.workflow.baseline import Baseline
    from initadvisor.workflow.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """An image to weigh: its main segment, and how it was built, None for one that was found.

    ``size_bytes`` is the whole image. ``unusable`` says why the generator cannot be configured for
    the setting, None where it can.
    """

    setting: Setting
    size_bytes: int
    stream: Stream
    candidate: Candidate | None
    today: bool = False
    unusable: str | None = None


def contenders(
    host: Host,
    generator: Generator,
    source: Source,
    baseline: Baseline,
    candidates: Sequence[Candidate],
) -> tuple[Contender, ...]:
    """Return today's image first, then every candidate with another setting.

    Today's row is the image in use, as it is; from its candidate it has the cost of building. Where
    only today's codec is known, the candidate with the codec's default level is named by its level.
    """
    own = [c for c in candidates if baseline.certain and c.setting == baseline.setting]
    today = Contender(
        setting=baseline.setting,
        size_bytes=source.contents.initrd.size_bytes,
        stream=Stream(
            path=source.path,
            offset=source.contents.main.offset,
            size_bytes=source.main_bytes,
            codec=source.contents.main.codec,
            sha256=source.initrd_sha256,
        ),
        candidate=own[0] if own else None,
        today=True,
    )
    others = [_renamed(host, generator, c, baseline) for c in candidates if c not in own]
    return (today, *(_contender(host, generator, c) for c in others))


def _contender(host: Host, generator: Generator, candidate: Candidate) -> Contender:
    return Contender(
        setting=candidate.setting,
        size_bytes=candidate.size_bytes,
        stream=Stream(
            path=Path(candidate.path),
            offset=candidate.main_offset,
            size_bytes=candidate.size_bytes - candidate.main_offset,
            codec=candidate.setting.codec,
            sha256=candidate.sha256,
        ),
        candidate=candidate,
        unusable=generator.unusable(host, candidate.setting),
    )


def _renamed(
    host: Host, generator: Generator, candidate: Candidate, baseline: Baseline
) -> Candidate:
    if candidate.setting != baseline.setting:
        return candidate
    level = generator.default_level(host, candidate.setting)
    if level is None:
        return candidate
    return replace(candidate, setting=Setting.at_level(candidate.setting.codec, level))
