"""Behind the answer of ``recommend``: all figures, what would make it surer, what it rests on."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from initadvisor.advise.boots import SHARED_WORDS
from initadvisor.cli.rendering.text import (
    boots,
    figure,
    interval,
    listed,
    more_or_less,
    percent,
    rounded,
    short,
    turned_round,
)
from initadvisor.core.config import Objective
from initadvisor.core.estimates import Evidence, three_digits
from initadvisor.core.text import shown
from initadvisor.decide.boot_evidence import Parameter
from initadvisor.decide.cost import Factor, Outcome
from initadvisor.decide.next_boot import Purpose

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console

    from initadvisor.advise.recommendation import Plan, Recommendation, Row
    from initadvisor.core.estimates import Estimate
    from initadvisor.core.settings import Setting
    from initadvisor.decide.boot_evidence import ParameterUpdate
    from initadvisor.decide.cost import BestRange
    from initadvisor.decide.decision import Contrast
    from initadvisor.decide.explanation import Explanation, ExplanationStep, Weight


_MOST_FACTS = 3
_LEAST_SHARE = 0.01
_FACTS = {
    Parameter.LOADER: "how fast the boot loader reads",
    Parameter.SHADOW: "how long the kernel is busy before it needs the initramfs",
    Parameter.CPU: "how fast this kernel decompresses, against the prediction",
    Parameter.POPULATE: "how long creating the files takes",
    Parameter.LAB: "how the bare machine compares with the virtual one",
}
_HOW_KNOWN = {
    Factor.LOADER: "If you know it, say so with --read-speed.",
    Factor.SHADOW: "If you know it, say so with --overlap.",
    Factor.CPU: "Where KVM works, --lab measures it.",
}

_FITS = {True: "yes", False: "NO", None: "?"}


def print_evidence(answer: Recommendation) -> None:
    """Print to stdout all figures of an answer, how sure it is, and what it rests on."""
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
    maker = "an unknown generator" if answer.generator == "none" else answer.generator
    kernel = f"Linux {answer.kernel_release}" if answer.kernel_release else "an unknown kernel"
    console.print(f"{shown(str(answer.image))}: made by {maker}, for {kernel}")
    console.print(f"Today: {answer.baseline} ({answer.baseline_source})\n")
    console.print(_table(answer))
    console.print()
    for sentence in advice(answer):
        console.print(sentence + "\n")
    for title, lines in _sections(answer):
        console.print(f"{title}:")
        for line in lines:
            console.print(_item(line))
    if answer.explanation:
        for title, lines in explained(answer, answer.explanation):
            console.print(f"\n{title}:")
            for line in lines:
                console.print(_item(line))


def _item(text: str) -> object:
    """Return one line of a list; where it is folded, it goes on below its first word."""
    from rich.table import Table

    item = Table.grid()
    item.add_row("  - ", text)
    return item


def advice(answer: Recommendation) -> Iterator[str]:
    """Yield how sure the answer is, and what would make it surer."""
    yield _sure(answer)
    yield from plan_sentences(answer)
    if answer.unbuilt:
        yield _unbuilt(answer)
    fact = answer.deciding
    if fact is None:
        return
    about = Parameter(fact.factor)
    what, known = _FACTS[about], _HOW_KNOWN[fact.factor]
    turning = _turning(fact.ranges, SHARED_WORDS[about][1])
    if len(fact.ranges) == 1:
        yield (
            f"The fact that matters most is {what}, but {fact.ranges[0].setting} is the best "
            f"choice throughout its range: knowing it would only make that surer. {known}"
        )
    elif not fact.decides:
        yield (
            f"No single fact would decide it; the one that matters most is {what}: "
            f"{turning}. {known}"
        )
    else:
        yield (
            f"What would decide it ({percent(fact.settled)} likely) is to know {what}: "
            f"{turning}. {known}"
        )


def _sure(answer: Recommendation) -> str:
    """Say how sure the verdict is, and what it takes to be."""
    decision, by_size = answer.decision, answer.objective is Objective.SIZE
    evidence, wrong = f"(evidence: {answer.evidence})", percent(1 - answer.certainty)
    if decision.outcome is Outcome.SWITCH and not by_size:
        return (
            f"The probability that {decision.setting} loses enough to matter is "
            f"{percent(1 - decision.probability)}; it has to be below {wrong}"
            f"{_share(answer, decision.saving_ms)} {evidence}."
        )
    if decision.outcome is Outcome.EVEN:
        return (
            f"That no other setting saves enough to matter is {percent(decision.probability)} "
            f"sure; what is left to gain is not worth boots {evidence}."
        )
    if decision.outcome is not Outcome.UNDECIDED:
        return f"That is {percent(decision.probability)} sure {evidence}."
    if answer.hinges_on_build:
        return f"Nothing else stands in the way {evidence}."
    if by_size or decision.leader_saving_ms.mean <= 0:
        return (
            f"That no setting saves enough to matter is only {percent(decision.probability)} sure, "
            f"and {percent(answer.certainty)} is needed {evidence}."
        )
    return (
        f"The probability that {decision.leader} saves enough to matter is "
        f"{percent(decision.leader_probability)}. A switch is advised where the average saving "
        f"matters, and the probability of a loss that matters is below {wrong} {evidence}."
    )


def _share(answer: Recommendation, saving: Estimate) -> str:
    if answer.whole_boot_ms is None:
        return ""
    share = 100 * abs(saving.middle) / answer.whole_boot_ms
    return f"; the saving is {share:.1f} % of a whole boot of {answer.whole_boot_ms / 1000:.1f} s"


def _unbuilt(answer: Recommendation) -> str:
    """Say what is estimated, and which builds could change the answer."""
    rows = [row_of(answer, setting) for setting in answer.unbuilt]
    names = ", ".join(str(setting) for setting in answer.unbuilt)
    cpu_s = sum(row.build_cpu_s or 0.0 for row in rows)
    price = f"about {max(cpu_s, 1):.0f} s of processor time"
    if any(row.size_log_sd for row in rows):
        return (
            "The sizes of what is not built, and what building takes, are estimated from a sample. "
            f"Building {names} could still change the answer ({price}); --build does that and "
            "builds nothing else."
        )
    return f"Only {names} may be the best and not built yet: --build does that ({price})."


def _sections(answer: Recommendation) -> Iterator[tuple[str, Iterable[str]]]:
    refused = [
        f"{row.setting}: {'; '.join(row.lint.reasons)}"
        for row in answer.rows
        if row.lint.verdict == "refused"
    ]
    notes = [f"{row.setting}: {note}" for row in answer.rows for note in row.notes]
    skipped_settings = [f"{skipped.setting}: {skipped.reason}" for skipped in answer.skipped]
    others = [row for row in answer.rows if row.setting != answer.baseline]
    more = {str(row.setting): row.more_kernels for row in others if row.more_kernels is not None}
    room = [answer.room.words(more)] if answer.room else []
    sections = (
        ("Warnings", answer.warnings),
        ("Room for kernels", room),
        ("Not weighed", skipped_settings),
        ("The kernel would refuse", refused),
        ("May matter more than the codec", answer.context),
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
            short(row.read_ms.middle),
            short(row.unpack_ms.middle),
            short(row.total_ms.middle),
            interval(row.total_ms),
            "today" if today else short(row.saving_ms.middle),
            "" if today else interval(row.saving_ms),
            "" if row.build_s is None else f"{row.build_s:.0f}",
            "" if row.build_peak_bytes is None else f"{row.build_peak_bytes / 1e6:.0f}",
            _FITS[row.fits],
            style="bold" if row.setting == answer.decision.setting else None,
        )
    return table


def row_of(answer: Recommendation, setting: object) -> Row:
    """Return the row of a setting."""
    return next(row for row in answer.rows if row.setting == setting)


def explained(answer: Recommendation, why: Explanation) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the parts of the explanation, each with its title."""
    contrast = why.contrast
    if contrast is not None:
        yield f"{contrast.one} against {contrast.other}", [_compared(contrast)]
        yield "What decides between them here", _facts(answer, why, contrast)
    if why.steps:
        yield "What each kind of evidence made of it", _steps(why.steps)
    yield (
        "What is known of this machine, and from what",
        [_learnt(update) for update in why.updates],
    )


