"""How what goes wrong in a transaction is told."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.host.replace import hint_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from initadvisor.transaction.transaction import FileChange


@contextlib.contextmanager
def explained(action: str) -> Iterator[None]:
    """Have an ``OSError`` say what was attempted and on what, as an ``InitadvisorError``."""
    try:
        yield
    except OSError as err:
        name = err.filename2 or err.filename  # of a rename, the file that is replaced
        where = f" ({name})" if name else ""
        msg = f"cannot {action}{where}: {err.strerror or err}"
        raise InitadvisorError(msg, hint=hint_for(err)) from err


def changed_meanwhile(change: FileChange) -> UnsafeError:
    """Return what to raise where a file is neither what it was nor what it was to be."""
    msg = f"not replacing {change.path}: it was changed meanwhile, not by this program"
    return UnsafeError(msg, hint="begin again, from what is there now")


def raise_all(errors: Sequence[InitadvisorError]) -> None:
    """Raise what has gone wrong, several things as one; nothing where there are none."""
    if len(errors) > 1:
        hints = dict.fromkeys(err.hint for err in errors if err.hint)
        raise InitadvisorError(
            "; ".join(str(err) for err in errors), hint="; ".join(hints) or None
        ) from errors[0]
    for err in errors:
        raise err
