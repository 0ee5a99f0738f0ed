"""Programs of a machine that really run: scripts below its root, and shells."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from initadvisor.host import process
from initadvisor.host.run import Completed, Priority, SystemRunner
from tests.fakes.runner import FakeRunner

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pytest

SHELLS = {"bash", "sh", "unshare"}
"""Shells, and what gives them a sandbox."""

_RUN = {*SHELLS, "sort"}

_LIGHT = (
    *("unshare", "--mount", "--propagation", "private", "sh", "-c"),
    'mount -n -t tmpfs initadvisor /tmp && unset TMPDIR && cd / && exec "$@"',
)


def in_light_sandbox(argv: Sequence[str | Path]) -> tuple[str | Path, ...]:
    """Return a shell's command, in a sandbox that takes a third of the time of the real one.

    The program may still write nowhere, as it is nobody's, but sees devices, the network and other
    processes: for configurations that a test has written, none of them hostile.
    """
    words = tuple(argv)
    if words[0] != "unshare" or "--map-root-user" in words:
        return words
    return (*_LIGHT, *words[words.index("-c") + 2 :])


_PLAIN = re.compile(rb"\s*(#.*|\w+\+?=(\([^()$`]*\)|[^()$`;&|<>]*))?")
"""A comment, or an assignment of a constant: what a shell makes of it is always the same."""

_evaluated: dict[object, Completed] = {}


def run_shell(
    argv: Sequence[str | Path],
    *,
    timeout_s: float,
    check: bool = True,
    stdin: IO[bytes] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Completed:
    """Run a shell, in a light sandbox; what it made of the same plain texts before is known.

    Each test's machine has the same few configurations, and a sandbox takes 25 processes.
    """
    command = in_light_sandbox(argv)
    asked = _plain_texts(command, stdin) if command[: len(_LIGHT)] == _LIGHT else None
    key = (asked, tuple(sorted((env or {}).items())), check)
    if asked is None or key not in _evaluated:
        done = SystemRunner().run(
            command, timeout_s=timeout_s, check=check, stdin=stdin, env=env, cwd=cwd
        )
        if asked is None:
            return done
        _evaluated[key] = done
    return _evaluated[key]


def _plain_texts(command: Sequence[str | Path], stdin: IO[bytes] | None) -> object:
    """Return the words of a command, files as what they hold; None where a text is not plain."""
    words: list[object] = []
    texts = []
    for word in command:
        path = Path(word)
        if path.is_absolute() and path.is_file():
            texts.append(path.read_bytes())
            words.append((path.name, texts[-1]))
        else:
            words.append(str(word))
    if stdin is not None:
        texts.append(stdin.read())
        stdin.seek(0)
    if not all(_PLAIN.fullmatch(line) for text in texts for line in text.splitlines()):
        return None
    return tuple(words), texts[-1] if stdin is not None else None


def programs_in(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    """Have the programs of a directory come before those of the system."""
    found = (str(directory), *process.SYSTEM_DIRECTORIES)
    monkeypatch.setattr(process, "SYSTEM_DIRECTORIES", found)


class LightRunner(SystemRunner):
    """Runs every program that this machine has, shells in a light sandbox."""

    def run(self, argv: Sequence[str | Path], **options: Any) -> Completed:  # noqa: ANN401
        return super().run(in_light_sandbox(argv), **options)


class ShellRunner(FakeRunner):
    """Runs shells, which evaluate a generator's configuration, and nothing else."""

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
        if argv[0] in SHELLS:
            return run_shell(argv, timeout_s=timeout_s, check=check, stdin=stdin, env=env, cwd=cwd)
        return super().run(
            argv,
            timeout_s=timeout_s,
            check=check,
            stdin=stdin,
            stdout=stdout,
            env=env,
            cwd=cwd,
            priority=priority,
        )


@dataclass(slots=True)
class ScriptRunner(FakeRunner):
    """Runs what is installed below ``root``; everything else is answered from the table.

    ``ran`` has the environment of each run, by the program's name.
    """

    root: Path = Path("/nowhere")
    ran: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)

    def which(self, program: str) -> Path | None:
        if program in _RUN:
            return SystemRunner().which(program)
        return self._script(program)

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
        program = str(argv[0])
        script = None if program in _RUN else self._script(program)
        if script is None and program not in _RUN:
            return FakeRunner.run(self, argv, timeout_s=timeout_s, check=check, env=env)
        if script:
            self.ran.append((program, env or {}))
        return SystemRunner().run(
            [script or program, *argv[1:]],
            timeout_s=timeout_s,
            check=check,
            stdin=stdin,
            stdout=stdout,
            env=env,
            cwd=cwd,
            priority=priority,
        )

    def _script(self, program: str) -> Path | None:
        places = (self.root / "usr" / directory / program for directory in ("sbin", "bin"))
        return next((place for place in places if place.is_file()), None)
