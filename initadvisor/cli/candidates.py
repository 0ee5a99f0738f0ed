"""``initadvisor candidates``: build, list and prune candidate images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from initadvisor.cli.options import FileName, Whole, refuse_if, settings_beginning_with
from initadvisor.cli.rendering.output import print_json
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.text import shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from initadvisor.candidates.build import BuildOutcome
    from initadvisor.records.built_image import BuiltImage


@click.group(no_args_is_help=False)
def candidates() -> None:
    """Build, list and prune candidates: the image, once with each compression.

    They are kept in /var/cache/initadvisor, or without root in the user's own cache. Nothing that
    boots is touched.
    """


@candidates.command()
@click.option(
    "--image",
    type=FileName(),
    help="Derive them from this image instead of the one this machine boots.",
)
@click.option("--all", "everything", is_flag=True, help="Build slow codecs, too, such as bzip2.")
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
        result = build_candidates(
            host,
            generator,
            source,
            plan_settings(host, generator, config, only=wanted, everything=everything),
            observer=progress,
            jobs=jobs or config.jobs,
            cache_limit_bytes=config.cache_limit_bytes,
        )
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
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def list_(*, as_json: bool) -> None:
    """List the candidates that are kept, and the image each was derived from."""
    from initadvisor.candidates.build import cached_candidates
    from initadvisor.host import Host

    kept = cached_candidates(Host())
    if as_json:
        print_json(
            {
                "candidates": [
                    {
                        **_as_json(cached.candidate),
                        "image": cached.image,
                        "image_sha256": cached.image_sha256,
                        "kernel": cached.kernel,
                        "built_at": cached.built_at_ns // 1_000_000_000,
                    }
                    for cached in kept
                ]
            }
        )
        return
    for image, digest in dict.fromkeys((cached.image, cached.image_sha256) for cached in kept):
        click.echo(f"{shown(image)} (sha256 {digest[:12]})")
        of_image = [c.candidate for c in kept if (c.image, c.image_sha256) == (image, digest)]
        _print_table(of_image)
    total = sum(cached.candidate.size_bytes for cached in kept)
    noun = "candidate" if len(kept) == 1 else "candidates"
    click.echo(f"{len(kept)} {noun}, {total / 1e6:.1f} MB")


@candidates.command()
@click.option("--all", "everything", is_flag=True, help="Remove all candidates.")
def prune(*, everything: bool) -> None:
    """Remove the candidates of images that are gone or have changed, and what is over the limit.

    The limit is cache_limit_mb in /etc/initadvisor.toml; the oldest candidates go first.
    """
    from initadvisor.candidates.build import prune as prune_candidates
    from initadvisor.host import Host
    from initadvisor.host.configuration import load_config

    host = Host()
    limit_bytes = load_config(host).cache_limit_bytes
    pruned = prune_candidates(host, everything=everything, limit_bytes=limit_bytes)
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


def _print_result(image: Path, result: BuildOutcome, context: Sequence[str]) -> None:
    click.echo(f"Candidates of {shown(str(image))}, {result.built} of them new:")
    _print_table(result.candidates)
    for candidate in result.candidates:
        for note in candidate.notes:
            click.echo(f"{candidate.setting}: {note}")
    for skipped in result.skipped:
        click.echo(f"{skipped.setting}: not built: {skipped.reason}")
    if context:
        click.echo("What matters more than the codec:")
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
