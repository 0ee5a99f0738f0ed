"""The policy ``apply``: applies an advice, compares the boots before and since, and goes back."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from initadvisor.advise.machine import LOADER_FIXED
from initadvisor.apply.apply import ApplyChoices, apply, require_none_pending
from initadvisor.apply.plan import ApplyRequest, plan_apply
from initadvisor.apply.policy_log import (
    PolicyChange,
    forget_change,
    policy_changes,
    record_change,
    watched,
)
from initadvisor.apply.rollback import plan_rollback, rollback
from initadvisor.campaign.record import is_noted_active
from initadvisor.core.errors import InitadvisorError, UnfitImageError, UnsafeError
from initadvisor.core.settings import Setting
from initadvisor.decide.regression import regression
from initadvisor.host.files import open_regular, sha256_of
from initadvisor.host.package_managers import busy_package_managers
from initadvisor.records.boot import RecordSource
from initadvisor.records.read_interval import ReadInterval
from initadvisor.records.trial_outcome import TrialOutcome
from initadvisor.store.store import open_store
from initadvisor.transaction.log import own_transactions
from initadvisor.transaction.transaction import TransactionState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Protocol

    from initadvisor.advise.recommend import RecommendObserver
    from initadvisor.apply.apply import ApplyObserver
    from initadvisor.apply.plan_values import ApplyPlan, StagedImage
    from initadvisor.core.config import Config
    from initadvisor.decide.regression import Regression
    from initadvisor.host import Host
    from initadvisor.records.boot import BootRecord
    from initadvisor.transaction.transaction import Transaction

    class PolicyObserver(RecommendObserver, ApplyObserver, Protocol):
        """Receives progress events."""


_HELD_AGAINST = frozenset({None, TrialOutcome.FAILED, TrialOutcome.STUCK})
"""None: it was no boot, but a decision."""

_MOST_IN_VAIN = 3


def objection(
    setting: str,
    kernel_release: str,
    image_sha256: str,
    changes: Sequence[PolicyChange],
    transactions: Sequence[Transaction],
) -> str | None:
    """Return why the policy is not to apply a setting in the place of an image, None where it may.

    What was undone once, by whomever, is not done again without a person, unless the reason tells
    nothing of it: packages were changed, say, or the power was cut; then it is, some times with the
    same kernel. Whether a boot that left no sign gets another chance, ``failed_settings`` knows.
    What gave an image that is not fit is tried again once the installed one is another.
    """
    undone = {
        transaction.number: transaction
        for transaction in transactions
        if transaction.state in {TransactionState.UNDONE, TransactionState.FAILED}
    }
    in_vain: set[int] = set()
    for change in changes:
        if change.after != setting:
            continue
        if transaction := undone.get(change.number or 0):
            if change.kernel_release == kernel_release:
                in_vain.add(transaction.number)
            if transaction.outcome in _HELD_AGAINST or len(in_vain) >= _MOST_IN_VAIN:
                return f"transaction {transaction.number} was undone ({transaction.reason})"
        if change.failed and change.image_sha256 == image_sha256:
            return f"it could not be applied for Linux {kernel_release} ({change.failed})"
    return None


class _Building:
    """Passes on how applying goes, and notes that building was begun."""

    def __init__(self, observer: ApplyObserver) -> None:
        self._observer = observer
        self.begun = False

    def doing(self, what: str, *, done: int = 0, of: int = 0) -> None:
        """See ``BuildingObserver.doing``."""
        self.begun = True
        self._observer.doing(what, done=done, of=of)

    def built(self, staged: Sequence[StagedImage]) -> None:
        """See ``ApplyObserver.built``."""
        self._observer.built(staged)


def apply_advice(host: Host, *, observer: PolicyObserver) -> str:
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
    image = plan.rebuilt[0].image
    with open_regular(image.path) as file:
        sha256 = sha256_of(file, once=True)
    change = PolicyChange(
        after=str(plan.setting),
        kernel_release=image.kernel_release,
        image_sha256=sha256,
        decided_at_s=int(time.time()),
    )
    changes, recorded = policy_changes(host), own_transactions(host)
    if reason := objection(change.after, change.kernel_release, sha256, changes, recorded):
        msg = f"not applying {plan.setting}: {reason}"
        raise UnsafeError(msg)
    return _apply(host, plan, change, observer)


def go_back_if_slower(host: Host, config: Config, *, observer: ApplyObserver) -> str | None:
    """Undo what the policy has applied where boots have become slower, and return it in words.

    None where nothing was undone. Raises what ``rollback`` does.
    """
    transaction = watched(policy_changes(host), own_transactions(host))
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


def _apply(host: Host, plan: ApplyPlan, change: PolicyChange, observer: ApplyObserver) -> str:
    """Apply it, or raise why not; held against the setting is only an image that is not fit.

    What else fails may not another time: no virtual machine works, there is no room, a package
    manager is at work, somebody has selected the next boot. What has built images by then is a
    refusal, whatever it was: it would cost a lot to have the daemon try that three times in a row.
    """
    choices = ApplyChoices(by_policy=True)
    record_change(host, change)
    building = _Building(observer)
    try:
        applied = apply(host, plan, choices, observer=building)
    except UnfitImageError as err:
        record_change(host, replace(change, failed=err.message))
        raise
    except InitadvisorError as err:
        forget_change(host, change)
        if not building.begun:
            raise
        raise UnsafeError(err.message, hint=err.hint) from err
    number = applied.transaction.number
    record_change(host, replace(change, number=number))
    done = applied.transaction.state is TransactionState.COMMITTED
    what = "is applied" if done else "waits for a boot of the new image"
    stay = "".join(f"; {one.image.path} stays as it is: {one.objection}" for one in applied.left)
    return f"transaction {number} ({plan.setting}) {what}, by the policy{stay}"


_LATEST = 400
"""So many boots are looked at; what was long ago was another machine."""


def since_then(host: Host, config: Config, transaction: Transaction) -> Regression:
    """Compare the boots of the setting that a transaction has replaced with those of the new one.

    Only boots that were measured while they ran, used the one or the other for certain, and are of
    the class of the latest: after another kernel is installed nothing is known any more.
    """
    with open_store(host, readonly=True) as store:
        boots = store.boots(source=RecordSource.UNIT, limit=_LATEST)
    before, since = split(boots, transaction)
    before_ms, since_ms = times_ms(before, since)
    typical_ms = min((_of_the_image_ms(boot) for boot in before), default=0.0)
    return regression(
        before_ms,
        since_ms,
        tolerance_ms=max(config.tolerance_ms, config.tolerance_fraction * typical_ms),
        certainty=config.certainty,
    )


def split(
    boots: Sequence[BootRecord], transaction: Transaction
) -> tuple[tuple[BootRecord, ...], tuple[BootRecord, ...]]:
    """Return the comparable ``boots`` (the latest first) before a transaction and since."""
    change = transaction.setting
    if change is None:
        return (), ()
    began = datetime.fromtimestamp(transaction.began_at_s, UTC)
    old, new = Setting.parse(change.before), Setting.parse(change.after)
    counting = [boot for boot in boots if boot.kernel_counts and boot.begin_to_init_us is not None]
    since = [boot for boot in counting if boot.setting == new and boot.started_at >= began]
    if not since:
        return (), ()
    key = since[0].class_key
    before = (boot for boot in counting if boot.setting == old and boot.started_at < began)
    return _of_class(before, key), _of_class(since, key)


def times_ms(
    before: Sequence[BootRecord], since: Sequence[BootRecord]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return what these boots took, with the reading where that is told of both in the same way.

    Where no loader tells it, the kernel's part decides alone if the image has not become smaller:
    what is read faster since may well take longer to unpack, and be the better choice.
    """
    kinds = (_reading_kind(boot) for boot in (*since, *before))
    kind = next((kind for kind in kinds if kind is not None), None)
    if kind is not None:
        return (
            _sums((boot for boot in before if _reading_kind(boot) == kind), reading=True),
            _sums((boot for boot in since if _reading_kind(boot) == kind), reading=True),
        )
    if _loaded_bytes(since, min) < _loaded_bytes(before, max):
        return (), ()
    return _sums(before, reading=False), _sums(since, reading=False)


