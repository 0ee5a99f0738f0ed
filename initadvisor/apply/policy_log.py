"""What the daemon has applied by itself, and whether it may again: one file, replaced whole."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.core.serialisation import NewerSchemaError, from_document, to_document
from initadvisor.core.text import shown
from initadvisor.host.files import write_file
from initadvisor.transaction.transaction import TransactionState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from initadvisor.host import Host
    from initadvisor.transaction.transaction import Transaction


_NAME = "policy.json"
_SCHEMA = 1
_MOST_BYTES = 1 << 20


def policy_changes(host: Host) -> tuple[PolicyChange, ...]:
    """Return what was decided so far, the earliest first.

    Raises ``UnsafeError`` for what a newer version has recorded, ``InitadvisorError`` for what
    cannot be read: what was undone must not be forgotten and done again.
    """
    path = host.state_dir() / _NAME
    try:
        with path.open("rb") as file:
            return from_document(_PolicyLog, file.read(_MOST_BYTES), schema=_SCHEMA).changes
    except FileNotFoundError:
        return ()
    except OSError as err:
        msg = f"cannot read {path}: {err.strerror}"
        raise InitadvisorError(msg) from err
    except NewerSchemaError as err:
        msg = f"cannot read {path}: a newer version of initadvisor has written it"
        raise UnsafeError(msg) from err
    except ValueError as err:
        msg = f"cannot read {path}: it is damaged ({shown(str(err))})"
        raise UnsafeError(msg, hint="remove it to have the policy begin anew") from err


def record_change(host: Host, change: PolicyChange) -> None:
    """Record a decision, or what became of it: it takes the place of the one of the same time.

    Raises what ``policy_changes`` does.
    """
    _write(host, (*_others(host, change), change))


def forget_change(host: Host, change: PolicyChange) -> None:
    """Forget a decision that nothing was done about; raises what ``policy_changes`` does."""
    _write(host, _others(host, change))


def _others(host: Host, change: PolicyChange) -> tuple[PolicyChange, ...]:
    found = policy_changes(host)
    return tuple(each for each in found if each.decided_at_s != change.decided_at_s)


def _write(host: Host, changes: tuple[PolicyChange, ...]) -> None:
    kept = to_document(_PolicyLog(changes=changes), schema=_SCHEMA, indent=1)
    write_file(host.state_dir() / _NAME, kept)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _PolicyLog:
    """What is in the file, the earliest first."""

    changes: tuple[PolicyChange, ...]


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
