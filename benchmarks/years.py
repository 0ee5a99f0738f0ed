"""Years of machines that the daemon looks after: monthly kernels, and failures at every step.

    python -m benchmarks.years [--years 200] [--policy try|apply] [--boots 6] [--seed 1]
        [--processes N] [--json FILE]

A year is one synthetic machine (``benchmarks.synthetic``) with another kernel each month. Who
decides is the package's own code: the campaign's steps, what past campaigns and transactions are
against, the states of a transaction, the posterior with boots of earlier kernels, the decision and
the boot that tells most. What is made up is the machine: some settings make images that panic or
hang, always the same ones of a machine and never the first one; half of the machines have no
watchdog, and half of those have no consent to that; some watchdogs vanish with a kernel; the power
is cut at any action and in boots; packages are upgraded between boots, so that images change while
a boot is armed; applying is refused by circumstances (a battery, no room) and by images that are
not fit to be installed. Not made up: boots that get slower by a change, which the policy goes back
from, images that no guard goes with, and what people do besides.

It counts boots of a default entry that does not boot, trial boots of each kernel (and those
together with the boots that prove what is applied), and boots that a person had to end without
consent. All of these the machine counts, not the package's records.

At the end of each kernel an answer is held against the best setting that boots there: what
``recommend`` would say then, a setting to switch to or to keep. An answer that is not open is a
decision. It is right where its setting costs at most the tolerance more than the best, and boots
or has not been booted on this machine. What it says is less where it is to switch to what is not
called the best: that this is better than today's; whether that is so is counted, too. What an
image costs can be predicted; whether it boots, only a boot tells, and where a person may be needed
who has not consented there is none. Such an answer does no harm: nothing becomes the default
without a proving boot, and after one that fails the setting is named no more. Where it was booted,
did not come back, and is named still, the decision is wrong. How many decisions name a setting
that boots, tried or not, is printed beside.

A decision states how likely its setting is to be the best within the tolerance; the mean of that
is printed beside the share that is. A decision to switch only says that the setting is better than
today's: with boots left that are worth it, another may be better still, and where no boot may be
tried that stays so. Those that are settled are counted by themselves, too. What is known of a
machine is wrong in the same way for all its kernels, so the 95 % interval of the share is that of
machines drawn anew, not of kernels.

The setting in use is held against the best, too: it stays wrong for a while or for good where the
right answer is not applied for lack of consent. Each decision that is wrong by either count is
printed. The same options give the same figures.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.synthetic import (
    LAB_LOG_SD,
    Booter,
    ModelViolation,
    Scenario,
    draw_conditions,
    draw_machine,
    image_ms,
    known_beforehand,
    measured_tables,
    prior_machine,
    spread,
    true_costs,
    waited_ms,
)
from initadvisor.apply.policy import objection
from initadvisor.apply.policy_log import PolicyChange
from initadvisor.apply.policy_trials import past_objection
from initadvisor.campaign.campaign import (
    Campaign,
    CampaignAction,
    CampaignEvent,
    CampaignEventKind,
    Change,
    DefaultBoot,
    TrialBoot,
    TrialCandidate,
)
from initadvisor.campaign.record import failed_settings, failures, trial_boots_of
from initadvisor.campaign.step import step
from initadvisor.core.config import Config, Policy, Restart
from initadvisor.decide.boot_evidence import Relation
from initadvisor.decide.cost import Outcome
from initadvisor.decide.costs import priced
from initadvisor.decide.decision import Thresholds, decide
from initadvisor.decide.next_boot import BootLimits, Purpose, next_boots
from initadvisor.decide.posterior.posterior import sample_posterior
from initadvisor.decide.whatif_values import Span
from initadvisor.records.trial_outcome import TrialOutcome
from initadvisor.transaction.transaction import (
    ArmedBoot,
    Duty,
    ProofStage,
    SettingChange,
    Transaction,
    TransactionEvent,
    TransactionState,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.synthetic import MachineConditions, TrueMachine
    from initadvisor.decide.boot_evidence import BootEvidence
    from initadvisor.decide.cost import Decision
    from initadvisor.decide.next_boot import BootPlan

MONTHS = 12
SCENARIO = Scenario(
    read_mb_s=Span(low=16.0, high=1500.0),
    shadow_ms=Span(low=5.0, high=800.0),
    noise_log_sd=0.06,
    outliers=0.05,
    violations=(ModelViolation.NONE,),
    unpack_log_sd=LAB_LOG_SD,
    lab=True,
)

_REDRAWN = 10_000
_DRAWS = 2000
_LATEST = 200
_BAD = 0.15
_WITHOUT_WATCHDOG = 0.5
_CONSENTS = 0.5
_WATCHDOG_VANISHES = 0.03
"""With each kernel."""
_REFUSED, _UNFIT = 0.1, 0.02
"""How often applying is refused by circumstances, and by the image that was built."""
_CUT_ACTION, _CUT_BOOT = 0.02, 0.01
_REBUILT = 0.05
_SIGN_LEFT = 0.7
"""How often it is known afterwards that a trial panicked, or that the watchdog ended it."""

_OTHER_SIZE_LOG_SD = 0.01
_OTHER_UNPACK_LOG_SD, _OTHER_OWN_LOG_SD = 0.03, 0.02
_OTHER_SHADOW_LOG_SD, _OTHER_REST_LOG_SD = 0.1, 0.05
"""How far the next kernel is from the one before: assumed, not measured."""


class Manner(StrEnum):
    """How images of a setting boot on a machine."""

    WELL = "well"
    PANICS = "panics"
    HANGS = "hangs"


class PowerCutError(Exception):
    """The power is gone."""


@dataclass(slots=True, kw_only=True)
class YearFigures:
    """What came of one year; boots of the default entry that failed have to be none.

    ``most_trials``: the trial boots of the kernel that had most. ``failed``, ``unexplained``: what
    became of armed boots that did not pass. ``persons``: armed boots that a person had to end;
    ``unasked``: those among them without consent. ``refused``: what was not applied, or not armed,
    by circumstances, unfit images and for lack of consent. ``most_armed``: as ``most_trials``, with
    the boots that proved what was applied.

    The kernels at whose end the answer was right: ``answered``; was not open: ``decided``; both:
    ``decided_right``, and ``decided_boots`` where its setting boots; what it says is so:
    ``said_right``; settled: ``settled``, and
    ``settled_right``; at whose end the setting in use was right: ``in_use``. ``stated``: how many
    decisions are right by what they state. ``unapplied``: those whose right decision was to switch.
    ``with_trial``: the kernels after the first that had a trial boot, and ``denied``: that had
    none, though one was asked for. ``wrong``: each decision wrong by either count, in words.
    """

    kernels: int = 0
    boots: int = 0
    failed_defaults: int = 0
    trial_boots: int = 0
    most_trials: int = 0
    most_armed: int = 0
    persons: int = 0
    unasked: int = 0
    cuts: int = 0
    rebuilds: int = 0
    switches: int = 0
    answered: int = 0
    decided: int = 0
    decided_right: int = 0
    decided_boots: int = 0
    said_right: int = 0
    settled: int = 0
    settled_right: int = 0
    stated: float = 0.0
    in_use: int = 0
    unapplied: int = 0
    with_trial: int = 0
    denied: int = 0
    failed: int = 0
    unexplained: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def plain(self) -> dict[str, float]:
        """All that is counted, by name."""
        return {
            each.name: getattr(self, each.name) for each in fields(self) if each.name != "wrong"
        }


@dataclass(slots=True, kw_only=True)
class Year:
    """A machine for a year, and what the daemon has recorded there.

    ``manners``: of each candidate. ``default``: the candidate whose image boots by default, and
    ``selected`` the one that the next boot uses instead. ``installed``: the kernel that boots by
    default, ``runs``: the one that runs. Of the installed kernel, ``armed_boots``: as the machine
    counts them, rehearsals included, and ``trials`` those of campaigns; ``asked``: its answer asked
    for trial boots. ``booted``: the candidates whose images were booted, whatever came of it.
    """

    rng: np.random.Generator
    truth: TrueMachine
    conditions: MachineConditions
    manners: tuple[Manner, ...]
    watchdog: bool
    config: Config
    seed: int
    campaigns: list[Campaign] = field(default_factory=lambda: [Campaign()])
    transactions: list[Transaction] = field(default_factory=list)
    changes: list[PolicyChange] = field(default_factory=list)
    evidence: list[tuple[int, int, BootEvidence]] = field(default_factory=list)
    default: int = 0
    selected: int | None = None
    rehearsed: bool = False
    installed: int = 0
    runs: int = 0
    image: int = 0
    number: int = 0
    armed_in: int = -1
    fate: tuple[TrialOutcome, str] | None = None
    armed_boots: int = 0
    trials: int = 0
    booted: set[int] = field(default_factory=set)
    asked: bool = False
    figures: YearFigures = field(default_factory=YearFigures)

    @property
    def campaign(self) -> Campaign:
        """The latest one."""
        return self.campaigns[-1]

    @property
    def ground(self) -> DefaultBoot:
        """What boots by default."""
        return DefaultBoot(
            image="/boot/initrd.img",
            image_sha256=self.digest(self.default),
            release=f"6.{self.installed}",
            entry="linux",
            kernel_sha256=f"{self.installed:064x}",
            options="ro",
        )

    @property
    def consented(self) -> bool:
        """Whether a boot of the policy may be armed, see ``trial.risks.without_consent``."""
        return self.watchdog or Restart.WATCHDOG in self.config.person_resets

    def digest(self, column: int) -> str:
        """Return the digest of a candidate's image, of what is installed now."""
        return f"{self.installed:08x}{self.image:016x}{column:040x}"

    def month(self, boots: int) -> None:
        """Install another kernel, but for the first month, and boot so many times."""
        if self.figures.kernels:
            self.attempt(self.upgrade)
        for _ in range(boots):
            if self.rng.random() < _REBUILT:
                self.attempt(self.rebuild)
            self.boot()
        self.conclude()

    def conclude(self) -> None:
        """Count what there is at the end of a kernel."""
        figures, costs = self.figures, true_costs(self.truth)
        well = np.array([manner is Manner.WELL for manner in self.manners])
        spent = (image_ms(self.truth) + waited_ms(self.truth))[[self.default]]
        tolerance = float(Thresholds().tolerance(spent)[0])
        cheap = costs - costs[well].min() <= tolerance
        untried = np.array([column not in self.booted for column in range(len(costs))])
        right = cheap & (well | untried)
        decision, _ = self.weighed()
        answer = self.column(str(decision.setting))
        decided = decision.outcome is not Outcome.UNDECIDED
        trials = self.trials
        figures.trial_boots += trials
        figures.most_trials = max(figures.most_trials, trials)
        figures.most_armed = max(figures.most_armed, self.armed_boots)
        figures.with_trial += int(figures.kernels > 0 and trials > 0)
        figures.denied += int(figures.kernels > 0 and not trials and self.asked)
        figures.answered += int(right[answer])
        figures.decided += int(decided)
        figures.decided_right += int(decided and right[answer])
        figures.decided_boots += int(decided and cheap[answer] and well[answer])
        says = cheap[answer]
        if decision.outcome is Outcome.SWITCH and not decision.best:
            says = costs[answer] < costs[self.default]
        figures.said_right += int(decided and says and (well | untried)[answer])
        figures.settled += int(decision.settled)
        figures.settled_right += int(decision.settled and right[answer])
        figures.stated += decision.best_probability if decided else 0.0
        figures.in_use += int(right[self.default])
        figures.unapplied += int(decided and right[answer] and answer != self.default)
        if decided and not (cheap[answer] and well[answer]):
            best = int(np.where(well, costs, np.inf).argmin())
            figures.wrong.append(self.told(decision, answer, best, tolerance))
        figures.kernels += 1
        self.armed_boots, self.trials, self.asked = 0, 0, False

    def told(self, decision: Decision, answer: int, best: int, tolerance_ms: float) -> str:
        """Return what was wrong with a decision, in words."""
        costs = true_costs(self.truth)
        own = Counter(found.setting for _, _, found in self.evidence)
        settings = self.truth.settings
        booted = ", ".join(
            f"{own[settings[column]]} of {settings[column]}" for column in {answer, best}
        )
        return (
            f"kernel {self.installed}: {decision.outcome} {settings[answer]} "
            f"({self.manners[answer]}), in use {settings[self.default]}, "
            f"costs {costs[answer] - costs[best]:.1f} ms more than {settings[best]}, "
            f"tolerance {tolerance_ms:.1f} ms, expected loss {decision.loss_ms:.1f} ms; "
            f"boots: {booted}; failed: {sorted(self.failed) or 'none'}"
        )

    @property
    def failed(self) -> set[str]:
        """The settings that are not advised, because their trials failed."""
        found = failures(self.campaigns) | failed_settings(self.campaigns, self.transactions)
        return set(found)

    def attempt(self, work: object) -> None:
        """Do something; where the power is cut in it, the machine boots."""
        assert callable(work)
        try:
            work()
        except PowerCutError:
            self.figures.cuts += 1
            self.boot()

    def maybe_cut(self) -> None:
        """Lose power, or not."""
        if self.rng.random() < _CUT_ACTION:
            raise PowerCutError

    def upgrade(self) -> None:
        """Install another kernel, which boots from the next boot on."""
        self.disarm_for_packages()
        rng, truth = self.rng, self.truth
        if rng.random() < _WATCHDOG_VANISHES:
            self.watchdog = False
        size, slower, shadow, rest = np.exp(
            rng.normal(0, 1, 4)
            * [_OTHER_SIZE_LOG_SD, _OTHER_UNPACK_LOG_SD, _OTHER_SHADOW_LOG_SD, _OTHER_REST_LOG_SD]
        )
        own = np.exp(rng.normal(0, _OTHER_OWN_LOG_SD, len(truth.settings)))
        self.truth = replace(
            truth,
            size_mb=tuple((size * np.array(truth.size_mb)).tolist()),
            decompress_ms=tuple((slower * own * np.array(truth.decompress_ms)).tolist()),
            populate_ms=truth.populate_ms * float(slower),
            shadow_ms=truth.shadow_ms * float(shadow),
            rest_ms=truth.rest_ms * float(rest),
        )
        self.installed += 1
        self.image += 1
        self.noted(Change.KERNEL)

    def rebuild(self) -> None:
        """Have packages make the image anew."""
        self.figures.rebuilds += 1
        self.disarm_for_packages()
        self.image += 1
        self.noted(Change.IMAGE)

    def disarm_for_packages(self) -> None:
        """Do what hooks do before packages change something."""
        if self.campaign.state.stands:
            self.feed(CampaignEvent(kind=CampaignEventKind.TAKE_BACK, reason="packages"))
        waiting = self.pending()
        if waiting and waiting.state is TransactionState.PROVING:
            self.selected = None
            self.undo(waiting, TrialOutcome.NOT_TRIED, "packages were changed")
        self.maybe_cut()

    def noted(self, change: Change) -> None:
        """Have the daemon work off what hooks have noted."""
        found = CampaignEvent(
            kind=CampaignEventKind.CHANGED, change=change, default_boot=self.ground
        )
        self.feed(found)
        self.daemon()

    def boot(self) -> None:
        """Reboot, record the boot, and have units do what they do after each."""
        self.number += 1
        self.figures.boots += 1
        self.runs = self.installed
        chosen, self.selected = self.selected, None
        cut = self.rng.random() < _CUT_BOOT
        if chosen is not None and self.armed_in < self.number:
            self.armed_boots += 1
            self.trials += self.campaign.state.stands
            if not cut:
                self.booted.add(chosen)
            self.fate = self.fate_of(chosen, cut=cut)
            self.figures.failed += self.fate[0] is TrialOutcome.FAILED
            self.figures.unexplained += self.fate[0] is TrialOutcome.UNEXPLAINED
        else:
            self.fate = None
        if chosen is None or (self.fate and self.fate[0] is not TrialOutcome.PASSED):
            chosen = self.default
            self.figures.failed_defaults += int(self.manners[chosen] is not Manner.WELL)
        if not (cut and chosen == self.default):
            self.record(chosen)
        self.attempt(self.after_boot)

    def fate_of(self, column: int, *, cut: bool) -> tuple[TrialOutcome, str]:
        """Boot what was armed; where it fails, the default entry boots afterwards."""
        manner = self.manners[column]
        if cut:
            return TrialOutcome.UNEXPLAINED, "the power was cut"
        if manner is Manner.WELL:
            return TrialOutcome.PASSED, "it booted"
        if manner is Manner.HANGS and not self.watchdog:
            self.figures.persons += 1
            self.figures.unasked += int(not self.consented)
            return TrialOutcome.UNEXPLAINED, "it did not come back"
        if self.rng.random() < _SIGN_LEFT:
            return TrialOutcome.FAILED, f"it {manner}"
        return TrialOutcome.UNEXPLAINED, "it did not come back"

    def record(self, column: int) -> None:
        """Measure the running boot."""
        booter = Booter(self.truth, np.random.default_rng([self.seed, self.number]))
        found = replace(booter.boot(column), digest=self.digest(column))
        self.evidence.append((self.installed, self.number, found))

    def after_boot(self) -> None:
        """Settle what waited for the boot, go on with a campaign, and weigh again."""
        if waiting := self.pending():
            self.settle(waiting)
        if self.campaign.state.is_active:
            self.feed(CampaignEvent(kind=CampaignEventKind.FOUND))
        self.daemon()

    def daemon(self) -> None:
        """Weigh what is known, and have the policy act on it."""
        if self.campaign.state.is_active or self.pending():
            return
        decision, plan = self.weighed()
        if decision.outcome is Outcome.SWITCH:
            if self.config.policy is Policy.APPLY:
                self.apply(self.column(str(decision.setting)))
        elif (
            decision.outcome is Outcome.UNDECIDED
            and decision.is_worth_boots
            and plan is not None
            and plan.purpose is not Purpose.TODAY
        ):
            self.asked = True
            self.begin()

    def begin(self) -> None:
        """Begin a campaign where nothing is against it, see ``begin_trials``."""
        ground = self.ground
        left = self.config.trial_boots_per_kernel - trial_boots_of(self.campaigns, ground.release)
        most = left - (not self.rehearsed)
        if (
            self.runs != self.installed
            or past_objection(self.campaigns, ground)
            or most < 1
            or not self.consented
        ):
            return
        number = self.campaign.number + 1
        new = Campaign(number=number, most_boots=most, by_policy=True, default_boot=ground)
        self.campaigns.append(self.campaign)
        self.feed(CampaignEvent(kind=CampaignEventKind.START, campaign=new))

    def feed(self, event: CampaignEvent) -> None:
        """Take an event and all that follows; the power may go before each action."""
        waiting = [event]
        while waiting:
            result = step(self.campaign, waiting.pop(0))
            self.campaigns[-1] = result.campaign
            for action in result.actions:
                self.maybe_cut()
                if found := self.do(action):
                    waiting = [found]
                    break

    def do(self, action: CampaignAction) -> CampaignEvent | None:
        """Do what a campaign asks for."""
        campaign = self.campaign
        match action:
            case CampaignAction.PREPARE:
                return self.prepared()
            case CampaignAction.CHOOSE:
                return self.chosen()
            case CampaignAction.JUDGE:
                return self.judged()
            case CampaignAction.COPY:
                return self.planned()
            case CampaignAction.ARM if campaign.current:
                rehearsal = campaign.current.is_rehearsal
                setting = campaign.current.setting
                self.selected = self.default if rehearsal else self.column(setting)
                self.armed_in = self.number
                return CampaignEvent(kind=CampaignEventKind.ARMED)
            case CampaignAction.DISARM | CampaignAction.REMOVE_ENTRY:
                self.selected = None
            case CampaignAction.NOTE_REHEARSED:
                self.rehearsed = True
            case _:
                pass
        return None

    def planned(self) -> CampaignEvent:
        """Plan an entry, unless a person may be needed who has not consented."""
        if self.consented:
            return CampaignEvent(kind=CampaignEventKind.PLANNED, trial_boot=self.campaign.current)
        self.figures.refused += 1
        return CampaignEvent(kind=CampaignEventKind.BLOCKED, reason="there is no watchdog")

    def prepared(self) -> CampaignEvent:
        """Have all candidates built, once the installed kernel runs."""
        if self.runs != self.installed:
            return CampaignEvent(kind=CampaignEventKind.BLOCKED, reason="another kernel runs")
        failed = failed_settings(self.campaigns, self.transactions)
        ready = tuple(
            TrialCandidate(
                setting=str(setting),
                path=f"/cache/{column}.img",
                sha256=self.digest(column),
                size_bytes=1,
                today=column == self.default,
            )
            for column, setting in enumerate(self.truth.settings)
            if column == self.default or str(setting) not in failed
        )
        return CampaignEvent(kind=CampaignEventKind.PREPARED, ready=ready)

    def chosen(self) -> CampaignEvent:
        """Choose the rehearsal, the boot that tells most, or none."""
        column: int | None = None
        if self.rehearsed:
            decision, plan = self.weighed()
            eligible = {found.setting for found in self.campaign.eligible}
            column = plan.first if plan and decision.is_worth_boots else None
            if column is None or str(self.truth.settings[column]) not in eligible:
                return CampaignEvent(kind=CampaignEventKind.SETTLED, reason="it is settled")
        image = self.default if column is None else column
        stage = ProofStage.REHEARSAL if column is None else ProofStage.PROOF
        trial_boot = TrialBoot(
            setting=str(self.truth.settings[image]),
            sha256=self.digest(image),
            release=self.ground.release,
            armed_boot=self.armed(stage, image),
            at_s=self.number,
        )
        return CampaignEvent(kind=CampaignEventKind.CHOSEN, trial_boot=trial_boot)

    def armed(self, stage: ProofStage, column: int) -> ArmedBoot:
        """Return what is armed for a candidate."""
        return ArmedBoot(
            stage=stage,
            loader="made up",
            trial=f"trial-{self.number}",
            armed_in_boot=f"{self.number}",
            image="/boot/trial.img",
            sha256=self.digest(column),
        )

    def judged(self) -> CampaignEvent | None:
        """Say what became of the armed boot."""
        current = self.campaign.current
        if current is None:
            return None
        rebooted = self.number != int(current.armed_boot.armed_in_boot)
        if not rebooted and self.selected is not None:
            return CampaignEvent(kind=CampaignEventKind.PENDING)
        fate, reason = self.fate or (TrialOutcome.NOT_TRIED, "another entry booted")
        if not rebooted or self.fate is None:
            fate = TrialOutcome.NOT_TRIED
        return CampaignEvent(
            kind=CampaignEventKind.ENDED, outcome=fate, reason=reason, rebooted=rebooted
        )

    def weighed(self) -> tuple[Decision, BootPlan | None]:
        """Return the decision of the package's own code, and the boots that it would have."""
        rng = np.random.default_rng([self.seed, 1])  # the same errors for each kernel
        machine, facts = known_beforehand(rng, self.truth, prior_machine(), self.conditions)
        failed = self.failed
        candidates = [
            replace(
                fact,
                digest=self.digest(column),
                eligible=column == self.default or str(fact.setting) not in failed,
            )
            for column, fact in enumerate(facts)
        ]
        boots = [
            replace(
                found,
                relation=Relation.SAME if kernel == self.installed else Relation.NEAR,
                class_key=f"{kernel}",
                age_days=float(self.number - number),
            )
            for kernel, number, found in self.evidence[-_LATEST:]
        ]
        posterior = sample_posterior(machine, candidates, boots, seed=self.number, count=_DRAWS)
        decision = decide(
            priced(posterior.parameters, machine, candidates),
            candidates,
            baseline=self.default,
            thresholds=Thresholds(),
            source="simulation",
            booted=bool(boots),
        )
        own = Counter(found.digest for _, _, found in self.evidence)
        plan = next_boots(
            posterior,
            machine,
            candidates,
            decision=decision,
            own_boots=[own[candidate.digest] for candidate in candidates],
            baseline=self.default,
            thresholds=Thresholds(),
            limits=BootLimits(),
            most_boots=1,
        )
        return decision, plan

    def column(self, setting: str) -> int:
        """Return which candidate has a setting."""
        return [str(found) for found in self.truth.settings].index(setting)

    def pending(self) -> Transaction | None:
        """Return the transaction that is not over."""
        last = self.transactions[-1] if self.transactions else None
        return last if last and last.state.duty is not Duty.NOTHING else None

    def apply(self, column: int) -> None:
        """Apply a setting, with a proving boot unless it has booted on this machine."""
        after = str(self.truth.settings[column])
        release = self.ground.release
        if self.runs != self.installed or objection(
            after, release, self.ground.image_sha256, self.changes, self.transactions
        ):
            return
        setting = self.truth.settings[column]
        proven = any(found.setting == setting for _, _, found in self.evidence)
        if self.rng.random() < _REFUSED or not (proven or self.consented):
            self.figures.refused += 1
            return
        change = PolicyChange(
            after=after,
            kernel_release=release,
            image_sha256=self.ground.image_sha256,
            decided_at_s=self.number,
        )
        if self.rng.random() < _UNFIT:
            self.figures.refused += 1
            self.changes.append(replace(change, failed="it has other files"))
            return
        begun = Transaction(
            number=len(self.transactions) + 1,
            state=TransactionState.PLANNED,
            purpose="a switch",
            began_at_s=self.number,
            files=(),
            setting=SettingChange(
                generator="made up",
                kernel_release=release,
                before=str(self.truth.settings[self.default]),
                after=after,
            ),
            by_policy=True,
        )
        self.transactions.append(begun)
        self.changes.append(replace(change, number=begun.number))
        self.transact(TransactionEvent.STAGE, TransactionEvent.VERIFY)
        if proven:
            self.commit(column)
            return
        self.prove(column)

    def prove(self, column: int) -> None:
        """Have a transaction wait for a boot of its image; of today's, before the first one."""
        stage = ProofStage.PROOF if self.rehearsed else ProofStage.REHEARSAL
        boots = column if self.rehearsed else self.default
        self.transact(TransactionEvent.PROVE)
        armed = self.armed(stage, boots)
        self.transactions[-1] = replace(self.transactions[-1], armed_boot=armed)
        self.maybe_cut()
        self.selected, self.armed_in = boots, self.number

    def transact(self, *events: TransactionEvent) -> None:
        """Record steps of the latest transaction; the power may go before each."""
        for event in events:
            self.maybe_cut()
            self.transactions[-1] = self.transactions[-1].after(event)

    def commit(self, column: int) -> None:
        """Have a proven image boot by default."""
        self.transact(TransactionEvent.COMMIT)
        self.maybe_cut()
        self.default = column
        self.figures.switches += 1
        self.transact(TransactionEvent.FINISH)

    def undo(self, transaction: Transaction, outcome: TrialOutcome, reason: str) -> None:
        """Take a transaction back before anything was replaced."""
        undone = replace(transaction, reason=reason, outcome=outcome)
        self.transactions[-1] = undone.after(TransactionEvent.UNDO).after(TransactionEvent.RESTORE)

    def settle(self, waiting: Transaction) -> None:
        """Do what is left to do of a transaction after a boot."""
        assert waiting.setting is not None
        column = self.column(waiting.setting.after)
        match waiting.state.duty:
            case Duty.REPLACE:
                self.default = column
                self.transact(TransactionEvent.FINISH)
            case Duty.RESTORE:
                outcome = TrialOutcome.NOT_TRIED
                found = replace(waiting, reason="it was interrupted", outcome=outcome)
                interrupted = found.after(TransactionEvent.INTERRUPT)
                self.transactions[-1] = interrupted.after(TransactionEvent.RESTORE)
            case Duty.WAIT if self.fate and self.fate[0] is TrialOutcome.PASSED:
                armed = waiting.armed_boot
                if armed is None or armed.stage is ProofStage.PROOF:
                    self.commit(column)
                    return
                self.rehearsed = True
                if self.consented:
                    self.prove(column)
                    return
                self.figures.refused += 1
                self.undo(waiting, TrialOutcome.NOT_TRIED, "there is no watchdog")
            case Duty.WAIT:
                fate, reason = self.fate or (TrialOutcome.NOT_TRIED, "its boot was not armed")
                self.undo(waiting, fate, reason)
            case _:
                pass