def _compared(contrast: Contrast) -> str:
    build = contrast.build_ms
    parts = [
        f"reading takes {more_or_less(contrast.read_ms)}",
        f"waiting for the unpacking {more_or_less(contrast.waited_ms)}",
    ]
    if build:
        word = "more" if build > 0 else "less"
        parts.append(f"its share of a build {short(abs(build))} ms {word}")
    return (
        f"with {contrast.one} {', '.join(parts)}; together {more_or_less(contrast.all_ms)} "
        f"(evidence: {contrast.all_ms.source})"
    )


def _facts(answer: Recommendation, why: Explanation, contrast: Contrast) -> list[str]:
    if answer.objective is Objective.SIZE:
        return ["their sizes alone; what each boot costs is not weighed"]
    telling = [w for w in why.weights if w.share >= _LEAST_SHARE or w.turns]
    said = [_weight(weight, contrast.one) for weight in telling[:_MOST_FACTS]]
    if why.images_share >= _LEAST_SHARE:
        said.append(
            f"{percent(why.images_share)} of the doubt is about {contrast.one} and "
            f"{contrast.other} themselves: how large they are, how long they take to decompress"
        )
    return said or ["no fact about the machine: none makes more than 1 % of the doubt"]


def _weight(weight: Weight, advised: Setting) -> str:
    unit = SHARED_WORDS[weight.what][1]
    said = (
        f"{_FACTS[weight.what]}, {_known(weight.now, unit)}, makes {percent(weight.share)} of the "
        f"doubt; {_turning(weight.ranges, unit)}"
    )
    if len(weight.ranges) == 1:
        return said
    return f"{said}; that this is another one than {advised} is {percent(weight.turns)} likely"


