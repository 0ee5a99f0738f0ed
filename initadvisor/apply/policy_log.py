"""What the daemon has applied by itself, and whether it may again: one file, replaced whole."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.core.plain_values import from_json
from initadvisor.host.files import make_directory, whole_file
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
            document = from_json(file.read(_MOST_BYTES))
        if document["schema"] > _SCHEMA:
            msg = f"cannot read {path}: a newer version of initadvisor has written it"
            raise UnsafeError(msg)
        return tuple(_change(each) for each in document["changes"])
    except FileNotFoundError:
        return ()
    except OSError as err:
        msg = f"cannot read {path}: {err.strerror}"
        raise InitadvisorError(msg) from err
    except (ValueError, KeyError, TypeError) as err:
        msg = f"cannot read {path}: it is damaged ({err})"
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
    document = {"schema": _SCHEMA, "changes": [dataclasses.asdict(each) for each in changes]}
    path = host.state_dir() / _NAME
    make_directory(path.parent)
    try:
        with whole_file(path) as file:
            file.write(json.dumps(document, indent=1).encode() + b"\n")
    except OSError as err:
        msg = f"cannot write {path}: {err.strerror}"
        raise InitadvisorError(msg) from err


def _change(values: dict[str, Any]) -> PolicyChange:
    number, decided_at_s = values["number"], values["decided_at_s"]
    words = [values[name] for name in ("after", "kernel_release", "failed")]
    if not all(isinstance(word, str) for word in words):
        msg = f"{words} are not words"
        raise TypeError(msg)
    if not isinstance(decided_at_s, int) or not isinstance(number, int | None):
        msg = f"{decided_at_s} and {number} are no numbers"
        raise TypeError(msg)
    return PolicyChange(
        after=words[0],
        kernel_release=words[1],
        decided_at_s=decided_at_s,
        number=number,
        failed=words[2],
    )


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
