"""The answer of ``recommend`` for a person: one sentence, the table, and what it rests on."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from initadvisor.cli.explain_text import explained, plan_sentences
from initadvisor.cli.rendering.text import figure, interval, percent, rounded, short
from initadvisor.core.config import Objective
from initadvisor.core.text import shown
from initadvisor.decide.cost import Factor, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console

    from initadvisor.advise.recommendation import Recommendation, Row
    from initadvisor.core.estimates import Estimate
    from initadvisor.decide.cost import DecidingFact


_FACTORS = {
    Factor.LOADER: (
        "how fast the boot loader reads",
        "MB/s",
        "If you know it, say so with --read-speed.",
    ),
    Factor.SHADOW: (
        "how long the kernel can do without the initramfs",
        "ms",
        "If you know it, say so with --overlap.",
    ),
    Factor.CPU: (
        "how fast this kernel decompresses, against the prediction",
        "x",
        "Where KVM works, --lab measures it.",
    ),
}
"""Each fact in words, the unit of its values, and how it becomes known."""

_FITS = {True: "yes", False: "NO", None: "?"}


def print_recommendation(answer: Recommendation) -> None:
    """Print the whole answer to stdout."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=False, emoji=False, markup=False)
    if console.is_terminal:
        _print(console, answer)
        return
    with console.capture() as captured:
        _print(console, answer)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())  # rich fills lines up with blanks


def _print(console: Console, answer: Recommendation) -> None:
    from rich.padding import Padding

    if answer.sample:
        console.print(
            "SAMPLE: not an initramfs of this machine; sizes and times are of a sample.\n"
        )
    maker = "an unknown generator" if answer.generator == "none" else answer.generator
    kernel = f"Linux {answer.kernel_release}" if answer.kernel_release else "an unknown kernel"
    console.print(f"{shown(str(answer.image))}: made by {maker}, for {kernel}")
    console.print(f"Today: {answer.baseline} ({answer.baseline_source})\n")
    console.print(_table(answer))
    console.print()
    for sentence in (verdict(answer), *advice(answer)):
        console.print(sentence + "\n")
    for title, lines in _sections(answer):
        console.print(f"{title}:")
        for line in lines:
            console.print(Padding(f"- {line}", (0, 0, 0, 2)))
    if answer.explanation:
        for title, lines in explained(answer, answer.explanation):
            console.print(f"\n{title}:")
            for line in lines:
                console.print(Padding(f"- {line}", (0, 0, 0, 2)))


def verdict(answer: Recommendation) -> str:
    """Return the recommendation in one sentence, with its certainty and evidence."""
    decision = answer.decision
    sure = f"{percent(decision.probability)} sure, evidence: {answer.evidence}"
    match decision.outcome:
        case Outcome.SWITCH if answer.objective is Objective.SIZE:
            before, after = (_row_of(answer, s) for s in (answer.baseline, decision.setting))
            saved = (before.size_bytes - after.size_bytes) / 1e6
            cost = -decision.saving_ms.mean
            price = f"costs {cost:.0f} ms" if cost > 0 else f"saves {-cost:.0f} ms"
            return (
                f"Switch to {decision.setting}: the image is {saved:.1f} MB smaller ({sure}); "
                f"each boot {price} ({interval(decision.saving_ms)})."
            )
        case Outcome.SWITCH:
            return (
                f"Switch to {decision.setting}: it saves {figure(decision.saving_ms)} ms "
                f"{_per_boot(answer)}{_share(answer, decision.saving_ms)} ({sure})."
            )
        case Outcome.KEEP:
            return f"Keep {decision.setting}: no other setting saves enough to matter ({sure})."
        case Outcome.UNDECIDED if answer.hinges_on_build:
            return (
                f"Undecided, so keep {decision.setting}: which setting is best depends on what "
                f"building today's image takes, and that is not known well enough (evidence: "
                f"{answer.evidence})."
            )
        case Outcome.UNDECIDED if decision.leader_saving_ms.mean <= 0:
            return (
                f"Undecided, so keep {decision.setting}: no other setting is expected to save "
                f"anything, but that none does is only {percent(decision.probability)} sure and "
                f"{percent(answer.certainty)} is needed (evidence: {answer.evidence})."
            )
        case Outcome.UNDECIDED:
            return (
                f"Undecided, so keep {decision.setting}: the largest expected gain is that of "
                f"{decision.leader}, which saves {figure(decision.leader_saving_ms)} ms "
                f"{_per_boot(answer)}{_share(answer, decision.leader_saving_ms)}, but that this "
                f"matters is only {percent(decision.leader_probability)} sure and "
                f"{percent(answer.certainty)} is needed (evidence: {answer.evidence})."
            )


