"""What every loader's arming has in common: the reasons against it are collected and heeded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.bootloaders.places import is_file
from initadvisor.model.boot_entry import EntryKind
from initadvisor.model.errors import InitadvisorError, NeedsRootError, UnsafeError
from initadvisor.model.one_shot import OneShot, OneShotState
from initadvisor.model.refusal import Refusal, RefusalKind, RefusedError, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from initadvisor.host import Host
    from initadvisor.model.boot_entry import BootEntry, TrialPlan


def collected(*checks: Callable[[], object]) -> tuple[Refusal, ...]:
    """Run all checks and return what they refuse; one that cannot be made is a reason, too.

    ``NeedsRootError`` goes through: nothing can be said about what may not be looked at.
    """
    found: list[Refusal] = []
    for check in checks:
        try:
            check()
        except RefusedError as err:
            found.append(err.refusal)
        except NeedsRootError:
            raise
        except InitadvisorError as err:
            remedy = err.hint or "repair it; with -vv every program that is run is shown"
            found.append(Refusal(kind=RefusalKind.UNREADABLE, reason=err.message, remedy=remedy))
    return tuple(dict.fromkeys(found))


def require_accepted(refusals: Iterable[Refusal], accepted: Collection[RefusalKind]) -> None:
    """Raise ``RefusedError`` for the first reason that the user did not, or may not, override."""
    for refusal in refusals:
        if not (refusal.kind.may_be_overridden and refusal.kind in accepted):
            raise RefusedError(refusal)


def require_program(host: Host, program: str, package: str) -> None:
    """Raise ``RefusedError`` where a program is not installed."""
    if host.runner.which(program) is None:
        reason = f"{program} is not installed"
        raise refused(RefusalKind.MISSING_PROGRAM, reason, f"install {package}")


def require_trial(plan: TrialPlan) -> None:
    """Raise ``UnsafeError`` for an entry that this program has no business to select."""
    if plan.request.kind is not EntryKind.TRIAL:
        msg = f"not arming {plan.title}: only a trial's entry is selected by this program"
        raise UnsafeError(msg)


def pending_selection(identifier: str, selects: EntryKind | None) -> OneShot:
    """Return what is selected, whose entry of ours it may be; only the trial's is our doing."""
    is_ours = selects is EntryKind.TRIAL
    state = OneShotState.OURS if is_ours else OneShotState.OTHERS
    return OneShot(state=state, identifier=identifier, selects=selects)


def require_none_pending(pending: OneShot, how_to_clear: str) -> None:
    """Raise ``RefusedError`` where somebody else waits for the next boot (fwupd, the user)."""
    if pending.state is OneShotState.OTHERS:
        reason = f"the next boot is taken: {pending.identifier} was selected by somebody else"
        remedy = f"reboot first, or take it back: {how_to_clear}"
        raise refused(RefusalKind.PENDING_ONE_SHOT, reason, remedy)
    if pending.state is OneShotState.UNREADABLE:
        reason = f"it cannot be told what the next boot is to use: {pending.reason}"
        raise refused(RefusalKind.UNREADABLE, reason, how_to_clear)


def require_ours(pending: OneShot, what: str) -> None:
    """Raise ``InitadvisorError`` where a selection that was just made did not take."""
    if pending.state is not OneShotState.OURS:
        msg = f"{what} succeeded, but the next boot is not the trial's: {_told(pending)}"
        raise InitadvisorError(msg, hint="does the firmware keep variables?")


def require_deselected(pending: OneShot, kind: EntryKind, how_to_clear: str) -> None:
    """Raise ``InitadvisorError`` where our entry's selection stands although it was taken back."""
    if pending.selects is kind:
        msg = f"the next boot is still that of {_told(pending)}"
        raise InitadvisorError(msg, hint=f"take it back by hand: {how_to_clear}")


def require_unchanged(host: Host, plan: TrialPlan, default: BootEntry, *, written: bool) -> None:
    """Raise ``UnsafeError`` where what a plan rests on is not what it was."""
    if default != plan.default:
        msg = f"not arming {plan.title}: the default entry has changed since"
        raise UnsafeError(msg, hint="a kernel was installed or removed? begin the trial anew")
    if not written:
        msg = f"not arming {plan.title}: its entry is not in {plan.target} as it was written"
        raise UnsafeError(msg, hint="somebody changed or removed it: begin the trial anew")
    if not is_file(host, plan.request.image):
        msg = f"not arming {plan.title}: {plan.request.image} is gone"
        raise UnsafeError(msg)


def _told(pending: OneShot) -> str:
    return pending.identifier or pending.reason or "nothing is selected"
