"""The command line: one small module per command, loaded only when it is called."""

from __future__ import annotations

import atexit
import errno
import gc
import importlib
import logging
import os
import select
import shlex
import signal
import sys
from typing import NoReturn

import click

from initadvisor import __version__
from initadvisor.cli.rendering.output import named_output, no_output
from initadvisor.core.errors import (
    LOADING_FAILURES,
    InitadvisorError,
    NeedsRootError,
    library_error,
)
from initadvisor.core.text import shown

SECTIONS = {
    "Every day": {
        "enable": "Have all of it done by itself from now on.",
        "disable": "Have nothing done by itself any more.",
        "recommend": "Which compression suits this machine.",
        "apply": "Change the compression, safely.",
        "rollback": "Go back to before the latest change.",
        "status": "What is configured, pending, and kept.",
        "report": "The answer as a page to look at and give away.",
    },
    "Experiment": {
        "trial": "Boot candidates one at a time, safely.",
        "lab": "Time and verify candidates in a virtual machine.",
        "whatif": "What if the disk, processor or overlap differed.",
        "candidates": "Build, list and prune candidates.",
        "inspect": "What is in an initramfs, and would it unpack.",
        "contents": "What the files of an image cost each boot.",
    },
    "Upkeep": {
        "measure": "Record what boots spent, and on what.",
        "history": "What was measured so far.",
        "doctor": "Is all there that is needed.",
        "config": "What is configured, and from where; change it.",
    },
}
"""The commands that ``--help`` shows, each with its line, importing none of them."""

COMMANDS = (*(name for commands in SECTIONS.values() for name in commands), "settle")
"""All commands; each is the function of that name in the module of that name."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used, so that ``--help`` stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, the main one first."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of one command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command = getattr(importlib.import_module(f"initadvisor.cli.{cmd_name}"), cmd_name)
        if not isinstance(command, click.Command):
            raise TypeError(cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is named first; of an unknown one, say what is spelt alike."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            near = get_close_matches(name, COMMANDS[:-1], n=1)
            ctx.fail(f"No such command {name!r}." + (f" Did you mean {near[0]}?" if near else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, importing none of them."""
        del ctx
        width = max(map(len, COMMANDS))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), line) for name, line in commands.items()])


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="initadvisor")
@click.option("-v", "--verbose", count=True, help="Log to stderr; twice: every program.")
@click.pass_context
def root(ctx: click.Context, verbose: int) -> None:
    """Find, by measuring, which initramfs compression boots this machine fastest."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
        return
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        ctx.color = False
    levels = [logging.WARNING, logging.INFO, logging.DEBUG]
    logging.basicConfig(
        level=levels[min(verbose, 2)],
        stream=sys.stderr,
        format="%(levelname)s %(name)s: %(message)s",
    )


def main() -> NoReturn:
    """Run the command line and exit with the code that initadvisor(1) documents."""
    # Without garbage left to look for, the interpreter is gone 15 ms earlier.
    atexit.register(gc.freeze)
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGHUP, _terminate)
    signal.signal(signal.SIGPIPE, _nobody_reads)
    sys.stdout = named_output()
    sys.stderr = sys.stderr or no_output()
    try:
        status = root(standalone_mode=False)
        sys.stdout.flush()  # later, nobody could say what is wrong with it
        sys.exit(status)
    except click.exceptions.Exit as err:
        sys.exit(err.exit_code)
    except click.ClickException as err:
        click.echo(f"initadvisor: {err.format_message()}{_advice(err)}", err=True)
        sys.exit(err.exit_code)
    except InitadvisorError as err:
        _end(err)
    except BrokenPipeError:
        _unwind_silently()
    except OSError as err:  # whatever no layer below had a better word for
        if lack := library_error(err, _running()):
            _end(lack)
        where = shown(f" {err.filename}") if err.filename else ""
        hint = " (free some room there, or write elsewhere)" if err.errno == errno.ENOSPC else ""
        click.echo(f"initadvisor: cannot use{where}: {err.strerror or err}{hint}", err=True)
        sys.exit(InitadvisorError.exit_code)
    except (KeyboardInterrupt, click.Abort):
        click.echo("initadvisor: interrupted", err=True)
        sys.exit(130)
    except LOADING_FAILURES as err:
        if lack := library_error(err, _running()):
            _end(lack)
        raise


def _running() -> str:
    return f"run {shlex.join(sys.argv[1:2])}".strip()


def _end(err: InitadvisorError) -> NoReturn:
    from initadvisor.host import Host
    from initadvisor.target.packages import what_to_do

    hint = what_to_do(Host(), err) or (_as_root() if isinstance(err, NeedsRootError) else None)
    line = f"initadvisor: {err.message}" + (f" ({hint})" if hint else "")
    click.echo(shown(line), err=True)
    sys.exit(err.exit_code)


def _advice(err: click.ClickException) -> str:
    if isinstance(err, click.NoSuchOption) and err.option_name.lstrip("-").isdecimal():
        return " (a setting is one word for the shell: 'zstd -19')"
    command = err.ctx.command_path if isinstance(err, click.UsageError) and err.ctx else None
    return f" (see {command} --help)" if command else ""


def _as_root() -> str:
    return f"run: sudo {shlex.join(['initadvisor', *sys.argv[1:]])}"


def _terminate(signum: int, _frame: object) -> NoReturn:
    """Unwind like an error does, so that SIGTERM or a hangup leaves nothing half-written."""
    raise SystemExit(128 + signum)


def _nobody_reads(_signum: int, _frame: object) -> None:
    """Unwind where it was the output's reader who went away; a program's is its caller's affair."""
    output = select.poll()
    for descriptor in (1, 2):
        output.register(descriptor, 0)
    if any(events & (select.POLLERR | select.POLLHUP) for _, events in output.poll(0)):
        _unwind_silently()


def _unwind_silently() -> NoReturn:
    nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    raise SystemExit(128 + signal.SIGPIPE)
