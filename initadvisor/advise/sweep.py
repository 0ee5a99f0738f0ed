"""One codec at many levels and numbers of threads: size, time to build, time to boot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp
from typing import TYPE_CHECKING

from initadvisor.advise.recommend import Request, recommend
from initadvisor.candidates.build import build_candidates
from initadvisor.candidates.build_times import build_times
from initadvisor.candidates.plan import build_commands
from initadvisor.candidates.search_space import open_search_space
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import UsageError
from initadvisor.core.estimates import Estimate, SizeSource
from initadvisor.core.settings import Setting
from initadvisor.host.cached import keep, read_cached
from initadvisor.host.configuration import load_config
from initadvisor.target.target import find_target

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from initadvisor.advise.recommend import RecommendObserver
    from initadvisor.advise.recommendation import Recommendation, Row
    from initadvisor.candidates.build_times import BuildTime
    from initadvisor.host import Host
    from initadvisor.records.built_image import SkippedSetting


_THREADED = frozenset({Codec.ZSTD, Codec.XZ})
"""Whose programs take ``-T`` in every release in use."""

_ULTRA = 20
"""From this level on zstd(1) wants ``--ultra``, and takes 19 without it."""

_Z95 = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptSetting:
    """A setting's figures; ``build`` is None of an image in use whose setting is not known.

    ``pareto``: no other is as good in size, time to build and time to boot and better in one.
    """

    row: Row
    size_bytes: Estimate
    build: BuildTime | None
    pareto: bool
    today: bool
    advised: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptFigures:
    """What is kept of a setting whose builds were timed.

    ``busy_part``: what others used of the processors. ``unfit``: why it may not be chosen.
    """

    setting: Setting
    size_bytes: Estimate
    unpack_ms: Estimate
    build_cpu_s: Estimate
    build_wall_s: Estimate
    busy_part: float
    unfit: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSweeps:
    """What the sweeps of one image came to."""

    settings: tuple[SweptFigures, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The settings in the order of codec, level and threads, and the answer they are part of."""

    answer: Recommendation
    settings: tuple[SweptSetting, ...]
    skipped: tuple[SkippedSetting, ...]
    warnings: tuple[str, ...]

    @property
    def today(self) -> SweptSetting:
        """The image in use."""
        return next(swept for swept in self.settings if swept.today)

    @property
    def advised(self) -> SweptSetting:
        """What is advised among these."""
        return next(swept for swept in self.settings if swept.advised)


def sweep_settings(
    codec: Codec, levels: Sequence[int], threads: Sequence[int]
) -> tuple[Setting, ...]:
    """Return the settings to sweep, each level with each number of threads.

    Without ``levels`` those worth trying; without ``threads`` as many as the generator has it use.
    Raises ``UsageError`` for a level the codec does not have, and for threads where its program has
    none.
    """
    if codec not in _THREADED and any(number != 1 for number in threads):
        msg = f"{codec} compresses with one thread"
        raise UsageError(msg, hint="--threads is for zstd and xz")
    many = [f"-T{number}" for number in threads] if codec in _THREADED and threads else [""]
    tried = levels or codec.spec.worth_trying or (codec.spec.level,)
    words = [
        f"{codec} {'--ultra ' if codec is Codec.ZSTD and (level or 0) >= _ULTRA else ''}-{level}"
        for level in tried
    ]
    return tuple(Setting.parse(f"{word} {option}") for word in words for option in many)


