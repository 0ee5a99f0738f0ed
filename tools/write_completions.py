"""Writes the completions of bash, zsh and fish from the commands, so that no shell starts Python.

    write_completions.py DIRECTORY

``tests/unit/cli/test_completion.py`` compares them with those in ``completions``.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from initadvisor.cli import SECTIONS, root


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What an option or argument takes: one of ``words``, or a file; without both, anything."""

    words: tuple[str, ...] = ()
    files: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option; ``values`` is None where it takes none."""

    names: tuple[str, ...]
    told: str
    values: Values | None = None
    multiple: bool = False

    @property
    def metavar(self) -> str:
        """What its value is called."""
        return self.names[-1].lstrip("-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command: the words that call it, and its subcommands, each with its line of help.

    ``after``: what its second argument takes, by the word that is its first.
    """

    path: str
    options: tuple[Option, ...]
    arguments: tuple[Values, ...]
    subcommands: dict[str, str]
    after: dict[str, Values]

    @property
    def option_names(self) -> tuple[str, ...]:
        """All names of its options."""
        return tuple(name for option in self.options for name in option.names)


_LINES = {name: line for commands in SECTIONS.values() for name, line in commands.items()}


def commands_of(command: click.Command, path: str = "") -> list[Command]:
    """Return a command and those below it, but for what is hidden."""
    context = click.Context(command)
    shown: dict[str, click.Command] = {}
    if isinstance(command, click.Group):
        inner = {
            name: command.get_command(context, name) for name in command.list_commands(context)
        }
        shown = {name: found for name, found in inner.items() if found and not found.hidden}
    options = [
        Option(
            names=tuple(option.opts),
            told=_plain(option.help or ""),
            values=None if option.is_flag or option.count else _values(option, context),
            multiple=option.multiple or option.count,
        )
        for option in command.get_params(context)
        if isinstance(option, click.Option) and not option.hidden
    ]
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    first = tuple(_values(argument, context) for argument in arguments)
    own = Command(
        path=path,
        options=tuple(options),
        arguments=first,
        after={
            word: _values(second, context, **{str(arguments[0].name): word})
            for second in arguments[1:]
            for word in first[0].words
        },
        subcommands={
            name: _plain(found.get_short_help_str(100) if path else _LINES[name])
            for name, found in shown.items()
        },
    )
    below = (commands_of(found, f"{path} {name}".strip()) for name, found in shown.items())
    return [own, *(found for every in below for found in every)]


def _values(parameter: click.Parameter, context: click.Context, **before: str) -> Values:
    context.params.update(before)
    items = parameter.shell_complete(context, "")
    return Values(
        words=tuple(item.value for item in items if item.type == "plain"),
        files=any(item.type == "file" for item in items),
    )


def _plain(text: str) -> str:
    return text.replace("'", "\N{RIGHT SINGLE QUOTATION MARK}").rstrip(".")


def _quoted(word: str) -> str:
    return word if re.fullmatch(r"[\w./=-]+", word) else f"'{word}'"


def _words(words: tuple[str, ...]) -> str:
    return " ".join(map(_quoted, words))


def bash(commands: list[Command]) -> str:
    """Return the completion of bash."""
    places: dict[Values, list[str]] = {}
    for command in commands:
        for option in command.options:
            for name in option.names if option.values else ():
                places.setdefault(option.values or Values(), []).append(f"{command.path} {name}")
        for word, values in command.after.items():
            places.setdefault(values, []).append(f"{command.path} {word}")
    return _filled(
        _BASH,
        GROUPS=" | ".join(one.path for one in commands if one.subcommands and one.path),
        VALUES="\n".join(
            f"    {_alternatives(found)}) {_offer(values)} ;;" for values, found in places.items()
        ),
        COMMANDS="\n".join(
            f"        '{one.path} {start}'*) {_offer(values)} ;;"
            for one in reversed(commands)  # a group's own words begin those of its commands
            for start, values in (("-", Values(words=one.option_names)), ("", _first(one)))
            if not (start and values == _first(one))
        ),
    )


def _alternatives(places: list[str]) -> str:
    return " | ".join(f"'{place}'" for place in places)


def _first(command: Command) -> Values:
    """Return what is offered before anything is typed: what a command needs, or its options."""
    if command.subcommands:
        return Values(words=tuple(command.subcommands))
    if command.arguments:
        return command.arguments[0]
    return Values(words=command.option_names)


def _offer(values: Values) -> str:
    parts = [f"offered=({_words(values.words)})"] if values.words else []
    parts += ["files=yes"] if values.files else []
    return " ".join(parts) or ":"


_BASH = """\
# Completion for bash-completion(1). Written by tools/write_completions.py.

_initadvisor() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local path="" files="" quoted="" number word escaped
    local -a offered=()
    COMPREPLY=()
    # Words that hold one another (--image=FILE) come apart in COMP_WORDS.
    if [[ $current == = ]]; then
        current=""
    elif [[ $previous == = ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    for ((number = 1; number < COMP_CWORD; number++)); do
        word=${COMP_WORDS[number]}
        [[ $word == -* ]] && continue
        path+="${path:+ }$word"
        case $path in @GROUPS@) ;; *) break ;; esac
    done
    case "$path $previous" in
@VALUES@
    *)
        case "$path $current" in
@COMMANDS@
        esac
        ;;
    esac
    if [[ $current == [\\"\\']* ]]; then
        quoted=yes current=${current:1}
    fi
    for word in "${offered[@]}"; do
        printf -v escaped %q "$word"
        if [[ $quoted && $word == "$current"* ]]; then
            COMPREPLY+=("$word")
        elif [[ ! $quoted && $escaped == "$current"* ]]; then
            COMPREPLY+=("$escaped")
        fi
    done
    if [[ $files ]]; then
        compopt -o default
    fi
}

complete -o nosort -F _initadvisor initadvisor
"""


