"""Making the images of ``tests.fixtures.variants.tools`` with this machine's tools."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from pathlib import Path

from tests.fixtures.collection import write_collection
from tests.fixtures.variants.tools import KEPT, TOOL_RUNS, Fed, ToolRun, payload

_TIMEOUT_S = 900  # a guard against hanging: seconds on a machine that has nothing else to do


def make() -> None:
    """Make all of them anew and keep them."""
    write_collection(KEPT, {run.name: output_of(run, payload()) for run in TOOL_RUNS})


def output_of(run: ToolRun, data: bytes) -> bytes:
    """Return what the tool makes of an archive."""
    command = shlex.split(run.command)
    half = len(data) // 2
    with tempfile.TemporaryDirectory() as directory:
        match run.fed:
            case Fed.PIPE:
                return _run(command, data, directory)
            case Fed.TWICE:
                halves = (data[:half], data[half:])
                return b"".join(_run(command, part, directory) for part in halves)
            case Fed.FILE:
                Path(directory, "archive").write_bytes(data)
                return _run([*command, "-c", "archive"], b"", directory)
            case Fed.FILES:
                Path(directory, "first").write_bytes(data[:half])
                Path(directory, "second").write_bytes(data[half:])
                return _run([*command, "-c", "first", "second"], b"", directory)
            case Fed.LIST:
                return _run(command, _listed_files(directory), directory)


def _listed_files(directory: str) -> bytes:
    files = {"init": b"#!/nothing\n", "d/text": b"a text\n" * 20, "last": b"x"}
    for name, content in files.items():
        path = Path(directory, name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    return b"init\nd\nd/text\nlast\n"


def _run(command: list[str], data: bytes, directory: str) -> bytes:
    done = subprocess.run(
        command, input=data, capture_output=True, cwd=directory, timeout=_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stderr.decode()}"
    return done.stdout