def sweep(
    host: Host,
    settings: tuple[Setting, ...],
    *,
    image: Path | None,
    build: bool,
    observer: RecommendObserver,
) -> Sweep:
    """Time the builds of these and of today's setting, and weigh them as ``recommend`` does.

    ``build``: build and keep each, and time nothing on samples. Raises what ``recommend`` does.
    """
    config = load_config(host)
    with open_search_space(
        host,
        find_target(host, image),
        config,
        only=settings,
        everything=True,
        observer=observer,
    ) as space:
        if build:
            build_candidates(
                host,
                space.generator,
                space.source,
                space.settings,
                observer=observer,
                jobs=config.jobs,
                cache_limit_bytes=config.cache_limit_bytes,
            )
        commands, _ = build_commands(
            host, space.generator, space.settings, image_sha256=space.source.sha256
        )
        timed = build_times(
            host, space.generator, space.source, commands, whole=build, observer=observer
        )
        prefix_bytes, generator = space.source.prefix_bytes, space.generator
        sha256 = space.source.sha256
    answer = recommend(
        host, Request(image=image, only=settings, everything=True), observer=observer
    )
    by_command = {time.command.argv: time for time in timed.times}
    pairs: list[tuple[Row, BuildTime | None]] = []
    for row in answer.rows:
        # Of an image that was found, not built, only the codec may be known.
        known = row.build_s is not None or row.setting != answer.baseline
        pairs.append(
            (row, by_command.get(generator.compressor(host, row.setting)) if known else None)
        )
    figures = [_figures(row, time, prefix_bytes) for row, time in pairs]
    found = [
        SweptSetting(
            row=row,
            size_bytes=_size(row, time, prefix_bytes),
            build=time,
            pareto=own is not None and not any(_beats(other, own) for other in figures if other),
            today=row.setting == answer.baseline,
            advised=row.setting == answer.decision.setting,
        )
        for (row, time), own in zip(pairs, figures, strict=True)
    ]
    _keep(host, sha256, found, timed.busy_part)
    skipped = {one.setting: one for one in (*answer.skipped, *timed.skipped)}
    return Sweep(
        answer=answer,
        settings=tuple(sorted(found, key=lambda one: _order(one.row.setting))),
        skipped=tuple(skipped.values()),
        warnings=answer.warnings
        if not timed.busy_part or any("of the processors" in said for said in answer.warnings)
        else (
            f"other programs used {100 * timed.busy_part:.0f} % of the processors: builds took "
            "longer",
            *answer.warnings,
        ),
    )


def kept_sweeps(host: Host, sha256: str) -> tuple[SweptFigures, ...]:
    """Return what the sweeps of an image came to, of each setting the latest."""
    found = read_cached(_kept_path(host, sha256), KeptSweeps)
    return found.settings if found else ()


def _keep(host: Host, sha256: str, found: Sequence[SweptSetting], busy_part: float) -> None:
    now = [
        SweptFigures(
            setting=one.row.setting,
            size_bytes=one.size_bytes,
            unpack_ms=replace(one.row.unpack_ms, mean=one.row.unpack_ms.middle),
            build_cpu_s=one.build.cpu_s,
            build_wall_s=one.build.wall_s,
            busy_part=busy_part,
            unfit=one.row.unfit,
        )
        for one in found
        if one.build
    ]
    every = {one.setting: one for one in (*kept_sweeps(host, sha256), *now)}
    in_order = sorted(every.values(), key=lambda one: _order(one.setting))
    keep(_kept_path(host, sha256), KeptSweeps(settings=tuple(in_order)), what="a sweep")


def _kept_path(host: Host, sha256: str) -> Path:
    return host.cache_dir() / "sweeps" / f"{sha256[:32]}.json"


def _order(setting: Setting) -> tuple[str, int, int]:
    return setting.codec, setting.level or 0, threads_given(setting) or 0


def threads_given(setting: Setting) -> int | None:
    """Return how many threads a setting names; None where it leaves that to the generator."""
    given = [option[2:] for option in setting.options if option.startswith("-T")]
    return int(given[-1]) if given and given[-1].isdecimal() else None


def _size(row: Row, time: BuildTime | None, prefix_bytes: int) -> Estimate:
    if row.size_source is SizeSource.SAMPLED and time and time.main_bytes is not None:
        size_bytes = float(prefix_bytes + time.main_bytes)
        return Estimate(mean=size_bytes, low=size_bytes, high=size_bytes, source=SizeSource.BUILT)
    factor = exp(_Z95 * row.size_log_sd)
    return Estimate(
        mean=float(row.size_bytes),
        low=row.size_bytes / factor,
        high=row.size_bytes * factor,
        source=row.size_source,
    )


def _figures(
    row: Row, time: BuildTime | None, prefix_bytes: int
) -> tuple[float, float, float] | None:
    if time is None:
        return None
    return _size(row, time, prefix_bytes).middle, time.wall_s.middle, row.total_ms.middle


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
