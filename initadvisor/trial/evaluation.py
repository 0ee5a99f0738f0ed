"""Judges an armed boot by what there is to see of it; nothing is done here."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from initadvisor.bootloaders.entry import OneShotOutcome, one_shot_outcome
from initadvisor.records.boot import RejectionReason
from initadvisor.records.trial_outcome import BootEndSigns, TrialOutcome
from initadvisor.transaction.transaction import ProofStage

if TYPE_CHECKING:
    from initadvisor.bootloaders.entry import OneShot
    from initadvisor.records.boot import BootRecord
    from initadvisor.transaction.transaction import ArmedBoot


class Completion(StrEnum):
    """How far the running boot has come."""

    STARTING = "starting"
    """It is still on its way, or its checks have not been made."""
    COMPLETE = "complete"
    """It has reached its default target and boot-complete.target (systemd.special(7))."""
    FAILED = "failed"
    """It has missed one of them, and will not reach it any more."""


class JournalEvidence(StrEnum):
    """What a boot with the trial's name, which is over, has left in the journal."""

    NOTHING = "nothing"
    BEGINNING = "beginning"
    """It began and did not come up."""
    WHOLE = "whole"
    """It had come up."""

    @property
    def words(self) -> str:
        """What it tells of the trial, in a sentence."""
        match self:
            case JournalEvidence.NOTHING:
                return (
                    "its boot left nothing: it panicked, hung or lost power early, or another "
                    "entry was chosen"
                )
            case JournalEvidence.BEGINNING:
                return "it began to boot but did not come up: it hung, crashed or lost power"
            case JournalEvidence.WHOLE:
                return "it came up, but the machine was restarted before that boot was judged"


_FATAL = (
    RejectionReason.UNPACK_FAILED,
    RejectionReason.NO_INITRAMFS,
    RejectionReason.PANICKED,
    RejectionReason.EMERGENCY,
    RejectionReason.CRASH_KERNEL,
)
"""What speaks against an image even where its boot came up in the end; the other reasons only say
that a boot was badly measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBoot:
    """What was recorded of the running boot.

    ``sha256``: of the image that it used, None where that is not certain; ``reason`` says how it is
    known, or why not. ``faults``: what speaks against the image, in words.
    """

    sha256: str | None
    reason: str
    faults: tuple[str, ...] = ()


def measured_boot(record: BootRecord) -> MeasuredBoot:
    """Return what a record tells of the image."""
    return MeasuredBoot(
        sha256=record.image.sha256 if record.image else None,
        reason=record.attribution.reason,
        faults=tuple(reason.explanation for reason in record.rejections if reason in _FATAL),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmedBootEvidence:
    """What a later run sees.

    ``boot``: the running boot's ID; ``trial``: the trial's name on its command line, None without;
    ``kexec``: it was started by another kernel, so that no loader had a say in it. ``one_shot``:
    what is selected for the next boot. ``measured`` is None until the boot is recorded.
    ``failed_units``: systemd's, of the running boot. ``journal``: what an earlier boot since has
    left there, and ``signs`` of how that ended.
    """

    boot: str
    one_shot: OneShot
    trial: str | None = None
    kexec: bool = False
    measured: MeasuredBoot | None = None
    completion: Completion = Completion.STARTING
    failed_units: tuple[str, ...] = ()
    journal: JournalEvidence = JournalEvidence.NOTHING
    signs: BootEndSigns = field(default_factory=BootEndSigns)


class ProofAction(StrEnum):
    """What is to be done."""

    WAIT = "wait"
    ARM = "arm"
    """The same again: it was not tried."""
    PROVE = "prove"
    """The rehearsal has passed: the new image is next."""
    COMMIT = "commit"
    DROP = "drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class BootEvaluation:
    """A verdict, and why in words; ``outcome``: the same for whoever tries more than one image."""

    verdict: ProofAction
    reason: str
    outcome: TrialOutcome


_NOT_TRIED = frozenset({OneShotOutcome.PENDING, OneShotOutcome.WITHDRAWN, OneShotOutcome.CONSUMED})
"""What becomes of a selection that was taken back, or was going to be."""


def evaluate_boot(armed: ArmedBoot, evidence: ArmedBootEvidence) -> BootEvaluation:
    """Return what the evidence means for what was armed.

    Nothing is committed, and no rehearsal passes, without a complete and measured boot of exactly
    that image under that name. What was not tried in the boot after the arming is dropped, not
    tried again; unless it was taken back for a while.
    """
    rebooted = evidence.boot != armed.armed_in_boot
    became = one_shot_outcome(
        evidence.one_shot, armed_in_boot=armed.armed_in_boot, boot=evidence.boot
    )
    if rebooted and evidence.trial == armed.trial and not evidence.kexec:
        return _judge_trial_boot(armed, evidence, became)
    if armed.taken_back and became in _NOT_TRIED and evidence.journal is JournalEvidence.NOTHING:
        reason = "it was taken back while the machine slept or packages were changed"
        outcome = TrialOutcome.TAKEN_BACK
        return BootEvaluation(verdict=ProofAction.ARM, reason=reason, outcome=outcome)
    return _judge_other_boot(evidence, became, rebooted=rebooted)


def _judge_other_boot(
    evidence: ArmedBootEvidence, became: OneShotOutcome, *, rebooted: bool
) -> BootEvaluation:
    """Judge in a boot that is not the trial's: the one that armed it, or a later one."""
    conclude, (outcome, reason) = _drops, _consumed(evidence)
    match became:
        case OneShotOutcome.CONSUMED:
            pass
        case OneShotOutcome.PENDING:
            conclude = _waits
            outcome, reason = TrialOutcome.PENDING, "it is armed for the next boot"
        case OneShotOutcome.WITHDRAWN:
            outcome = TrialOutcome.WITHDRAWN
            reason = "the selection for the next boot was taken back, or never made"
        case OneShotOutcome.STUCK:
            outcome = TrialOutcome.STUCK
            reason = "the boot loader left the selection in place and did not boot it"
            if evidence.kexec:
                conclude, outcome = _waits, TrialOutcome.PENDING
                reason = "the kernel was restarted without the boot loader (kexec)"
        case OneShotOutcome.REPLACED:
            outcome, other = TrialOutcome.REPLACED, evidence.one_shot.identifier or "another entry"
            reason = f"somebody else has selected {other} for the next boot"
        case OneShotOutcome.UNKNOWN:
            conclude, outcome = _drops if rebooted else _waits, TrialOutcome.UNREADABLE
            reason = f"the selection for the next boot cannot be read: {evidence.one_shot.reason}"
    return conclude(outcome, reason)


