"""The records of transactions: one small file each, replaced whole with every step.

Plain files rather than rows of the data base, so that what is half done can be found and read
whatever became of the measurements, by a later version, and by people.
"""

from __future__ import annotations

import dataclasses
import json
import os
from typing import TYPE_CHECKING, Any

from initadvisor.host.files import sync_directory, whole_file
from initadvisor.model.errors import InitadvisorError, NeedsRootError, UnsafeError
from initadvisor.model.proof import Proof, ProofStage
from initadvisor.model.text import shown
from initadvisor.model.transaction import (
    Content,
    FileChange,
    FileIdentity,
    FileRole,
    SettingChange,
    Transaction,
    TransactionState,
)

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host

_SCHEMA = 1


def log_directory(host: Host) -> Path:
    """Return where the records are to be written."""
    return host.state_dir() / "transactions"


def read_transactions(host: Host) -> tuple[Transaction, ...]:
    """Return all recorded transactions, the earliest first; a user sees root's.

    Raises ``UnsafeError`` for what a newer version has recorded, ``NeedsRootError`` where only root
    may look, and ``InitadvisorError`` for a record that cannot be read.
    """
    return _read_all(host.state_file("transactions") or log_directory(host))


def own_transactions(host: Host) -> tuple[Transaction, ...]:
    """Return what is recorded where this run records, too; see ``read_transactions``."""
    return _read_all(log_directory(host))


def _read_all(directory: Path) -> tuple[Transaction, ...]:
    try:
        # Path.glob would take a directory that may not be read for an empty one.
        names = [name for name in os.listdir(directory) if name.endswith(".json")]  # noqa: PTH208
        found = [_read(directory / name) for name in names]
    except FileNotFoundError:
        return ()
    except PermissionError as err:
        msg = f"cannot read {directory}: only root may"
        raise NeedsRootError(msg) from err
    except OSError as err:
        msg = f"cannot read {directory}: {err.strerror}"
        raise InitadvisorError(msg) from err
    return tuple(sorted(found, key=lambda transaction: transaction.number))


def write_transaction(host: Host, transaction: Transaction) -> None:
    """Record a transaction so that it survives a power cut; raises ``InitadvisorError``.

    After an error either the earlier record stands there or this one.
    """
    path = _path(host, transaction.number)
    record = {"schema": _SCHEMA, **dataclasses.asdict(transaction)}
    try:
        _make_durable(path.parent)
        with whole_file(path) as file:
            file.write(json.dumps(record, indent=2).encode() + b"\n")
    except OSError as err:
        msg = f"cannot record the transaction in {path}: {err.strerror}"
        raise InitadvisorError(msg) from err


def forget_transaction(host: Host, transaction: Transaction) -> None:
    """Remove the record of a transaction of which nothing else is left."""
    path = _path(host, transaction.number)
    try:
        path.unlink(missing_ok=True)
        sync_directory(path.parent)
    except OSError as err:
        msg = f"cannot remove {path}: {err.strerror}"
        raise InitadvisorError(msg) from err


def _path(host: Host, number: int) -> Path:
    return log_directory(host) / f"{number:06}.json"


def _make_durable(directory: Path) -> None:
    """Make the directory and what leads to it; none of them is to be lost in a power cut."""
    missing = [d for d in (directory, *directory.parents) if not d.is_dir()]
    for path in reversed(missing):
        path.mkdir(mode=0o755, exist_ok=True)
    for path in (directory.parent, directory.parent.parent):
        if os.access(path, os.R_OK):
            sync_directory(path)


def _read(path: Path) -> Transaction:
    try:
        record: dict[str, Any] = json.loads(path.read_bytes())
        schema = record.pop("schema")
        if isinstance(schema, int) and schema > _SCHEMA:
            msg = f"not touching the transaction in {path}: a newer version has recorded it"
            raise UnsafeError(msg, hint="use that version to finish or undo it")
        files = tuple(_file(values) for values in record.pop("files"))
        state, left = TransactionState(record.pop("state")), tuple(record.pop("left"))
        setting, proof = record.pop("setting", None), record.pop("proof", None)
        return Transaction(
            state=state,
            left=left,
            files=files,
            setting=setting and SettingChange(**setting),
            proof=proof and Proof(**{**proof, "stage": ProofStage(proof["stage"])}),
            **record,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as err:
        msg = f"cannot read the transaction in {path}: {shown(str(err))}"
        hint = "look at the file: it says which files were to be replaced and where they are kept"
        raise InitadvisorError(msg, hint=hint) from err


def _file(values: dict[str, Any]) -> FileChange:
    before, after = values.pop("before"), values.pop("after")
    return FileChange(
        role=FileRole(values.pop("role")),
        before=before and FileIdentity(content=Content(**before.pop("content")), **before),
        after=after and Content(**after),
        **values,
    )
