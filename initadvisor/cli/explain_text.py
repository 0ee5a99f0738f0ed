"""``recommend --explain`` in sentences: what decides, what moved the answer, what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.advise.boots import SHARED_WORDS
from initadvisor.cli.rendering.wording import (
    boots,
    figure,
    more_or_less,
    percent,
    rounded,
    short,
    turned_round,
)
from initadvisor.core.config import Objective
from initadvisor.core.estimates import Evidence, three_digits
from initadvisor.decide.boot_evidence import Parameter
from initadvisor.decide.cost import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from initadvisor.advise.recommendation import Recommendation
    from initadvisor.core.estimates import Estimate
    from initadvisor.core.settings import Setting
    from initadvisor.decide.boot_evidence import ParameterUpdate
    from initadvisor.decide.contrast import Contrast
    from initadvisor.decide.cost import BestRange
    from initadvisor.decide.explanation import Explanation, ExplanationStep, Weight


_MOST_FACTS = 3
_LEAST_SHARE = 0.01
_FACTS = {
    Parameter.LOADER: "how fast the boot loader reads",
    Parameter.SHADOW: "how long the kernel can do without the initramfs",
    Parameter.CPU: "how fast this kernel decompresses, by the prediction",
    Parameter.POPULATE: "how long creating the files takes",
    Parameter.LAB: "how the bare machine compares with the virtual one",
}


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
    mean, low, high = map(three_digits, (estimate.mean, estimate.low, estimate.high))
    return f"{mean} ({low}..{high}) {unit}"


def _turning(stretches: Sequence[BestRange], unit: str) -> str:
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
    word = "keep" if step.outcome is Outcome.KEEP else "undecided"
    if step.saving_ms.mean <= 0:
        costs = f"{figure(turned_round(step.saving_ms))} ms"
        return (
            f"{_of(step)}: {word}; none is expected to save anything, {step.leader} costs {costs}"
        )
    return (
        f"{_of(step)}: {word}; the largest expected gain is that of {step.leader}, {saves}, which "
        f"matters with a probability of {percent(step.probability)}"
    )


def _of(step: ExplanationStep) -> str:
    match step.evidence:
        case Evidence.BENCH:
            return "sizes and bench"
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
