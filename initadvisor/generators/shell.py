"""Reads configuration that is shell code the way its owner does: a shell sources it.

Nothing else gives the value that takes effect: these files test the machine, append to arrays, read
other files. The shell is in a sandbox (``host/sandbox.py``) with limits on time, memory and output,
so that a configuration that never ends or never stops printing is an error and not a hang. Where no
sandbox can be had the files are only read: what their text does not tell stays unknown.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError, ProgramError, RefusedRewriteError
from initadvisor.core.text import decoded, encoded, shown
from initadvisor.host.files import open_regular
from initadvisor.host.process import CAPTURE_LIMIT_BYTES
from initadvisor.host.sandbox import NoSandboxError, run_inside
from initadvisor.rewrite.files import ConfigFile, ReadingRules
from initadvisor.rewrite.survey import find, survey, unknown_facts
from initadvisor.rewrite.syntax import Array, Shell

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from initadvisor.host import Host
    from initadvisor.host.run import Completed, Runner
    from initadvisor.rewrite.survey import VariableOrigin


_TIMEOUT_S = 30.0
_LIMIT_BYTES = 1 << 20

_STARTED = b"@\0"
_HIDDEN = ("/tmp", "/var/tmp", "/dev", "/run")  # noqa: S108  what a sandbox does not show

# The scripts speak on descriptor 3, every word ended by NUL: "@" when they start, then "=" and the
# status of the last file read, NAME, ATTRIBUTES, FIRST, COUNT, VALUES... of each variable, and "#".
# A file that exits the shell leaves its subshell without them. What a file may have changed is
# undone before the report: options, IFS, traps, aliases, and functions that have the names of
# commands. bash finds functions first; in POSIX mode, which an assignment turns on, special
# builtins come before them. What cannot be undone (readonly) ends the subshell.
# Arguments: the sizes of the texts, which are on stdin.
# ulimit: 1 GiB of memory, 16 or 32 MiB (depending on the shell's unit) of output.
_PROLOGUE = r"""
exec 3>&1 1>/dev/null
printf '@\0' >&3
ulimit -v 1048576
ulimit -f 32768
__count=0
for __size in $1; do
    head -c "$__size" >"/tmp/initadvisor.$__count" || exit
    __count=$((__count + 1))
done
exec </dev/null
shift
"""

_BASH = (
    _PROLOGUE
    + r"""
__merged=$1 __patterns=$2
shift 2
__files=("$@")
set --
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
        __flags=$-${POSIXLY_CORRECT+p} __ifs=$IFS
        POSIXLY_CORRECT=1
        __flags+=$(trap -p DEBUG ERR RETURN)
        trap - DEBUG ERR RETURN EXIT
        __functions=
        export -f builtin 2>/dev/null && __functions=builtin
        unset -f builtin || exit
        builtin unalias -a || exit
        set +eu -f
        IFS=$' \t\n'
        __names=$(builtin enable -n) || exit
        __flags+=$__names$(
            builtin hash -l | while builtin read -r _ _ _ __value __name; do
                [[ $(builtin hash -r && builtin type -P "$__name") == "$__value" ]] ||
                    builtin echo "$__name"
            done
        )
        __names=$(builtin compgen -v)
        [[ $'\n'$__names$'\n' == *$'\n__count\n'* ]] || exit
        builtin printf '=\0%s\0' "$__status" >&3 || exit
        for __name in $__names; do
            for __pattern in $__patterns; do
                if [[ $__name == $__pattern ]]; then
                    builtin declare -n __value=$__name || exit
                    builtin printf '%s\0' "$__name" "${__value@a}-" "${__value-}" \
                        "${#__value[@]}" "${__value[@]}" >&3 || exit
                    unset -n __value
                    break
                fi
            done
        done
        for __name in $__patterns; do
            [[ $__name == [A-Za-z_]* && $__name != *[!A-Za-z0-9_]* ]] || continue
            builtin declare -n __value=$__name || exit
            if [[ ! -v __value && ${__value@a} == *r* ]]; then
                builtin printf '%s\0' "$__name" "${__value@a}-" "" 0 >&3 || exit
            fi
            unset -n __value
        done
        for __pattern in $__patterns; do
            [[ $__pattern != - ]] || builtin printf '%s\0' - - "$__flags" 1 "$__flags" >&3 || exit
            [[ $__pattern != IFS ]] || builtin printf '%s\0' IFS - "$__ifs" 1 "$__ifs" >&3 || exit
        done
        for __name in $__functions $(builtin compgen -A function); do
            for __pattern in $__patterns; do
                if [[ "$__name()" == $__pattern ]]; then
                    builtin printf '%s\0' "$__name()" f- "" 0 >&3 || exit
                    break
                fi
            done
        done
        builtin printf '#\0' >&3
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
        trap - EXIT
        __flags=$-$(alias) __ifs=$IFS
        set +eu -f
        unset IFS
        __functions=
        for __name in $__names; do
            case $__name in
                *'()')
                    case $(unset -f type; type "${__name%??}") in
                        *' function'*) __functions="$__functions $__name" ;;
                    esac
                    ;;
            esac
        done
        unset -f command printf || exit
        command printf '=\0%s\0' "$__status" >&3
        for __name in $__names; do
            case $__name in
                -) __set=set __value=$__flags ;;
                IFS) __set=set __value=$__ifs ;;
                *'()') continue ;;
                *) eval "__set=\${$__name+set} __value=\${$__name-} ${__name}=\${$__name-}" ;;
            esac
            case $__set in
                set) command printf '%s\0' "$__name" - "$__value" 1 "$__value" >&3 || exit ;;
            esac
        done
        for __name in $__functions; do
            command printf '%s\0' "$__name" f- "" 0 >&3 || exit
        done
        command printf '#\0' >&3
    )
    __count=$((__count + 1))
