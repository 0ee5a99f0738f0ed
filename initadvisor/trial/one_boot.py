"""One boot of an image from an entry of its own: planned, armed, judged and cleared up.

The proving boot (``apply.proving``) and campaigns (``campaign_actions``, ``campaign_judge``) use
it. They choose the image and the moment, keep the record and draw the conclusions. The order of
the steps is theirs to keep, for whoever comes after an interruption finds what to clear up by it:

- record the ``ArmedBoot``, ``write_entry`` (the note of it comes first), ``select_entry``;
- ``disarm``, ``remove_entry`` (the note goes last), forget the record.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING

from initadvisor.bootloaders.detect import loader_named
from initadvisor.bootloaders.entry import (
    EntryKind,
    OneShotState,
    TrialPlan,
    TrialRequest,
    not_loaded,
)
from initadvisor.bootloaders.extra_cmdline import extra_cmdline, is_watched
from initadvisor.boots.record import running_boot_id
from initadvisor.core.config import Restart
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.refusals import RefusalKind
from initadvisor.transaction.transaction import ArmedBoot, ProofStage
from initadvisor.trial.beside import remove_beside, require_beside, take_down, write_beside
from initadvisor.trial.binding import binding_of
from initadvisor.trial.evaluation import BootEvaluation, evaluate_boot
from initadvisor.trial.evidence import evidence_of
from initadvisor.trial.markers import forget_entry, note_entry, noted_entry
from initadvisor.trial.risks import missing_of, no_return, watchdog_s

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from initadvisor.bootloaders import BootLoader
    from initadvisor.bootloaders.entry import OneShot
    from initadvisor.campaign.campaign import TrialBoot
    from initadvisor.host import Host


_UNLOCKING = frozenset(kind for kind in RefusalKind if kind.may_be_overridden)


def new_name(policy: str, number: int) -> str:
    """Return a trial's name that no earlier boot had; ``number`` is the policy's own."""
    return f"{policy}-{number}-{secrets.token_hex(4)}"


def new_boot(
    host: Host,
    *,
    loader: str,
    stage: ProofStage,
    trial: str,
    image: str,
    sha256: str,
    size_bytes: int,
    is_uki: bool = False,
    ignore_unlocking: bool = False,
) -> ArmedBoot:
    """Return what is to be armed in the running boot (fields: ``ArmedBoot``); nothing is done."""
    return ArmedBoot(
        stage=stage,
        loader=loader,
        trial=trial,
        armed_in_boot=running_boot_id(host),
        image=image,
        sha256=sha256,
        size_bytes=size_bytes,
        is_uki=is_uki,
        ignore_unlocking=ignore_unlocking,
    )


def once_more(host: Host, armed: ArmedBoot, *, trial: str) -> ArmedBoot:
    """Return the same, to be armed in the running boot under another name."""
    return replace(armed, trial=trial, armed_in_boot=running_boot_id(host), taken_back=False)


def plan_entry(
    host: Host,
    *,
    loader: str,
    trial: str,
    replaces: str,
    image: str,
    generator: str,
    lacking: frozenset[Restart],
) -> TrialPlan:
    """Plan the entry that loads ``image``, made by ``generator``, in place of ``replaces``.

    ``lacking``: what may be missing to restart the machine where that boot fails, since a person is
    there or has consented; ``UnsafeError`` is raised for more. Raises like ``BootLoader.trial``
    besides.
    """
    found = loader_named(loader)
    default = found.default_entry(host)
    if replaces not in default.images:  # nothing is read of it then: of several images one is
        raise not_loaded(replaces, default.images)
    missing = missing_of(host, image, default.options)
    for what, reason in missing.items():
        if what not in lacking:
            raise no_return(reason)
    parameters = extra_cmdline(
        trial,
        generator=generator,
        watchdog_s=watchdog_s(host),
        guarded=Restart.GUARD not in missing,
    )
    request = TrialRequest(trial=trial, replaces=replaces, image=image, parameters=parameters)
    return found.trial(host, request)


def lacked(armed: ArmedBoot) -> frozenset[Restart]:
    """Return what a boot that nobody attends may lack where a person has had another one armed.

    That is a watchdog, if that boot had none either: the person was told so.
    """
    is_told = armed.entry and not is_watched(armed.extra_cmdline)
    return frozenset({Restart.WATCHDOG} if is_told else ())


def first_planned(
    attempts: Iterable[Callable[[], TrialPlan]], *, without: InitadvisorError
) -> TrialPlan:
    """Return the first plan that can be made: the default entry loads one of several images.

    Raises the first error where none can be made, and ``without`` where there is nothing to try.
    """
    error = None
    for planned in attempts:
        try:
            return planned()
        except InitadvisorError as err:
            error = error or err
    raise error or without


def with_entry(host: Host, armed: ArmedBoot, plan: TrialPlan) -> ArmedBoot:
    """Return it with what the planned entry is called, adds to the command line and is bound to.

    Raises ``InitadvisorError`` where a file that it loads cannot be read.
    """
    return replace(
        armed,
        entry=plan.identifier,
        extra_cmdline=plan.extra_cmdline,
        bound_to=binding_of(host, plan),
    )


def write_entry(host: Host, plan: TrialPlan) -> None:
    """Write the entry, which is noted before, and what it needs; raises ``InitadvisorError``."""
    note_entry(host, plan.loader)
    loader = loader_named(plan.loader)
    if (image := loader.entry(host, EntryKind.TRIAL)) and image != plan.request.image:
        remove_beside(host, image)
    loader.write(host, plan)
    write_beside(host, plan)


def select_entry(host: Host, plan: TrialPlan, *, ignore_unlocking: bool) -> None:
    """Have the next boot, and only that one, use the entry; raises like ``BootLoader.arm``."""
    accepted = _UNLOCKING if ignore_unlocking else ()
    require_beside(host, plan.request.image, plan.default, plan.extra_cmdline)
    loader_named(plan.loader).arm(host, plan, accepted=accepted)


def entry_loader(host: Host) -> BootLoader | None:
    """Return the loader that may have a trial's entry, whoever armed it; None where none has."""
    name = noted_entry(host)
    return loader_named(name) if name is not None else None


