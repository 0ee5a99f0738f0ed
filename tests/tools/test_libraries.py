"""Without one of Python's libraries only what needs it stops, with a line that says what to do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from initadvisor.core.codecs import Codec
from initadvisor.doctor.software import MODULES
from tests.fixtures.small_images import archive
from tests.fixtures.waiting import HANGS_S

pytestmark = pytest.mark.tools

MISSING = "import sys; sys.modules[{name!r}] = None"
BROKEN = """
try:
    raise ImportError("lib{name}.so.3: cannot open shared object file", name="_{name}")
except ImportError as err:
    raise ImportError("READ THIS\\nand pages of advice") from err
"""

CANNOT_LOAD = """
raise OSError("lib{name}.so.3: cannot open shared object file")
"""
WAYS = {"missing": MISSING, "broken": BROKEN, "loads another": CANNOT_LOAD}

RUN = """
import contextlib, io, json, sys
from initadvisor.__main__ import main
from tests.fixtures.idle_programs import run_like_others
run_like_others()
results = []
for arguments in json.loads(sys.argv[1]):
    sys.argv[1:] = arguments
    out, err, status = io.StringIO(), io.StringIO(), None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            status = end.code
    results.append([status, out.getvalue(), err.getvalue()])
print(json.dumps(results))
"""
LOG = """\
[    0.000000] Linux version 6.12.1 (a@b)
[    0.500000] Trying to unpack rootfs image as initramfs...
[    1.100000] Freeing initrd memory: 42152K
[    1.500000] Run /init as init process
"""
CHOICE = ("--only", "gzip", "--only", "cat")
COMMANDS = {
    "version": ("--version",),
    "recommend": ("recommend", "--image", "gzip", *CHOICE),
    "recommend as JSON": ("recommend", "--image", "gzip", "--json", *CHOICE),
    "build": ("candidates", "build", "--image", "gzip", "--only", "cat"),
    "list": ("candidates", "list"),
    **{f"inspect {codec}": ("inspect", codec) for codec in ("gzip", "lz4", "lzop", "zstd")},
    "whatif": ("whatif", "--table", "arch-cloud"),
    "report": ("report", "--image", "gzip", "-o", "-"),
    "measure": ("measure", "--file", "log"),
    "backfill": ("measure", "--backfill"),
    "history": ("history",),
    "status": ("status",),
    "settle": ("settle",),
    "rollback": ("rollback",),
    "trials": ("trial", "status"),
}
"""Each of them succeeds where all libraries are there."""

STOPS = {
    "click": set(COMMANDS),
    "jinja2": {"report"},
    "lz4": {"recommend", "recommend as JSON", "inspect lz4", "report"},
    "lzo": {"inspect lzop"},
    "numpy": {"recommend", "recommend as JSON", "history", "report"},
    "psutil": {"build"},
    "pyudev": set[str](),
    "rich": {"build", "list"},
    "systemd": {"backfill"},
    "zstandard": {"inspect zstd", "report"},
}
"""What needs each library; lz4 is the measure that samples are held against."""


@dataclass(frozen=True, slots=True)
class Result:
    """How a command ended."""

    status: int | None
    out: str
    err: str


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with an image of each codec and a log."""
    directory = tmp_path_factory.mktemp("libraries")
    for codec in (Codec.GZIP, Codec.LZ4, Codec.LZOP, Codec.ZSTD):
        command = [codec, *(("-l",) if codec is Codec.LZ4 else ()), "-c"]
        done = subprocess.run(command, input=archive(), capture_output=True, check=True)
        (directory / codec).write_bytes(done.stdout)
    (directory / "log").write_text(LOG)
    return directory


def ran(place: Path, own: Path, library: str, way: str) -> dict[str, Result]:
    """Run all commands where this library is not there, or cannot be loaded."""
    name = "sitecustomize.py" if way == "missing" else f"{library}.py"
    (own / name).write_text(WAYS[way].format(name=library))
    search = (str(own), str(Path(__file__).parents[2]))
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(list(COMMANDS.values()))],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(search),
            "STATE_DIRECTORY": str(own / "state"),
            "CACHE_DIRECTORY": str(own / "cache"),
        },
        cwd=place,
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    return {name: Result(*found) for name, found in zip(COMMANDS, results, strict=True)}


def test_every_library_is_taken_away() -> None:
    assert set(STOPS) == set(MODULES)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("library", STOPS)
def test_what_needs_it_stops_with_one_line_and_nothing_else(
    place: Path, tmp_path: Path, library: str, way: str
) -> None:
    for command, result in ran(place, tmp_path, library, way).items():
        if command not in STOPS[library]:
            assert result.status in {None, 0}, (command, result)
            continue
        assert result.status == 1, (command, result)
        [line] = result.err.splitlines()
        why = (
            "is not installed"
            if way == "missing"
            else rf"cannot be loaded: lib{library}\.so\.3: cannot open"
        )
        assert re.search(rf"the Python module {library} {why}.*\(.* python3?-{library}\)$", line)