done
"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A shell variable; a scalar has one value.

    ``first`` is what ``$NAME`` gives: the value, or an array's element 0, empty if that is unset;
    ``attributes`` are the letters of ``${NAME@a}``.
    """

    values: tuple[str, ...]
    first: str
    attributes: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """The elements of an array; of a scalar the words that ``IFS=' ' read -a`` makes of it."""
        if "a" in self.attributes:
            return self.values
        return tuple(word for word in self.first.partition("\n")[0].split(" ") if word)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The variables after all files were read, and how they came about.

    ``texts`` are what the files hold, ``merged`` where they are one text, and ``given`` the
    variables that were set before; ``steps[n]`` has the variables after the first ``n`` of them;
    ``status`` is what the last ``.`` command returned. ``warnings`` say when no shell evaluated the
    files; ``unknown`` holds by name why it cannot be told then what a variable is.
    """

    files: tuple[Path, ...]
    steps: tuple[Mapping[str, Variable], ...]
    status: int
    shell: Shell
    texts: Mapping[Path, str]
    merged: bool = False
    given: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()
    unknown: Mapping[str, InitadvisorError] = field(default_factory=dict)

    def get(self, name: str) -> Variable | None:
        """Return a variable as it is at the end, None if it is not set.

        Raises ``InitadvisorError`` where the files were only read and do not tell.
        """
        if name in self.unknown:
            raise self.unknown[name]
        return self.steps[-1].get(name)

    def value(self, name: str) -> str:
        """Return what ``$NAME`` gives at the end; an unset variable gives the empty string."""
        variable = self.get(name)
        return variable.first if variable else ""

    def origin(self, *names: str) -> Path | None:
        """Return the last file that gave one of the variables a value; None if none did."""
        final = [self.steps[-1].get(name) for name in names]
        for index in reversed(range(len(self.files))):
            before = [self.steps[index].get(name) for name in names]
            if before != final or any(self._assigns(index, name) for name in names):
                return self.files[index]
        return None

    def changed(self, *asked: str) -> tuple[Path, str] | None:
        """Return a file that changes another variable than those ``asked``, and which that is."""
        state = f"{self.shell}'s options, traps, aliases or commands"
        for name in sorted({*self.steps[0], *self.steps[-1]}):
            if not any(fnmatchcase(name, each) for each in asked) and (file := self.origin(name)):
                return file, state if name == "-" else name
        return None

    def require_unchanged(self, *asked: str, program: str) -> None:
        """Raise ``InitadvisorError`` where a file changes another variable than those ``asked``."""
        if found := self.changed(*asked):
            msg = f"cannot tell what {program} does: {found[0]} changes {found[1]}"
            raise InitadvisorError(msg, hint=f"{program} itself goes on with that: take it out")

    def depends_on(self, *asked: str, functions: Collection[str] = ()) -> str:
        """Name what a variable may depend on and is another in the program that reads the files.

        Its variables, parameters and ``functions``, its user, its own directories. Empty: nothing.
        """
        files = [
            ConfigFile(path=str(file), text=self.texts[file], editable=False) for file in self.files
        ]
        units = survey(files, ReadingRules(shell=self.shell, merged=self.merged))
        names = {a.name for u in units for c in u.script.commands for a in c.assignments}
        names |= {name for name in (*self.steps[-1], *asked) if name.isidentifier()}
        wanted = {name for name in names if any(fnmatchcase(name, each) for each in asked)}
        given = {f"${name}" for name in self.given}
        return " and ".join(sorted(unknown_facts(units, wanted, functions, _text_if_any) - given))

    def require_known(self, *asked: str, program: str, functions: Collection[str]) -> None:
        """Raise ``InitadvisorError`` where a variable may depend on what only the program knows."""
        if found := self.depends_on(*asked, functions=functions):
            msg = f"cannot tell what {program} does: {_listed(self.files)} looks at {found}"
            hint = f"that may be another for {program}: set the compression without it"
            raise InitadvisorError(msg, hint=hint)

    def _assigns(self, index: int, name: str) -> bool:
        """Tell whether a file surely sets a variable, be it to what that holds already."""
        file = self.files[index]
        reading = ReadingRules(shell=self.shell)
        try:
            units = survey([ConfigFile(path=str(file), text=self.texts[file])], reading)
        except RefusedRewriteError:
            return False
        return find(units, name).place is not None