def _consumed(evidence: ArmedBootEvidence) -> tuple[TrialOutcome, str]:
    """Say what became of a boot that is over; without a sign it stays unexplained."""
    left, signs = evidence.journal, evidence.signs
    if left is JournalEvidence.WHOLE:
        return TrialOutcome.NOT_TRIED, left.words
    if signs.panic:
        return TrialOutcome.FAILED, f"it panicked: {signs.panic}"
    if signs.watchdog:
        return TrialOutcome.FAILED, "it hung, and the watchdog restarted the machine"
    if left is JournalEvidence.NOTHING and signs.menu:
        return TrialOutcome.NOT_TRIED, "another entry was chosen in the boot menu"
    return TrialOutcome.UNEXPLAINED, left.words


def _judge_trial_boot(
    armed: ArmedBoot, evidence: ArmedBootEvidence, became: OneShotOutcome
) -> BootEvaluation:
    """Judge the trial's boot while it runs."""
    if against := _objection(armed, evidence, became):
        return _drops(*against)
    if evidence.measured is None:
        return _waits(TrialOutcome.RUNNING, "this boot is its own, but is not recorded yet")
    if evidence.completion is not Completion.COMPLETE:
        return _waits(TrialOutcome.RUNNING, "this boot is its own, but is not complete yet")
    failed = ", ".join(evidence.failed_units)
    besides = f"; failed in it: {failed}" if failed else ""
    verdict = ProofAction.COMMIT if armed.stage is ProofStage.PROOF else ProofAction.PROVE
    reason = f"it booted and is complete{besides}"
    return BootEvaluation(verdict=verdict, reason=reason, outcome=TrialOutcome.PASSED)


def _waits(outcome: TrialOutcome, reason: str) -> BootEvaluation:
    return BootEvaluation(verdict=ProofAction.WAIT, reason=reason, outcome=outcome)


def _drops(outcome: TrialOutcome, reason: str) -> BootEvaluation:
    return BootEvaluation(verdict=ProofAction.DROP, reason=reason, outcome=outcome)


def _objection(
    armed: ArmedBoot, evidence: ArmedBootEvidence, became: OneShotOutcome
) -> tuple[TrialOutcome, str] | None:
    """Return what speaks against it for good."""
    if became is OneShotOutcome.STUCK:
        return TrialOutcome.STUCK, "the boot loader booted it, but would do so again and again"
    if became is OneShotOutcome.UNKNOWN:
        why = evidence.one_shot.reason
        return (
            TrialOutcome.UNREADABLE,
            f"it cannot be read whether the boot loader would boot it again: {why}",
        )
    if evidence.measured is not None and (fault := _fault(armed, evidence.measured)):
        return fault
    if evidence.completion is Completion.FAILED:
        failed = f": {', '.join(evidence.failed_units)} failed" if evidence.failed_units else ""
        return TrialOutcome.FAILED, f"it did not reach boot-complete.target{failed}"
    return None


def _fault(armed: ArmedBoot, measured: MeasuredBoot) -> tuple[TrialOutcome, str] | None:
    if measured.faults:
        return TrialOutcome.FAILED, measured.faults[0]
    if measured.sha256 is None:
        return (
            TrialOutcome.UNEXPLAINED,
            f"it is not certain which image it booted: {measured.reason}",
        )
    if measured.sha256 != armed.sha256:
        return (
            TrialOutcome.UNEXPLAINED,
            f"it booted another image than the one that was armed: {measured.reason}",
        )
    return None
