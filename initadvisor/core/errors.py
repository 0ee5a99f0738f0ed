"""Errors that reach the user as one line: what was attempted, on what, why it failed, what to do.

No code below ``cli`` exits the process; it raises one of these and ``cli`` turns it into output and
the exit code that initadvisor(1) documents.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from traceback import walk_tb
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from initadvisor.core.text import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_Fact = TypeVar("_Fact")
_LINE_LIMIT = 120


class InitadvisorError(Exception):
    """A failure the user is told about in one line; ``hint`` says what to do about it."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def with_hint(self) -> str:
        """The line that the user gets: the message, and in brackets what to do about it."""
        return f"{self.message} ({self.hint})" if self.hint else self.message


def require(condition: object, message: str, error: type[Exception] = ValueError) -> None:
    """Raise ``error`` with ``message`` where what is read is not as it has to be."""
    if not condition:
        raise error(message)


class UsageError(InitadvisorError):
    """The command was given something that cannot be meant."""

    exit_code = 2


class UnsafeError(InitadvisorError):
    """Refused, because going on could harm the machine or mislead the user."""

    exit_code = 3


class NeedsRootError(InitadvisorError):
    """The data is there, but only root may read or write it."""

    exit_code = 4


LOADING_FAILURES: Final = (
    *(ImportError, OSError, RuntimeError, SystemError),
    *(SyntaxError, ValueError),
)
"""What modules raise that cannot be loaded: where the processor is too old numpy's RuntimeError.

The last two the interpreter raises where a module's file is damaged (full of NUL bytes).
"""


class LibraryError(InitadvisorError):
    """A Python module is missing or cannot be loaded; ``what`` cannot be done without it.

    ``module`` is what is imported, ``missing`` tells that there is none. Modules put advice of
    their own around what they met: the first cause is told. One that loads a library with ctypes
    raises ``OSError``.
    """

    def __init__(self, err: Exception, what: str | None = None) -> None:
        chain: list[BaseException] = [err]
        while inner := chain[-1].__cause__ or chain[-1].__context__:
            chain.append(inner)
        self.missing = isinstance(err, ModuleNotFoundError)
        names = [one.name for one in chain if isinstance(one, ImportError) and one.name]
        if not self.missing:  # a C module of a package may be called by its last name only
            names = [*_raised_in(err), *names]
        self.module = (*names, "?")[0].partition(".")[0]
        cause = next(iter(str(chain[-1]).strip().splitlines()), type(chain[-1]).__name__)
        state = "is not installed" if self.missing else f"cannot be loaded: {cause}"
        doing = f"cannot {what}: " if what else ""
        super().__init__(f"{doing}the Python module {self.module} {state}")


def library_error(err: Exception, what: str | None = None) -> LibraryError | None:
    """Return what kept a Python module from being loaded, None where that was not the failure."""
    if isinstance(err, ImportError) or any(_raised_in(err)):
        return LibraryError(err, what)
    return None


@contextmanager
def libraries_told(what: str) -> Iterator[None]:
    """Raise ``LibraryError`` where a Python module cannot be loaded inside the block."""
    try:
        yield
    except LOADING_FAILURES as err:
        if lack := library_error(err, what):
            raise lack from err
        raise


def _raised_in(err: Exception) -> Iterator[str]:
    """Yield the modules whose code was run to import one of them, the innermost first.

    All but ``ImportError`` come from what a module calls, and not only while it is imported. Of a
    file that is no Python there is nothing but the place where it is imported.
    """
    if isinstance(err, SyntaxError | ValueError) and (name := _imported_last(err)):
        yield name
    frames = [
        str(frame.f_globals["__name__"])
        for frame, _ in walk_tb(err.__traceback__)
        if isinstance(err, ImportError) or frame.f_code.co_name == "<module>"
    ]
    for name in reversed(frames):
        top = name.partition(".")[0].removeprefix("_frozen_")
        if top in {"initadvisor", "__main__"}:
            return
        if not top.startswith("importlib"):
            yield name


def _imported_last(err: Exception) -> str | None:
    """Return the module whose import an exception comes from; None if that is not where."""
    import dis

    step, last = err.__traceback__, None
    while step:
        if not step.tb_frame.f_code.co_filename.startswith("<frozen importlib"):
            last = step
        step = step.tb_next
    if last is None:
        return None
    code = last.tb_frame.f_code
    if code is import_module.__code__:
        return str(last.tb_frame.f_locals["name"])
    names = (
        str(each.argval)
        for each in dis.get_instructions(code)
        if each.offset == last.tb_lasti and each.opname == "IMPORT_NAME"
    )
    return next(names, None)


class BadImageError(InitadvisorError):
    """Bytes that are no initramfs, or a damaged one.

    ``offset`` counts from the start of the file where the reader knows it (for damage inside a
    compressed segment: where that segment starts or where its decoder stopped).
    """

    def __init__(self, reason: str, *, offset: int) -> None:
        super().__init__(f"{reason} at offset {offset}")
        self.reason = reason
        self.offset = offset


class ProgramError(InitadvisorError):
    """A program that was run failed, was not found, took longer or said more than it may.

    ``why`` is the message without the program's words, where it was killed; else the same.
    """

    def __init__(self, message: str, *, hint: str | None = None, why: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.why = why or message


class LostVMError(InitadvisorError):
    """A virtual machine hung, was killed or did not say what happened: not a sample, no verdict."""


class UnfitImageError(UnsafeError):
    """An image that was built, or is installed, is not what it has to be: trying again ends so."""


class RefusedRewriteError(UnsafeError):
    """A configuration that cannot be rewritten safely: the user has to change a line by hand.

    ``path`` is None for a text without a file; ``line_number`` (from 1) and ``line`` (as it is in
    the file) are None where it is not about one line. The message has all of them.
    """

    def __init__(
        self,
        reason: str,
        *,
        path: str | None = None,
        line_number: int | None = None,
        line: str | None = None,
        hint: str | None = None,
    ) -> None:
        where = [path] if path else []
        where += [f"line {line_number}"] if line_number else []
        parts = [", ".join(where), reason, shown((line or "").strip()[:_LINE_LIMIT])]
        super().__init__(": ".join(part for part in parts if part), hint=hint)
        self.path = path
        self.line_number = line_number
        self.line = line


def side_fact(find: Callable[[], _Fact], what: str, gaps: list[str]) -> _Fact | None:
    """Return a fact that an answer can do without: None where it fails, and a line in ``gaps``."""
    try:
        return find()
    except (InitadvisorError, OSError) as err:
        gaps.append(f"{what} is not known: {err}")
        return None


def raise_all(errors: Sequence[InitadvisorError]) -> None:
    """Raise what has gone wrong, several things as one; nothing where there are none."""
    if len(errors) > 1:
        hints = dict.fromkeys(err.hint for err in errors if err.hint)
        raise InitadvisorError(
            "; ".join(str(err) for err in errors), hint="; ".join(hints) or None
        ) from errors[0]
    for err in errors:
        raise err