_REMEMBERED_NS = 5_000_000_000
"""What was evaluated is not evaluated again for so long, as a sandbox takes 25 processes."""

_REMEMBERED = 16
"""How many are kept: a plan asks of today's files, of each preset's and of what they will be."""

_latest: list[tuple[int, Runner, object, Evaluation]] = []


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
    For bash the names may be patterns (``*_image``). ``NAME()`` is a function, which has no value.
    ``-`` is what ``$-`` gives, with a ``p`` in bash's POSIX mode, bash's traps that run between
    commands, its builtins that are off and its commands that have been given another program, and
    sh's aliases. ``texts`` holds what some of the files are to be read as, whatever they hold.

    Raises ``NeedsRootError`` where a file may not be read, and ``InitadvisorError`` when the shell
    is not installed, does not end in time, prints too much, or a file ends it.
    """
    given = {file: text for file, text in (texts or {}).items() if file in files}
    texts = {file: given[file] if file in given else config_text(file) for file in files}
    given |= {file: texts[file] for file in files if _is_hidden(file)}
    if host.runner.which(shell) is None:
        msg = f"cannot evaluate {_listed(files)}: {shell} is not installed"
        raise InitadvisorError(msg)
    now_ns = host.clock.monotonic_ns()
    asked = (shell, tuple(files), tuple(names), merged, dict(env or {}), texts)
    for at_ns, runner, question, found in _latest:
        if runner is host.runner and question == asked and now_ns - at_ns < _REMEMBERED_NS:
            return found
    try:
        done = _sourced(host, shell, files, names, given, merged=merged, env=env)
    except ProgramError as err:
        msg = f"cannot evaluate {_listed(files)}: {err.why}"
        raise InitadvisorError(msg, hint="does the configuration wait or loop?") from err
    except NoSandboxError as err:
        return _read(shell, files, names, texts, merged=merged, why=err.message)
    steps, status = _parse(done.stdout)
    if done.returncode != 0 or len(steps) != len(files) + 1:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = "it ends the shell that reads it, or keeps it from telling what was set"
        if max(len(done.stdout), len(done.stderr)) >= CAPTURE_LIMIT_BYTES:
            why = "it would not stop talking"  # the shell's own limit was met first
        msg = f"cannot evaluate {_listed(files)}: {why}"
        raise InitadvisorError(msg, hint=shown(said[-1])[:200] if said else None)
    found = Evaluation(
        files=tuple(files),
        steps=tuple(steps),
        status=status,
        shell=shell,
        texts=texts,
        merged=merged,
        given=frozenset(env or ()),
    )
    _latest[:] = [(now_ns, host.runner, asked, found), *_latest[: _REMEMBERED - 1]]
    return found


def _sourced(
    host: Host,
    shell: Shell,
    files: Sequence[Path],
    names: Sequence[str],
    texts: Mapping[Path, str],
    *,
    merged: bool,
    env: Mapping[str, str] | None,
) -> Completed:
    """Have a shell in a sandbox source the files, those of ``texts`` as copies."""
    sizes: list[str] = []
    places: list[str] = []
    with tempfile.TemporaryFile() as copies:
        for file in files:
            if file in texts:
                places.append(f"/tmp/initadvisor.{len(sizes)}")  # noqa: S108  the sandbox's own
                sizes.append(str(copies.write(encoded(texts[file]))))
            else:
                places.append(str(file))
        copies.seek(0)
        options: tuple[str, ...] = ("-c", _SH, "sh", " ".join(sizes))
        if shell is Shell.BASH:
            options = ("--noprofile", "--norc", "-c", _BASH, "bash", " ".join(sizes))
            options = (*options, "1" if merged else "0")
        return run_inside(
            host,
            [shell.value, *options, " ".join(names), *places],
            word=_STARTED,
            timeout_s=_TIMEOUT_S,
            env=env,
            stdin=copies,
        )


def _read(
    shell: Shell,
    files: Sequence[Path],
    names: Sequence[str],
    texts: Mapping[Path, str],
    *,
    merged: bool,
    why: str,
) -> Evaluation:
    """Return what the text of the files says for certain, where nothing may run it."""
    configs = [ConfigFile(path=str(file), text=texts[file]) for file in files]
    reading = ReadingRules(shell=shell, merged=merged)
    unknown: dict[str, InitadvisorError] = {}
    steps: list[dict[str, Variable]] = []
    for count in range(len(files) + 1):
        try:
            units = survey(configs[:count], reading)
        except RefusedRewriteError as err:
            raise _not_told(err.message, why) from err
        every = [a for unit in units for c in unit.script.commands for a in c.assignments]
        arrays = {each.name for each in every if isinstance(each.value, Array)}
        wanted = {a.name for a in every if any(fnmatchcase(a.name, each) for each in names)}
        steps.append({})
        unknown.clear()
        for name in sorted(wanted | {n for n in names if n.isidentifier()}):
            found = find(units, name)
            value = None if found.obstacles else _told(found)
            if value and bool(value.attributes) == (name in arrays):
                steps[-1][name] = value
            elif found.place or found.obstacles:
                reason = "the shell computes it"
                if found.obstacles:
                    first = found.obstacles[0]
                    reason = first.place.refusal(first.reason, "").message
                unknown[name] = _not_told(f"what {name} is: {reason}", why)
    warning = f"{_listed(files)} was only read, not evaluated: {why}"
    return Evaluation(
        files=tuple(files),
        steps=tuple(steps),
        status=0,
        shell=shell,
        texts=texts,
        merged=merged,
        warnings=(warning,),
        unknown=unknown,
    )


def _told(found: VariableOrigin) -> Variable | None:
    """Return what assignments make of a variable; None where that is nothing or not known."""
    if found.since and all(isinstance(each.value, Array) for each in found.since):
        if found.words is None:
            return None
        return Variable(values=found.words, first="".join(found.words[:1]), attributes="a")
    text = found.text
    return None if text is None or not found.since else Variable(values=(text,), first=text)


def _not_told(what: str, why: str) -> InitadvisorError:
    return InitadvisorError(f"cannot tell without running it {what}: {why}")


def _text_if_any(path: str) -> str:
    """Return what a file of this machine holds that a configuration reads; "" where there is none.

    It is what the sandbox shows.
    """
    try:
        return config_text(Path(path))
    except InitadvisorError:
        return ""


_FUNCTION = re.compile(r"^[ \t]*(?:function[ \t]+)?([A-Za-z_][\w-]*)[ \t]*\(\)", re.MULTILINE)


def functions_of(host: Host, *scripts: str) -> frozenset[str]:
    """Return the functions that a generator's scripts have, as far as they can be read."""
    return frozenset(
        name for path in scripts for name in _FUNCTION.findall(host.read_text(path) or "")
    )