def zsh(commands: list[Command]) -> str:
    """Return the completion of zsh."""
    lists = dict.fromkeys(
        values
        for command in commands
        for values in (*command.arguments, *(option.values for option in command.options))
        if values and values.words
    )
    names = {values: f"_initadvisor_values_{number}" for number, values in enumerate(lists, 1)}
    functions = [
        f"{name}() {{\n    local -a values=({_words(values.words)})\n"
        + ("    _files\n" if values.files else "")
        + '    compadd "$@" -a values\n}\n'
        for values, name in names.items()
    ]
    functions += [_zsh_command(command, names) for command in reversed(commands)]
    return _filled(_ZSH, FUNCTIONS="\n".join(functions))


def _zsh_command(command: Command, names: dict[Values, str]) -> str:
    def action(values: Values) -> str:
        return names.get(values, "_files" if values.files else " ")

    specs = []
    for option in command.options:
        told = re.sub(r"([\[\]:\\])", r"\\\1", option.told)
        value = f":{option.metavar}:{action(option.values)}" if option.values else ""
        for name in option.names:
            mark = "=" if option.values and name.startswith("--") else ""
            specs.append(f"{'*' if option.multiple else ''}{name}{mark}[{told}]{value}")
    function = f"_initadvisor {command.path}".strip().replace(" ", "_")
    first = command.arguments[:1] if command.after else command.arguments
    specs += [f"::value:{action(values)}" for values in first]
    specs += [f"::value:{function}_after"] if command.after else []
    if command.subcommands:
        specs += ["1:command:->command", "*::argument:->argument"]
    lines = " \\\n        ".join(f"'{spec}'" for spec in specs)
    if not command.subcommands:
        own = f"{function}() {{\n    _arguments \\\n        {lines}\n}}\n"
        return _zsh_after(command, function) + own
    listed = "\n".join(
        f"        '{name}:{line.replace(':', chr(92) + ':')}'"
        for name, line in command.subcommands.items()
    )
    return (
        f"{function}() {{\n    local state line\n    local -a commands=(\n{listed}\n    )\n"
        f"    _arguments -C \\\n        {lines}\n    case $state in\n"
        "        command) _describe -V command commands ;;\n"
        f"        argument) (( $+functions[{function}_${{line[1]}}] )) && "
        f"{function}_${{line[1]}} ;;\n    esac\n}}\n"
    )


def _zsh_after(command: Command, function: str) -> str:
    """Return the function that offers what the second argument takes, where it depends."""
    if not command.after:
        return ""
    cases = "\n".join(
        f'        {word}) compadd "$@" {_words(values.words)} ;;'
        for word, values in command.after.items()
        if values.words
    )
    return f"{function}_after() {{\n    case $words[CURRENT-1] in\n{cases}\n    esac\n}}\n\n"


_ZSH = """\
#compdef initadvisor
# Written by tools/write_completions.py.

@FUNCTIONS@
_initadvisor "$@"
"""


def fish(commands: list[Command]) -> str:
    """Return the completion of fish."""
    lines = []
    for command in commands:
        at = f"complete -c initadvisor -n '__initadvisor_at \"{command.path}\"'"
        lines += [f"{at} -a {name} -d '{line}'" for name, line in command.subcommands.items()]
        if not command.after:
            lines += [f"{at} {_fish_values(values)}" for values in command.arguments[:1]]
        else:
            lines += [
                f"{at[:-1]}; and test (commandline -opc)[-1] = {word}' {_fish_values(values)}"
                for word, values in {
                    command.path.split()[-1]: command.arguments[0],
                    **command.after,
                }.items()
                if values.words
            ]
        for option in command.options:
            named = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in option.names
            )
            takes = f" -r {_fish_values(option.values)}" if option.values else ""
            lines.append(f"{at} {named}{takes} -d '{option.told}'")
    return _filled(
        _FISH,
        GROUPS=" ".join(one.path for one in commands if one.subcommands and one.path),
        LINES="\n".join(lines),
    )


def _fish_values(values: Values) -> str:
    words = f'-a "{_words(values.words)}"' if values.words else ""
    return f"{'-F' if values.files else '-f'} {words}".strip()


_FISH = """\
# Written by tools/write_completions.py.

function __initadvisor_at
    set -l path
    for word in (commandline -opc)[2..]
        string match -q -- '-*' $word; and continue
        set -a path $word
        contains -- "$path" @GROUPS@; or break
    end
    test "$path" = "$argv[1]"
end

complete -c initadvisor -f
@LINES@
"""


def _filled(template: str, **parts: str) -> str:
    for name, text in parts.items():
        template = template.replace(f"@{name}@", text)
    return template


def main() -> None:
    """Write the three files into the directory that is named."""
    directory, commands = Path(sys.argv[1]), commands_of(root)
    for shell, text in (("bash", bash), ("zsh", zsh), ("fish", fish)):
        (directory / f"initadvisor.{shell}").write_text(text(commands), encoding="utf-8")


if __name__ == "__main__":
    main()
