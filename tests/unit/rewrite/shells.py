"""What a real shell makes of configuration texts, sourced one after the other."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.model.shell import Shell
from tests.fixtures.waiting import HANGS_S

if TYPE_CHECKING:
    from collections.abc import Sequence

# As mkinitcpio does it (arrayize_config): what is no array is split at spaces.
_BASH = r"""
shopt -s extglob
for file; do . "$file" >/dev/null 2>&1; done
set -f
for name in $NAMES; do
    declare -n value=$name
    text=$value
    if [[ ${value@a} != *[aA]* ]]; then
        IFS=' ' read -r -a list <<<"$value"
        value=("${list[@]}")
    fi
    printf '%s\0' "$name" "$((${#value[@]} + 1))" "$text" "${value[@]}"
    unset -n value
done
"""
_SH = r"""
for file; do . "$file" >/dev/null 2>&1; done
for name in $NAMES; do
    eval "printf '%s\0' $name 1 \"\${$name-}\""
done
"""


@dataclass(frozen=True, slots=True)
class Values:
    """The variables as the shell has them at the end: ``$NAME``, then the elements."""

    values: dict[str, list[str]]

    def text(self, name: str) -> str:
        """Return what ``$NAME`` gives."""
        return self.values[name][0]

    def words(self, name: str) -> tuple[str, ...]:
        """Return the elements, or what is between the spaces of a string."""
        return tuple(self.values[name][1:])


def values_of(texts: Sequence[str], names: Sequence[str], *, shell: Shell) -> Values:
    """Have ``shell`` source the texts and return the variables."""
    with tempfile.TemporaryDirectory() as directory:
        files = []
        for index, text in enumerate(texts):
            file = Path(directory) / f"{index}"
            file.write_bytes(text.encode(errors="surrogateescape"))
            files.append(str(file))
        options = ("--noprofile", "--norc") if shell is Shell.BASH else ()
        script = _BASH if shell is Shell.BASH else _SH
        done = subprocess.run(
            [shell.value, *options, "-c", script, shell.value, *files],
            env={"PATH": os.defpath, "LC_ALL": "C.UTF-8", "NAMES": " ".join(names)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=HANGS_S,
            check=True,
        )
    words = iter(done.stdout.decode(errors="surrogateescape").split("\0")[:-1])
    return Values({name: [next(words) for _ in range(int(next(words)))] for name in words})


def is_readable(text: str, *, shell: Shell) -> bool:
    """Tell whether a shell finds no error in how a text is written; it runs none of it."""
    argv = [shell.value, "-n"]
    done = subprocess.run(
        argv, check=False, input=text.encode(), capture_output=True, timeout=HANGS_S
    )
    return done.returncode == 0
