"""Reads configuration that is shell code the way its owner does: a shell sources it.

Nothing else gives the value that takes effect: these files test the machine, append to arrays, read
other files. The shell gets no stdin, a minimal environment, and limits on time, memory and output,
so that a configuration that never ends or never stops printing is an error and not a hang.
"""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError, NeedsRootError, ProgramError
from initadvisor.core.text import encoded
from initadvisor.rewrite.syntax import Shell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from initadvisor.host import Host


_TIMEOUT_S = 5.0

# The scripts speak on descriptor 3, every word ended by NUL: "=" and the status of the last file
# read, then NAME, ATTRIBUTES, COUNT, VALUES... of each variable, then "#". A file that exits the
# shell leaves its subshell without them. What a file may have changed (options, IFS, functions of
# the same name) is undone before the report.
# ulimit: 1 GiB of memory, 16 or 32 MiB (depending on the shell's unit) of output.
_PROLOGUE = r"""
exec 3>&1 1>/dev/null
ulimit -v 1048576
ulimit -f 32768
"""

_BASH = (
    _PROLOGUE
    + r"""
shopt -s extglob
__merged=$1 __patterns=$2
shift 2
__files=("$@")
set --
__report() {
    local __name __pattern
    builtin printf '=\0%s\0' "$1" >&3
    for __name in $(builtin compgen -v); do
        for __pattern in $__patterns; do
            if [[ $__name == $__pattern ]]; then
                local -n __value=$__name
                builtin printf '%s\0' "$__name" "${__value@a}-" "${#__value[@]}" "${__value[@]}" >&3
                unset -n __value
                break
            fi
        done
    done
    builtin printf '#\0' >&3
}
for ((__count = 0; __count <= ${#__files[@]}; ++__count)); do
    (
        # Without a trap, bash -c replaces the subshell by the last program a sourced file runs
        # (observed with bash 5.2).
        trap : EXIT
        __status=0
        if ((__merged && __count)); then
            . <(cat -- "${__files[@]:0:__count}") 3>&- || __status=$?
        else
            for __file in "${__files[@]:0:__count}"; do
                . "$__file" 3>&-
                __status=$?
            done
        fi
        set +eu -f
        IFS=$' \t\n'
        __report "$__status"
    )
done
"""
)