@dataclass(frozen=True, slots=True, kw_only=True)
class YearJob:
    """What is to be simulated: ``boots`` of each kernel, unless the power is cut more often."""

    seed: int
    number: int
    policy: Policy = Policy.APPLY
    boots: int = 6


def simulate_year(job: YearJob) -> YearFigures:
    """Return what came of one year."""
    rng = np.random.default_rng([job.seed, job.number])
    conditions = draw_conditions(rng, SCENARIO, job.number)
    tables = measured_tables()
    table = tables[int(rng.integers(len(tables)))]
    truth = draw_machine(rng, table, conditions, prior_machine())
    bad = rng.random(len(truth.settings)) < _BAD
    hangs = rng.random(len(truth.settings)) < 1 / 2
    manners = [
        Manner.WELL if column == 0 or not bad[column] else (Manner.HANGS if hang else Manner.PANICS)
        for column, hang in enumerate(hangs)
    ]
    year = Year(
        rng=rng,
        truth=truth,
        conditions=conditions,
        manners=tuple(manners),
        watchdog=bool(rng.random() >= _WITHOUT_WATCHDOG),
        config=Config(
            policy=job.policy, person_resets=_consent(consents=bool(rng.random() < _CONSENTS))
        ),
        seed=int(rng.integers(1 << 31)),
    )
    for _ in range(MONTHS):
        year.month(job.boots)
    return year.figures


