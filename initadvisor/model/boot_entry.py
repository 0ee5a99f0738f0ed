"""Entries of a boot loader: the one that boots by default, and a trial's beside it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BootFile:
    """A file that an entry loads: ``named`` as the loader is told, ``path`` on this machine."""

    named: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BootEntry:
    """An entry as it is now.

    ``identifier`` is what the loader calls it. ``initrds`` are in the order in which they are
    loaded. ``options`` are written as in the entry: of GRUB's they may hold its variables. For a
    unified kernel image (``is_uki``) ``kernel`` is that image, ``initrds`` is empty and ``options``
    is the command line it would start with. ``source``: the file or variable that holds the entry.
    """

    identifier: str
    title: str
    kernel: BootFile
    initrds: tuple[BootFile, ...]
    options: str
    source: str
    is_uki: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRequest:
    """What a trial entry is to boot.

    ``trial`` names the trial on the command line. ``image`` is loaded in place of ``replaces``,
    which the default entry loads now; both are paths of this machine, of images or of unified
    kernel images. ``words`` are added to the command line (``trial_words.words_of_trial``).
    """

    trial: str
    replaces: str
    image: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPlan:
    """A trial entry that may be written, beside the default entry it was made from.

    ``loader``: which one it is for. ``options``: its whole command line. ``own_words``: those of it
    that the default entry does not have, for ``boot_class.comparable_command_line``. ``target``:
    the file or variable that is written; ``text``: what is written there.
    """

    loader: str
    request: TrialRequest
    default: BootEntry
    identifier: str
    title: str
    options: str
    own_words: tuple[str, ...]
    target: str
    text: str
