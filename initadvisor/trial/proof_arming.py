"""Arming one boot of what a transaction is to install, or of today's image as a rehearsal."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from initadvisor.bootloaders.entry import TrialPlan, TrialRequest
from initadvisor.bootloaders.extra_cmdline import extra_cmdline
from initadvisor.boots.loaded_files import loaded_part
from initadvisor.boots.record import running_boot_id
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.core.refusals import RefusalKind
from initadvisor.host.files import open_regular, sha256_of
from initadvisor.transaction.armed_boot import ArmedBoot, ProofStage
from initadvisor.transaction.transaction import FileRole
from initadvisor.trial.markers import note_entry

if TYPE_CHECKING:
    from initadvisor.bootloaders import BootLoader
    from initadvisor.host import Host
    from initadvisor.transaction.transaction import Transaction
    from initadvisor.transaction.transactions import Transactions


_UNLOCKING = frozenset(kind for kind in RefusalKind if kind.may_be_overridden)


def arm(
    host: Host,
    engine: Transactions,
    transaction: Transaction,
    loader: BootLoader,
    *,
    stage: ProofStage,
    ignore_unlocking: bool,
) -> Transaction:
    """Write a trial's entry and select it for one boot; what is waited for is recorded before that.

    Raises ``UnsafeError`` (``RefusedError``) where something is against it and ``InitadvisorError``
    where it fails; what was recorded and written is then for the caller to undo.
    """
    if transaction.setting is None:
        msg = f"transaction {transaction.number} is about no setting that a boot could prove"
        raise UnsafeError(msg)
    trial = f"apply-{transaction.number}-{secrets.token_hex(4)}"
    words = extra_cmdline(trial, generator=transaction.setting.generator)
    plan = _planned(host, loader, transaction, stage, trial, words)
    with open_regular(host.path(plan.request.image)) as file:
        part = loaded_part(file, is_uki=plan.default.is_uki)
        sha256 = sha256_of(file, offset=part.offset, size_bytes=part.size_bytes)
    proof = ArmedBoot(
        stage=stage,
        loader=loader.NAME,
        trial=trial,
        armed_in_boot=running_boot_id(host),
        image=plan.request.image,
        sha256=sha256,
        size_bytes=part.size_bytes,
        is_uki=plan.default.is_uki,
        entry=plan.identifier,
        extra_cmdline=plan.extra_cmdline,
        ignore_unlocking=ignore_unlocking,
    )
    waiting = engine.prove(transaction, proof)
    note_entry(host, loader.NAME)
    loader.write(host, plan)
    loader.arm(host, plan, accepted=_UNLOCKING if ignore_unlocking else ())
    return waiting


def _planned(
    host: Host,
    loader: BootLoader,
    transaction: Transaction,
    stage: ProofStage,
    trial: str,
    words: tuple[str, ...],
) -> TrialPlan:
    """Plan an entry with the first of the images that the default entry loads."""
    refusal: InitadvisorError | None = None
    for change in transaction.files:
        if change.role is not FileRole.IMAGE:
            continue
        image = change.path if stage is ProofStage.REHEARSAL else change.staged
        request = TrialRequest(trial=trial, replaces=change.path, image=image, parameters=words)
        try:
            return loader.trial(host, request)
        except InitadvisorError as err:
            refusal = refusal or err
    if refusal is None:
        msg = f"transaction {transaction.number} replaces no image that could be booted first"
        raise UnsafeError(msg)
    raise refusal
