"""``initadvisor candidates``: build, list, compare and prune candidate images."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from initadvisor.cli.options import FileName, Whole, refuse_if, settings_beginning_with
from initadvisor.cli.rendering.output import print_json
from initadvisor.cli.sweep import sweep
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.text import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from initadvisor.candidates.build import BuildOutcome
    from initadvisor.candidates.considered import ConsideredImage
    from initadvisor.candidates.search_space import Candidate
    from initadvisor.cli.rendering.progress import Progress
    from initadvisor.core.config import Config
    from initadvisor.host import Host
    from initadvisor.records.built_image import BuiltImage


@click.group(no_args_is_help=False)
def candidates() -> None:
    """Build, list, compare and prune candidates: the image, once with each compression.

    They are kept in /var/cache/initadvisor, or without root in the user's own cache. Nothing that
    boots is touched.
    """


candidates.add_command(sweep)


@candidates.command()
@click.option(
    "--image",
    type=FileName(),
    help="Derive them from this image instead of the one this machine boots.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Build slow codecs, such as bzip2, and what the generator cannot be configured for, too.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="SETTING",
    shell_complete=settings_beginning_with,
    help="Build only this setting, for example 'zstd -19'; may be repeated.",
)
@click.option("--jobs", type=Whole(min=1), help="How many to build at the same time.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def build(
    *, image: Path | None, everything: bool, only: tuple[str, ...], jobs: int | None, as_json: bool
) -> None:
    """Build what is not there yet, several at once, at idle priority.

    What cannot be built, because a compressor is not installed or does not do its work, is reported
    and is no failure, as long as anything can be built.
    """
    from initadvisor.candidates.build import build_candidates
    from initadvisor.candidates.plan import plan_settings
    from initadvisor.cli.rendering.progress import Progress
    from initadvisor.core.settings import Setting
    from initadvisor.host import Host
    from initadvisor.host.configuration import load_config
    from initadvisor.records.built_image import SkippedSetting
    from initadvisor.target.context import what_matters_more
    from initadvisor.target.source import open_source
    from initadvisor.target.target import find_target

    wanted = tuple(Setting.parse(text) for text in only)
    refuse_if(wanted and everything, "--only and --all exclude each other")
    host = Host()
    config = load_config(host)
    target = find_target(host, image)
    with Progress() as progress, open_source(target.path, installed=target.installed) as source:
        generator = target.made_by(source.contents)
        planned = plan_settings(host, generator, config, only=wanted, everything=everything)
        unusable = (
            ()
            if wanted or everything
            else tuple(
                SkippedSetting(setting=setting, reason=reason)
                for setting in planned
                if (reason := generator.unusable(host, setting))
            )
        )
        skipped = {one.setting for one in unusable}
        result = build_candidates(
            host,
            generator,
            source,
            [setting for setting in planned if setting not in skipped],
            observer=progress,
            jobs=jobs or config.jobs,
            cache_limit_bytes=config.cache_limit_bytes,
        )
        result = replace(result, skipped=(*unusable, *result.skipped))
        context = what_matters_more(host, generator, source)
    if as_json:
        print_json(
            {
                "image": str(target.path),
                "generator": generator.NAME,
                "built": result.built,
                "candidates": [_as_json(candidate) for candidate in result.candidates],
                "skipped": [
                    {"setting": str(g.setting), "reason": g.reason} for g in result.skipped
                ],
                "context": list(context),
            }
        )
    else:
        _print_result(target.path, result, context)
    if not result.candidates:
        msg = f"no candidate of {target.path} could be built"
        raise InitadvisorError(msg, hint=result.skipped[0].reason if result.skipped else None)


@candidates.command("list")
@click.option(
    "--image",
    type=FileName(),
    help="Show the settings of this image instead of the one this machine boots.",
)
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def list_(*, image: Path | None, as_json: bool) -> None:
    """List what every setting gives, built or estimated, and the candidates of other images.

    A fallback image of the same kernel is shown beside. Nothing is built; what is not known yet is
    estimated from a sample of the content, which takes seconds.
    """
    from initadvisor.candidates.build import cached_candidates
    from initadvisor.cli.rendering.progress import Progress
    from initadvisor.host import Host
    from initadvisor.host.configuration import load_config

    host = Host()
    config = load_config(host)
    with Progress() as progress:
        images, gaps = _considered(host, image, config, progress)
    kept = cached_candidates(host)
    if as_json:
        print_json(
            {
                "images": [_considered_as_json(one, config) for one in images],
                "gaps": gaps,
                "candidates": [
                    {
                        **_as_json(cached.candidate),
                        "image": cached.image,
                        "image_sha256": cached.image_sha256,
                        "kernel": cached.kernel,
                        "built_at": cached.built_at_ns // 1_000_000_000,
                    }
                    for cached in kept
                ],
            }
        )
        return
    if images:
        _print_considered(images, config)
    for gap in gaps:
        click.echo(click.wrap_text(shown(gap), subsequent_indent="  "))
    here = {one.sha256 for one in images}
    of_others = [cached for cached in kept if cached.image_sha256 not in here]
    for name, digest in dict.fromkeys((c.image, c.image_sha256) for c in of_others):
        click.echo(f"{shown(name)} (sha256 {digest[:12]})")
        _print_table([c.candidate for c in kept if (c.image, c.image_sha256) == (name, digest)])
    total = sum(cached.candidate.size_bytes for cached in kept)
    noun = "candidate" if len(kept) == 1 else "candidates"
    click.echo(f"{len(kept)} {noun} kept, {total / 1e6:.1f} MB")


def _considered(
    host: Host, image: Path | None, config: Config, progress: Progress
) -> tuple[list[ConsideredImage], list[str]]:
    """Return the image at hand and its fallback images, and why one of them cannot be shown."""
    from initadvisor.candidates.considered import considered_image, fallback_targets
    from initadvisor.core.errors import side_fact
    from initadvisor.target.target import find_target

    if image is not None:
        target = find_target(host, image)
        return [considered_image(host, target, config, observer=progress)], []
    gaps: list[str] = []
    what = "what settings give"
    default = side_fact(lambda: find_target(host, None), what, gaps)
    found = [
        side_fact(
            partial(considered_image, host, target, config, observer=progress),
            f"{what} for {target.path}",
            gaps,
        )
        for target in ((default, *fallback_targets(host, default)) if default else ())
    ]
    return [one for one in found if one], gaps


@candidates.command()
@click.option("--all", "everything", is_flag=True, help="Remove all candidates.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def prune(*, everything: bool, as_json: bool) -> None:
    """Remove the candidates of images that are gone or have changed, and what is over the limit.

    The limit is cache_limit_mb in /etc/initadvisor.toml; the oldest candidates go first.
    """
    from initadvisor.candidates.build import prune as prune_candidates
    from initadvisor.host import Host
    from initadvisor.host.configuration import load_config

    host = Host()
    limit_bytes = load_config(host).cache_limit_bytes
    pruned = prune_candidates(host, everything=everything, limit_bytes=limit_bytes)
    if as_json:
        print_json({"removed": pruned.removed, "freed_bytes": pruned.freed_bytes})
        return
    click.echo(f"{pruned.removed} candidates removed, {pruned.freed_bytes / 1e6:.1f} MB freed")


def _as_json(candidate: BuiltImage) -> dict[str, Any]:
    return {
        "setting": str(candidate.setting),
        "codec": candidate.setting.codec.value,
        "path": candidate.path,
        "size_bytes": candidate.size_bytes,
        "sha256": candidate.sha256,
        "main_offset": candidate.main_offset,
        "build_s": round(candidate.build_s, 3),
        "build_cpu_s": round(candidate.build_cpu_s, 3),
        "build_peak_bytes": candidate.build_peak_bytes,
        "command": list(candidate.command),
        "derived": candidate.derived,
        "notes": list(candidate.notes),
    }


def _considered_as_json(image: ConsideredImage, config: Config) -> dict[str, Any]:
    return {
        "image": image.path,
        "image_sha256": image.sha256,
        "generator": image.generator,
        "kernel": image.kernel_release,
        "fallback": image.fallback,
        "uncompressed_bytes": round(image.uncompressed_bytes),
        "settings": [
            {
                "setting": str(one.setting),
                "codec": one.codec.value,
                "state": _state(one, config),
                "size_bytes": round(one.size.median),
                "size_source": one.size_source.value,
                "part_of_uncompressed": round(image.part(one), 4),
                "build_s": round(one.cost.build_s, 3) if one.cost else None,
                "run_s": image.run_s.get(one.setting),
                "unusable": one.unusable,
            }
            for one in image.candidates
        ],
        "skipped": [{"setting": str(g.setting), "reason": g.reason} for g in image.skipped],
    }


_IN_USE, _BUILT, _ESTIMATED = "in use", "built", "estimated"
_SLOW, _UNUSABLE = "slow", "unusable"


def _state(candidate: Candidate, config: Config) -> str:
    if candidate.today:
        return _IN_USE
    if candidate.stream:
        return _BUILT
    if candidate.unusable:
        return _UNUSABLE
    return _SLOW if candidate.codec in config.slow_codecs else _ESTIMATED


def _print_considered(images: Sequence[ConsideredImage], config: Config) -> None:
    """Print one table of all images, one row for each setting, in the order of the first image."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    for image in images:
        kind = "fallback image: " if image.fallback else ""
        size_mb = image.uncompressed_bytes / 1e6
        click.echo(f"{kind}{shown(image.path)} (sha256 {image.sha256[:12]})")
        click.echo(f"  {size_mb:.1f} MB uncompressed, which is 100 %")
    padding = (0, 0 if len(images) > 1 else 1)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=padding)
    table.add_column("setting", overflow="fold")
    run = ("run s",) if any(image.run_s for image in images) else ()
    for image in images:
        table.add_column("fallback\nMB" if image.fallback else "MB", justify="right", no_wrap=True)
        for title in ("%", "build s", *run):
            table.add_column(title, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    rows = [{one.setting: one for one in image.candidates} for image in images]
    for setting in dict.fromkeys(setting for row in rows for setting in row):
        cells: list[str] = []
        for image, row in zip(images, rows, strict=True):
            cells += _cells(image, row.get(setting))
            if run:
                run_s = image.run_s.get(setting)
                cells.append("-" if run_s is None else f"{run_s:.1f}")
        own = rows[0].get(setting)
        table.add_row(str(setting), *cells, _state(own, config) if own else "")
    Console(highlight=False, markup=False).print(table)
    for note in _notes(images, config):
        click.echo(note)


def _notes(images: Sequence[ConsideredImage], config: Config) -> Iterator[str]:
    """Yield what the table's words and marks mean, and what is not in it."""
    first = images[0]
    estimated = [image for image in images if any(not one.stream for one in image.candidates)]
    states = {_state(one, config) for one in first.candidates}
    if any(image.run_s for image in images):
        yield "build s: what the compressor takes"
        yield f"run s: what the last whole run of {first.generator} took, the compressor included"
    else:
        yield "build s: what the compressor takes; no whole run of a generator was timed yet"
    if estimated:
        yield "~: estimated from a sample of the content, nothing was built"
    if _ESTIMATED in states:
        yield f"{_ESTIMATED}: initadvisor candidates build builds it"
    for state in (_SLOW, _UNUSABLE):
        if state in states:
            yield f"{state}: initadvisor candidates build --all builds it, too"
    for image in estimated:
        if image.fallback:
            yield f"fallback: initadvisor candidates build --image {shown(image.path)}"
    for image in images:
        kind = "fallback: " if image.fallback else ""
        yield from (f"{kind}{g.setting}: not built: {g.reason}" for g in image.skipped)
    yield from (f"{one.setting}: {one.unusable}" for one in first.candidates if one.unusable)


def _cells(image: ConsideredImage, candidate: Candidate | None) -> tuple[str, str, str]:
    if candidate is None:
        return "-", "-", "-"
    about = "" if candidate.stream else "~"
    build_s = f"{about}{candidate.cost.build_s:.1f}" if candidate.cost else "-"
    return (
        f"{about}{candidate.size.median / 1e6:.1f}",
        f"{100 * image.part(candidate):.1f}",
        build_s,
    )


def _print_result(image: Path, result: BuildOutcome, context: Sequence[str]) -> None:
    click.echo(f"Candidates of {shown(str(image))}, {result.built} of them new:")
    _print_table(result.candidates)
    for candidate in result.candidates:
        for note in candidate.notes:
            click.echo(f"{candidate.setting}: {note}")
    for skipped in result.skipped:
        click.echo(f"{skipped.setting}: not built: {skipped.reason}")
    if context:
        click.echo("What may matter more than the codec:")
    for sentence in context:
        click.echo(click.wrap_text(sentence, initial_indent="- ", subsequent_indent="  "))


def _print_table(rows: Sequence[BuiltImage]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("setting", no_wrap=True)
    for title in ("MB", "build s", "CPU s", "memory MB"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("sha256", no_wrap=True)
    for row in rows:
        table.add_row(
            str(row.setting),
            f"{row.size_bytes / 1e6:.1f}",
            f"{row.build_s:.1f}",
            f"{row.build_cpu_s:.1f}",
            f"{row.build_peak_bytes / 1e6:.0f}",
            row.sha256[:12],
        )
    Console(highlight=False, markup=False).print(table)
