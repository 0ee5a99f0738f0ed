"""A campaign: candidates boot one at a time, each once, until it is known which one suits.

What is recorded of one, what may happen to it, and what may have to be done. What each event makes
of it stands in ``campaign.step``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from initadvisor.records.trial_outcome import TrialOutcome
from initadvisor.transaction.transaction import ProofStage

if TYPE_CHECKING:
    from initadvisor.transaction.transaction import ArmedBoot


MOST_UNEXPLAINED = 2
"""After so many boots that left no sign a candidate counts as failed."""


CLASSICAL_BOOTS = 20
"""So often each setting is booted by who compares means."""


class CampaignState(StrEnum):
    """How far a campaign has come."""

    IDLE = "idle"
    """None was started yet."""
    PREPARING = "preparing"
    """Its candidates are to be built, looked at and verified."""
    CHOOSING = "choosing"
    """It is to be found out which boot would teach most."""
    ARMING = "arming"
    """A boot is about to be armed; it may be armed already."""
    ARMED = "armed"
    """The next boot is a trial's, or the rehearsal."""
    BOOTED = "booted"
    """This boot is a trial's, or the rehearsal, and is not judged yet."""
    PAUSED = "paused"
    DONE = "done"
    STOPPED = "stopped"

    @property
    def stands(self) -> bool:
        """Whether an entry, a selection or an image in the trial slot may be there."""
        return self in {CampaignState.ARMING, CampaignState.ARMED, CampaignState.BOOTED}

    @property
    def is_over(self) -> bool:
        """Whether nothing is left of it but its record."""
        return self in {CampaignState.IDLE, CampaignState.DONE, CampaignState.STOPPED}

    @property
    def is_active(self) -> bool:
        """Whether it goes on by itself."""
        return not self.is_over and self is not CampaignState.PAUSED


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialCandidate:
    """An image that may be booted: it was linted and, unless it is ``today``'s, verified.

    ``path`` is where it is kept, as the running system names it, or the installed image itself.
    ``sha256`` and ``size_bytes`` are those of the initramfs, also of one in a unified kernel image.
    ``verified``: by which kernel.
    """

    setting: str
    path: str
    sha256: str
    size_bytes: int
    today: bool = False
    verified: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """A setting that this campaign does not boot any more, and why; ``sha256`` of its image."""

    setting: str
    reason: str
    sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultBoot:
    """What trials of a machine rest on: the default entry, its kernel and its image.

    ``image`` is the path of this machine, ``image_sha256`` of the whole file, ``release`` its
    kernel's. ``entry`` is what the loader calls it, ``kernel_sha256`` of the file it boots and
    ``options`` its command line. ``is_uki``: the image is a unified kernel image.
    """

    image: str
    image_sha256: str
    release: str
    entry: str
    kernel_sha256: str
    options: str
    is_uki: bool = False

    def change(self, now: DefaultBoot) -> Change | None:
        """Return what has changed since, the most important first; None where nothing has."""
        if (self.release, self.kernel_sha256) != (now.release, now.kernel_sha256):
            return Change.KERNEL
        if (self.image, self.image_sha256) != (now.image, now.image_sha256):
            return Change.IMAGE
        if (self.entry, self.options) != (now.entry, now.options):
            return Change.COMMAND_LINE
        return None


