"""The policy ``apply``: applies an advice, watches the boots since, and goes back."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from initadvisor.host.package_managers import busy_package_managers
from initadvisor.model.errors import InitadvisorError
from initadvisor.model.policy import PolicyChange, objection, watched
from initadvisor.model.transaction import TransactionState
from initadvisor.workflow.apply import ApplyChoices, apply, require_none_pending
from initadvisor.workflow.apply_plan import ApplyRequest, plan_apply
from initadvisor.workflow.campaign_log import is_noted_active
from initadvisor.workflow.policy_boots import since_then
from initadvisor.workflow.policy_log import forget_change, policy_changes, record_change
from initadvisor.workflow.rollback import plan_rollback, rollback
from initadvisor.workflow.transaction_log import own_transactions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from initadvisor.host import Host
    from initadvisor.model.apply import ApplyPlan, StagedImage
    from initadvisor.model.config import Config
    from initadvisor.workflow.apply import ApplyObserver
    from initadvisor.workflow.recommend import Observer as RecommendObserver

    class Observer(RecommendObserver, ApplyObserver, Protocol):
        """Told how the work goes."""


class _Building:
    """Passes on how applying goes, and notes that building was begun.

    What is refused before that costs nothing, and may be another time: somebody else's selection
    for the next boot, say. To build the same in vain after each boot would cost a lot.
    """

    def __init__(self, observer: ApplyObserver) -> None:
        self._observer = observer
        self.begun = False

    def doing(self, what: str) -> None:
        """See ``BuildingObserver.doing``."""
        self.begun = True
        self._observer.doing(what)

    def built(self, staged: Sequence[StagedImage]) -> None:
        """See ``ApplyObserver.built``."""
        self._observer.built(staged)


def why_not(host: Host, setting: str, kernel_release: str) -> str | None:
    """Return why the policy is not to apply a setting, None where nothing is against it."""
    return objection(setting, kernel_release, _changes(host), own_transactions(host))


def apply_advice(host: Host, *, observer: Observer) -> str:
    """Apply what is recommended, and return what came of it in words.

    As ``initadvisor apply --confirm`` without options: whatever it refuses leaves everything as it
    was. Raises what ``apply`` does.
    """
    if is_noted_active(host):
        return "not applying anything while a campaign of trial boots is on"
    require_none_pending(host)
    if busy := busy_package_managers(host):  # not a failure that is to be remembered
        raise InitadvisorError(str(busy[0]), hint="it is tried again later")
    plan = plan_apply(host, ApplyRequest(), observer=observer)
    if not plan.edits or not plan.rebuilt:
        return f"nothing to apply: {plan.setting} is what there is"
    release = plan.rebuilt[0].image.kernel_release
    if reason := why_not(host, str(plan.setting), release):
        return f"not applying {plan.setting}: {reason}"
    return _apply(host, plan, release, observer)


def go_back_if_slower(host: Host, config: Config, *, observer: ApplyObserver) -> str | None:
    """Undo what the policy has applied where boots have become slower, and return it in words.

    None where nothing was undone. Raises what ``rollback`` does.
    """
    transaction = watched(_changes(host), own_transactions(host))
    if transaction is None:
        return None
    found = since_then(host, config, transaction)
    if not found.certain:
        return None
    plan = plan_rollback(host)
    if plan is None or plan.transaction.number != transaction.number:
        return None
    reason = (
        f"boots were {found.slower_ms:.0f} ms slower ({found.boots_after} boots since, "
        f"{found.boots_before} before)"
    )
    done = rollback(host, plan, reason=reason, observer=observer)
    return f"transaction {done.transaction.number} is undone by the policy: {reason}"


def _changes(host: Host) -> tuple[PolicyChange, ...]:
    """Return what the policy has decided, with what a run that was killed could not add."""
    recorded = own_transactions(host)
    return tuple(change.found_in(recorded) for change in policy_changes(host))


def _apply(host: Host, plan: ApplyPlan, release: str, observer: ApplyObserver) -> str:
    change = PolicyChange(
        after=str(plan.setting), kernel_release=release, decided_at_s=int(time.time())
    )
    record_change(host, change)
    building = _Building(observer)
    try:
        applied = apply(host, plan, ApplyChoices(), observer=building)
    except InitadvisorError as err:
        if building.begun:
            record_change(host, replace(change, failed=err.message))
        else:
            forget_change(host, change)
        raise
    number = applied.transaction.number
    record_change(host, replace(change, number=number))
    done = applied.transaction.state is TransactionState.COMMITTED
    what = "is applied" if done else "waits for a boot of the new image"
    return f"transaction {number} ({plan.setting}) {what}, by the policy"
