"""What the daemon has decided by itself, kept in one file that is replaced whole.

That is the latest advice, what the policy has applied, and why it does not do what it may.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from initadvisor.core.config import Policy
from initadvisor.core.errors import UnsafeError
from initadvisor.core.serialisation import NewerSchemaError, from_document, to_document
from initadvisor.core.text import shown
from initadvisor.decide.cost import Outcome
from initadvisor.host.files import os_failure, write_file
from initadvisor.store.publish import published_after
from initadvisor.transaction.log import own_transactions
from initadvisor.transaction.transaction import TransactionState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from initadvisor.host import Host
    from initadvisor.transaction.transaction import Transaction


_NAME = "policy.json"
_SCHEMA = 1
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange:
    """A setting that the policy has decided to apply.

    It is recorded before that is begun; ``number`` is the transaction's once it is known and
    ``failed`` says why an image with that setting is not fit to be installed. Settings are written
    as in ``Setting.parse``; the kernel and the digest are those of the installed image that the
    decision was about.
    """

    after: str
    kernel_release: str
    image_sha256: str = ""
    decided_at_s: int
    number: int | None = None
    failed: str = ""

    def found_in(self, transactions: Iterable[Transaction]) -> PolicyChange:
        """Return the same with the transaction's number, where a run was killed before it had it.

        It is the policy's first one with this setting after the decision.
        """
        if self.number is not None or self.failed:
            return self
        for transaction in transactions:
            setting = transaction.setting
            late = transaction.began_at_s >= self.decided_at_s
            if transaction.by_policy and late and setting and setting.after == self.after:
                return replace(self, number=transaction.number)
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenAdvice:
    """What came of weighing, for people in ``words``.

    ``setting`` is advised in the place of ``today``, for the image of a kernel; at ``at_s`` for the
    last time and since ``since_s``, in seconds since 1970.
    """

    outcome: Outcome
    setting: str
    today: str
    kernel_release: str
    words: str
    at_s: int
    since_s: int

    def is_like(self, other: GivenAdvice | None) -> bool:
        """Tell whether both advise the same, whatever the figures."""
        return other is not None and self == replace(
            other, words=self.words, at_s=self.at_s, since_s=self.since_s
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRefusal:
    """Why a policy does not do what it may: since ``at_s``."""

    policy: Policy
    reason: str
    at_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyLog:
    """What is in the file; ``changes`` the earliest first, ``refusals`` one of a policy at most."""

    changes: tuple[PolicyChange, ...]
    advice: GivenAdvice | None = None
    refusals: tuple[PolicyRefusal, ...] = ()

    def refusal(self, policy: Policy) -> PolicyRefusal | None:
        """Return why a policy does not do what it may, None where nothing is against it."""
        return next((found for found in self.refusals if found.policy is policy), None)


def policy_log(host: Host) -> PolicyLog:
    """Return what was decided so far; a user sees root's.

    Raises ``UnsafeError`` for what a newer version has recorded, ``NeedsRootError`` where only root
    may look, and ``InitadvisorError`` for what cannot be read: what was undone must not be
    forgotten and done again.
    """
    path = host.state_file(_NAME)
    if path is None:
        return PolicyLog(changes=())
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES)
        return from_document(PolicyLog, text, schema=_SCHEMA, names=(Policy, Outcome))
    except FileNotFoundError:
        return PolicyLog(changes=())
    except OSError as err:
        raise os_failure(err, f"cannot read {path}", only_root=True) from err
    except NewerSchemaError as err:
        msg = f"cannot read {path}: a newer version of initadvisor has written it"
        raise UnsafeError(msg) from err
    except ValueError as err:
        msg = f"cannot read {path}: it is damaged ({shown(str(err))})"
        raise UnsafeError(msg, hint="remove it to have the policy begin anew") from err


def policy_changes(host: Host) -> tuple[PolicyChange, ...]:
    """Return what was decided, with what a run that was killed could not add.

    Raises what ``policy_log`` does.
    """
    recorded = own_transactions(host)
    return tuple(change.found_in(recorded) for change in policy_log(host).changes)


def record_change(host: Host, change: PolicyChange) -> None:
    """Record a decision, or what became of it: it takes the place of the one of the same time.

    Raises what ``policy_log`` does.
    """
    log = policy_log(host)
    _write(host, replace(log, changes=(*_others(log, change), change)))


def forget_change(host: Host, change: PolicyChange) -> None:
    """Forget a decision that nothing was done about; raises what ``policy_log`` does."""
    log = policy_log(host)
    _write(host, replace(log, changes=_others(log, change)))


def note_advice(host: Host, advice: GivenAdvice) -> bool:
    """Remember an advice, and tell whether the one before was another.

    Raises what ``policy_log`` does.
    """
    log = policy_log(host)
    same = log.advice if advice.is_like(log.advice) else None
    kept = replace(advice, since_s=same.since_s) if same else advice
    _write(host, replace(log, advice=kept))
    return same is None


def note_refusal(host: Host, policy: Policy, reason: str, *, at_s: int) -> bool:
    """Remember why a policy does not do what it may, and tell whether that is news; ``""``: it may.

    Raises what ``policy_log`` does.
    """
    log = policy_log(host)
    known = log.refusal(policy)
    if reason == (known.reason if known else ""):
        return False
    others = tuple(found for found in log.refusals if found.policy is not policy)
    new = (PolicyRefusal(policy=policy, reason=reason, at_s=at_s),) if reason else ()
    _write(host, replace(log, refusals=(*others, *new)))
    return True


def watched(
    changes: Sequence[PolicyChange], transactions: Sequence[Transaction]
) -> Transaction | None:
    """Return the policy's transaction that is to be gone back from if boots are slower since.

    That is the latest one of all that has changed a setting and stands: whoever has changed it
    since has decided otherwise.
    """
    standing = [t for t in transactions if t.state is TransactionState.COMMITTED and t.setting]
    if not standing or standing[-1].number not in {change.number for change in changes}:
        return None
    return standing[-1]


def _others(log: PolicyLog, change: PolicyChange) -> tuple[PolicyChange, ...]:
    return tuple(each for each in log.changes if each.decided_at_s != change.decided_at_s)


def _write(host: Host, log: PolicyLog) -> None:
    with published_after(host):
        write_file(host.state_dir() / _NAME, to_document(log, schema=_SCHEMA, indent=1))
