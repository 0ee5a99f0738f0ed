"""A runner that runs nothing: it records command lines and answers from a table."""

from __future__ import annotations

import contextlib
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from initadvisor.core.errors import ProgramError
from initadvisor.host.process import Ending
from initadvisor.host.run import Completed, Priority

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a program does when its command line starts with ``words``.

    ``filter`` turns what is on stdin into what goes to stdout (a fake compressor); without it,
    ``stdout`` is the output. ``error`` is raised in place of an answer (a time-out, a failed
    start).
    """

    words: tuple[str, ...]
    stdout: bytes = b""
    stderr: bytes = b""
    returncode: int = 0
    filter: Callable[[bytes], bytes] | None = None
    error: Exception | None = None
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One recorded run."""

    argv: tuple[str, ...]
    timeout_s: float
    env: Mapping[str, str]
    cwd: Path | None
    priority: Priority


@dataclass(slots=True)
class FakeRunner:
    """Satisfies ``Runner``; a command line that no answer was given for fails the test.

    ``programs`` are the names that ``which`` finds. The latest fitting answer wins, so a test can
    change its mind.
    """

    programs: Iterable[str] = ()
    answers: list[Answer] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    held: list[tuple[str, ...]] = field(default_factory=list)
    stopped: bool = False

    def answer(
        self,
        command: str | Sequence[str],
        stdout: bytes | str = b"",
        *,
        stderr: bytes | str = b"",
        returncode: int = 0,
        filter: Callable[[bytes], bytes] | None = None,  # noqa: A002  it is one
        error: Exception | None = None,
        wall_s: float = 0.0,
        cpu_s: float = 0.0,
        peak_bytes: int = 0,
    ) -> None:
        """Answer every command line that starts with the words of ``command``."""
        words = shlex.split(command) if isinstance(command, str) else command
        self.answers.append(
            Answer(
                words=tuple(words),
                stdout=stdout.encode() if isinstance(stdout, str) else stdout,
                stderr=stderr.encode() if isinstance(stderr, str) else stderr,
                returncode=returncode,
                filter=filter,
                error=error,
                wall_s=wall_s,
                cpu_s=cpu_s,
                peak_bytes=peak_bytes,
            )
        )

    @property
    def argvs(self) -> list[tuple[str, ...]]:
        """The command lines that were run, in order."""
        return [call.argv for call in self.calls]

    def which(self, program: str) -> Path | None:
        """Find the programs that the test named."""
        return Path("/usr/bin") / program if program in set(self.programs) else None

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        timeout_s: float,
        check: bool = True,
        stdin: IO[bytes] | None = None,
        stdout: IO[bytes] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        priority: Priority = Priority.NORMAL,
    ) -> Completed:
        """Record the command line and give the answer that was prepared for it."""
        words = tuple(str(word) for word in argv)
        self.calls.append(
            Call(argv=words, timeout_s=timeout_s, env=env or {}, cwd=cwd, priority=priority)
        )
        if self.stopped:
            msg = f"not running {words[0]}: stopped"
            raise ProgramError(msg)
        answer = self._answer_to(words)
        if answer.error:
            raise answer.error
        output = answer.filter(stdin.read() if stdin else b"") if answer.filter else answer.stdout
        if stdout:
            stdout.write(output)
            stdout.flush()
        if check and answer.returncode != 0:
            msg = f"{shlex.join(words)} exited with status {answer.returncode}"
            raise ProgramError(msg)
        return Completed(
            argv=words,
            returncode=answer.returncode,
            stdout=b"" if stdout else output,
            stderr=answer.stderr,
            wall_s=answer.wall_s,
            cpu_s=answer.cpu_s,
            peak_bytes=answer.peak_bytes,
        )

    def watch(
        self,
        argv: Sequence[str | Path],
        *,
        timeout_s: float,
        on_line: Callable[[bytes], bool],
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Ending:
        """Record the command line and say, line by line, what was prepared for it.

        An answer with an exit status other than 0 is one of a program that never ends.
        """
        words = tuple(str(word) for word in argv)
        self.calls.append(
            Call(argv=words, timeout_s=timeout_s, env=env or {}, cwd=cwd, priority=Priority.NORMAL)
        )
        answer = self._answer_to(words)
        if answer.error:
            raise answer.error
        if any(on_line(line) for line in answer.stdout.splitlines()):
            return Ending.STOPPED
        return Ending.TIME_OUT if answer.returncode else Ending.EXITED

    @contextlib.contextmanager
    def hold(self, argv: Sequence[str | Path], *, word: str, timeout_s: float) -> Iterator[None]:
        """Record the command line, which is in ``held`` as long as the context is.

        An answer with an exit status other than 0 is one of a program that does not say the word.
        """
        words = tuple(str(part) for part in argv)
        self.calls.append(
            Call(argv=words, timeout_s=timeout_s, env={}, cwd=None, priority=Priority.NORMAL)
        )
        answer = self._answer_to(words)
        if answer.error:
            raise answer.error
        if answer.returncode != 0:
            msg = f"{shlex.join(words)} ended without {word}: {answer.stderr.decode()}"
            raise ProgramError(msg)
        self.held.append(words)
        try:
            yield
        finally:
            self.held.remove(words)

    def stop_all(self) -> None:
        """Let no program start any more."""
        self.stopped = True

    def _answer_to(self, words: tuple[str, ...]) -> Answer:
        for answer in reversed(self.answers):
            if words[: len(answer.words)] == answer.words:
                return answer
        msg = f"unexpected: {shlex.join(words)}"
        raise AssertionError(msg)
