"""The man pages say all that the commands can do, and nothing else."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from initadvisor import __version__
from initadvisor.cli import COMMANDS, root
from initadvisor.core.config import _KEYS, Config, Policy
from initadvisor.daemon import __main__ as initadvisord
from initadvisor.daemon.notes import NoteReason
from initadvisor.decide.upgrades import ASSUMED_BOOTS
from tests.fixtures.golden_documents import GOLDEN

if TYPE_CHECKING:
    from collections.abc import Iterator

MAN = Path(__file__).parents[2] / "man"
PAGES = sorted(path.name for path in MAN.iterdir())
REASONS_OF_HOOKS = {NoteReason.KERNEL_ADDED, NoteReason.KERNEL_REMOVED, NoteReason.IMAGE_REBUILT}
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def plain(page: str) -> str:
    """Return a page's text without roff's escapes and font requests."""
    text = (MAN / page).read_text(encoding="utf-8")
    return re.sub(r"\\f.", "", text.replace(r"\-", "-").replace('"', ""))


def loaded(command: str) -> click.Command:
    """Return a command of the root group."""
    found = root.get_command(click.Context(root), command)
    assert found is not None
    return found


def options(command: click.Command) -> Iterator[str]:
    """Yield every long option of a command and its subcommands."""
    if isinstance(command, click.Group):
        for sub in command.commands.values():
            yield from options(sub)
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield from (name for name in parameter.opts if name.startswith("--"))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_in_the_command_s_page_and_no_other(command: str) -> None:
    stated = set(OPTION.findall(plain(f"initadvisor-{command}.1")))
    # Options of other programs that a page speaks of are not ours to have.
    assert stated == set(options(loaded(command)))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_subcommand_is_in_the_page(command: str) -> None:
    group = loaded(command)
    for name in getattr(group, "commands", {}):
        assert f"initadvisor {command} {name}" in plain(f"initadvisor-{command}.1")


def test_tables_break_over_pages_where_they_may() -> None:
    """groff warns of a text block that a page's end falls into, and lintian of groff's warnings."""
    for page in PAGES:
        text = (MAN / page).read_text(encoding="utf-8")
        assert text.count(".TS\n") == text.count(".TS\nnokeep;\n"), page


def test_the_main_page_names_every_command_and_global_option() -> None:
    page = plain("initadvisor.1")
    for command in COMMANDS:
        assert f"initadvisor-{command} (1)" in page
    for name in options(click.Command("root", params=root.params)):
        assert name in page


def test_the_daemon_s_page_names_its_options_units_and_hooks() -> None:
    page = plain("initadvisord.8")
    parser = initadvisord._parser()
    for action in parser._actions:
        assert all(option in page for option in action.option_strings)
    names = [path.name for path in (MAN.parent / "systemd").glob("initadvisord*")]
    names += [path.name for path in (MAN.parent / "hooks").rglob("*initadvisor*")]
    assert len(names) >= 10
    assert all(name in page for name in names)
    assert all(reason in page for reason in (*REASONS_OF_HOOKS, *Policy))


def test_the_configuration_page_names_every_key_and_default() -> None:
    page = plain("initadvisor.toml.5")
    defaults = Config()
    for table, keys in _KEYS.items():
        assert f"[{table}]" in page
        for key in keys:
            assert re.search(rf"^\.BI {key} ", page, re.MULTILINE), key
    for field in dataclasses.fields(Config):
        value = getattr(defaults, field.name)
        if isinstance(value, float):
            assert str(value) in page
    assert str(defaults.cache_limit_bytes // 1_000_000) in page
    assert str(ASSUMED_BOOTS) in page


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_dated_with_the_version_and_formats_without_complaint(page: str) -> None:
    assert f"initadvisor {__version__}" in (MAN / page).read_text(encoding="utf-8")
    groff = shutil.which("groff")
    assert groff is not None, "groff is missing; tools/setup test installs it"
    done = subprocess.run(
        [groff, "-t", "-man", "-Tutf8", "-ww", "-z", str(MAN / page)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_one_that_mandoc_reads_too(page: str) -> None:
    mandoc = shutil.which("mandoc")
    assert mandoc is not None, "mandoc is missing; tools/setup test installs it"
    command = [mandoc, "-Tlint", "-W", "warning", str(MAN / page)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if "missing date" not in line]
    assert found == []  # what dates a page is the version


@pytest.mark.parametrize("page", PAGES)
def test_a_page_that_describes_json_does_so_in_tables(page: str) -> None:
    text = (MAN / page).read_text(encoding="utf-8")
    described = text.partition("\n.SH JSON\n")[2].partition("\n.SH ")[0]
    assert bool(described) is (".TS" in described)
    assert (".TS" in text) is text.startswith("'\\\" t\n")  # has man(1) run tbl(1)


@pytest.mark.parametrize(
    "command", ["config", "contents", "enable", "history", "measure", "recommend", "whatif"]
)
def test_the_tables_have_every_key_of_the_document(command: str) -> None:
    text = (MAN / f"initadvisor-{command}.1").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\\fB(\w+)\\fR\t", text, re.MULTILINE))
    document = json.loads((GOLDEN / "json" / f"{command}.json").read_text(encoding="utf-8"))
    inner = document.get("recommendation", {})
    named = {one for one in document if f'.SS "{one}: ' in text}  # a table of its own
    assert {*document, *inner} - {"schema"} - named <= rows