def _known(estimate: Estimate, unit: str) -> str:
    mean, low, high = map(three_digits, (estimate.middle, estimate.low, estimate.high))
    return f"{mean} {unit}" if mean == low == high else f"{mean} ({low}..{high}) {unit}"


def _turning(stretches: Sequence[BestRange], unit: str) -> str:
    """Say which setting is the best from where to where."""
    first, *others = stretches
    if not others:
        return f"{first.setting} is best wherever in this range it is"
    *middle, last = others
    return ", ".join(
        (
            f"below {rounded(first.high)} {unit} {first.setting} is best",
            *(f"from there to {rounded(one.high)} {unit} {one.setting}" for one in middle),
            f"above {'it' if not middle else f'{rounded(last.low)} {unit}'} {last.setting}",
        )
    )


def _steps(steps: Sequence[ExplanationStep]) -> list[str]:
    said = [_step(step) for step in steps]
    missing = set(Evidence) - {step.evidence for step in steps}
    if Evidence.LAB in missing:
        said.append("the lab: has not unpacked any of these images")
    if Evidence.BOOTS in missing:
        said.append("boots: none is recorded that tells anything of these images")
    return said


def _step(step: ExplanationStep) -> str:
    saves = f"{figure(step.saving_ms)} ms"
    if step.outcome is Outcome.SWITCH:
        sure = f"{percent(step.probability)} sure"
        return f"{_of(step)}: switch to {step.leader}, which saves {saves}, {sure}"
    word = "undecided" if step.outcome is Outcome.UNDECIDED else "keep"
    if step.saving_ms.mean <= 0:
        costs = f"{figure(turned_round(step.saving_ms))} ms"
        return (
            f"{_of(step)}: {word}; none is expected to save anything, {step.leader} costs {costs}"
        )
    average = step.saving_ms.mean
    gain = saves if step.saving_ms.middle > 0 else f"{short(average)} ms on average, median {saves}"
    return (
        f"{_of(step)}: {word}; the largest expected gain is that of {step.leader}, {gain}, which "
        f"matters with a probability of {percent(step.probability)}"
    )


def _of(step: ExplanationStep) -> str:
    match step.evidence:
        case Evidence.BENCH:
            return "sizes and predicted times"
        case Evidence.LAB:
            return f"and the lab, which unpacked {step.used} of the images"
        case Evidence.BOOTS:
            return f"and {boots(step.used)} of this machine"


def _learnt(update: ParameterUpdate) -> str:
    words, unit = SHARED_WORDS[update.what]
    before = f"{_known(update.prior, unit)}, {update.prior.source or 'assumed'}"
    if not update.boots:
        return f"{words}: {before}"
    return (
        f"{words}: {_known(update.posterior, unit)}, from {boots(update.boots)}; without them "
        f"{before}"
    )


