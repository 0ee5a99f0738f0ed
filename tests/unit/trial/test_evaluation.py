"""What each boot means for an image that waits for it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.bootloaders.entry import OneShot, OneShotState
from initadvisor.core.estimates import Certainty
from initadvisor.records.boot import RejectionReason
from initadvisor.records.trial_outcome import BootEndSigns, TrialOutcome
from initadvisor.transaction.transaction import ArmedBoot, ProofStage
from initadvisor.trial.evaluation import (
    ArmedBootEvidence,
    Completion,
    JournalEvidence,
    MeasuredBoot,
    ProofAction,
    evaluate_boot,
    measured_boot,
)
from tests.fixtures.boots import boot_record
from tests.fixtures.owners import OWNER

ARMED_IN, NEXT, IMAGE = "a" * 32, "b" * 32, "1" * 64
PROOF = ArmedBoot(
    stage=ProofStage.PROOF,
    loader="systemd-boot",
    trial="apply-1-00c0ffee",
    armed_in_boot=ARMED_IN,
    image=f"/boot/.initadvisor-{OWNER}-1-0.new",
    sha256=IMAGE,
)
REHEARSAL = replace(PROOF, stage=ProofStage.REHEARSAL)
TAKEN_BACK = replace(PROOF, taken_back=True)
NONE, OURS, OTHERS, UNREADABLE = (OneShot(state=state) for state in OneShotState)
FWUPD = replace(OTHERS, identifier="Boot0007 (fwupd)")
MEASURED = MeasuredBoot(
    sha256=IMAGE, reason=f"/boot/.initadvisor-{OWNER}-1-0.new, by the trial's tag"
)
GOOD = ArmedBootEvidence(
    boot=NEXT,
    one_shot=NONE,
    trial=PROOF.trial,
    measured=MEASURED,
    completion=Completion.COMPLETE,
)
SAME_BOOT = ArmedBootEvidence(boot=ARMED_IN, one_shot=OURS)
OTHER_BOOT = ArmedBootEvidence(boot=NEXT, one_shot=NONE)


def changed(**values: object) -> ArmedBootEvidence:
    """Return what is seen of the trial's own boot where all is well but for something."""
    return replace(GOOD, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("proof", "evidence", "verdict", "words"),
    [
        # The trial's own boot.
        (PROOF, GOOD, ProofAction.COMMIT, "it booted and is complete"),
        (REHEARSAL, GOOD, ProofAction.PROVE, "it booted and is complete"),
        (TAKEN_BACK, GOOD, ProofAction.COMMIT, "it booted"),
        (
            PROOF,
            changed(failed_units=("a.service",)),
            ProofAction.COMMIT,
            "failed in it: a.service",
        ),
        (PROOF, changed(one_shot=FWUPD), ProofAction.COMMIT, "it booted"),
        (PROOF, changed(one_shot=OURS), ProofAction.DROP, "again and again"),
        (PROOF, changed(one_shot=UNREADABLE), ProofAction.DROP, "cannot be read"),
        (PROOF, changed(measured=None), ProofAction.WAIT, "not recorded yet"),
        (PROOF, changed(completion=Completion.STARTING), ProofAction.WAIT, "not complete yet"),
        (PROOF, changed(completion=Completion.FAILED), ProofAction.DROP, "boot-complete.target"),
        (
            PROOF,
            changed(completion=Completion.FAILED, measured=None, failed_units=("check.service",)),
            ProofAction.DROP,
            "check.service failed",
        ),
        (
            PROOF,
            changed(measured=replace(MEASURED, sha256="2" * 64)),
            ProofAction.DROP,
            "another image",
        ),
        (
            REHEARSAL,
            changed(measured=replace(MEASURED, sha256=None)),
            ProofAction.DROP,
            "not certain",
        ),
        (
            PROOF,
            changed(measured=replace(MEASURED, faults=("could not unpack",))),
            ProofAction.DROP,
            "could not unpack",
        ),
        # The boot in which it was armed.
        (PROOF, SAME_BOOT, ProofAction.WAIT, "armed for the next boot"),
        (PROOF, replace(SAME_BOOT, one_shot=NONE), ProofAction.DROP, "taken back, or never made"),
        (PROOF, replace(SAME_BOOT, one_shot=FWUPD), ProofAction.DROP, "Boot0007 (fwupd)"),
        (PROOF, replace(SAME_BOOT, one_shot=OTHERS), ProofAction.DROP, "another entry"),
        (PROOF, replace(SAME_BOOT, one_shot=UNREADABLE), ProofAction.WAIT, "cannot be read"),
        (TAKEN_BACK, replace(SAME_BOOT, one_shot=NONE), ProofAction.ARM, "slept"),
        (TAKEN_BACK, SAME_BOOT, ProofAction.ARM, "slept"),
        (TAKEN_BACK, replace(SAME_BOOT, one_shot=FWUPD), ProofAction.DROP, "fwupd"),
        # Another boot since.
        (PROOF, OTHER_BOOT, ProofAction.DROP, "left nothing"),
        (
            PROOF,
            replace(OTHER_BOOT, journal=JournalEvidence.BEGINNING),
            ProofAction.DROP,
            "did not come up",
        ),
        (
            PROOF,
            replace(OTHER_BOOT, journal=JournalEvidence.WHOLE),
            ProofAction.DROP,
            "before that boot was judged",
        ),
        (PROOF, replace(OTHER_BOOT, trial="another"), ProofAction.DROP, "left nothing"),
        (REHEARSAL, OTHER_BOOT, ProofAction.DROP, "left nothing"),
        (
            PROOF,
            replace(OTHER_BOOT, one_shot=OURS),
            ProofAction.DROP,
            "left the selection in place",
        ),
        (PROOF, replace(OTHER_BOOT, one_shot=OURS, kexec=True), ProofAction.WAIT, "kexec"),
        (PROOF, replace(OTHER_BOOT, one_shot=FWUPD), ProofAction.DROP, "fwupd"),
        (PROOF, replace(OTHER_BOOT, one_shot=UNREADABLE), ProofAction.DROP, "cannot be read"),
        (TAKEN_BACK, OTHER_BOOT, ProofAction.ARM, "slept"),
        (
            TAKEN_BACK,
            replace(OTHER_BOOT, journal=JournalEvidence.BEGINNING),
            ProofAction.DROP,
            "did not come up",
        ),
        (
            TAKEN_BACK,
            replace(OTHER_BOOT, one_shot=OURS),
            ProofAction.DROP,
            "left the selection in place",
        ),
        # A kernel that another one has started, with the command line of the trial's boot.
        (PROOF, changed(kexec=True), ProofAction.DROP, "left nothing"),
        (PROOF, changed(kexec=True, one_shot=OURS), ProofAction.WAIT, "kexec"),
    ],
)
def test_what_is_done(
    proof: ArmedBoot, evidence: ArmedBootEvidence, verdict: ProofAction, words: str
) -> None:
    judgement = evaluate_boot(proof, evidence)
    assert judgement.verdict is verdict
    assert words in judgement.reason


