"""What the daemon may do with its advice by itself, and what came of that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from initadvisor.model.transaction import TransactionState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from initadvisor.model.transaction import Transaction


class Policy(StrEnum):
    """What follows from an advice to switch."""

    ADVISE = "advise"
    """It is said, and nothing else."""
    APPLY = "apply"
    """It is applied as ``initadvisor apply --confirm`` does, without any of its exceptions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange:
    """A setting that the policy has decided to apply.

    It is recorded before that is begun; ``number`` is the transaction's once it is known and
    ``failed`` says why there is none. Settings are written as in ``Setting.parse``, the kernel is
    that of the image the decision was about.
    """

    after: str
    kernel_release: str
    decided_at_s: int
    number: int | None = None
    failed: str = ""

    def found_in(self, transactions: Iterable[Transaction]) -> PolicyChange:
        """Return the same with the transaction's number, where a run was killed before it had it.

        It is the first one with this setting after the decision.
        """
        if self.number is not None or self.failed:
            return self
        for transaction in transactions:
            setting = transaction.setting
            late = transaction.began_at_s >= self.decided_at_s
            if late and setting and setting.after == self.after:
                return replace(self, number=transaction.number)
        return self


def objection(
    setting: str,
    kernel_release: str,
    changes: Sequence[PolicyChange],
    transactions: Sequence[Transaction],
) -> str | None:
    """Return why the policy is not to apply a setting, None where nothing is against it.

    What was undone once, by whomever and for whatever reason, is not done again without a person;
    what could not even be begun is tried again for another kernel.
    """
    undone = {
        transaction.number: transaction.reason
        for transaction in transactions
        if transaction.state in {TransactionState.UNDONE, TransactionState.FAILED}
    }
    for change in changes:
        if change.after != setting:
            continue
        if change.number in undone:
            return f"transaction {change.number} was undone ({undone[change.number]})"
        if change.failed and change.kernel_release == kernel_release:
            return f"it could not be applied for Linux {kernel_release} ({change.failed})"
    return None


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
