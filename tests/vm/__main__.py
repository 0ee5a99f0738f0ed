"""Guests by hand, to see what a test saw: see docs/guests.md."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fixtures.debian import Suite
from tests.vm.guest import Generator, Guest, Loader, Recipe, guest
from tests.vm.journal import journal
from tests.vm.machine import Machine, qemu

_SHELL = "systemd.debug_shell systemd.default_debug_tty=ttyS0"


def main() -> None:
    """Parse the command line and do what it says."""
    arguments = _parser().parse_args()
    recipe = Recipe(suite=arguments.suite, generator=arguments.generator, loader=arguments.loader)
    made = guest(recipe)
    if arguments.command == "build":
        sys.stdout.write(f"{made.directory}\n")
    elif arguments.command == "boot":
        _boot(_copy(made, arguments.copy), arguments)
    else:
        _journal(_copy(made, arguments.copy))


def _copy(made: Guest, directory: Path) -> Guest:
    """Return the copy in this directory, which is made when it is not there."""
    if directory.exists():
        return Guest(recipe=made.recipe, directory=directory, release=made.release)
    return made.copied_to(directory)


def _boot(copy: Guest, arguments: argparse.Namespace) -> None:
    """Connect this terminal to the guest's console, on which there is a root shell."""
    machine = Machine(
        deterministic=arguments.deterministic,
        bare_metal=arguments.bare_metal,
        extra_command_line="" if arguments.no_shell else _SHELL,
    )
    with tempfile.TemporaryDirectory() as scratch:
        argv = qemu(copy, machine, {}, direct=arguments.direct, scratch=Path(scratch))
        subprocess.run(argv, check=True)


def _journal(copy: Guest) -> None:
    for boot in journal(copy.disk):
        sys.stdout.write(f"-- boot {boot.boot_id}\n")
        sys.stdout.writelines(f"{message}\n" for message in boot.messages())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.vm", description=__doc__)
    parser.add_argument("--suite", type=Suite, default=Suite.TRIXIE)
    parser.add_argument("--generator", type=Generator, default=Generator.INITRAMFS_TOOLS)
    parser.add_argument("--loader", type=Loader, default=Loader.SYSTEMD_BOOT)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="make the guest and say where it is")
    booted = commands.add_parser("boot", help="boot a copy of it on this terminal")
    booted.add_argument("copy", type=Path, help="where the copy is, or will be made")
    booted.add_argument("--direct", action="store_true", help="without firmware and loader")
    booted.add_argument("--deterministic", action="store_true")
    booted.add_argument("--bare-metal", action="store_true")
    booted.add_argument("--no-shell", action="store_true", help="the command line as it is")
    shown = commands.add_parser("journal", help="show the journal of a copy")
    shown.add_argument("copy", type=Path)
    return parser


if __name__ == "__main__":
    main()
