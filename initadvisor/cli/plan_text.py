"""Which boots would make the answer surer, in sentences."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from initadvisor.cli.rendering.wording import figure, listed, percent, turned_round
from initadvisor.core.config import Objective
from initadvisor.decide.boot_plan import Purpose
from initadvisor.decide.cost import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.advise.recommendation import Plan, Recommendation
    from initadvisor.decide.contrast import Contrast


def plan_sentences(answer: Recommendation) -> Iterator[str]:
    """Yield what may be better still, and which boots would tell."""
    if answer.objective is Objective.SIZE:
        yield "No boots are needed to decide: sizes do."
        return
    decision, rival, plan = answer.decision, answer.rival, answer.plan
    if decision.outcome is Outcome.SWITCH and not decision.settled and rival:
        yield (
            f"Something else may be better still ({percent(1 - decision.best_probability)} "
            f"likely), first of all {rival.setting}: against {decision.setting} it "
            f"{_saves(rival.contrast)}."
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
            return f"{what}: {_listed(plan)} ({percent(plan.chance)} likely){_next(plan)}."


def _listed(plan: Plan) -> str:
    """Return the boots; how many they will be is not known before they are done."""
    if plan.count == 1:
        return f"one more boot, of {plan.following}"
    if len(plan.boots) == 1:
        return f"at most about {plan.count} more boots of {plan.following}"
    each = listed([f"{planned.boots} of {planned.setting}" for planned in plan.boots])
    return f"at most about {plan.count} more boots, {each}"


def _next(plan: Plan) -> str:
    return f"; the next one: {plan.following}" if len(plan.boots) > 1 else ""


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
    if saving.mean >= 0:
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
