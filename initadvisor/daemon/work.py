"""What each task is: which part of the advisor does it, and what follows from its result."""

from __future__ import annotations

import contextlib
import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from initadvisor.core.config import Policy
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.core.text import shown
from initadvisor.daemon.login import show_at_login
from initadvisor.daemon.manager import StatusReporter
from initadvisor.daemon.notes import Job, Task
from initadvisor.decide.cost import Outcome
from initadvisor.generators.detect import detect_generator
from initadvisor.host import Host
from initadvisor.host.configuration import load_config
from initadvisor.target.target import Target, find_target

if TYPE_CHECKING:
    from initadvisor.advise.recommendation import Recommendation
    from initadvisor.core.config import Config


_log = logging.getLogger(__name__)


def work(job: Job) -> tuple[Job, ...]:
    """Do a job, see ``Daemon``, on a host of its own.

    For what runs its programs lets none start any more once a job was cut short
    (``Runner.stop_all``).
    """
    return AdvisorsWork(host=Host()).do(job)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvisorsWork:
    """One job. What it needs is imported with it: most runs do little."""

    host: Host
    reporter: StatusReporter = field(default_factory=StatusReporter)

    def do(self, job: Job) -> tuple[Job, ...]:
        """Do it; see ``Daemon``."""
        match job.task:
            case Task.SETTLE:
                self._settle()
            case Task.WATCH:
                self._watch(load_config(self.host))
            case Task.PRUNE:
                self._prune()
            case Task.BUILD:
                self._build(load_config(self.host), job.release)
            case Task.LAB:
                self._lab(job.release)
            case Task.ADVANCE:
                self._advance()
            case Task.ADVISE:
                return self._advise(load_config(self.host))
            case Task.TRY:
                self._try(load_config(self.host))
            case Task.APPLY:
                self._apply(load_config(self.host))
        return ()

    def _settle(self) -> None:
        """Also have a campaign's boot withdrawn whose kernel or image was changed: at once."""
        from initadvisor.apply.proving import settle_everything

        for line in settle_everything(self.host):
            _log.warning("%s", shown(line))
        with contextlib.suppress(InitadvisorError):  # a configuration that cannot be read, say
            if not load_config(self.host).motd:
                show_at_login(self.host, None)

    def _watch(self, config: Config) -> None:
        if config.policy is not Policy.APPLY:
            return
        from initadvisor.apply.policy import go_back_if_slower

        if line := go_back_if_slower(self.host, config, observer=self.reporter):
            _log.warning("%s", shown(line))

    def _prune(self) -> None:
        from initadvisor.candidates.build import prune

        removed = prune(self.host)
        _log.info("%d candidates of images that are gone were removed", removed.removed)

    def _build(self, config: Config, release: str | None) -> None:
        """Build candidates; what takes long, and all of fallback images, is only estimated."""
        from initadvisor.candidates.considered import considered_image, fallback_targets
        from initadvisor.candidates.search_space import build_candidate_set

        target = self._target(release)
        if target is None:
            return
        with build_candidate_set(
            self.host, target, config, only=(), everything=False, observer=self.reporter
        ) as field:
            _log.info("%d candidates of %s are there", len(field.candidates), target.path)
        for one in (target, *fallback_targets(self.host, target)):
            try:
                considered_image(self.host, one, config, observer=self.reporter)
            except InitadvisorError as err:
                _log.warning("no estimates of %s: %s", one.path, shown(err.message))

    def _lab(self, release: str | None) -> None:
        from initadvisor.lab.timing import LabRequest, run_lab
        from initadvisor.vm.engines import NoEngineError

        target = self._target(release)
        if target is None:
            return
        default = find_target(self.host, None).path
        image = None if target.path == default else target.path
        try:
            result = run_lab(self.host, LabRequest(image=image), observer=self.reporter)
        except NoEngineError as err:
            _log.info("no lab: %s", err.message)
            return
        _log.info("the lab has run: %d samples", len(result.recorded.samples))

    def _advance(self) -> None:
        from initadvisor.trial.campaigns import advance

        for line in advance(self.host, observer=self.reporter).told:
            _log.warning("%s", shown(line))

    def _advise(self, config: Config) -> tuple[Job, ...]:
        """Say what is advised where that is news, and have the policy act on it.

        While something waits for a boot it does not: after that all is weighed again.
        """
        from initadvisor.advise.recommend import Request, recommend
        from initadvisor.apply.policy_log import GivenAdvice, note_advice, note_refusal
        from initadvisor.campaign.record import is_noted_active
        from initadvisor.transaction.transactions import pending

        found = recommend(self.host, Request(build=True), observer=self.reporter)
        now_s = int(time.time())
        advice = GivenAdvice(
            outcome=found.decision.outcome,
            setting=str(found.decision.setting),
            today=str(found.baseline),
            kernel_release=found.kernel_release or "",
            words=_in_words(found),
            at_s=now_s,
            since_s=now_s,
        )
        is_news = note_advice(self.host, advice)
        _log.log(logging.WARNING if is_news else logging.INFO, "%s", shown(advice.words))
        if config.motd:
            show_at_login(self.host, shown(f"initadvisor: {_advice(found)} (initadvisor status)"))
        if config.policy is Policy.ADVISE or is_noted_active(self.host) or pending(self.host):
            return ()
        if found.decision.outcome is Outcome.SWITCH:
            return (Job(task=Task.APPLY),) if config.policy is Policy.APPLY else ()
        if _is_worth_trials(found):
            return (Job(task=Task.TRY),)
        note_refusal(self.host, Policy.TRY, "", at_s=now_s)
        return ()

    def _try(self, config: Config) -> None:
        if config.policy is Policy.ADVISE:  # it may have been changed meanwhile
            return
        from initadvisor.apply.policy_trials import begin_trials

        begun = begin_trials(self.host, config, observer=self.reporter)
        self._refused(Policy.TRY, begun.refused)
        for line in begun.told:
            _log.warning("%s", shown(line))

    def _apply(self, config: Config) -> None:
        if config.policy is not Policy.APPLY:  # it may have been changed meanwhile
            return
        from initadvisor.apply.policy import apply_advice

        try:
            words = apply_advice(self.host, observer=self.reporter)
        except UnsafeError as err:
            self._refused(Policy.APPLY, err.with_hint)
            return
        self._refused(Policy.APPLY, "")
        _log.warning("%s", shown(words))

    def _refused(self, policy: Policy, reason: str) -> None:
        """Say once why a policy does not do what it may; without a reason, it does."""
        from initadvisor.apply.policy_log import note_refusal

        if note_refusal(self.host, policy, reason, at_s=int(time.time())) and reason:
            _log.warning("%s", shown(f'the policy "{policy}" does nothing: {reason}'))

    def _target(self, release: str | None) -> Target | None:
        """Return the image of a kernel, None where it has none any more; see ``find_target``."""
        if release is None:
            return find_target(self.host, None)
        generator = detect_generator(self.host)
        if generator is None:
            return None
        for image in generator.images(self.host):
            if image.kernel_release == release and not image.fallback:
                return Target(path=image.path, generator=generator, installed=image)
        _log.info("Linux %s has no image here", release)
        return None


def _is_worth_trials(found: Recommendation) -> bool:
    """Tell whether trial boots would help; that today's image boots, happens by itself."""
    from initadvisor.decide.next_boot import Purpose

    return (
        found.decision.outcome is Outcome.UNDECIDED
        and found.decision.is_worth_boots
        and found.plan is not None
        and found.plan.purpose is not Purpose.TODAY
    )


def _in_words(found: Recommendation) -> str:
    return f"{found.image}: {_advice(found)} (evidence: {found.evidence})"


def _advice(found: Recommendation) -> str:
    decision = found.decision
    match decision.outcome:
        case Outcome.SWITCH:
            saving = f"{decision.saving_ms.middle:.0f} ms a boot"
            return f"switch from {found.baseline} to {decision.setting}, which saves {saving}"
        case Outcome.KEEP | Outcome.EVEN:
            return f"keep {decision.setting}: nothing saves more that matters"
        case Outcome.UNDECIDED:
            return f"keep {decision.setting} for now: it is not certain what is best"