class Change(StrEnum):
    """What others have changed while a campaign was on."""

    KERNEL = "kernel"
    """Another kernel boots by default: it was upgraded."""
    GONE = "gone"
    """There is no image or no entry any more that could be tried: the kernel was removed."""
    IMAGE = "image"
    """The image was rebuilt."""
    CANDIDATES = "candidates"
    """Candidates that were built are gone."""
    COMMAND_LINE = "command-line"
    """The default entry is another, or boots with another command line."""

    @property
    def words(self) -> str:
        """It, in words."""
        match self:
            case Change.KERNEL:
                return "another kernel boots by default"
            case Change.GONE:
                return "the kernel or its image was removed"
            case Change.IMAGE:
                return "the image was rebuilt"
            case Change.CANDIDATES:
                return "candidates that were built are gone"
            case Change.COMMAND_LINE:
                return "the default entry or its command line was changed"

    @property
    def needs_other_images(self) -> bool:
        """Whether the candidates are of no use any more."""
        return self is not Change.COMMAND_LINE


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialBoot:
    """A boot that was armed, at ``at_s`` (seconds since 1970), and what became of it.

    ``setting``: the candidate's; that of today's image in a rehearsal. ``sha256``: its image's,
    ``release`` its kernel's. ``known_panics``: the digests of those that kernels had left before.
    ``outcome`` is None until it is judged; ``reason`` says why it was. ``rebooted``: there was a
    boot since it was armed.
    """

    setting: str
    sha256: str
    armed_boot: ArmedBoot
    at_s: int
    release: str = ""
    known_panics: tuple[str, ...] = ()
    outcome: TrialOutcome | None = None
    reason: str = ""
    rebooted: bool = False

    @property
    def is_rehearsal(self) -> bool:
        """Whether it tries the loader, not a candidate."""
        return self.armed_boot.stage is ProofStage.REHEARSAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """The record of a campaign; ``number`` counts from 1, 0 is none.

    ``only``: the settings that the user named, none for those that may be the best. At most
    ``most_boots`` boots are armed; with ``only_rehearsal`` of today's image, to try the loader.
    ``reboots``: the machine reboots by itself, after a countdown, until it is paused.
    ``ignore_unlocking`` as in ``ArmedBoot``. ``by_policy``: the daemon's policy has begun it.
    ``boots``: those that were armed and are over. ``reason``: why it is where it is, in words.
    """

    number: int = 0
    state: CampaignState = CampaignState.IDLE
    began_at_s: int = 0
    only: tuple[str, ...] = ()
    most_boots: int = 0
    only_rehearsal: bool = False
    reboots: bool = False
    ignore_unlocking: bool = False
    by_policy: bool = False
    default_boot: DefaultBoot | None = None
    ready: tuple[TrialCandidate, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()
    trial_boots: tuple[TrialBoot, ...] = ()
    boots: int = 0
    reason: str = ""

    @property
    def current(self) -> TrialBoot | None:
        """The boot that is armed or runs, None where none is."""
        return self.trial_boots[-1] if self.state.stands and self.trial_boots else None

    @property
    def eligible(self) -> tuple[TrialCandidate, ...]:
        """The candidates that may be booted."""
        out = {found.setting for found in self.quarantined}
        return tuple(found for found in self.ready if found.today or found.setting not in out)

    @property
    def classical_boots(self) -> int:
        """How many boots it takes to boot each setting ``CLASSICAL_BOOTS`` times, today's too.

        0 where none is to be compared.
        """
        if self.only_rehearsal:
            return 0
        settings = {found.setting for found in self.ready}
        return CLASSICAL_BOOTS * len(settings | {found.setting for found in self.quarantined})

    def booted(self, setting: str) -> int:
        """Return how many boots of a setting have passed."""
        return sum(
            trial_boot.setting == setting
            and trial_boot.outcome is TrialOutcome.PASSED
            and not trial_boot.is_rehearsal
            for trial_boot in self.trial_boots
        )


class CampaignEventKind(StrEnum):
    """What may happen to a campaign."""

    START = "start"
    FOUND = "found"
    """A run finds it, at a boot or at any other time."""
    PREPARED = "prepared"
    """The candidates in ``ready`` may be booted."""
    REFUSED = "refused"
    """A candidate must not be booted: lint, a kernel or the disk is against it, or it has no room.
    """
    BLOCKED = "blocked"
    """It cannot go on now, for a reason that may go away."""
    CHOSEN = "chosen"
    """``trial_boot`` is next."""
    SETTLED = "settled"
    """Nothing more is to be found out by booting."""
    PLANNED = "planned"
    """The entry of what is being armed is planned; ``trial_boot`` has what it adds."""
    ARMED = "armed"
    PENDING = "pending"
    """The armed boot is still to come."""
    RUNNING = "running"
    """It runs, and cannot be judged yet."""
    ENDED = "ended"
    """It is over: ``outcome``; ``rebooted`` tells whether there was a boot since it was armed."""
    CHANGED = "changed"
    """Others have changed what it rests on: ``change``, to ``default_boot``."""
    TAKE_BACK = "take-back"
    """The machine is about to sleep, or packages are about to be changed."""
    ARM_AGAIN = "arm-again"
    """That is over; ``trial_boot`` is the same once more, under another name."""
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignEvent:
    """An event with what belongs to it; ``reason`` in words.

    ``campaign`` is the one that is started.
    """

    kind: CampaignEventKind
    reason: str = ""
    campaign: Campaign | None = None
    ready: tuple[TrialCandidate, ...] = ()
    refused: Quarantined | None = None
    trial_boot: TrialBoot | None = None
    outcome: TrialOutcome | None = None
    rebooted: bool = True
    change: Change | None = None
    default_boot: DefaultBoot | None = None


class CampaignAction(StrEnum):
    """What is to be done; none of them does harm when it is done again."""

    PREPARE = "prepare"
    """Build what is needed, lint it and have a kernel unpack each: PREPARED, REFUSED."""
    CHOOSE = "choose"
    """Find out what is next: CHOSEN, SETTLED."""
    JUDGE = "judge"
    """See what became of the armed boot: PENDING, RUNNING, ENDED, ARM_AGAIN."""
    COPY = "copy"
    """Have the image in the trial slot, read back from the disk; PLANNED."""
    WRITE_ENTRY = "write-entry"
    ARM = "arm"
    """Select the entry for one boot: ARMED."""
    DISARM = "disarm"
    REMOVE_ENTRY = "remove-entry"
    CLEAR_SLOT = "clear-slot"
    NOTE_REHEARSED = "note-rehearsed"
    FORGET_REHEARSED = "forget-rehearsed"
    REBOOT = "reboot"
    """After a countdown that can be cancelled."""
    REPORT = "report"
    """Say ``Campaign.reason``."""

    @property
    def takes_long(self) -> bool:
        """Whether it is done without keeping other runs out: it changes nothing that boots."""
        return self in {CampaignAction.PREPARE, CampaignAction.CHOOSE, CampaignAction.REBOOT}