def advice(answer: Recommendation) -> Iterator[str]:
    """Yield what to do next, and what would make the answer surer."""
    decision = answer.decision
    if decision.outcome is Outcome.SWITCH and answer.installed:
        command = shlex.join(["apply", str(decision.setting), "--confirm"])
        yield f"Next: sudo initadvisor {command} switches, after one trial boot."
    yield from plan_sentences(answer)
    if answer.unbuilt:
        yield _unbuilt(answer)
    fact = answer.deciding
    if fact is None:
        return
    what, unit, known = _FACTORS[fact.factor]
    if len(fact.ranges) == 1:
        yield (
            f"The fact that matters most is {what}, but {fact.ranges[0].setting} is the best "
            f"choice throughout its range: knowing it would only make that surer. {known}"
        )
    elif fact.settled == 0:
        yield (
            f"No single fact would decide it; the one that matters most is {what}: "
            f"{_stretches(fact, unit)}. {known}"
        )
    else:
        yield (
            f"To know one fact would decide it ({percent(fact.settled)} likely), {what}: "
            f"{_stretches(fact, unit)}. {known}"
        )


def _unbuilt(answer: Recommendation) -> str:
    """Say what is estimated, and which builds could change the answer."""
    rows = [_row_of(answer, setting) for setting in answer.unbuilt]
    names = ", ".join(str(setting) for setting in answer.unbuilt)
    cpu_s = sum(row.build_cpu_s or 0.0 for row in rows)
    price = f"about {max(cpu_s, 1):.0f} s of processor time"
    if any(row.size_log_sd for row in rows):
        return (
            "Sizes with a ~, and what building takes, are estimated from a sample of the content. "
            f"Building {names} could still change the answer ({price}); --build does that and "
            "builds nothing else."
        )
    return f"Only {names} may be the best and not built yet: --build does that ({price})."


def _stretches(fact: DecidingFact, unit: str) -> str:
    first, *middle, last = fact.ranges
    return ", ".join(
        (
            f"below {rounded(first.high)} {unit} {first.setting} is best",
            *(f"from there to {rounded(one.high)} {unit} {one.setting}" for one in middle),
            f"above {rounded(last.low)} {unit} {last.setting}",
        )
    )


def _sections(answer: Recommendation) -> Iterator[tuple[str, Iterable[str]]]:
    refused = [
        f"{row.setting}: {'; '.join(row.lint.reasons)}"
        for row in answer.rows
        if row.lint.verdict == "refused"
    ]
    notes = [f"{row.setting}: {note}" for row in answer.rows for note in row.notes]
    skipped_settings = [f"{skipped.setting}: {skipped.reason}" for skipped in answer.skipped]
    sections = (
        ("Warnings", answer.warnings),
        ("Not weighed", skipped_settings),
        ("The kernel would refuse", refused),
        ("Matters more than the codec", answer.context),
        ("Notes", notes),
        ("This rests on", [assumption.text for assumption in answer.assumptions]),
    )
    yield from ((title, lines) for title, lines in sections if lines)


def _table(answer: Recommendation) -> object:
    """Return the table; it fits a terminal of 80 columns."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="underline")
    table.add_column("setting", overflow="fold")
    for title in ("MB", "%", "read\nms", "unpack\nms", "total\nms"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("\n95 %", no_wrap=True)
    table.add_column("saves\nms", justify="right", no_wrap=True)
    table.add_column("\n95 %", no_wrap=True)
    for title in ("build\ns", "mem\nMB", "fits"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in answer.rows:
        today = row.setting == answer.baseline
        about = "~" if row.size_log_sd else ""
        table.add_row(
            str(row.setting),
            f"{about}{row.size_bytes / 1e6:.1f}",
            f"{100 * row.size_bytes / answer.unpacked_bytes:.0f}",
            short(row.read_ms.mean),
            short(row.unpack_ms.mean),
            short(row.total_ms.mean),
            interval(row.total_ms),
            "today" if today else short(row.saving_ms.mean),
            "" if today else interval(row.saving_ms),
            "" if row.build_s is None else f"{row.build_s:.0f}",
            "" if row.build_peak_bytes is None else f"{row.build_peak_bytes / 1e6:.0f}",
            _FITS[row.fits],
            style="bold" if row.setting == answer.decision.setting else None,
        )
    return table


def _row_of(answer: Recommendation, setting: object) -> Row:
    return next(row for row in answer.rows if row.setting == setting)


def _per_boot(answer: Recommendation) -> str:
    balanced = answer.objective is Objective.BALANCED
    return "per boot, its share of the build included" if balanced else "per boot"


def _share(answer: Recommendation, saving: Estimate) -> str:
    if answer.whole_boot_ms is None:
        return ""
    share = abs(saving.mean) / answer.whole_boot_ms
    return f", {share:.1%} of a whole boot of {answer.whole_boot_ms / 1000:.1f} s"
