"""Work that is spread over processes, none of which outlives the one that asked for it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, TypeVar

from initadvisor.model.errors import InitadvisorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def spread(
    work: Callable[[_Job], _Result], jobs: Sequence[_Job], *, processes: int
) -> Iterator[_Result]:
    """Yield what ``work`` returns for each job, in the order in which they are done.

    ``work`` and jobs are pickled. Processes compute with one thread each, so that sums are the same
    on every number of processors. Raises what ``work`` raises, and ``InitadvisorError`` where a
    process is killed.
    """
    # Not forked: a process with threads, as numpy has, is not safe to fork.
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(
        min(processes, max(1, len(jobs))), mp_context=context, initializer=_begin
    )
    try:
        # An interrupt is to find processes that know what to do then.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            futures = [executor.submit(work, job) for job in jobs]
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        for future in as_completed(futures):
            yield future.result()
    except BrokenProcessPool as err:
        msg = "cannot go on computing: one of the processes was killed"
        raise InitadvisorError(msg, hint="is there enough memory? fewer --jobs need less") from err
    finally:
        executor.shutdown(cancel_futures=True)


def _begin() -> None:
    """Prepare a process: it ends at once, without a word, where it is interrupted or left alone."""
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
