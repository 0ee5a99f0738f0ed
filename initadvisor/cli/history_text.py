"""What was measured, for a person, in 80 columns."""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import TYPE_CHECKING

import click

from initadvisor.cli.intervals import explain_intervals, interval
from initadvisor.cli.paragraphs import moment, print_item, print_paragraph
from initadvisor.cli.tables import Table, print_table
from initadvisor.model.lab import RunEnd, Unpacked
from initadvisor.model.text import shown
from initadvisor.workflow.history import results

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from initadvisor.model.lab import RecordedRun, Verification
    from initadvisor.workflow.history import SubjectResult

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
                interval(result.unpack_ms) if result.unpack_ms else "",
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
        else f"refused: {verification.words or 'without a word'}"
    )
    return (
        f"{moment(verification.at)}: image {verification.image_sha256[:12]}: {verdict} ({kernel})"
    )
