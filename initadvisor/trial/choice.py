"""Which boot is next, and why: what was named and has not booted yet, then what teaches most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.core.settings import Setting
from initadvisor.decide.next_boot import Purpose
from initadvisor.generators.detect import detect_generator

if TYPE_CHECKING:
    from initadvisor.advise.evaluation import RecommendObserver
    from initadvisor.advise.recommendation import Plan, Recommendation
    from initadvisor.campaign.campaign import Campaign, TrialCandidate
    from initadvisor.host import Host


@dataclass(frozen=True, slots=True, kw_only=True)
class NextTrial:
    """The candidate to boot next, None where no boot is needed any more; ``reason`` say why."""

    candidate: TrialCandidate | None
    reason: str


def next_trial(host: Host, campaign: Campaign, *, observer: RecommendObserver) -> NextTrial:
    """Return what is next; nothing is changed. Raises what ``recommend`` does."""
    for setting in campaign.only:
        for candidate in campaign.eligible:
            if candidate.setting == setting and not campaign.booted(setting):
                return NextTrial(candidate=candidate, reason="it was named, and has not booted yet")
    return _by_what_it_teaches(host, campaign, observer)


def _by_what_it_teaches(host: Host, campaign: Campaign, observer: RecommendObserver) -> NextTrial:
    from initadvisor.advise.evaluation import Request
    from initadvisor.advise.recommend import recommend  # numpy takes its time

    eligible = campaign.eligible
    only = tuple(Setting.parse(found.setting) for found in eligible if not found.today)
    found = recommend(host, Request(only=only), observer=observer)
    if found.plan is None:
        return NextTrial(candidate=None, reason=_settled(found))
    names = {name: candidate for candidate in eligible for name in _names(host, candidate)}
    if (candidate := names.get(found.plan.following)) is None:
        words = f"a boot of {found.plan.following} would tell more, but it may not be booted"
        return NextTrial(candidate=None, reason=words)
    return NextTrial(candidate=candidate, reason=_why(found.plan, found.baseline))


def _names(host: Host, candidate: TrialCandidate) -> tuple[Setting, ...]:
    """Return how a recommendation may call it: where today's has the same name, by its level."""
    setting = Setting.parse(candidate.setting)
    if candidate.today or (generator := detect_generator(host)) is None:
        return (setting,)
    level = generator.default_level(host, setting)
    if level is None or setting.options:
        return (setting,)
    return (Setting.at_level(setting.codec, level), setting)


def _settled(found: Recommendation) -> str:
    if found.hinges_on_build:
        return "what is open is what building takes, of which boots tell nothing"
    if found.decision.settled:
        return f"it is settled: {found.decision.setting}"
    return "boots would tell nothing more"


def _why(plan: Plan, today: Setting) -> str:
    match plan.purpose:
        case Purpose.TODAY:
            return "no boot of today's image is recorded yet"
        case Purpose.PROVE if plan.following == today:
            return "it is what is advised; one boot alone may have been disturbed"
        case Purpose.PROVE:
            return "it is what is advised, and has not booted on this machine"
        case Purpose.LEARN:
            one, other = plan.contrast.one, plan.contrast.other
            return (
                f"it tells most about {one} against {other}; about {plan.count} boots may settle "
                f"that ({plan.chance:.0%} likely)"
            )