def _consent(*, consents: bool) -> frozenset[Restart]:
    return frozenset(Restart if consents else ())


def years(jobs: Sequence[YearJob], *, processes: int) -> Iterator[YearFigures]:
    """Yield what came of each year."""
    if processes == 1:
        return map(simulate_year, jobs)
    return spread(simulate_year, jobs, processes=processes)


def summed(found: Sequence[YearFigures]) -> YearFigures:
    """Return the sums, the largest of what is the most of a kernel, and what was wrong of all."""
    total = YearFigures(wrong=[line for one in found for line in one.wrong])
    for one in found:
        for name, value in one.plain.items():
            before = getattr(total, name)
            setattr(total, name, max(before, value) if name.startswith("most") else before + value)
    return total


def share_with_interval(found: Sequence[YearFigures]) -> tuple[float, float, float]:
    """Return the share of decisions that are right, and its 95 % interval over machines."""
    right = np.array([one.decided_right for one in found])
    decided = np.array([one.decided for one in found])
    drawn = np.random.default_rng(0).integers(len(found), size=(_REDRAWN, len(found)))
    shares = right[drawn].sum(axis=1) / np.maximum(decided[drawn].sum(axis=1), 1)
    low, high = np.quantile(shares, [0.025, 0.975])
    return float(right.sum() / max(decided.sum(), 1)), float(low), float(high)


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--years", type=int, default=200)
    parser.add_argument("--policy", choices=("try", "apply"), default="apply")
    parser.add_argument("--boots", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    jobs = [
        YearJob(seed=asked.seed, number=number, policy=Policy(asked.policy), boots=asked.boots)
        for number in range(asked.years)
    ]
    found = []
    for job, one in zip(jobs, years(jobs, processes=asked.processes), strict=True):
        found.append(one)
        for line in one.wrong:
            print(f"year {job.number}, {line}", flush=True)
    total = summed(found)
    for name, value in total.plain.items():
        print(f"{name:<16} {value:.10g}")
    kernels, later = max(total.kernels, 1), max(total.kernels - asked.years, 1)
    share, low, high = share_with_interval(found)
    print(f"decisions right  {share:.1%} (95 %: {low:.1%} to {high:.1%})")
    print(f"what they say    {total.said_right / max(total.decided, 1):.1%} is so")
    print(f"as they state    {total.stated / max(total.decided, 1):.1%}, of the best setting")
    print(f"settled right    {total.settled_right / max(total.settled, 1):.1%}")
    print(f"decisions boot   {total.decided_boots / max(total.decided, 1):.1%}, tried or not")
    print(f"answers right    {total.answered / kernels:.1%}, the open ones included")
    print(f"in use right     {total.in_use / kernels:.1%}")
    print(f"with a trial     {total.with_trial / later:.1%} of the kernels after the first")
    if asked.json:
        asked.json.write_text(json.dumps(total.plain, indent=1) + "\n")


if __name__ == "__main__":
    main()
