"""An armed boot: what was armed, what can be seen of it afterwards, and what that means.

It is the proving boot of a transaction, a campaign's trial, or a rehearsal: today's image, to test
the loader. What each showed is judged here; nothing is done.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from initadvisor.bootloaders.one_shot import OneShotOutcome, outcome
from initadvisor.records.rejection import RejectionReason
from initadvisor.records.trial_outcome import BootEndSigns, TrialOutcome

if TYPE_CHECKING:
    from initadvisor.bootloaders.one_shot import OneShot
    from initadvisor.records.boot import BootRecord


class ProofStage(StrEnum):
    """Which boot is waited for."""

    REHEARSAL = "rehearsal"
    """One with today's image, to see that the loader boots an entry once and forgets it."""
    PROOF = "proof"
    """One with the new image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmedBoot:
    """What was armed for a transaction that waits for a boot.

    ``loader`` is ``BootLoader.NAME``. ``trial``: the name on that boot's command line
    (``extra_cmdline``); every arming has another. ``armed_in_boot``: the boot (its ID) in which it
    was armed. ``image``: the image that is waited for, as the machine names it, and ``sha256`` and
    ``size_bytes`` of what the loader is to load of it: of a unified kernel image (``is_uki``) its
    .initrd section. ``entry``: what the loader calls the entry, and ``extra_cmdline`` what that
    adds to the command line. ``ignore_unlocking``: the user arms although disks are unlocked by
    what a boot is made of. ``asleep``: it was taken back before the machine went to sleep, and is
    to be armed again.
    """

    stage: ProofStage
    loader: str
    trial: str
    armed_in_boot: str
    image: str
    sha256: str
    size_bytes: int = 0
    is_uki: bool = False
    entry: str = ""
    extra_cmdline: tuple[str, ...] = ()
    ignore_unlocking: bool = False
    asleep: bool = False


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

    ``sha256``: of the image that it used, None where that is not certain; ``reason`` say how it is
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
    ``failed_units``: systemd's, of the running boot. ``journal`` by an earlier boot since, and
    ``signs`` of how that ended.
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


def evaluate_boot(proof: ArmedBoot, evidence: ArmedBootEvidence) -> BootEvaluation:
    """Return what the evidence means for what was armed.

    Nothing is committed, and no rehearsal passes, without a complete and measured boot of exactly
    that image under that name. What was not tried in the boot after the arming is dropped, not
    tried again; unless it was taken back before a sleep.
    """
    rebooted = evidence.boot != proof.armed_in_boot
    became = outcome(evidence.one_shot, armed_in_boot=proof.armed_in_boot, boot=evidence.boot)
    if rebooted and evidence.trial == proof.trial and not evidence.kexec:
        return _of_its_own(proof, evidence, became)
    if proof.asleep and became in _NOT_TRIED and evidence.journal is JournalEvidence.NOTHING:
        reason = "it was taken back before the machine went to sleep"
        return BootEvaluation(verdict=ProofAction.ARM, reason=reason, outcome=TrialOutcome.ASLEEP)
    return _of_another(evidence, became, rebooted=rebooted)


def _of_another(
    evidence: ArmedBootEvidence, became: OneShotOutcome, *, rebooted: bool
) -> BootEvaluation:
    """Judge in a boot that is not the trial's: the one that armed it, or a later one."""
    verdict = ProofAction.DROP
    fate, reason = TrialOutcome.UNEXPLAINED, evidence.journal.words
    match became:
        case OneShotOutcome.PENDING:
            return _waits(TrialOutcome.PENDING, "it is armed for the next boot")
        case OneShotOutcome.WITHDRAWN:
            fate, reason = (
                TrialOutcome.WITHDRAWN,
                "the selection for the next boot was taken back, or ",
            )
            reason += "never made"
        case OneShotOutcome.CONSUMED:
            fate, reason = _consumed(evidence)
        case OneShotOutcome.STUCK:
            if evidence.kexec:
                reason = "the kernel was restarted without the boot loader (kexec)"
                return _waits(TrialOutcome.PENDING, reason)
            fate = TrialOutcome.STUCK
            reason = "the boot loader left the selection in place and did not boot it"
        case OneShotOutcome.REPLACED:
            other = evidence.one_shot.identifier or "another entry"
            fate, reason = (
                TrialOutcome.REPLACED,
                f"somebody else has selected {other} for the next boot",
            )
        case OneShotOutcome.UNKNOWN:
            verdict = ProofAction.DROP if rebooted else ProofAction.WAIT
            fate = TrialOutcome.UNREADABLE
            reason = f"the selection for the next boot cannot be read: {evidence.one_shot.reason}"
    return BootEvaluation(verdict=verdict, reason=reason, outcome=fate)


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


def _of_its_own(
    proof: ArmedBoot, evidence: ArmedBootEvidence, became: OneShotOutcome
) -> BootEvaluation:
    """Judge the trial's boot while it runs."""
    if against := _against(proof, evidence, became):
        fate, reason = against
        return BootEvaluation(verdict=ProofAction.DROP, reason=reason, outcome=fate)
    if evidence.measured is None:
        return _waits(TrialOutcome.RUNNING, "this boot is its own, but is not recorded yet")
    if evidence.completion is not Completion.COMPLETE:
        return _waits(TrialOutcome.RUNNING, "this boot is its own, but is not complete yet")
    failed = ", ".join(evidence.failed_units)
    besides = f"; failed in it: {failed}" if failed else ""
    verdict = ProofAction.COMMIT if proof.stage is ProofStage.PROOF else ProofAction.PROVE
    reason = f"it booted and is complete{besides}"
    return BootEvaluation(verdict=verdict, reason=reason, outcome=TrialOutcome.PASSED)


def _waits(fate: TrialOutcome, reason: str) -> BootEvaluation:
    return BootEvaluation(verdict=ProofAction.WAIT, reason=reason, outcome=fate)


def _against(
    proof: ArmedBoot, evidence: ArmedBootEvidence, became: OneShotOutcome
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
    if evidence.measured is not None and (fault := _fault(proof, evidence.measured)):
        return fault
    if evidence.completion is Completion.FAILED:
        failed = f": {', '.join(evidence.failed_units)} failed" if evidence.failed_units else ""
        return TrialOutcome.FAILED, f"it did not reach boot-complete.target{failed}"
    return None


def _fault(proof: ArmedBoot, measured: MeasuredBoot) -> tuple[TrialOutcome, str] | None:
    if measured.faults:
        return TrialOutcome.FAILED, measured.faults[0]
    if measured.sha256 is None:
        return (
            TrialOutcome.UNEXPLAINED,
            f"it is not certain which image it booted: {measured.reason}",
        )
    if measured.sha256 != proof.sha256:
        return (
            TrialOutcome.UNEXPLAINED,
            f"it booted another image than the one that was armed: {measured.reason}",
        )
    return None
