"""How far the daemon has come: a stage after the other, each with when it was and what came of it.

Told from what each leaves behind; nothing is recorded for this alone.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from initadvisor.apply.policy_log import policy_log, watched
from initadvisor.campaign.record import readable_campaigns, trial_boots_of
from initadvisor.candidates.cache import Cache
from initadvisor.core.config import Config, Policy
from initadvisor.core.errors import InitadvisorError
from initadvisor.decide.cost import Outcome
from initadvisor.host.configuration import load_config
from initadvisor.transaction.transaction import Duty, TransactionState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.apply.policy_log import PolicyLog
    from initadvisor.campaign.campaign import Campaign
    from initadvisor.candidates.cache import CachedCandidate
    from initadvisor.host import Host
    from initadvisor.transaction.transaction import Transaction


class LoopStage(StrEnum):
    """A stage, in the order in which they come."""

    NOTED = "noted"
    """What hooks have noted was taken in."""
    BUILT = "built"
    """Candidates are kept."""
    RANKED = "ranked"
    """They were weighed."""
    TRIED = "tried"
    """They boot on trial."""
    DECIDED = "decided"
    """The answer is definite."""
    APPLIED = "applied"
    WATCHED = "watched"
    """Boots since are compared with those before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageReached:
    """What came of a stage; ``at_s``: when, in seconds since 1970, None where it was not reached.

    ``words`` are for people; of a stage that was not reached they say why, or are empty.
    """

    stage: LoopStage
    at_s: int | None = None
    words: str = ""


def loop_stages(
    host: Host, transactions: Sequence[Transaction], notes: list[str]
) -> tuple[StageReached, ...]:
    """Return all stages; what cannot be read is said in ``notes``, and is as if it were not there.

    ``transactions``: those that are recorded, the earliest first.
    """
    try:
        log, config = policy_log(host), load_config(host)
    except InitadvisorError as err:
        notes.append(err.with_hint)
        return ()
    return (
        _noted(host),
        _built(host),
        _ranked(log),
        _tried(log, config, readable_campaigns(host)),
        _decided(log),
        _applied(log, transactions),
        _watched(log, transactions),
    )


def _noted(host: Host) -> StageReached:
    state = host.state_dir()
    at_s, left = None, 0
    with contextlib.suppress(OSError):  # it is root's
        at_s = int((state / "seen").stat().st_mtime)
    with contextlib.suppress(OSError):
        left = sum(1 for _ in (state / "tasks").iterdir())
    words = f"{left} jobs are left" if left else ""
    return StageReached(stage=LoopStage.NOTED, at_s=at_s, words=words)


def _built(host: Host) -> StageReached:
    kept: tuple[CachedCandidate, ...] = ()
    with contextlib.suppress(OSError):
        kept = Cache(host).all()
    if not kept:
        return StageReached(stage=LoopStage.BUILT)
    latest = kept[-1]
    count = sum(found.image_sha256 == latest.image_sha256 for found in kept)
    return StageReached(
        stage=LoopStage.BUILT,
        at_s=latest.built_at_ns // 1_000_000_000,
        words=f"{count} candidate{'' if count == 1 else 's'} of {latest.image}",
    )


def _ranked(log: PolicyLog) -> StageReached:
    if log.advice is None:
        return StageReached(stage=LoopStage.RANKED)
    return StageReached(stage=LoopStage.RANKED, at_s=log.advice.at_s, words=log.advice.words)


def _tried(log: PolicyLog, config: Config, campaigns: Sequence[Campaign]) -> StageReached:
    refusal = log.refusal(Policy.TRY)
    latest = campaigns[-1] if campaigns else None
    if latest is None or latest.default_boot is None or (refusal and latest.state.is_over):
        words = f"nothing is tried: {refusal.reason}" if refusal else ""
        return StageReached(stage=LoopStage.TRIED, words=words)
    boots, most = latest.boots, latest.most_boots
    if latest.by_policy or latest.only_rehearsal:
        boots = trial_boots_of(campaigns, latest.default_boot.release)
        most = config.trial_boots_per_kernel
    armed = latest.trial_boots[-1].at_s if latest.trial_boots else latest.began_at_s
    words = f"{boots} of at most {most} boots of Linux {latest.default_boot.release}"
    return StageReached(
        stage=LoopStage.TRIED, at_s=armed, words=f"{words}; {latest.state}: {latest.reason}"
    )


def _decided(log: PolicyLog) -> StageReached:
    advice = log.advice
    if advice is None or advice.outcome is Outcome.UNDECIDED:
        return StageReached(stage=LoopStage.DECIDED)
    what = f"switch from {advice.today} to" if advice.outcome is Outcome.SWITCH else "keep"
    return StageReached(
        stage=LoopStage.DECIDED, at_s=advice.since_s, words=f"{what} {advice.setting}"
    )


def _applied(log: PolicyLog, transactions: Sequence[Transaction]) -> StageReached:
    refusal = log.refusal(Policy.APPLY)
    standing = [
        t
        for t in transactions
        if t.setting and (t.state is TransactionState.COMMITTED or t.state.duty is Duty.WAIT)
    ]
    if not standing or (refusal and refusal.at_s > standing[-1].began_at_s):
        words = f"nothing is applied: {refusal.reason}" if refusal else ""
        return StageReached(stage=LoopStage.APPLIED, words=words)
    last = standing[-1]
    waits = " waits for a boot" if last.state.duty is Duty.WAIT else ""
    return StageReached(
        stage=LoopStage.APPLIED,
        at_s=last.began_at_s,
        words=f"transaction {last.number} ({last.purpose}){waits}",
    )


def _watched(log: PolicyLog, transactions: Sequence[Transaction]) -> StageReached:
    changes = [change.found_in(transactions) for change in log.changes]
    if found := watched(changes, transactions):
        words = f"boots since transaction {found.number} are compared with those before"
        return StageReached(stage=LoopStage.WATCHED, at_s=found.began_at_s, words=words)
    ours = {change.number for change in changes}
    undone = [t for t in transactions if t.number in ours and t.state is TransactionState.UNDONE]
    if not undone:
        return StageReached(stage=LoopStage.WATCHED)
    last = undone[-1]
    words = f"transaction {last.number} was undone: {last.reason}"
    return StageReached(stage=LoopStage.WATCHED, at_s=last.began_at_s, words=words)
