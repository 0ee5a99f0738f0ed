"""The record of a transaction: its files, its states, and what each event makes of its state.

What is recorded is on the disk before it is acted on. So whoever finds a record after a power cut
knows what may have been done, and ``TransactionState.duty`` says what is left to do. It may wait
for an armed boot; what became of one, ``trial.one_boot`` judges.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from initadvisor.records.trial_outcome import TrialOutcome


class ProofStage(StrEnum):
    """Which boot is waited for."""

    REHEARSAL = "rehearsal"
    """One with today's image, to see that the loader boots an entry once and forgets it."""
    PROOF = "proof"
    """One with the new image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundFile:
    """A file, as the machine names it, and the SHA-256 of all of it."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BootBinding:
    """Kernel, initramfs and command line that an armed boot was made for.

    ``entry``: what the loader calls the default entry, ``options`` its command line. ``files``:
    what that entry loads, the kernel first, and then the image that the armed boot loads.
    ``armed_entry``: what the armed entry says (``TrialPlan.text``), empty where an earlier version
    has not recorded that.
    """

    entry: str
    options: str
    files: tuple[BoundFile, ...]
    armed_entry: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmedBoot:
    """What was armed: a transaction's proving boot, a campaign's trial, or a rehearsal.

    A rehearsal boots today's image, to test the loader. ``loader`` is ``BootLoader.NAME``.
    ``trial``: the name on that boot's command line (``extra_cmdline``); every arming has another.
    ``armed_in_boot``: the boot (its ID) in which it was armed. ``image``: the image that is waited
    for, as the machine names it, and ``sha256`` and ``size_bytes`` of what the loader is to load of
    it: of a unified kernel image (``is_uki``) its .initrd section. ``entry``: what the loader calls
    the entry, and ``extra_cmdline`` what that adds to the command line. ``ignore_unlocking``: the
    user arms although disks are unlocked by what a boot is made of. ``bound_to``: what it was made
    for, None before its entry is planned. ``taken_back``: its selection was, before the machine
    went to sleep or packages were changed; it is to be armed again unless what it is bound to has
    changed.
    """

    stage: ProofStage
    loader: str
    trial: str
    armed_in_boot: str
    image: str
    sha256: str
    size_bytes: int = 0
    is_uki: bool = False
    entry: str = ""
    extra_cmdline: tuple[str, ...] = ()
    ignore_unlocking: bool = False
    bound_to: BootBinding | None = None
    taken_back: bool = False


class Duty(StrEnum):
    """What a run has to do about a transaction that it finds."""

    NOTHING = "nothing"
    WAIT = "wait"
    """For a boot: it is neither finished nor undone before that."""
    REPLACE = "replace"
    RESTORE = "restore"


class TransactionState(StrEnum):
    """How far a transaction has come."""

    PLANNED = "planned"
    STAGED = "staged"
    VERIFIED = "verified"
    PROVING = "proving"
    """Its images are to boot once, from an entry of their own, before anything is replaced."""
    COMMITTING = "committing"
    """Files are being replaced: some may hold the new content, others the old one."""
    COMMITTED = "committed"
    ROLLING_BACK = "rolling-back"
    UNDONE = "undone"
    """The files are as they were before, but for those that others have changed meanwhile."""
    FAILED = "failed"
    """Some files are new and whole, but the content they had before is lost."""

    @property
    def duty(self) -> Duty:
        """What is left to do where the run that came so far is gone."""
        match self:
            case TransactionState.PLANNED | TransactionState.STAGED | TransactionState.VERIFIED:
                return Duty.RESTORE
            case TransactionState.PROVING:
                return Duty.WAIT
            case TransactionState.COMMITTING:
                return Duty.REPLACE
            case TransactionState.ROLLING_BACK:
                return Duty.RESTORE
            case TransactionState.COMMITTED | TransactionState.UNDONE | TransactionState.FAILED:
                return Duty.NOTHING


class TransactionEvent(StrEnum):
    """What happens to a transaction."""

    STAGE = "stage"
    """All new contents are on the disk, under names of their own."""
    VERIFY = "verify"
    """They were read back and found good."""
    PROVE = "prove"
    """A boot is to show first that the images are good."""
    COMMIT = "commit"
    """The files are going to be replaced."""
    FINISH = "finish"
    """All files were replaced."""
    UNDO = "undo"
    """The files are going to be as they were before."""
    RESTORE = "restore"
    """They are."""
    LOSE = "lose"
    """Some of them cannot be: the content that was kept is gone or damaged."""
    INTERRUPT = "interrupt"
    """Another run finds it: the one that had begun it was killed, or the power was cut."""


