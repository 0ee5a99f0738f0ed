"""The files that transactions keep for going back."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError
from initadvisor.transaction import files
from initadvisor.transaction.transaction import TransactionState

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.transaction.transaction import Content, FileChange, Transaction


_SMALL_BYTES = 1 << 20
"""Configurations are compared every time, images only when asked for."""


def backups(
    host: Host, recorded: Sequence[Transaction], *, check: bool = False
) -> tuple[tuple[Backup, ...], tuple[str, ...]]:
    """Return the files that transactions keep, and what is wrong with those that they do not.

    Small files are compared with what is recorded of them; others by their size, unless ``check``.
    """
    doubts: list[str] = []
    return tuple(_backups(host, recorded, doubts, check=check)), tuple(doubts)


def _backups(
    host: Host, recorded: Sequence[Transaction], notes: list[str], *, check: bool
) -> Iterator[Backup]:
    held: dict[str, Content | None] = {}
    for index, transaction in enumerate(recorded):
        if transaction.state is TransactionState.UNDONE:
            continue
        after = [t for t in recorded[index + 1 :] if t.state is TransactionState.COMMITTED]
        later = [change for t in after for change in t.files]
        for change in transaction.files:
            if change.backup is None or change.before is None:
                continue
            path, kept = host.path(change.backup), change.before.content
            try:
                size_bytes = path.lstat().st_size
                compared = check or size_bytes <= _SMALL_BYTES
                found = Backup(
                    path=change.backup,
                    of=change.path,
                    transaction=transaction.number,
                    size_bytes=size_bytes,
                    current=_leads_back(host, change, later, held),
                    compared=compared,
                    problem=_damage(path, kept, compare=compared),
                )
            except FileNotFoundError:
                if (reason := _not_mounted(host, transaction)) is not None:
                    notes.append(reason)
                elif transaction.state is TransactionState.COMMITTED:
                    notes.append(
                        f"{change.backup}, kept by transaction {transaction.number}, is gone"
                    )
            except (InitadvisorError, OSError) as err:
                notes.append(f"{change.backup} cannot be looked at: {err}")
            else:
                yield found


def _leads_back(
    host: Host,
    change: FileChange,
    later: Sequence[FileChange],
    held: dict[str, Content | None],
) -> bool:
    """Tell whether undoing what came later, one by one, gives what this change made of the file.

    ``held``: what files hold, as far as it was read already: images are large.
    """
    if change.path not in held:
        held[change.path] = files.content(host.path(change.path))
    made = change.after
    for following in later:
        if following.path == change.path:
            if following.before is None or following.before.content != made:
                return False
            made = following.after
    return made is not None and held[change.path] == made


def _damage(path: Path, kept: Content, *, compare: bool) -> str:
    """Say in what a file is not what was kept, "" where it seems to be."""
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        return "it is no ordinary file any more"
    if status.st_size != kept.size_bytes:
        return f"it has {status.st_size} bytes, not {kept.size_bytes}"
    if compare and files.content(path) != kept:
        return "it has another content"
    return ""


def _not_mounted(host: Host, transaction: Transaction) -> str | None:
    try:
        files.require_mounted(host, transaction)
    except InitadvisorError as err:
        return err.message
    return None


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
