"""Unpacking a piece ahead of whoever looks at them: the libraries let other threads run."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator

Piece = TypeVar("Piece")
Result = TypeVar("Result")


class _End(Exception):
    """Carries what the generator returned."""


def ahead(stream: Generator[Piece, None, Result]) -> Generator[Piece, None, Result]:
    """Yield what ``stream`` yields and return what it returns, while it works on the next piece.

    A piece must stay valid while the next one is made. Errors of the stream are raised here.
    """
    pieces: SimpleQueue[Piece | BaseException] = SimpleQueue()
    wanted = threading.Semaphore()
    stopped = threading.Event()

    def work() -> None:
        try:
            while not stopped.is_set():
                wanted.acquire()
                pieces.put(next(stream))
        except StopIteration as end:
            pieces.put(_End(end.value))
        except BaseException as err:  # noqa: BLE001 - raised again by who takes the pieces
            pieces.put(err)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while True:
            piece = pieces.get()
            if isinstance(piece, _End):
                result: Result = piece.args[0]
                return result
            if isinstance(piece, BaseException):
                raise piece
            wanted.release()
            yield piece
    finally:
        stopped.set()
        wanted.release()
        thread.join()