def plan_sentences(answer: Recommendation) -> Iterator[str]:
    """Yield what may be better still, and which boots would tell."""
    if answer.objective is Objective.SIZE:
        yield "No boots are needed to decide: sizes do."
        return
    decision, rival, plan = answer.decision, answer.rival, answer.plan
    if decision.outcome is Outcome.SWITCH and not decision.best and rival:
        yield (
            "Something else may be better still by enough to matter "
            f"({percent(1 - decision.best_probability)} likely), first of all {rival.setting}: "
            f"against {decision.setting} it {_saves(rival.contrast)}."
        )
    if plan is not None:
        yield " ".join((_said(answer, plan), *_to_build(answer, plan)))


def _said(answer: Recommendation, plan: Plan) -> str:
    match plan.purpose:
        case Purpose.TODAY:
            return (
                "No boot is recorded yet that is certain to be of today's image "
                f"({answer.baseline}); it tells of this machine what nothing else does. "
                "'initadvisor measure' records this boot, initadvisor-measure.timer each."
            )
        case Purpose.PROVE if plan.following == answer.baseline:
            return (
                f"Nothing is left to find out; one boot more of {plan.following} would prove it "
                "on this machine: one alone may have been disturbed."
            )
        case Purpose.PROVE:
            return (
                f"Nothing is left to find out; one boot of {plan.following} would prove it on this "
                "machine."
            )
        case Purpose.LEARN if not plan.enough:
            return _hardly_settled(answer, plan)
        case Purpose.LEARN:
            undecided = answer.decision.outcome is Outcome.UNDECIDED
            what = "What would decide it" if undecided else "What would tell"
            following = f"; the next one: {plan.following}" if len(plan.boots) > 1 else ""
            return f"{what}: {_listed(plan)} ({percent(plan.chance)} likely){following}."


def _listed(plan: Plan) -> str:
    """Return the boots; how many they will be is not known before they are done."""
    if plan.count == 1:
        return f"one more boot, of {plan.following}"
    if len(plan.boots) == 1:
        return f"at most about {plan.count} more boots of {plan.following}"
    each = listed([f"{planned.boots} of {planned.setting}" for planned in plan.boots])
    return f"at most about {plan.count} more boots, {each}"


def _hardly_settled(answer: Recommendation, plan: Plan) -> str:
    """Say why so many boots may not do."""
    hardly = f"It may take more than {plan.count} boots to decide it"
    if not plan.loader_seen:
        return (
            f"{hardly}: no boot recorded so far shows how long the loader reads. If you know how "
            f"fast it is, say so with --read-speed. What tells most of the rest is a boot of "
            f"{plan.following}."
        )
    one, other = plan.contrast.one, plan.contrast.other
    return (
        f"{hardly}: {one} and {other} may be a near-tie ({other} {_saves(plan.contrast)}), "
        f"and {_fine(answer, plan)} is fine until then. What tells most is a boot of "
        f"{plan.following}."
    )


def _fine(answer: Recommendation, plan: Plan) -> str:
    decision = answer.decision
    if decision.setting not in {plan.contrast.one, plan.contrast.other}:
        return "either"
    switch = decision.outcome is Outcome.SWITCH
    return f"switching to {decision.setting}" if switch else f"keeping {decision.setting}"


def _saves(contrast: Contrast) -> str:
    """Return what the other one of a contrast saves."""
    saving = contrast.all_ms
    if saving.middle >= 0:
        return f"saves {figure(saving)} ms"
    return f"costs {figure(turned_round(saving))} ms"


def _to_build(answer: Recommendation, plan: Plan) -> Iterator[str]:
    """Yield what cannot boot before it was built, and what builds it."""
    if not plan.unbuilt:
        return
    if set(plan.unbuilt) <= set(answer.unbuilt):
        how = "--build does that"
    else:
        only = " ".join(f"--only {shlex.quote(str(setting))}" for setting in plan.unbuilt)
        how = f"initadvisor candidates build {only}"
    have = "has" if len(plan.unbuilt) == 1 else "have"
    yield f"{listed(plan.unbuilt)} {have} to be built first ({how})."
