"""What a failed run ends with: each test that failed, its seed, and the command that repeats it."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

_SEED = "seed"
_MOST = 8
"""So that all of it is within the last 20 lines."""
_ENVIRONMENT = ("INITADVISOR_SEED", "INITADVISOR_MKINITCPIO", "INITADVISOR_REBOOTS")
_GROUP = re.compile(r"@[\w-]+$")
"""What is behind an identifier where tests run in several processes."""


class Failures:
    """A plugin of pytest's."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._failed: dict[str, str] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note the seed of a test that failed: ``SEED`` or ``_SEED`` of its module."""
        report = yield
        module = getattr(item, "module", None)
        seed = getattr(module, "SEED", getattr(module, "_SEED", None))
        if report.failed and seed is not None:
            report.user_properties.append((_SEED, str(seed)))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of what failed, in whichever process."""
        if report.failed:
            seeds = [str(value) for name, value in report.user_properties if name == _SEED]
            self._failed[_GROUP.sub("", report.nodeid)] = "".join(seeds[:1])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Take note of what cannot even be imported."""
        if report.failed:
            self._failed[report.nodeid] = ""

    def pytest_unconfigure(self) -> None:
        """Come after all that pytest says."""
        if not self._failed or hasattr(self._config, "workerinput"):
            return
        lines = [f"{len(self._failed)} failed. To repeat each alone:"]
        for name, seed in list(self._failed.items())[:_MOST]:
            lines.append(f"  {self._command(name)}" + (f"  # seed {seed}" if seed else ""))
        if (more := len(self._failed) - _MOST) > 0:
            lines.append(f"  and {more} more, above")
        sys.stderr.write("\n".join(lines) + "\n")

    def _command(self, name: str) -> str:
        set_to = [
            f"{each}={shlex.quote(os.environ[each])}"
            for each in _ENVIRONMENT
            if os.environ.get(each)
        ]
        hunted = self._config.getoption("hypothesis_seed", default=None)
        options = ["--hypothesis-profile=hunt", f"--hypothesis-seed={hunted}"] if hunted else []
        program = Path(sys.executable).with_name("pytest")
        here = program.relative_to(Path.cwd()) if program.is_relative_to(Path.cwd()) else program
        return " ".join([*set_to, str(here), "-n0", *options, shlex.quote(name)])
