"""Entries of a boot loader: the one that boots by default, ours beside it, and what they load.

And the selection of one for one boot: what is pending, and what became of an armed one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from initadvisor.core.errors import BadImageError, UnsafeError
from initadvisor.core.refusals import RefusalKind, refused
from initadvisor.host.files import open_regular
from initadvisor.image.pe import read_uki

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.host import Host
    from initadvisor.image.pe import Uki


class EntryKind(StrEnum):
    """What an entry of ours is for; there is one of each at most, and neither is the default."""

    TRIAL = "trial"
    """It boots a new image once."""
    PREVIOUS = "previous"
    """It boots the image that was replaced, whenever somebody chooses it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootFile:
    """A file that an entry loads: ``named`` as the loader is told, ``path`` on this machine."""

    named: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BootEntry:
    """An entry as it is now.

    ``identifier`` is what the loader calls it. ``initrds`` are in the order in which they are
    loaded. ``options`` are written as in the entry: of GRUB's they may hold its variables, and
    ``variables`` has all that sets these, as ``name=value``. For a
    unified kernel image (``is_uki``) ``kernel`` is that image, ``initrds`` is empty and ``options``
    is the command line it would start with. ``source``: the file or variable that holds the entry.
    ``damaged``: entries beside it that the loader does not read as they are meant, in words.
    """

    identifier: str
    title: str
    kernel: BootFile
    initrds: tuple[BootFile, ...]
    options: str
    source: str
    is_uki: bool = False
    variables: tuple[str, ...] = ()
    damaged: tuple[str, ...] = field(default=(), compare=False)

    @property
    def command_line(self) -> str:
        """The options, and what sets the variables in them: the same text is the same line."""
        return " ".join((self.options, *self.variables))

    @property
    def images(self) -> tuple[str, ...]:
        """The paths of the images that are loaded: of a unified kernel image its own."""
        return tuple(file.path for file in ((self.kernel,) if self.is_uki else self.initrds))

    @property
    def words(self) -> str:
        """Which entry it is, and what it loads."""
        return f"{self.title} ({', '.join(self.images) or 'no image'})"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRequest:
    """What an entry of ours is to boot.

    ``image`` is loaded in place of ``replaces``, which the default entry loads now; both are paths
    of this machine, of images or of unified kernel images. ``trial`` names the trial on the command
    line, and ``parameters`` are added to that (``extra_cmdline``); the previous image has neither.
    ``label``, if not empty, says in its title what it is: the setting it was made with.
    """

    replaces: str
    image: str
    kind: EntryKind = EntryKind.TRIAL
    trial: str = ""
    parameters: tuple[str, ...] = ()
    label: str = ""

    def __post_init__(self) -> None:
        is_trial = self.kind is EntryKind.TRIAL
        if is_trial is not bool(self.trial) or is_trial is not bool(self.parameters):
            msg = f"an entry of kind {self.kind} with trial {self.trial!r}, words {self.parameters}"
            raise ValueError(msg)
        if not (self.label.isascii() and self.label.isprintable()):
            msg = f"{self.label!r} is nothing that every loader shows"
            raise ValueError(msg)

    @property
    def title(self) -> str:
        """What the entry says of itself."""
        match self.kind:
            case EntryKind.TRIAL:
                return f"initadvisor trial {self.trial}"
            case EntryKind.PREVIOUS:
                label = f" ({self.label})" if self.label else ""
                return f"initadvisor: previous image{label}"

    def title_beside(self, default: str) -> str:
        """Return the entry's title in a menu where the default entry has that one."""
        match self.kind:
            case EntryKind.TRIAL:
                return f"{default} ({self.title})"
            case EntryKind.PREVIOUS:
                return f"{default} - {self.title}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedEntry:
    """An entry that this program has written, on this system or on another one.

    ``owner`` as in ``host.owner``. ``identifier``: what the loader calls it. ``image``: what it
    boots, as a path of the system that wrote it, None where it does not say.
    """

    owner: str
    kind: EntryKind
    identifier: str
    image: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPlan:
    """An entry of ours that may be written, beside the default entry it was made from.

    ``loader``: which one it is for. ``options``: its whole command line, as far as it is known: of
    a previous unified kernel image it may be the image's own. ``extra_cmdline``: those of it
    that the default entry does not have, for ``boot_class.comparable_command_line``. ``target``:
    the file or variable that is written; ``text``: what is written there. ``needs_addon``: what
    loads the image takes no words from the entry, but from a signed addon beside the image.
    """

    loader: str
    request: TrialRequest
    default: BootEntry
    identifier: str
    title: str
    options: str
    extra_cmdline: tuple[str, ...]
    target: str
    text: str
    needs_addon: bool = False


