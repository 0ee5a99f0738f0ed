"""An unpacked distribution that generators take for the installed system."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from initadvisor.core.errors import ProgramError
from initadvisor.host.run import Completed, Priority, SystemRunner
from tests.fakes.scripts import SHELLS
from tests.fixtures.namespace import FailedInside, TreeRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from initadvisor.host.process import Ending
    from tests.fixtures.namespace import Tree

_INSIDE = "/mnt"


@dataclass(slots=True, kw_only=True)
class InstalledRunner:
    """Runs programs inside the tree, where ``work`` is at /mnt, and shells outside.

    Command lines and environment say ``work`` as it is outside.
    """

    tree: Tree
    work: Path
    calls: list[tuple[str, ...]] = field(default_factory=list)

    def which(self, program: str) -> Path | None:
        """Look for shells on this machine and for everything else in the tree."""
        if program in SHELLS:
            return SystemRunner().which(program)
        return TreeRunner(tree=self.tree, work=self.work).which(program)

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
        """Run inside the tree; what fails raises ``ProgramError``."""
        words = [str(word) for word in argv]
        if words[0] in SHELLS:
            return SystemRunner().run(
                words, timeout_s=timeout_s, check=check, stdin=stdin, env=env, cwd=cwd
            )
        del timeout_s, check, cwd, priority
        words = [self._inside(word) for word in words]
        self.calls.append(tuple(words))
        translated = {name: self._inside(value) for name, value in (env or {}).items()}
        inside = TreeRunner(tree=self.tree, work=self.work)
        try:
            return inside.run(words, timeout_s=0, stdin=stdin, stdout=stdout, env=translated)
        except FailedInside as err:
            raise ProgramError(str(err)) from err

    def watch(
        self,
        argv: Sequence[str | Path],
        *,
        timeout_s: float,
        on_line: Callable[[bytes], bool],
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Ending:
        """Fail: there are no virtual machines inside the tree."""
        inside = TreeRunner(tree=self.tree, work=self.work)
        return inside.watch(argv, timeout_s=timeout_s, on_line=on_line, env=env, cwd=cwd)

    def hold(
        self, argv: Sequence[str | Path], *, word: str, timeout_s: float
    ) -> AbstractContextManager[None]:
        """Fail: nothing inside the tree goes on beside a test."""
        inside = TreeRunner(tree=self.tree, work=self.work)
        return inside.hold(argv, word=word, timeout_s=timeout_s)

    def stop_all(self) -> None:
        """Do nothing: every run of a test is waited for."""

    def _inside(self, word: str) -> str:
        return word.replace(str(self.work), _INSIDE)
