"""What the advisor has done to a machine and what is still to come of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.model.campaign import Campaign
    from initadvisor.model.certainty import Certainty
    from initadvisor.model.generator import ConfiguredSetting
    from initadvisor.model.one_shot import OneShot
    from initadvisor.model.setting import Setting
    from initadvisor.model.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningBoot:
    """What the running boot used.

    ``image`` and ``setting`` are None where they are not known. ``certainty`` is None, and
    ``words`` says why, where this boot was not measured.
    """

    words: str
    certainty: Certainty | None = None
    image: str | None = None
    setting: Setting | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A kept file: the content that ``of`` had before transaction ``transaction``.

    ``current``: nobody else has changed ``of`` since, so that going back, over later transactions
    first, restores this very file. Otherwise it would be made anew. ``compared``: its content was,
    and not only its size; ``problem``: in what it is not what was kept, empty where nothing was
    found.
    """

    path: str
    of: str
    transaction: int
    size_bytes: int
    current: bool
    compared: bool
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """What the boot loader has of ours: the images that our entries boot, None without one.

    ``next_boot``: what is selected for the next boot only. ``problem``: why it cannot be told.
    """

    loader: str | None = None
    trial: str | None = None
    previous: str | None = None
    next_boot: OneShot | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """All of it; ``transactions`` are the earliest first, ``pending`` those that are not over.

    ``configured`` is None where there is no generator, or where it cannot be read; ``notes`` say
    why, and what else is worth knowing. ``campaign``: the latest one, None where there is none.
    """

    generator: str | None
    image: Path | None
    configured: ConfiguredSetting | None
    running: RunningBoot
    transactions: tuple[Transaction, ...]
    pending: tuple[Transaction, ...]
    backups: tuple[Backup, ...]
    entries: Entries
    notes: tuple[str, ...] = ()
    campaign: Campaign | None = None