def _of_class(boots: Iterable[BootRecord], key: str) -> tuple[BootRecord, ...]:
    return tuple(boot for boot in boots if boot.class_key == key)


def _reading_kind(boot: BootRecord) -> tuple[object, ...] | None:
    """Return what is in a boot's interval of reading, and from which disk; None without one."""
    if not boot.loader_counts or not isinstance(boot.read, ReadInterval):
        return None
    return boot.read.source, boot.read.beside, boot.boot_class.hardware.boot_disk


def _sums(boots: Iterable[BootRecord], *, reading: bool) -> tuple[float, ...]:
    return tuple(
        ((boot.begin_to_init_us or 0) + ((boot.read_us or 0) if reading else 0)) / 1000
        for boot in boots
    )


def _of_the_image_ms(boot: BootRecord) -> float:
    """Return r * size + max(B1, U), with L as it is taken to be before anything is measured."""
    whole_us, rest_us = boot.begin_to_init_us, boot.shadow.rest_us
    waited_us = boot.unpack_us if whole_us is None or rest_us is None else whole_us - rest_us
    read_ms = (boot.read_us or 0) / 1000 if _reading_kind(boot) else 0.0
    return (waited_us or 0) / 1000 + max(0.0, read_ms - LOADER_FIXED.median)


def _loaded_bytes(boots: Sequence[BootRecord], pick: Callable[[list[int]], int]) -> int:
    return pick([boot.loaded_bytes or 0 for boot in boots] or [0])