_SH = (
    _PROLOGUE
    + r"""
__names=$1
shift
__total=$#
__count=0
while [ "$__count" -le "$__total" ]; do
    (
        __left=$__count
        __status=0
        for __file; do
            [ "$__left" -gt 0 ] || break
            __left=$((__left - 1))
            . "$__file" 3>&-
            __status=$?
        done
        set +eu -f
        unset IFS
        command printf '=\0%s\0' "$__status" >&3
        for __name in $__names; do
            eval "__set=\${$__name+set} __value=\${$__name-}"
            [ -z "$__set" ] || command printf '%s\0' "$__name" - 1 "$__value" >&3
        done
        command printf '#\0' >&3
    )
    __count=$((__count + 1))
done
"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A shell variable; a scalar has one value."""

    values: tuple[str, ...]
    is_array: bool = False

    @property
    def first(self) -> str:
        """What ``$NAME`` gives: the value, or the first of an array."""
        return self.values[0] if self.values else ""

    @property
    def words(self) -> tuple[str, ...]:
        """The elements of an array; a scalar is split at spaces."""
        return self.values if self.is_array else tuple(self.first.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The variables after all files were read, and how they came about.

    ``steps[n]`` holds the variables after the first ``n`` files; ``status`` is what the last
    ``.`` command returned.
    """

    files: tuple[Path, ...]
    steps: tuple[Mapping[str, Variable], ...]
    status: int

    def get(self, name: str) -> Variable | None:
        """Return a variable as it is at the end, None if it is not set."""
        return self.steps[-1].get(name)

    def value(self, name: str) -> str:
        """Return what ``$NAME`` gives at the end; an unset variable gives the empty string."""
        variable = self.get(name)
        return variable.first if variable else ""

    def origin(self, *names: str) -> Path | None:
        """Return the file that gave one of the variables its final value; None if none did."""
        final = [self.steps[-1].get(name) for name in names]
        for index in reversed(range(len(self.files))):
            if [self.steps[index].get(name) for name in names] != final:
                return self.files[index]
        return None


def evaluate(
    host: Host,
    shell: Shell,
    files: Sequence[Path],
    names: Sequence[str],
    *,
    merged: bool = False,
    env: Mapping[str, str] | None = None,
    texts: Mapping[Path, str] | None = None,
) -> Evaluation:
    """Have ``shell`` source ``files`` one after the other and return the variables ``names``.

    ``merged`` sources them as one text, as they follow each other without a newline added.
    For bash the names may be patterns (``*_image``). ``texts`` holds what some of the files are to
    be read as, whatever they hold.

    Raises ``NeedsRootError`` where a file may not be read, and ``InitadvisorError`` when the shell
    is not installed, does not end in time, or a file ends it.
    """
    texts = texts or {}
    for file in files:
        if file not in texts:
            _check_readable(file)
    if host.runner.which(shell) is None:
        msg = f"cannot evaluate {_listed(files)}: {shell} is not installed"
        raise InitadvisorError(msg)
    try:
        with _placed(files, texts) as placed:
            done = host.runner.run(
                [*_command(shell, names, merged), *placed],
                timeout_s=_TIMEOUT_S,
                check=False,
                env=env,
            )
    except ProgramError as err:
        msg = f"cannot evaluate {_listed(files)}: {shell} did not end within {_TIMEOUT_S:g} s"
        raise InitadvisorError(msg, hint="does the configuration wait or loop?") from err
    steps, status = _parse(done.stdout)
    if done.returncode != 0 or len(steps) != len(files) + 1:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        msg = f"cannot evaluate {_listed(files)}: it ends the shell that reads it"
        raise InitadvisorError(msg, hint=_printable(said[-1]) if said else None)
    return Evaluation(files=tuple(files), steps=tuple(steps), status=status)


@contextlib.contextmanager
def _placed(files: Sequence[Path], texts: Mapping[Path, str]) -> Iterator[list[Path]]:
    """Put the texts into files that only this user can see, for as long as they are read."""
    with tempfile.TemporaryDirectory(prefix="initadvisor-") as directory:
        placed = []
        for index, file in enumerate(files):
            if file in texts:
                copy = Path(directory, str(index))
                copy.write_bytes(encoded(texts[file]))
                placed.append(copy)
            else:
                placed.append(file)
        yield placed


def _command(shell: Shell, names: Sequence[str], merged: bool) -> tuple[str, ...]:
    wanted = " ".join(names)
    match shell:
        case Shell.BASH:
            options = ("--noprofile", "--norc", "-c", _BASH, "bash", "1" if merged else "0")
            return ("bash", *options, wanted)
        case Shell.SH:
            return ("sh", "-c", _SH, "sh", wanted)


def version_sorted(host: Host, names: Iterable[str]) -> tuple[str, ...]:
    """Return names without repetition in the order of ``sort -V``, which generators call.

    Raises ``ProgramError`` if sort(1) cannot be run.
    """
    unsorted = tuple(dict.fromkeys(names))
    if len(unsorted) < 2:
        return unsorted
    script = "printf '%s\\0' \"$@\" | sort -zV"
    done = host.runner.run(["sh", "-c", script, "sh", *unsorted], timeout_s=_TIMEOUT_S)
    return tuple(done.stdout.decode(errors="surrogateescape").split("\0")[:-1])


def _check_readable(file: Path) -> None:
    try:
        with file.open("rb"):
            pass
    except PermissionError as err:
        msg = f"cannot read {file}: only root may"
        raise NeedsRootError(msg) from err
    except OSError as err:
        msg = f"cannot read {file}: {err.strerror}"
        raise InitadvisorError(msg) from err


def _parse(output: bytes) -> tuple[list[dict[str, Variable]], int]:
    """Read the complete reports, and the status of the last one."""
    *words, _ = output.decode(errors="replace").split("\0")
    steps: list[dict[str, Variable]] = []
    current: dict[str, Variable] = {}
    status = 0
    left = iter(words)
    with contextlib.suppress(StopIteration):  # the limit on output cut the last report short
        for word in left:
            match word:
                case "=":
                    current, status = {}, int(next(left))
                case "#":
                    steps.append(current)
                case name:
                    current[name] = _variable(left)
    return steps, status


def _variable(words: Iterator[str]) -> Variable:
    attributes, count = next(words), int(next(words))
    values = tuple([next(words) for _ in range(count)])
    return Variable(values=values, is_array="a" in attributes or "A" in attributes)


def _listed(files: Sequence[Path]) -> str:
    return " + ".join(str(file) for file in files)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)[:200]