def config_text(path: Path) -> str:
    """Return what a configuration file holds, nothing for a link to /dev/null, which hides a file.

    Raises ``InitadvisorError`` for what cannot be read or is larger than 1 MiB, ``NeedsRootError``
    where only root may.
    """
    if path.is_char_device():
        return ""
    with open_regular(path) as file:
        content = file.read(_LIMIT_BYTES + 1)
    if len(content) > _LIMIT_BYTES:
        msg = f"cannot read {path}: larger than {_LIMIT_BYTES} bytes"
        raise InitadvisorError(msg)
    return decoded(content)


def version_sorted(host: Host, names: Iterable[str], *, unique: bool = False) -> tuple[str, ...]:
    """Return names without repetition in the order of ``sort -V``, which generators call.

    ``unique``: with ``-u``, which takes ``1`` and ``01`` for the same and leaves the first of them.

    Raises ``ProgramError`` if sort(1) cannot be run.
    """
    unsorted = tuple(dict.fromkeys(names))
    if len(unsorted) < 2:
        return unsorted
    script = f"printf '%s\\0' \"$@\" | sort -zV{'u' if unique else ''}"
    done = host.runner.run(["sh", "-c", script, "sh", *unsorted], timeout_s=_TIMEOUT_S)
    return tuple(done.stdout.decode(errors="surrogateescape").split("\0")[:-1])


def _is_hidden(file: Path) -> bool:
    """Tell whether a sandbox does not show the file, be it through a link."""
    return any(file.resolve().is_relative_to(place) for place in _HIDDEN)


def _parse(output: bytes) -> tuple[list[dict[str, Variable]], int]:
    """Read the complete reports, and the status of the last one."""
    *words, _ = output.decode(errors="replace").split("\0")
    steps: list[dict[str, Variable]] = []
    current: dict[str, Variable] = {}
    status = 0
    left = iter(words[1:])  # without the word that says it started
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
    attributes, first, count = next(words), next(words), int(next(words))
    values = tuple([next(words) for _ in range(count)])
    return Variable(values=values, first=first, attributes=attributes.removesuffix("-"))


def _listed(files: Sequence[Path]) -> str:
    return " + ".join(str(file) for file in files)
