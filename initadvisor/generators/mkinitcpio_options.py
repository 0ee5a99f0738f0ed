"""Reads options of mkinitcpio's command line as its ``parseopts`` does (script ``functions``).

Short options may be bundled, with a value joined or in the next word; long ones may be cut short as
long as that is clear, with a value after ``=`` or in the next word. Values are not empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from initadvisor.core.errors import InitadvisorError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_SHORT = "A:c:D:I:g:H:hk:nLMPp:Rr:S:sd:t:U:Vvz:"
_LONG = (
    *("add:", "addhooks:", "include:", "config:", "generate:", "hookdir:", "hookhelp:", "help"),
    *("kernel:", "listhooks", "automods", "moduleroot:", "nocolor", "nopost", "allpresets"),
    *("preset:", "remove", "skiphooks:", "save", "generatedir:", "builddir:", "version"),
    *("verbose", "compress:", "uki:", "uefi:", "microcode:", "splash:", "kernelimage:"),
    *("uefistub:", "cmdline:", "osrelease:", "no-cmdline", "ukiconfig:", "no-ukify"),
)
"""Those of version 41; earlier ones have no others. A colon: it takes a value."""

_SAME: Final = {
    "--compress": "-z",
    "--config": "-c",
    "--kernel": "-k",
    "--generate": "-g",
    "--uki": "-U",
    "--uefi": "-U",
    "--preset": "-p",
    "--allpresets": "-P",
    "--microcode": "-P",  # it goes on as that one
    "--help": "-h",
    "--hookhelp": "-H",
    "--listhooks": "-L",
    "--automods": "-M",
    "--version": "-V",
    "--builddir": "-t",
    "--generatedir": "-d",
    "--hookdir": "-D",
    "--moduleroot": "-r",
}

NO_IMAGE: Final = frozenset({"-p", "-P", "-h", "-H", "-L", "-M", "-V"})
"""Options with which a preset makes no image."""

PATHS: Final = frozenset(
    {"--splash", "--kernelimage", "--uefistub", "--cmdline", "--osrelease", "--ukiconfig"}
    | {"-D", "-d", "-r", "-t"}
)
"""Options whose value is a path that has to exist."""

Option = tuple[str, str | None]
"""An option, by its short name where what it does is of interest here, and its value."""


def parsed(words: Sequence[str]) -> tuple[Option, ...]:
    """Return the options; what is none is left out, as mkinitcpio does.

    Raises ``InitadvisorError``, which says what it would say, where mkinitcpio stops.
    """
    found: list[Option] = []
    left = iter((*words, ""))
    for word in left:
        if word == "--":
            break
        if word.startswith("--"):
            found.append(_long(word.removeprefix("--"), left))
        elif word.startswith("-") and word != "-":
            found += _bundle(word.removeprefix("-"), left)
    return tuple((_SAME.get(name, name), value) for name, value in found)


def _bundle(letters: str, following: Iterator[str]) -> Iterator[Option]:
    for at, letter in enumerate(letters, start=1):
        if letter == ":" or letter not in _SHORT:
            msg = f"invalid option -- {letter!r}"
            raise InitadvisorError(msg)
        if f"{letter}:" in _SHORT:
            yield f"-{letter}", _value(f"-{letter}", letters[at:], following)
            return
        yield f"-{letter}", None


def _long(text: str, following: Iterator[str]) -> Option:
    line = text.partition("\n")[0]  # read(1) takes one line, and no single = at its end
    name, _, value = line.partition("=")
    if value.find("=") == len(value) - 1:
        value = value.removesuffix("=")
    known = {option.removesuffix(":"): option.endswith(":") for option in _LONG}
    fitting = [name] if name in known else [each for each in known if each.startswith(name)]
    if len(fitting) != 1:
        problem = "is ambiguous" if fitting else "is not known"
        msg = f"option '--{name}' {problem}"
        raise InitadvisorError(msg)
    option = f"--{fitting[0]}"
    if known[fitting[0]]:
        return option, _value(option, value, following)
    if value:
        msg = f"option '{option}' doesn't allow an argument"
        raise InitadvisorError(msg)
    return option, None


def _value(option: str, joined: str, following: Iterator[str]) -> str:
    value = joined or next(following, "")
    if not value:
        msg = f"option '{option}' requires an argument"
        raise InitadvisorError(msg)
    return value