def remove_entry(
    host: Host, loader: BootLoader, *, before_forgetting: Callable[[Host], None] | None = None
) -> bool:
    """Remove the entry, with a selection of it; return whether there was one.

    The note of it goes last, after ``before_forgetting``. Raises ``InitadvisorError``; the note
    stays then.
    """
    removed = take_down(host, loader)
    if before_forgetting is not None:
        before_forgetting(host)
    forget_entry(host)
    return removed


def is_of_this_boot(host: Host, armed: ArmedBoot) -> bool:
    """Tell whether it was armed in the running boot, so that its own is still to come."""
    return armed.armed_in_boot == running_boot_id(host)


def require_told(host: Host, armed: ArmedBoot) -> OneShot:
    """Return what the next boot uses.

    Raises ``InitadvisorError`` where its loader does not tell: nothing can be taken back then.
    """
    now = loader_named(armed.loader).armed(host)
    if now.state is OneShotState.UNREADABLE:
        msg = f"cannot tell whether a boot is armed, nor take it back: {now.reason}"
        raise InitadvisorError(msg, hint="do not reboot before that can be read again")
    return now


def judge(host: Host, armed: ArmedBoot, *, trial_boot: TrialBoot | None = None) -> BootEvaluation:
    """Return what became of it, by what there is to see now.

    ``trial_boot``: a campaign's, with what signs of a boot's end are told from earlier ones by;
    without it only the watchdog's is looked for. Raises ``InitadvisorError`` where too little can
    be read.
    """
    evidence = evidence_of(host, loader_named(armed.loader), armed, trial_boot=trial_boot)
    return evaluate_boot(armed, evidence)
