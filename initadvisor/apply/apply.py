"""``apply --confirm``: builds and verifies images, then installs them or arms a proving boot."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from initadvisor.apply.build import changed_meanwhile, require_as_built, staged_images
from initadvisor.apply.commit import commit, undisturbed
from initadvisor.apply.loaded import require_loaded
from initadvisor.apply.plan_values import ApplyStep
from initadvisor.apply.proving import arm_proof
from initadvisor.core.errors import UnfitImageError, UnsafeError
from initadvisor.core.text import encoded
from initadvisor.generators.detect import generator_of_image
from initadvisor.host.configuration import load_config
from initadvisor.host.package_managers import busy_package_managers
from initadvisor.host.storage.mounts import machine_path
from initadvisor.lab.verify import BuildingObserver, ask_kernels
from initadvisor.records.boot import RecordSource
from initadvisor.store.store import open_store
from initadvisor.transaction import files
from initadvisor.transaction.plan import Replacement
from initadvisor.transaction.transaction import FileRole, SettingChange
from initadvisor.transaction.transactions import pending, transactions
from initadvisor.trial.risks import without_consent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from initadvisor.apply.plan_values import ApplyPlan, StagedImage
    from initadvisor.core.settings import Setting
    from initadvisor.host import Host
    from initadvisor.records.boot import BootRecord
    from initadvisor.transaction.transaction import Transaction


_BUILDING = "images were built"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyChoices:
    """What the user takes upon himself; fields as the options of ``initadvisor apply``.

    ``by_policy``: the daemon's policy asks for it, no person. No boot is armed then that may wait
    for one, but with the consent in the configuration (``person_resets``).
    """

    immediate: bool = False
    unverified: bool = False
    accept_content_changes: bool = False
    without_backup: bool = False
    without_entry: bool = False
    ignore_unlocking: bool = False
    by_policy: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What came of it: the transaction is committed, or waits for a boot (``PROVING``).

    ``left``: the images that were built and not taken, each with its ``objection``: they stay as
    they are. ``proven``: the earlier boot with this setting for which no other is waited for.
    ``unverified``: why no kernel was asked whether it unpacks the images, empty where one was.
    """

    transaction: Transaction
    left: tuple[StagedImage, ...] = ()
    proven: BootRecord | None = None
    unverified: str = ""


class ApplyObserver(BuildingObserver, Protocol):
    """Receives progress events."""

    def built(self, staged: Sequence[StagedImage]) -> None:
        """All images are built and right; nothing was decided about them yet."""
        ...


def apply(
    host: Host, plan: ApplyPlan, choices: ApplyChoices, *, observer: ApplyObserver
) -> Applied:
    """Do what was planned, or leave everything as it was.

    Raises ``UnsafeError`` (``RefusedError``) where something is in the way that the user has not
    taken upon himself, and whatever building, verifying and replacing raise.
    """
    if plan.variant and (choices.without_backup or choices.without_entry):
        msg = "not taking content out of the image: the previous one would be in no boot menu"
        raise UnsafeError(msg, hint="leave out --without-backup and --without-entry")
    require_none_pending(host)
    if busy := busy_package_managers(host):  # found out before building takes minutes
        msg = f"not applying anything now: {busy[0]}"
        raise UnsafeError(msg, hint="try again when it is done")
    release = plan.rebuilt[0].image.kernel_release if plan.rebuilt else None
    # Known again once a kernel was asked; refused here already, before building takes minutes.
    direct = choices.immediate or _proven(host, plan, kernel_release=None) is not None
    _require_nothing_in_the_way(plan, choices, direct=direct)
    if not direct and choices.by_policy and (reason := without_consent(host, load_config(host))):
        msg = f"not arming a boot: {reason}"
        raise UnsafeError(msg)
    generator = generator_of_image(plan.generator)
    with staged_images(host, generator, plan, observer=observer) as built:
        observer.built(built)
        staged, left = _accepted(host, plan, built, choices)
        unverified = ask_kernels(
            host,
            [(image.image, image.staged) for image in staged],
            unverified=choices.unverified,
            observer=observer,
        )
        proven = _proven(host, plan, kernel_release=release if unverified else None)
        direct = choices.immediate or proven is not None
        _require_nothing_in_the_way(plan, choices, direct=direct)
        observer.doing("replacing configuration and images" if direct else "arming one boot")
        with transactions(host) as engine, undisturbed(host):
            transaction = engine.begin(
                tuple(_replacements(host, plan, staged, choices)),
                purpose=f"{plan.generator} to {plan.change}, was {_former(plan)}",
                setting=SettingChange(
                    generator=plan.generator,
                    kernel_release=release or "",
                    before=str(plan.today.setting),
                    after=str(plan.setting),
                    variant=plan.variant.name if plan.variant else "",
                    with_updates=any(image.objection for image in staged),
                ),
                by_policy=choices.by_policy,
            )
            check = partial(_require_as_planned, host, plan, staged)
            transaction = engine.verify(transaction, check)
            if direct:
                entry = not (choices.without_backup or choices.without_entry)
                transaction = commit(host, engine, transaction, entry=entry)
            else:
                transaction = arm_proof(
                    host, engine, transaction, ignore_unlocking=choices.ignore_unlocking
                )
    return Applied(transaction=transaction, left=left, proven=proven, unverified=unverified)