_State, _Event = TransactionState, TransactionEvent

_STEPS = {
    (_State.PLANNED, _Event.STAGE): _State.STAGED,
    (_State.STAGED, _Event.VERIFY): _State.VERIFIED,
    (_State.VERIFIED, _Event.PROVE): _State.PROVING,
    (_State.PROVING, _Event.PROVE): _State.PROVING,
    (_State.VERIFIED, _Event.COMMIT): _State.COMMITTING,
    (_State.PROVING, _Event.COMMIT): _State.COMMITTING,
    (_State.COMMITTING, _Event.FINISH): _State.COMMITTED,
    (_State.ROLLING_BACK, _Event.RESTORE): _State.UNDONE,
    (_State.ROLLING_BACK, _Event.LOSE): _State.FAILED,
}


def next_state(state: TransactionState, event: TransactionEvent) -> TransactionState | None:
    """Return what an event makes of a state, None where it cannot happen there."""
    match event:
        case TransactionEvent.UNDO:
            return None if state is _State.UNDONE else _State.ROLLING_BACK
        case TransactionEvent.INTERRUPT:
            return _State.ROLLING_BACK if state.duty is Duty.RESTORE else state
        case _:
            return _STEPS.get((state, event))


class FileRole(StrEnum):
    """What a file is for; in the order in which files are replaced.

    Images come before what names them, and are restored after it.
    """

    IMAGE = "image"
    CONFIGURATION = "configuration"
    LOADER_ENTRY = "loader-entry"


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a file holds."""

    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIdentity:
    """A file as it was found: what it held, and by what a replacement by the same would be seen.

    ``inode`` and ``mtime_ns`` are None on file systems that make them up (vfat).
    """

    content: Content
    inode: int | None
    mtime_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """What becomes of one file; all paths are the machine's, in one directory.

    ``staged`` is where its new content waits and ``backup``, None if it is not kept, where its old
    one stays. ``before`` is None where there was no such file; it gets ``mode`` then. ``after`` is
    None until it is known. ``mount_point`` is where the file system is mounted that all of them
    are on, "" where it is the root's.
    """

    path: str
    role: FileRole
    staged: str
    backup: str | None
    before: FileIdentity | None
    after: Content | None = None
    mode: int = 0o644
    mount_point: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingChange:
    """What a transaction is about: the setting of ``generator`` for a kernel, before and after.

    Settings are written as in ``Setting.parse``. ``variant``: the name of what takes content out of
    the image (``VariantName``), which leaves the setting as it is; empty where nothing does.
    ``with_updates``: the new images also have what was updated since the former ones were built.
    """

    generator: str
    kernel_release: str
    before: str
    after: str
    variant: str = ""
    with_updates: bool = False

    @property
    def former(self) -> str:
        """What the previous image is, in words."""
        return f"{self.before}, all content" if self.variant else self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """The record of a transaction; ``number`` counts from 1 and tells which came later.

    ``purpose`` says what for and ``reason`` why it was undone, in words; ``began_at_s`` is seconds
    since 1970. ``left``: the files that undoing it left as they were, because others had changed
    them. ``setting``: what it is about, where that is a setting. ``armed_boot``: the boot that it
    waits for, or that it waited for last. ``outcome``: what became of that, where it was undone
    because of that; NOT_TRIED where nothing of it has booted. ``by_policy``: the daemon's policy
    has begun it, no person.
    """

    number: int
    state: TransactionState
    purpose: str
    began_at_s: int
    files: tuple[FileChange, ...]
    reason: str = ""
    left: tuple[str, ...] = ()
    setting: SettingChange | None = None
    armed_boot: ArmedBoot | None = None
    outcome: TrialOutcome | None = None
    by_policy: bool = False

    def after(self, event: TransactionEvent) -> Transaction:
        """Return the transaction after an event; raises ``ValueError`` where it cannot happen."""
        state = next_state(self.state, event)
        if state is None:
            msg = f"{event} cannot happen to a transaction that is {self.state}"
            raise ValueError(msg)
        return replace(self, state=state)


def droppable(recorded: Iterable[Transaction], keep: int) -> tuple[Transaction, ...]:
    """Return those that are over and came before the ``keep`` latest that can be undone.

    ``recorded`` are the earliest first. What kept nothing (images that were rebuilt to undo
    another) does not count among the latest.
    """
    over = [t for t in recorded if t.state.duty is Duty.NOTHING]
    undoable = [
        t.number
        for t in over
        if t.state is TransactionState.COMMITTED and any(change.backup for change in t.files)
    ]
    kept = undoable[-keep:] if keep else []
    return tuple(t for t in over if not kept or t.number < kept[0])
