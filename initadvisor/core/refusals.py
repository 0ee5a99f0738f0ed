"""Why a machine must not be armed for a trial boot, and what to do about each reason."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from initadvisor.core.errors import UnsafeError


class RefusalKind(StrEnum):
    """What stands in the way."""

    UNSUPPORTED_LOADER = "unsupported-loader"
    UNKNOWN_LOADER = "unknown-loader"
    MISSING_PROGRAM = "missing-program"
    READ_ONLY = "read-only"
    OTHER_PARTITION = "other-partition"
    NO_DEFAULT = "no-default"
    UNCLEAR_DEFAULT = "unclear-default"
    TRIAL_MAY_BECOME_DEFAULT = "trial-may-become-default"
    NO_ONE_SHOT = "no-one-shot"
    PENDING_ONE_SHOT = "pending-one-shot"
    FOREIGN_ENTRY = "foreign-entry"
    UNREADABLE = "unreadable"
    UNKNOWN_OWNER = "unknown-owner"
    SIGNED_CONFIGURATION = "signed-configuration"
    SIGNED_UKI = "signed-uki"
    BOUND_TO_TPM = "bound-to-tpm"
    UNKNOWN_UNLOCKING = "unknown-unlocking"

    @property
    def may_be_overridden(self) -> bool:
        """Whether it is for the user to decide: it may cost a passphrase, but not the machine."""
        return self in {RefusalKind.BOUND_TO_TPM, RefusalKind.UNKNOWN_UNLOCKING}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One reason, in words, and in ``remedy`` what the user can do about it."""

    kind: RefusalKind
    reason: str
    remedy: str


class RefusedError(UnsafeError):
    """A boot loader cannot be used for trials as it is; ``refusal`` says why."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reason, hint=refusal.remedy)
        self.refusal = refusal


def refused(kind: RefusalKind, reason: str, remedy: str) -> RefusedError:
    """Return the error to raise for a reason."""
    return RefusedError(Refusal(kind=kind, reason=reason, remedy=remedy))