PROOFS = st.builds(
    ArmedBoot,
    stage=st.sampled_from(ProofStage),
    loader=st.just("grub"),
    trial=st.sampled_from(("one", "two")),
    armed_in_boot=st.sampled_from((ARMED_IN, NEXT)),
    image=st.just("/boot/image"),
    sha256=st.sampled_from((IMAGE, "2" * 64)),
    taken_back=st.booleans(),
)
EVIDENCE = st.builds(
    ArmedBootEvidence,
    boot=st.sampled_from((ARMED_IN, NEXT)),
    one_shot=st.builds(OneShot, state=st.sampled_from(OneShotState)),
    trial=st.sampled_from((None, "one", "two")),
    kexec=st.booleans(),
    measured=st.none()
    | st.builds(
        MeasuredBoot,
        sha256=st.sampled_from((None, IMAGE, "2" * 64)),
        reason=st.just("words"),
        faults=st.sampled_from(((), ("a fault",))),
    ),
    completion=st.sampled_from(Completion),
    journal=st.sampled_from(JournalEvidence),
)


@given(proof=PROOFS, evidence=EVIDENCE)
def test_only_a_complete_boot_of_exactly_that_image_passes(
    proof: ArmedBoot, evidence: ArmedBootEvidence
) -> None:
    verdict = evaluate_boot(proof, evidence).verdict
    if verdict not in {ProofAction.COMMIT, ProofAction.PROVE}:
        return
    assert (verdict is ProofAction.COMMIT) == (proof.stage is ProofStage.PROOF)
    assert evidence.boot != proof.armed_in_boot
    assert evidence.trial == proof.trial
    assert not evidence.kexec
    assert evidence.one_shot.state in {OneShotState.NONE, OneShotState.OTHERS}
    assert evidence.completion is Completion.COMPLETE
    assert evidence.measured == MeasuredBoot(sha256=proof.sha256, reason="words")


@given(
    proof=PROOFS,
    boots=st.lists(EVIDENCE, min_size=3, max_size=3),
)
def test_it_always_ends(proof: ArmedBoot, boots: list[ArmedBootEvidence]) -> None:
    """Two boots by a loader are enough, one for the rehearsal and one for the proof.

    Each is judged once, when it has come to its end one way or the other.
    """
    proof = replace(proof, taken_back=False)
    for number, seen in enumerate(boots):
        ended = Completion.COMPLETE if seen.measured else Completion.FAILED
        evidence = replace(seen, boot=f"{number:032x}", kexec=False, completion=ended)
        verdict = evaluate_boot(replace(proof, armed_in_boot="f" * 32), evidence).verdict
        if verdict in {ProofAction.COMMIT, ProofAction.DROP}:
            return
        assert verdict is ProofAction.PROVE
        assert proof.stage is ProofStage.REHEARSAL
        proof = replace(proof, stage=ProofStage.PROOF)
    pytest.fail("it is still not over")


