"""``initadvisor history``: what was measured so far.

The options, the call, and the answer as JSON (an interface) and as text.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections import Counter
from math import inf
from typing import TYPE_CHECKING, Any

import click

from initadvisor.cli.boots import print_boots, print_summaries, write_csv, write_json
from initadvisor.cli.options import FileName, Whole, moment_since, refuse_if
from initadvisor.cli.rendering.output import SCHEMA
from initadvisor.cli.rendering.text import (
    Table,
    explain_intervals,
    measured_interval,
    moment,
    print_item,
    print_paragraph,
    print_table,
)
from initadvisor.core.text import shown
from initadvisor.lab.history import results
from initadvisor.records.lab import RunEnd, Unpacked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from initadvisor.decide.repeats import Middle
    from initadvisor.host import Host
    from initadvisor.lab.history import SubjectResult
    from initadvisor.records.lab import LabKernel, RecordedRun, Verification
    from initadvisor.store.store import Store


_log = logging.getLogger(__name__)

_SHOWN = 10


@click.command()
@click.option(
    "--limit",
    type=Whole(min=1, max=1_000_000_000),
    help=f"Show only so many of each, the latest ones [{_SHOWN}, of exported boots all].",
)
@click.option(
    "--since",
    callback=moment_since,
    metavar="WHEN",
    help="Only what is since a date (2026-01-31), or since so long ago (90d, 12w).",
)
@click.option("--json", "as_json", is_flag=True, help="Print all as JSON, with every sample.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the boots as CSV.")
@click.option(
    "--import",
    "imported",
    type=FileName(),
    metavar="FILE",
    help="Keep the boots that another machine printed as JSON or CSV.",
)
@click.option(
    "--drop-damaged", is_flag=True, help="Delete records that are damaged, and name them."
)
def history(
    *,
    limit: int | None,
    since: datetime | None,
    as_json: bool,
    as_csv: bool,
    imported: Path | None,
    drop_damaged: bool,
) -> None:
    """Show what was measured: boots, lab runs, and what kernels made of images.

    Without root these are the user's own, or, where there are none, those of the machine.
    """
    from initadvisor.host import Host
    from initadvisor.store.store import open_store

    asked = [as_json, as_csv, imported is not None, drop_damaged]
    refuse_if(sum(asked) > 1, "--json, --csv, --import and --drop-damaged exclude each other")
    refuse_if(
        drop_damaged and (since is not None or limit is not None),
        "--drop-damaged looks at all records, without --since or --limit",
    )
    refuse_if(
        imported is not None and (since is not None or limit is not None),
        "--import takes all boots of a file, without --since or --limit",
    )
    host = Host()
    if imported is not None:
        _import(host, imported)
        return
    if drop_damaged:
        _drop_damaged(host)
        return
    with open_store(host, readonly=True) as store:
        if as_csv:
            _warn(store.damaged())
            with contextlib.closing(store.each_boot(since=since, limit=limit)) as boots:
                write_csv(boots, sys.stdout)
        elif as_json:
            _print_json(store, since, limit)
        else:
            _print_text(store, since, limit or _SHOWN)


def _import(host: Host, path: Path) -> None:
    from initadvisor.measure.boot_import import import_boots

    done = import_boots(host, path)
    click.echo(shown(f"{done.new} of {done.boots} boots are new; kept in {done.path}"))


def _drop_damaged(host: Host) -> None:
    from initadvisor.store.store import open_store

    with open_store(host) as store:
        dropped = store.drop_damaged()
        path = store.path
    for name in dropped:
        print_item(f"damaged: {shown(name)}")
    click.echo(shown(f"{len(dropped)} damaged records were dropped from {path}, or made anew"))


def _warn(damaged: Sequence[str]) -> None:
    """Say on stderr what is left out."""
    for name in damaged:
        _log.warning("%s is damaged and left out", shown(name))


def _print_json(store: Store, since: datetime | None, limit: int | None) -> None:
    runs = store.lab_runs(limit=limit or _SHOWN, since=since)
    verifications = store.verifications(limit=limit or _SHOWN, since=since)
    head = {
        "schema": SCHEMA,
        "store": str(store.path),
        "lab_runs": [run_document(recorded) for recorded in runs],
        "verifications": [verification_document(verification) for verification in verifications],
        "damaged": list(store.damaged()),
    }
    with contextlib.closing(store.each_boot(since=since, limit=limit)) as boots:
        write_json(head, boots, sys.stdout)


def _print_text(store: Store, since: datetime | None, limit: int) -> None:
    from initadvisor.boots.summary import summaries

    boots = store.boots(since=since, limit=limit)
    runs = store.lab_runs(limit=limit, since=since)
    verifications = store.verifications(limit=limit, since=since)
    damaged = store.damaged()
    if damaged:
        _print_damaged(damaged)
    if not boots and not runs and not verifications:
        click.echo("Nothing was measured yet." if since is None else "Nothing was measured since.")
        return
    if boots:
        print_boots(boots)
        print_summaries(summaries(store.boot_groups(since=since), limit=limit))
    for recorded in runs:
        print_run(recorded)
    if verifications:
        print_verifications(verifications)
    click.echo(f"Kept in {shown(str(store.path))}")


def _print_damaged(damaged: Sequence[str]) -> None:
    for name in damaged[:_SHOWN]:
        print_item(f"left out, because it is damaged: {shown(name)}")
    if len(damaged) > _SHOWN:
        print_item(f"and {len(damaged) - _SHOWN} more")
    print_item("`initadvisor history --drop-damaged` deletes what is damaged")
    click.echo()


def run_document(recorded: RecordedRun) -> dict[str, Any]:
    """Return one lab run as plain values."""
    run = recorded.run
    return {
        "number": recorded.number,
        "started_at": run.started_at.isoformat(timespec="seconds"),
        "end": recorded.end,
        "engine": run.engine,
        "engine_version": run.engine_version,
        "kernel": _kernel(run.kernel),
        "cpu_model": run.cpu_model,
        "settings": [_subject(result) for result in results(recorded)],
        "warnings": list(recorded.warnings),
    }


def _subject(result: SubjectResult) -> dict[str, Any]:
    subject = result.subject
    return {
        "setting": str(subject.setting),
        "today": subject.today,
        "path": subject.path,
        "sha256": subject.sha256,
        "size_bytes": subject.size_bytes,
        "unpack_ms": result.unpack_ms and _figure(result.unpack_ms),
        "init_ms": None if result.init_ms is None else round(result.init_ms, 3),
        "samples": [
            {
                "round": sample.round,
                "kind": sample.kind,
                "unpack_us": sample.unpack_us,
                "init_us": sample.init_us,
                "waiter": sample.waiter,
            }
            for sample in result.samples
        ],
        "lost": [{"round": boot.round, "reason": boot.reason} for boot in result.lost],
    }


def verification_document(verification: Verification) -> dict[str, Any]:
    """Return one verification as plain values."""
    return {
        "at": verification.at.isoformat(timespec="seconds"),
        "engine": verification.engine,
        "kernel": _kernel(verification.kernel),
        "image_sha256": verification.image_sha256,
        "content_sha256": verification.content_sha256,
        "unpacked": verification.unpacked,
        "reason": verification.reason,
    }


def _kernel(kernel: LabKernel) -> dict[str, Any]:
    return {"path": kernel.path, "sha256": kernel.sha256, "release": kernel.release}


def _figure(middle: Middle) -> dict[str, Any]:
    return {
        "median": round(middle.median, 3),
        "low": None if middle.assumed else round(middle.low, 3),
        "high": None if middle.assumed else round(middle.high, 3),
        "count": middle.count,
        "outliers": [round(value, 3) for value in middle.outliers],
    }


_ENDS = {
    RunEnd.SETTLED: "the ranking was settled",
    RunEnd.ROUNDS: "all rounds were done",
    RunEnd.INTERRUPTED: "it was interrupted",
    RunEnd.FAILED: "it failed",
    None: "its end was not recorded",
}


def print_verifications(verifications: Sequence[Verification]) -> None:
    """Print what kernels made of images to stdout."""
    click.echo("What kernels made of images:")
    for verification in verifications:
        print_item(_verified(verification))
    click.echo()


def print_run(recorded: RecordedRun) -> None:
    """Print one lab run to stdout."""
    run = recorded.run
    print_paragraph(
        f"Lab run {recorded.number}, {moment(run.started_at)}: "
        f"{shown(f'Linux {run.kernel.release}, {run.engine} ({run.engine_version})')}, "
        f"{shown(run.cpu_model)}; {_ENDS[recorded.end]}"
    )
    if not run.engine.keeps_time:
        print_item("its processor was emulated: the times say nothing of a real one")
    found = results(recorded)
    click.echo()
    print_table(_table(found))
    explain_intervals([result.unpack_ms for result in found if result.unpack_ms is not None])
    lines = (*_until_init(found), *_lost(found), *recorded.warnings)
    for line in lines:
        print_item(line)
    click.echo()


def _table(found: Sequence[SubjectResult]) -> Table:
    return Table(
        titles=("setting", "MB", "unpack ms", "95 %", "boots", "lost"),
        rows=tuple(
            (
                f"{shown(str(result.subject.setting))}{' (today)' if result.subject.today else ''}",
                f"{result.subject.size_bytes / 1e6:.1f}",
                f"{result.unpack_ms.median:.1f}" if result.unpack_ms else "",
                measured_interval(result.unpack_ms) if result.unpack_ms else "",
                str(result.unpack_ms.count if result.unpack_ms else 0),
                str(len(result.lost) or ""),
            )
            for result in sorted(found, key=_median_ms)
        ),
        text=0,
    )


def _median_ms(result: SubjectResult) -> float:
    return result.unpack_ms.median if result.unpack_ms else inf


def _until_init(found: Iterable[SubjectResult]) -> Iterator[str]:
    """Yield what the boots up to /init showed."""
    for result in found:
        if result.init_ms is None:
            continue
        waiters = {sample.waiter for sample in result.samples if sample.waiter}
        waited = f"; first to wait for it: {', '.join(sorted(waiters))}" if waiters else ""
        yield (
            f"{result.subject.setting}: /init would run {result.init_ms:.0f} ms after unpacking "
            f"began{waited}"
        )


def _lost(found: Iterable[SubjectResult]) -> Iterator[str]:
    """Yield why boots were lost, each reason once for each setting."""
    for result in found:
        for reason, count in Counter(boot.reason for boot in result.lost).items():
            boots = "1 boot" if count == 1 else f"{count} boots"
            yield f"{result.subject.setting}: {boots} lost: {reason}"


def _verified(verification: Verification) -> str:
    kernel = f"Linux {verification.kernel.release}, {verification.engine}"
    verdict = (
        "unpacked"
        if verification.unpacked is Unpacked.YES
        else f"refused: {verification.reason or 'without a word'}"
    )
    return (
        f"{moment(verification.at)}: image {verification.image_sha256[:12]}: {verdict} ({kernel})"
    )