def require_none_pending(host: Host) -> None:
    """Raise ``UnsafeError`` while an earlier transaction is not over."""
    if waiting := pending(host):
        first = waiting[0]
        msg = f"not changing anything: transaction {first.number} ({first.purpose}) is "
        raise UnsafeError(msg + first.state, hint="initadvisor status shows it")


def _require_nothing_in_the_way(plan: ApplyPlan, choices: ApplyChoices, *, direct: bool) -> None:
    passed = {
        ApplyStep.VERIFYING: choices.unverified,
        ApplyStep.PROVING_BOOT: direct,
        ApplyStep.PREVIOUS_ENTRY: choices.without_backup or choices.without_entry,
        ApplyStep.UNLOCKING: choices.ignore_unlocking,
    }
    for blocker in plan.blockers:
        if not passed.get(blocker.step, False):
            raise UnsafeError(blocker.reason, hint=_way_out(blocker.step, blocker.remedy))


def _way_out(step: ApplyStep, remedy: str) -> str | None:
    options = {
        ApplyStep.PROVING_BOOT: "--immediate goes without a proving boot",
        ApplyStep.PREVIOUS_ENTRY: "--without-entry goes without an entry for the previous image",
        ApplyStep.UNLOCKING: "--ignore-unlocking goes on all the same",
    }
    return "; ".join(part for part in (remedy, options.get(step)) if part) or None


def _accepted(
    host: Host, plan: ApplyPlan, built: Sequence[StagedImage], choices: ApplyChoices
) -> tuple[tuple[StagedImage, ...], tuple[StagedImage, ...]]:
    """Return the images to install, and those that are left out: a rebuild brings more to them.

    Raises ``UnfitImageError`` where it brings more to one that may not stay, ``UnsafeError`` where
    the default entry loads none of the others.
    """
    if choices.accept_content_changes:
        return tuple(built), ()
    may_stay = {one.image for one in plan.images if one.may_stay}
    left = tuple(image for image in built if image.objection and image.image in may_stay)
    for image in built:
        if image.objection and image not in left:
            msg = f"not replacing {image.image.path}: {image.objection}"
            hint = "rebuild and boot it first, or --accept-content-changes; nothing was changed"
            raise UnfitImageError(msg, hint=hint)
    if left:
        stay = {image.image for image in left}
        require_loaded(
            host,
            [replace(one, rebuilt=one.rebuilt and one.image not in stay) for one in plan.images],
        )
    return tuple(image for image in built if image not in left), left


def _replacements(
    host: Host, plan: ApplyPlan, staged: Sequence[StagedImage], choices: ApplyChoices
) -> Iterator[Replacement]:
    for image in staged:
        for path in image.image.paths:
            yield Replacement(
                path=str(machine_path(host, path)),
                role=FileRole.IMAGE,
                new=partial(files.copy, image.staged),
                size_bytes=image.size_bytes,
                keep=not choices.without_backup,
                mode=0o600,
            )
    for edit in plan.edits:
        yield Replacement(
            path=str(machine_path(host, Path(edit.path))),
            role=FileRole.CONFIGURATION,
            new=encoded(edit.after),
        )


def _require_as_planned(
    host: Host,
    plan: ApplyPlan,
    staged: Sequence[StagedImage],
    transaction: Transaction,
) -> None:
    """Raise where what is there, or what was written, is not what the plan was made from."""
    require_as_built(host, staged, transaction, meanwhile=_BUILDING)
    changes = {host.path(change.path): change for change in transaction.files}
    for edit in plan.edits:
        before = changes[Path(edit.path)].before
        expected = edit.before is not None and hashlib.sha256(encoded(edit.before)).hexdigest()
        if (before.content.sha256 if before else False) != expected:
            raise changed_meanwhile(Path(edit.path), _BUILDING)


def _former(plan: ApplyPlan) -> str:
    return "all content" if plan.variant else str(plan.today.setting)


def _proven(host: Host, plan: ApplyPlan, *, kernel_release: str | None) -> BootRecord | None:
    """Return the boot for which no other is waited for; what has less content boots anew."""
    if plan.variant:
        return None
    return proven_by(host, plan.setting, kernel_release=kernel_release)


_LATEST = 200
"""So many boots are looked at: what booted well years ago says little."""


def proven_by(host: Host, setting: Setting, *, kernel_release: str | None) -> BootRecord | None:
    """Return the latest boot with an image of this setting, None if there was none.

    Boots are recorded when they are complete, while they run; others do not count, nor do those
    whose image is not certain. ``kernel_release``: only boots of this kernel; None: of any, which
    is enough where a kernel has been asked whether it unpacks the image.
    """
    with open_store(host, readonly=True) as store:
        boots = store.boots(source=RecordSource.UNIT, limit=_LATEST)
    # What a boot has of its kernel is the release, and behind a space its build.
    return next(
        (
            boot
            for boot in boots
            if boot.setting == setting
            and (
                kernel_release is None
                or (boot.boot_class.kernel or "").partition(" ")[0] == kernel_release
            )
        ),
        None,
    )