@given(proof=PROOFS, evidence=EVIDENCE)
def test_a_boot_that_is_not_the_trials_is_waited_for_once(
    proof: ArmedBoot, evidence: ArmedBootEvidence
) -> None:
    """What stays without a verdict is this boot's, or one in which no loader had a say."""
    verdict = evaluate_boot(replace(proof, taken_back=False), evidence).verdict
    rebooted = evidence.boot != proof.armed_in_boot
    if verdict is ProofAction.WAIT and rebooted and not evidence.kexec:
        assert evidence.trial == proof.trial
    assert verdict is not ProofAction.ARM


@pytest.mark.parametrize("reason", RejectionReason)
def test_what_speaks_against_an_image_and_what_only_against_its_times(
    reason: RejectionReason,
) -> None:
    found = measured_boot(boot_record(rejections=(reason,)))
    against = {
        *(RejectionReason.UNPACK_FAILED, RejectionReason.NO_INITRAMFS, RejectionReason.PANICKED),
        *(RejectionReason.EMERGENCY, RejectionReason.CRASH_KERNEL),
    }
    assert found.faults == ((reason.explanation,) if reason in against else ())


@pytest.mark.parametrize("certainty", Certainty)
def test_an_image_counts_only_if_it_is_certain(certainty: Certainty) -> None:
    record = boot_record(certainty=certainty)
    assert record.attribution.image is not None
    known = record.attribution.image.sha256 if certainty is Certainty.CERTAIN else None
    assert measured_boot(record).sha256 == known


@pytest.mark.parametrize(
    ("evidence", "fate", "words"),
    [
        (OTHER_BOOT, TrialOutcome.UNEXPLAINED, "left nothing"),
        (
            replace(OTHER_BOOT, journal=JournalEvidence.BEGINNING),
            TrialOutcome.UNEXPLAINED,
            "did not come up",
        ),
        (
            replace(OTHER_BOOT, journal=JournalEvidence.WHOLE),
            TrialOutcome.NOT_TRIED,
            "before that boot was judged",
        ),
        (
            replace(OTHER_BOOT, signs=BootEndSigns(panic="VFS")),
            TrialOutcome.FAILED,
            "it panicked: VFS",
        ),
        (replace(OTHER_BOOT, signs=BootEndSigns(watchdog=True)), TrialOutcome.FAILED, "it hung"),
        (replace(OTHER_BOOT, signs=BootEndSigns(menu=True)), TrialOutcome.NOT_TRIED, "boot menu"),
        (
            replace(OTHER_BOOT, signs=BootEndSigns(menu=True), journal=JournalEvidence.BEGINNING),
            TrialOutcome.UNEXPLAINED,
            "did not come up",
        ),
        (replace(OTHER_BOOT, one_shot=FWUPD), TrialOutcome.REPLACED, "fwupd"),
        (replace(OTHER_BOOT, one_shot=OURS), TrialOutcome.STUCK, "left the selection"),
        (replace(OTHER_BOOT, one_shot=UNREADABLE), TrialOutcome.UNREADABLE, "cannot be read"),
        (replace(SAME_BOOT, one_shot=NONE), TrialOutcome.WITHDRAWN, "taken back"),
        (changed(measured=replace(MEASURED, faults=("a fault",))), TrialOutcome.FAILED, "a fault"),
        (changed(measured=replace(MEASURED, sha256=None)), TrialOutcome.UNEXPLAINED, "not certain"),
        (changed(completion=Completion.FAILED), TrialOutcome.FAILED, "boot-complete.target"),
    ],
)
def test_what_became_of_it_is_told_apart(
    evidence: ArmedBootEvidence, fate: TrialOutcome, words: str
) -> None:
    judgement = evaluate_boot(PROOF, evidence)
    assert judgement.outcome is fate
    assert words in judgement.reason


@given(proof=PROOFS, evidence=EVIDENCE)
def test_a_fate_never_contradicts_the_verdict(
    proof: ArmedBoot, evidence: ArmedBootEvidence
) -> None:
    judgement = evaluate_boot(proof, evidence)
    passed = judgement.verdict in {ProofAction.COMMIT, ProofAction.PROVE}
    assert passed is (judgement.outcome is TrialOutcome.PASSED)
    assert (judgement.verdict is ProofAction.ARM) is (judgement.outcome is TrialOutcome.TAKEN_BACK)
    if judgement.verdict is ProofAction.WAIT:
        assert judgement.outcome in {
            TrialOutcome.PENDING,
            TrialOutcome.RUNNING,
            TrialOutcome.UNREADABLE,
        }
