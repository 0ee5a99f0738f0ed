"""Expressions: what the shell computes where it reads a word, and may set a variable by.

Arithmetic takes the value of a variable for an expression in turn (bash(1), "Arithmetic
Evaluation"), so that it is harmless only with variables that hold numbers. Commands are looked at
as they are written: what single quotes keep from the shell counts as well.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from initadvisor.rewrite.syntax import Array

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from initadvisor.rewrite.syntax import Command


_OPENING = re.compile(
    r"""
      (?P<arithmetic> \(\( )
    | (?P<old> \$\[ )
    | (?P<subscript> \$?\{ \#? \w+ \[ (?! (?:[0-9]+|[@*]) \] ) )
    | (?P<substring> \$\{ (?:\w+|[@*\#?$-]) (?: \[ (?:[0-9]+|[@*]) \] )? : (?![-=?+]) )
    | (?P<any> \$\{ (?: [ \t\n|(!] | (?:\w+|[@*]) (?: \[ (?:[0-9]+|[@*]) \] )? @P ) )
    """,
    re.VERBOSE,
)
_CLOSING = {"arithmetic": ("(", ")"), "old": ("[", "]"), "subscript": ("[", "]")}
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_LENGTH = re.compile(r"\"?\$(?:\{#\w+(?:\[[@*]\])?\}|[#?])\"?")
_EXPANDED = re.compile(r"\"?\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})\"?")
_COMPUTED = frozenset("$`[\\\"'")
_COMPARING = re.compile(r"(?<!\S)-(?:eq|ne|lt|le|gt|ge|v|R)(?!\S)")
_NUMBER = re.compile(r"[-+]?[0-9]*|\$\(\([^()]*\)\)")
_COUNTED = re.compile(r"\b([A-Za-z_]\w*)\s*(?:[-+*/%]?=(?!=)|\+\+|--)")
_INDEX = re.compile(r"\[([^]]*)\]\+?=")
_INTEGERS = frozenset({"BASHPID", "HISTCMD", "OPTIND", "RANDOM", "SECONDS", "SRANDOM"})
"""Variables that bash computes what is assigned to, whoever declares them."""

_LOOP = re.compile(r"\A(?:for|select)\s+([A-Za-z_]\w*)")


def numbers(commands: Iterable[Command], text: str) -> tuple[set[str], set[str]]:
    """Return the variables that commands set to numbers, and those that they set to anything."""
    found: set[str] = set()
    others: set[str] = set()
    for command in commands:
        for each in command.assignments:
            raw = text[each.value.start : each.value.end]
            (found if each.whole and _NUMBER.fullmatch(raw) else others).add(each.name)
        others.update(loop_names(command, text))
        for expression in _expressions(_code(command, text)):
            found.update(_COUNTED.findall(expression or ""))
    return found, others


def loop_names(command: Command, text: str) -> set[str]:
    """Return the variable that a loop goes through its words with."""
    if command.words or command.assignments or command.test:
        return set()
    return {*_LOOP.findall(text[command.start : command.end])}


def may_set_any(command: Command, text: str, numbers: Collection[str]) -> bool:
    """Tell whether an expression in a command may set a variable that it does not name.

    ``numbers`` are the variables that are known to hold numbers.
    """
    code = _code(command, text)
    found = [*_expressions(code), *_computed(command, text)]
    if command.test:  # what [[ compares as numbers is arithmetic
        parts = re.split(r"&&|\|\|", code.strip("[] \t\n"))
        found += [_COMPARING.sub("-", part) for part in parts if _COMPARING.search(part)]
    return any(each is None or _is_open(each, numbers) for each in found)


def may_set(command: Command, text: str, name: str) -> bool:
    """Tell whether an expression in a command may set ``name``, which it spells."""
    code = _code(command, text)
    if re.search(rf"\$\{{{name}(?:\[(?:[0-9]+|[@*])\])?:?=", code):
        return True
    if re.search(rf"\{{{name}(?:\[[^]\n{{]*\])?\}}[<>&]", code):  # the number of a descriptor
        return True
    spelled = re.compile(rf"(?<![A-Za-z0-9_]){name}(?![A-Za-z0-9_])")
    found = (*_expressions(code), *_computed(command, text))
    compared = command.test and _COMPARING.search(code) and spelled.search(code)
    return bool(compared) or any(each is not None and spelled.search(each) for each in found)


_READ = re.compile(r"\$(?:\{[#!]?)?([A-Za-z_]\w*|[0-9]+|[@*#$!-])")
_OTHER_LANGUAGE = re.compile(
    r"(?<![\w./-])(?:[gm]?awk|sed|perl|jq)(?:[ \t]+-[^\s'\"|;&()]+)*[ \t]+'[^']*'"
)
"""A text of another language, in which a dollar sign is something else."""
_INDIRECT = re.compile(r"\$\{!([A-Za-z_]\w*)\}")
_SUBSTITUTED = re.compile(r"\$\([^()]*\)")
_ASKED = re.compile(r"\[.*(?<!\S)-[vR][ \t]+([A-Za-z_]\w*)|\btest[ \t]+-v[ \t]+([A-Za-z_]\w*)")
_CALLED = re.compile(
    r"(?:\A|[;&|(`{!\n]|\b(?:command|declare|do|elif|else|hash|if|then|type|typeset|unset|until|while))"
    r"[ \t]*(?:-\w+[ \t]+)*(?=([A-Za-z_][\w-]*)(?![\w./=-]))"
)
_REFERRING = re.compile(r"-[A-Za-z]*[in]")
_SHELLS_OWN = frozenset(
    {"BASH_REMATCH", "BASH_VERSINFO", "BASH_VERSION", "HOSTNAME", "HOSTTYPE", "IFS", "MACHTYPE"}
    | {"OSTYPE", "PIPESTATUS", "REPLY"}
)
"""Variables that are the same in every shell of a machine, or what a file itself makes them."""
_DEVICES_AND_SERVICES = (
    "blkid|busctl|cryptsetup|curl|dmsetup|findfs|hostnamectl|ip|localectl|loginctl|lsblk|lvs|mdadm"
    "|networkctl|nmcli|ping|pvs|resolvectl|smartctl|systemctl|timedatectl|udevadm|vgs|wget|zfs"
    "|zpool"
)
_ELSEWHERE = re.compile(
    rf"""
      (?<![\w.$}}/-]) / (?: run | tmp | var/run | var/tmp | dev (?! /(?:null|zero|random|fd|std)) )
      (?: /[\w./-]* | (?![\w.-]) )
    | /proc/ (?: self | thread-self | [0-9]+ | \$ )
    | (?<![\w./${{-]) (?:
          (?: caller | compgen | dirs | groups | id | jobs | logname | pgrep | pidof | printenv | ps
            | pwd | times | tty | ulimit | umask | who | whoami | {_DEVICES_AND_SERVICES} )
          (?! [\w./=-] )
        | (?: alias | declare | env | export | readonly | set | trap | typeset )
          (?= [ \t]* (?: [|);<>`&\n] | \Z ) )
        | (?: declare | export | readonly | trap | typeset ) [ \t]+-[fFp]+ (?! [\w-] )
        | (?: \[\[? | test ) [ \t] (?: [^;(\n]* [ \t] )? (?P<tested> -[wOGNt] ) (?= [ \t] )
      )
    """,
    re.VERBOSE,
)


def facts_read(command: Command, text: str) -> set[str]:
    """Return what a command may look at that is not the same in every process of a machine.

    These are variables and parameters (``$NAME``), files, devices and services that a process may
    see or not, its user and what it may do, its shell's state.
    """
    code = _code(command, text)
    asked = {name for names in _ASKED.findall(code) for name in names if name}
    found = {*_READ.findall(_OTHER_LANGUAGE.sub("", code)), *asked, *_computed_names(command, code)}
    matches = _ELSEWHERE.finditer(code)
    elsewhere = {" ".join((match["tested"] or match[0]).split()) for match in matches}
    return {f"${name}" for name in found - _SHELLS_OWN} | elsewhere


def names_followed(command: Command, text: str) -> set[str]:
    """Return the variables whose values a command takes for names of others, or expressions."""
    code = _code(command, text)
    found = {*_INDIRECT.findall(code), *_computed_names(command, code)}
    if any(_REFERRING.fullmatch(word.value or "") for word in command.words[1:]):
        found.update(assignment.name for assignment in command.assignments)
    return found


def functions_asked(command: Command, text: str) -> set[str]:
    """Return the names of commands and functions that a command runs or asks about."""
    return {*_CALLED.findall(_code(command, text))}


def names_in(text: str) -> list[str]:
    """Return the words of a text that may be names of variables."""
    return _IDENTIFIER.findall(text)


def _computed_names(command: Command, code: str) -> Iterator[str]:
    expressions = [*_expressions(code)]
    if command.test and _COMPARING.search(code):
        expressions.append(_COMPARING.sub("", code))
    for expression in expressions:
        yield from _IDENTIFIER.findall(_SUBSTITUTED.sub("", expression or ""))


def _code(command: Command, text: str) -> str:
    return text[command.start : command.end].replace("\\\n", "")


def _computed(command: Command, text: str) -> Iterator[str]:
    """Yield what is in the brackets of ``NAME[...]=`` and of ``NAME=([...]=...)``.

    Also what bash's own integers are set to.
    """
    options = [w.value for w in command.words if w.value and w.value.startswith("-")]
    associative = any("A" in option for option in options)
    for assignment in command.assignments:
        if assignment.name in _INTEGERS:
            yield text[assignment.value.start : assignment.value.end]
        if not assignment.whole:
            start = assignment.start + len(assignment.name) + 1
            yield text[start : text.index("=", text.index("]", start))].rstrip("+").rstrip("]")
        if isinstance(assignment.value, Array) and not associative:
            for word in assignment.value.elements:
                if text[word.start] == "[":
                    index = _INDEX.match(text, word.start, word.end)
                    yield index[1] if index else text[word.start : assignment.value.end]


def _expressions(code: str) -> Iterator[str | None]:
    """Yield the expressions of a command, the outer ones whole; None for what may be anything."""
    at = 0
    while match := _OPENING.search(code, at):
        at = match.end()
        kind = match.lastgroup or ""
        if kind == "any":
            yield None
            continue
        opening, closing = _CLOSING.get(kind, ("{", "}"))
        depth = 2 if kind == "arithmetic" else 1
        end = at
        while end < len(code) and depth:
            depth += (code[end] == opening) - (code[end] == closing)
            end += 1
        yield code[at:end].rstrip(closing)
        at = end


def _is_open(expression: str, numbers: Collection[str]) -> bool:
    """Tell whether an expression depends on more than numbers."""
    rest = _LENGTH.sub("0", expression)
    names = [first or second for first, second in _EXPANDED.findall(rest)]
    rest = _EXPANDED.sub("0", rest)
    names += _IDENTIFIER.findall(rest)
    return not _COMPUTED.isdisjoint(rest) or any(name not in numbers for name in names)