def command_line_of(host: Host, path: str) -> str:
    """Return the command line that a unified kernel image brings with it.

    Raises ``RefusedError`` where the file is none, or says it in a way that cannot be copied.
    """
    uki = default_uki(host, path)
    if uki.kernel is None or not uki.command_line:
        reason = f"{path}, which is booted by default, does not say its kernel and command line"
        raise refused(RefusalKind.UNCLEAR_DEFAULT, reason, _NO_UKI)
    return uki.command_line


def default_uki(host: Host, path: str) -> Uki:
    """Return the parts of the unified kernel image that is booted by default.

    Raises ``RefusedError`` where the file is none.
    """
    with open_regular(host.path(path)) as file:
        try:
            return read_uki(file, os.fstat(file.fileno()).st_size)
        except BadImageError as err:
            reason = f"{path}, which is booted by default, is no unified kernel image: {err.reason}"
            raise refused(RefusalKind.UNCLEAR_DEFAULT, reason, _NO_UKI) from err


_NO_UKI = "have a kernel be the default"


def replaced(files: Sequence[BootFile], request: TrialRequest, image: str) -> tuple[str, ...]:
    """Return the files as the loader is told them, with ``image`` in place of the one.

    Raises ``UnsafeError`` where the default entry does not load that exactly once.
    """
    if [file.path for file in files].count(request.replaces) != 1:
        raise not_loaded(request.replaces, tuple(file.path for file in files))
    return tuple(image if file.path == request.replaces else file.named for file in files)


def not_loaded(image: str, loaded: Sequence[str]) -> UnsafeError:
    """Return what to raise where the default entry does not load an image, but these files."""
    msg = f"not trying an image: the default entry does not load {image}"
    return UnsafeError(msg, hint=f"it loads {', '.join(loaded) or 'none'}")


class OneShotState(StrEnum):
    """What the next boot is to use."""

    NONE = "none"
    OURS = "ours"
    """A trial's entry: nothing but this program selects that."""
    OTHERS = "others"
    """Somebody else's choice, which may be our entry of the previous image."""
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class OneShot:
    """A pending selection: whose it is and, if there is one, of which entry.

    ``selects``: which of our entries it is. ``reason``: why it cannot be told, where ``state`` is
    ``UNREADABLE``.
    """

    state: OneShotState
    identifier: str | None = None
    selects: EntryKind | None = None
    reason: str | None = None


class OneShotOutcome(StrEnum):
    """What became of a selection that was armed."""

    PENDING = "pending"
    """No boot since: it is still to come."""
    WITHDRAWN = "withdrawn"
    """No boot since, but it is gone: somebody took it back."""
    CONSUMED = "consumed"
    """There was a boot, and it used the selection up."""
    STUCK = "stuck"
    """There was a boot, and it left the selection in place: the loader would use it for ever."""
    REPLACED = "replaced"
    """Somebody else's selection stands there now."""
    UNKNOWN = "unknown"
    """It cannot be read."""


def one_shot_outcome(now: OneShot, *, armed_in_boot: str, boot: str) -> OneShotOutcome:
    """Return what became of a selection made in the boot ``armed_in_boot``.

    Both boots are boot IDs (``/proc/sys/kernel/random/boot_id``). Whether the boot that consumed it
    really was the trial's, its command line says.
    """
    rebooted = armed_in_boot != boot
    match now.state:
        case OneShotState.OURS:
            return OneShotOutcome.STUCK if rebooted else OneShotOutcome.PENDING
        case OneShotState.NONE:
            return OneShotOutcome.CONSUMED if rebooted else OneShotOutcome.WITHDRAWN
        case OneShotState.OTHERS:
            return OneShotOutcome.REPLACED
        case OneShotState.UNREADABLE:
            return OneShotOutcome.UNKNOWN
