"""The proving boot: a transaction waits for one boot of its image, and is then done or undone.

What is armed is recorded in the transaction before there is an entry of it, and the note of that
entry goes after it (``trial.one_boot``): whoever comes after an interruption at any point finds out
and clears up.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from initadvisor.apply.commit import commit, try_to_settle_previous_entry, undisturbed
from initadvisor.bootloaders.detect import detect_boot_loader, loader_named
from initadvisor.bootloaders.entry import EntryKind, OneShotState
from initadvisor.bootloaders.safety import ignores_options
from initadvisor.boots.loaded_files import loaded_part
from initadvisor.campaign.record import campaign_stands, require_no_campaign
from initadvisor.core.config import Policy, Restart
from initadvisor.core.errors import InitadvisorError, NeedsRootError, UnsafeError, raise_all
from initadvisor.generators.running import elsewhere
from initadvisor.host.configuration import load_config
from initadvisor.host.files import open_regular, sha256_of
from initadvisor.host.package_managers import busy_package_managers, clear_stale_locks
from initadvisor.host.record_files import OlderRecordError
from initadvisor.records.trial_outcome import TrialOutcome
from initadvisor.transaction.log import own_records, readable_transactions, unfinished
from initadvisor.transaction.transaction import (
    ArmedBoot,
    Duty,
    FileRole,
    ProofStage,
    TransactionState,
)
from initadvisor.transaction.transactions import transactions
from initadvisor.trial import campaigns
from initadvisor.trial.beside import take_down
from initadvisor.trial.binding import binding_fault
from initadvisor.trial.evaluation import BootEvaluation, ProofAction
from initadvisor.trial.evidence import require_boot_time_unit
from initadvisor.trial.markers import (
    note_entry,
    note_rehearsed,
    noted_entry,
    previous_noted,
    was_rehearsed,
)
from initadvisor.trial.one_boot import (
    entry_loader,
    first_planned,
    is_of_this_boot,
    judge,
    lacked,
    new_boot,
    new_name,
    plan_entry,
    remove_entry,
    require_told,
    select_entry,
    with_entry,
    write_entry,
)
from initadvisor.trial.ownership import require_no_orphan
from initadvisor.trial.recovery import filled_slots
from initadvisor.trial.slot import clear_slot, fill_with_copy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from initadvisor.bootloaders.entry import TrialPlan
    from initadvisor.host import Host
    from initadvisor.transaction.transaction import Transaction
    from initadvisor.transaction.transactions import Transactions


_log = logging.getLogger(__name__)

_AT_REST = frozenset({Duty.WAIT, Duty.NOTHING})


def arm_proof(
    host: Host,
    engine: Transactions,
    transaction: Transaction,
    *,
    ignore_unlocking: bool = False,
) -> Transaction:
    """Have a verified transaction wait for one boot of its image, and arm that boot.

    On a machine whose loader has not been tried, today's image is armed first (the rehearsal).
    ``ignore_unlocking``: also where what unlocks the disks may not like another image.

    Raises ``UnsafeError`` (``RefusedError``) where something is against it, ``InitadvisorError``
    where it fails; the transaction is undone and nothing of ours is left then.
    """
    try:
        require_no_campaign(host)
        require_no_orphan(host, detect_boot_loader(host), EntryKind.TRIAL)
    except InitadvisorError as err:  # its entry is not the transaction's to remove
        engine.undo(transaction, reason=err.message)
        raise
    with _undone_on_error(host, engine, transaction):
        require_boot_time_unit(host)
        loader = detect_boot_loader(host).NAME
        stage = ProofStage.PROOF if was_rehearsed(host, loader) else ProofStage.REHEARSAL
        return _arm(
            host,
            engine,
            transaction,
            loader=loader,
            stage=stage,
            ignore_unlocking=ignore_unlocking,
            lacking=_consented(host) if transaction.by_policy else frozenset(Restart),
        )


def settle_everything(host: Host) -> Iterator[str]:
    """Settle changes and carry a campaign on; yield what was done, a line each.

    Neither keeps the other from being done: what went wrong is raised in the end, as one error.
    """
    yield from in_turn(partial(settle, host), partial(campaigns.carry_on, host))


def take_back_everything(host: Host) -> Iterator[str]:
    """Have no boot armed until the next ``settle_everything``; yields and raises like it."""
    yield from in_turn(partial(take_back, host), partial(campaigns.take_back, host))


def withdraw_everything(host: Host) -> Iterator[str]:
    """End all that waits for a boot; yields and raises like ``settle_everything``."""
    reason = "it was withdrawn"
    yield from in_turn(
        partial(withdraw_all, host, reason=reason), partial(campaigns.withdraw, host, reason=reason)
    )


def in_turn(*steps: Callable[[], Iterable[str]]) -> Iterator[str]:
    """Do all of it, whatever becomes of the others; raise what went wrong in the end as one error.

    Yields what was done, a line each.
    """
    failed: list[InitadvisorError] = []
    for do in steps:
        try:
            yield from do()
        except InitadvisorError as err:
            failed.append(err)
    raise_all(failed)


def settle(host: Host) -> tuple[str, ...]:
    """Finish or undo what earlier runs have begun, as far as that can be done now.

    What was interrupted is finished or undone, and what waits for a boot is judged: committed,
    armed, dropped or left to wait. Returns what was done, a line each; nothing where there was
    nothing to do. No generator is run.

    Raises ``NeedsRootError``, ``UnsafeError`` in a container or on a live system, and
    ``InitadvisorError`` where something cannot be done yet: it is then left to the next run.
    """
    if host.is_root:
        clear_stale_locks(host)  # or pacman refuses to work, where a power cut left one of ours
    if _nothing_begun(host):
        return ()
    _require_own_system(host)
    failed: list[InitadvisorError] = []
    done: list[str] = []
    with transactions(host) as engine:
        try:
            done += _recovered(host, engine)
        except InitadvisorError as err:  # what waits for its boot has nothing to do with it
            failed.append(err)
        for transaction in _proving(host):
            if transaction.armed_boot is not None:
                done.append(_settled(host, engine, transaction, transaction.armed_boot))
        if not _waiting(host) and not campaign_stands(host):
            _clear(host)
        if previous_noted(host):
            with undisturbed(host):
                try_to_settle_previous_entry(host)
    if failed:
        for line in done:
            _log.warning("%s", line)
    raise_all(failed)
    return tuple(done)


def take_back(host: Host) -> tuple[str, ...]:
    """Take an armed selection back, for ``settle`` to arm it again unless something has changed.

    A machine that hibernates would come back through the trial's entry, and packages may bring
    another kernel under the same name. Returns what was done; raises like ``settle``.
    """
    if noted_entry(host) is None:
        return ()
    _require_own_system(host)
    done = []
    with transactions(host) as engine:
        for transaction in _proving(host):
            armed = transaction.armed_boot
            if armed is not None and _take_back(host, engine, transaction, armed):
                done.append(_told(transaction, "is not armed for the time being"))
        # Of a record that cannot be read only the entry tells.
        others = entry_loader(host) if not (done or campaign_stands(host)) else None
        if others and others.disarm(host):
            done.append("no boot is armed any more: no record that can be read tells of it")
    return tuple(done)


def withdraw_all(host: Host, *, reason: str) -> tuple[str, ...]:
    """Undo every transaction that waits for a boot; return what was done, a line each.

    Raises like ``settle``; each is tried, whatever becomes of the others.
    """
    if noted_entry(host) is None and not _waiting(host):
        return ()
    _require_own_system(host)
    done: list[str] = []
    failed: list[InitadvisorError] = []
    with transactions(host) as engine:
        for transaction in _proving(host):
            try:
                not_tried = TrialOutcome.NOT_TRIED
                withdraw(host, engine, transaction, reason=reason, outcome=not_tried)
            except InitadvisorError as err:
                failed.append(err)
            else:
                done.append(_told(transaction, f"is undone: {reason}"))
    for line in done if failed else ():
        _log.warning("%s", line)
    raise_all(failed)
    return tuple(done)


def withdraw(
    host: Host,
    engine: Transactions,
    transaction: Transaction,
    *,
    reason: str,
    outcome: TrialOutcome | None = None,
) -> Transaction:
    """Undo a transaction that waits for a boot: its entry goes first, then what was staged.

    ``outcome``: what became of that boot, None where a person has decided so.

    Raises ``InitadvisorError`` where the entry cannot be removed; it waits on then, with its image
    in place.
    """
    armed = transaction.armed_boot
    if loader := loader_named(armed.loader) if armed else entry_loader(host):
        take_down(host, loader)
    undone = engine.undo(transaction, reason=reason, outcome=outcome)
    _clear(host)
    return undone


def _take_back(
    host: Host, engine: Transactions, transaction: Transaction, armed: ArmedBoot
) -> bool:
    """Take its selection back and return True; False where nothing of ours is selected."""
    loader = loader_named(armed.loader)
    now = require_told(host, armed)
    if now.state is OneShotState.OURS and is_of_this_boot(host, armed):
        engine.prove(transaction, replace(armed, taken_back=True))
    return loader.disarm(host)  # of an earlier boot: what its loader has left is to be seen


def _nothing_begun(host: Host) -> bool:
    """Tell whether there is nothing to settle; raises for records that cannot be read."""
    if _waiting(host) or noted_entry(host) is not None or previous_noted(host):
        return False
    errors = [r for r in own_records(host) if isinstance(r, InitadvisorError)]
    raise_all([err for err in errors if not isinstance(err, OlderRecordError)])
    return not errors


def _require_own_system(host: Host) -> None:
    if not host.is_root:
        msg = "cannot settle what is pending: only root may replace images and boot entries"
        raise NeedsRootError(msg)
    if place := elsewhere(host):
        msg = f"not settling anything: this is {place}, not the installed system"
        raise UnsafeError(msg)


def _recovered(host: Host, engine: Transactions) -> list[str]:
    records = own_records(host)
    if all(not isinstance(r, InitadvisorError) and r.state.duty in _AT_REST for r in records):
        return []
    with undisturbed(host):
        recovered = engine.recover()
        try_to_settle_previous_entry(host)
    return [_told(t, f"was interrupted, and is {t.state} now") for t in recovered]


def _proving(host: Host) -> tuple[Transaction, ...]:
    return tuple(t for t in _waiting(host) if t.state is TransactionState.PROVING)


def _waiting(host: Host) -> tuple[Transaction, ...]:
    """Return what is pending, as far as it can be read."""
    return unfinished(readable_transactions(host))


def _settled(host: Host, engine: Transactions, transaction: Transaction, armed: ArmedBoot) -> str:
    """Judge a transaction that waits for a boot, do what that means and return it in words."""
    evaluation = judge(host, armed)
    if evaluation.outcome is TrialOutcome.PENDING and (busy := busy_package_managers(host)):
        _take_back(host, engine, transaction, armed)
        return _told(transaction, f"is not armed for the time being: {busy[0]}")
    if evaluation.verdict is not ProofAction.DROP and (fault := binding_fault(host, armed)):
        reason = f"{fault} since it was armed"
        evaluation = replace(
            evaluation, verdict=ProofAction.DROP, reason=reason, outcome=TrialOutcome.NOT_TRIED
        )
    if evaluation.verdict is not ProofAction.DROP and _is_turned_off(host, transaction):
        reason = "the policy does not apply anything any more"
        evaluation = replace(
            evaluation, verdict=ProofAction.DROP, reason=reason, outcome=TrialOutcome.NOT_TRIED
        )
    what = {ProofStage.REHEARSAL: "the rehearsal", ProofStage.PROOF: "the proving boot"}
    told = f"{what[armed.stage]}: {evaluation.reason}"
    match evaluation.verdict:
        case ProofAction.WAIT:
            return _told(transaction, f"waits; {told}")
        case ProofAction.ARM | ProofAction.PROVE:
            with undisturbed(host):
                return _armed_anew(host, engine, transaction, armed, evaluation)
        case ProofAction.COMMIT:
            with undisturbed(host):
                try:
                    # What lost content stays only beside an entry for what has all of it.
                    entry = bool(transaction.setting and transaction.setting.variant)
                    commit(host, engine, transaction, entry=entry)
                finally:
                    if not _waiting(host):
                        _clear(host)
            return _told(transaction, f"is done; {told}")
        case ProofAction.DROP:
            withdraw(host, engine, transaction, reason=told, outcome=evaluation.outcome)
            return _told(transaction, f"is undone; {told}")


def _is_turned_off(host: Host, transaction: Transaction) -> bool:
    """Tell whether a policy has begun it that is not configured any more."""
    with contextlib.suppress(InitadvisorError):  # what cannot be read tells nothing
        return transaction.by_policy and load_config(host).policy is not Policy.APPLY
    return False


def _armed_anew(
    host: Host,
    engine: Transactions,
    transaction: Transaction,
    armed: ArmedBoot,
    evaluation: BootEvaluation,
) -> str:
    stage = armed.stage
    if evaluation.verdict is ProofAction.PROVE:
        note_rehearsed(host, armed.loader)
        stage = ProofStage.PROOF
    with _undone_on_error(host, engine, transaction):
        _arm(
            host,
            engine,
            transaction,
            loader=armed.loader,
            stage=stage,
            ignore_unlocking=armed.ignore_unlocking,
            lacking=_consented(host) if transaction.by_policy else lacked(armed),
        )
    image = "today's image" if stage is ProofStage.REHEARSAL else "the new image"
    return _told(transaction, f"has {image} armed for the next boot; {evaluation.reason}")


def _consented(host: Host) -> frozenset[Restart]:
    """Return what boots of the policy may lack; what cannot be read consents to nothing."""
    with contextlib.suppress(InitadvisorError):
        return load_config(host).person_resets
    return frozenset()


def _arm(
    host: Host,
    engine: Transactions,
    transaction: Transaction,
    *,
    loader: str,
    stage: ProofStage,
    ignore_unlocking: bool,
    lacking: frozenset[Restart],
) -> Transaction:
    """Write a trial's entry and select it for one boot; what is waited for is recorded before that.

    ``lacking`` as in ``plan_entry``.
    Raises ``UnsafeError`` (``RefusedError``) where something is against it and ``InitadvisorError``
    where it fails; what was recorded and written is then for the caller to undo.
    """
    plan = _planned(host, transaction, loader=loader, stage=stage, lacking=lacking)
    is_uki = plan.default.is_uki
    with open_regular(host.path(plan.request.image)) as file:
        part = loaded_part(file, is_uki=is_uki)
        sha256 = sha256_of(file, offset=part.offset, size_bytes=part.size_bytes)
    armed = new_boot(
        host,
        loader=plan.loader,
        stage=stage,
        trial=plan.request.trial,
        image=plan.request.image,
        sha256=sha256,
        size_bytes=part.size_bytes,
        is_uki=is_uki,
        ignore_unlocking=ignore_unlocking,
    )
    waiting = engine.prove(transaction, with_entry(host, armed, plan))
    write_entry(host, plan)
    if stage is ProofStage.PROOF:
        _clear_copy(host)
    select_entry(host, plan, ignore_unlocking=ignore_unlocking)
    return waiting


def _planned(
    host: Host,
    transaction: Transaction,
    *,
    loader: str,
    stage: ProofStage,
    lacking: frozenset[Restart],
) -> TrialPlan:
    """Plan an entry with the first of the images that the default entry loads."""
    if transaction.setting is None:
        msg = f"transaction {transaction.number} is about no setting that a boot could prove"
        raise UnsafeError(msg)
    trial = new_name("apply", transaction.number)
    default = loader_named(loader).default_entry(host)
    todays = None
    if stage is ProofStage.REHEARSAL and ignores_options(host, default):
        note_entry(host, loader)
        todays = fill_with_copy(host, default.kernel.path)
    plans = (
        partial(
            plan_entry,
            host,
            loader=loader,
            trial=trial,
            replaces=change.path,
            image=(todays or change.path) if stage is ProofStage.REHEARSAL else change.staged,
            generator=transaction.setting.generator,
            lacking=lacking,
        )
        for change in transaction.files
        if change.role is FileRole.IMAGE
    )
    msg = f"transaction {transaction.number} replaces no image that could be booted first"
    return first_planned(plans, without=UnsafeError(msg))


@contextlib.contextmanager
def _undone_on_error(host: Host, engine: Transactions, transaction: Transaction) -> Iterator[None]:
    """Undo all of it after an error, which is the one to be told."""
    try:
        yield
    except BaseException as err:  # Ctrl-C is no reason to leave anything, either
        reason = f"it could not be armed: {err}" if str(err) else type(err).__name__
        try:
            now = {found.number: found for found in _waiting(host)}
            not_tried = TrialOutcome.NOT_TRIED
            withdraw(host, engine, now[transaction.number], reason=reason, outcome=not_tried)
        except InitadvisorError as again:
            _log.warning("not undone yet: %s", again.with_hint)
        raise


def _clear(host: Host) -> None:
    """Have no trial's entry, and the right one of the previous image, where nothing is pending."""
    if (loader := entry_loader(host)) is not None:
        loader.disarm(host)  # what is selected has its image until then
        _clear_copy(host)
        remove_entry(host, loader, before_forgetting=try_to_settle_previous_entry)


def _clear_copy(host: Host) -> None:
    """Remove the copy of today's image that was rehearsed."""
    for slot in filled_slots(host):
        clear_slot(host, slot)


def _told(transaction: Transaction, what: str) -> str:
    return f"transaction {transaction.number} ({transaction.purpose}) {what}"
