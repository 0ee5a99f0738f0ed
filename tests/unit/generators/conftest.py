"""Machines made of a few files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fakes.scripts import LightRunner
from tests.fixtures import trees
from tests.fixtures.hosts import Machine

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host
    from tests.fixtures.hosts import Install, Write


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """Return a machine below ``tmp_path`` that has real shells and no files."""
    return Machine(root=tmp_path, runner=LightRunner())


@pytest.fixture
def write(host: Host) -> Write:
    """Return a function that writes a file of the machine, as it is (no newline added)."""

    def write_file(path: str, text: str) -> Path:
        return trees.write(host.root, path, text)

    return write_file


@pytest.fixture
def install(write: Write) -> Install:
    """Return a function that puts programs into the machine's ``/usr/bin``."""

    def install_programs(*programs: str, directory: str = "/usr/bin") -> None:
        for program in programs:
            write(f"{directory}/{program}", "#!/bin/sh\n").chmod(0o755)

    return install_programs
