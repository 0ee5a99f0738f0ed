"""The candidates of a campaign: built, linted, and unpacked by this machine's own kernel.

The next to boot is what was named and has not booted yet, then what teaches most.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from initadvisor.advise.recommend import RecommendObserver, Request, recommend
from initadvisor.boots.loaded_files import loaded_part
from initadvisor.campaign.campaign import (
    CampaignEvent,
    CampaignEventKind,
    Quarantined,
    TrialCandidate,
)
from initadvisor.candidates.build import build_candidates
from initadvisor.candidates.search_space import open_search_space
from initadvisor.core.errors import InitadvisorError, LostVMError
from initadvisor.core.estimates import SizeSource
from initadvisor.core.settings import Setting
from initadvisor.decide.next_boot import Purpose
from initadvisor.generators.detect import detect_generator
from initadvisor.host.configuration import load_config
from initadvisor.host.files import open_regular, sha256_of
from initadvisor.host.storage.mounts import machine_path
from initadvisor.image.contents import Verdict
from initadvisor.lab.verify import BuildingObserver, verify
from initadvisor.target.target import find_target
from initadvisor.vm.engines import NoEngineError, Wanted, require_verifying

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.advise.recommendation import Plan, Recommendation, Row
    from initadvisor.campaign.campaign import Campaign
    from initadvisor.host import Host
    from initadvisor.records.built_image import BuiltImage


class CampaignObserver(RecommendObserver, BuildingObserver, Protocol):
    """Receives progress events."""


def prepared(
    host: Host, campaign: Campaign, *, observer: CampaignObserver
) -> Iterator[CampaignEvent]:
    """Yield what came of each candidate that must not be booted, then those that may.

    Without settings that the user has named, it is those that may be the best. Nothing that boots
    is touched. Raises ``InitadvisorError`` where there is no image or nothing can be built.
    """
    try:
        image = find_target(host, None).installed
        if image:  # before minutes are spent on builds
            kernel = image.path if image.uki else None
            require_verifying(host, Wanted(release=image.kernel_release, kernel=kernel))
    except NoEngineError as err:
        yield _blocked(err)
        return
    request = Request(only=_named(campaign), build=not campaign.only)
    found = recommend(host, request, observer=observer)
    out = {quarantined.setting for quarantined in campaign.quarantined}
    rows = {str(row.setting): row for row in found.rows}
    ready = [_today(host, found.image, found.baseline, is_uki=image is not None and image.uki)]
    for candidate in _built(host, campaign, found, observer):
        setting = str(candidate.setting)
        if setting in out or candidate.setting == found.baseline:
            continue
        try:
            reason = _against(rows.get(setting)) or _asked(host, candidate, found, observer)
        except NoEngineError as err:
            yield _blocked(err)
            return
        if reason:
            refused = Quarantined(setting=setting, reason=reason, sha256=candidate.sha256)
            yield CampaignEvent(kind=CampaignEventKind.REFUSED, refused=refused)
        else:
            ready.append(
                TrialCandidate(
                    setting=setting,
                    path=candidate.path,
                    sha256=candidate.sha256,
                    size_bytes=candidate.size_bytes,
                    verified=f"Linux {found.kernel_release}",
                )
            )
    yield CampaignEvent(kind=CampaignEventKind.PREPARED, ready=tuple(ready))


def _blocked(err: NoEngineError) -> CampaignEvent:
    words = f"no kernel could be asked whether it unpacks the candidates: {err.message}"
    return CampaignEvent(kind=CampaignEventKind.BLOCKED, reason=words)


def _named(campaign: Campaign) -> tuple[Setting, ...]:
    return tuple(Setting.parse(text) for text in campaign.only)


def _built(
    host: Host, campaign: Campaign, found: Recommendation, observer: CampaignObserver
) -> tuple[BuiltImage, ...]:
    """Build what is not there yet of those that are named, or that were built to be compared."""
    wanted = _named(campaign) or tuple(
        row.setting for row in found.rows if row.size_source is SizeSource.BUILT
    )
    config = load_config(host)
    target = find_target(host, None)
    with open_search_space(host, target, config, only=wanted, everything=True) as search_space:
        result = build_candidates(
            host,
            search_space.generator,
            search_space.source,
            wanted,
            observer=observer,
            jobs=config.jobs,
            cache_limit_bytes=config.cache_limit_bytes,
        )
    return result.candidates


def _against(row: Row | None) -> str:
    """Return what is against booting it, empty where nothing is."""
    if row is None:
        return ""
    if row.lint.verdict is Verdict.REFUSED:
        return f"its kernel would not unpack it: {row.lint.reasons[0]}"
    return "the boot partition has no room for it" if row.fits is False else ""


def _asked(
    host: Host, candidate: BuiltImage, found: Recommendation, observer: CampaignObserver
) -> str:
    """Have a kernel unpack it; return what is against booting it, empty where nothing is."""
    observer.doing(f"having Linux {found.kernel_release} unpack {candidate.setting}")
    try:
        verified = verify(host, Path(candidate.path), release=found.kernel_release)
    except LostVMError as err:
        return f"no kernel has told whether it unpacks it: {err.message}"
    return verified.problems[0] if verified.problems else ""


def todays_image(host: Host) -> TrialCandidate:
    """Return the installed image, for a rehearsal; raises what ``open_search_space`` does."""
    config, target = load_config(host), find_target(host, None)
    with open_search_space(host, target, config, only=(), everything=False) as search_space:
        is_uki = target.installed is not None and target.installed.uki
        return _today(host, target.path, search_space.baseline.setting, is_uki=is_uki)


def _today(host: Host, image: Path, setting: Setting, *, is_uki: bool) -> TrialCandidate:
    """Return the installed image, which boots as it is: every boot so far has verified it."""
    try:
        with open_regular(image) as file:
            part = loaded_part(file, is_uki=is_uki)
            sha256 = sha256_of(file, offset=part.offset, size_bytes=part.size_bytes)
    except OSError as err:
        msg = f"cannot read {image}: {err.strerror}"
        raise InitadvisorError(msg) from err
    return TrialCandidate(
        setting=str(setting),
        path=str(machine_path(host, image)),
        sha256=sha256,
        size_bytes=part.size_bytes,
        today=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NextTrial:
    """The candidate to boot next, None where no boot is needed any more; ``reason`` says why."""

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
    from initadvisor.advise.recommend import (
        Request,
        recommend,  # numpy takes its time
    )

    eligible = campaign.eligible
    only = tuple(Setting.parse(found.setting) for found in eligible if not found.today)
    found = recommend(host, Request(only=only), observer=observer)
    if found.plan is None:
        return NextTrial(candidate=None, reason=_settled(found))
    if campaign.by_policy and not found.decision.is_worth_boots:
        return NextTrial(candidate=None, reason=_little(found))
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


def _little(found: Recommendation) -> str:
    decision = found.decision
    return (
        f"what is left to gain is not worth a boot: about {decision.loss_ms:.0f} ms, where "
        f"{decision.tolerance_ms:.0f} ms do not matter"
    )


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
                f"that ({100 * plan.chance:.0f} % likely)"
            )
