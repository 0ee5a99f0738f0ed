"""systemd's units: hardened, installed where they belong, and in no boot's way."""

from __future__ import annotations

import re
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest

pytestmark = pytest.mark.tools

ROOT = Path(__file__).parents[2]
UNITS = ROOT / "systemd"
SERVICE = UNITS / "initadvisor-measure.service"
TIMER = UNITS / "initadvisor-measure.timer"
MOST_EXPOSURE = 2.0


def analyze(*arguments: str | Path) -> str:
    """Return what systemd-analyze(1) says."""
    program = shutil.which("systemd-analyze")
    assert program is not None, "systemd-analyze is missing; tools/setup test installs it"
    done = subprocess.run(
        [program, *map(str, arguments)], check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout + done.stderr


def unit(path: Path) -> ConfigParser:
    """Read a unit whose keys appear once each, but for those that lists are made of."""
    parser = ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(path.read_text(encoding="utf-8"))
    return parser


def test_the_service_is_exposed_as_little_as_it_has_to_be() -> None:
    said = analyze("security", "--offline=true", "--no-pager", SERVICE)
    found = re.search(r"Overall exposure level for \S+: (\d+\.\d)", said)
    assert found is not None, said
    assert float(found[1]) <= MOST_EXPOSURE


def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    """Its program has to be there, and its manual, which is not installed here."""
    program = tmp_path / "initadvisor"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for path in (SERVICE, TIMER):
        text = path.read_text(encoding="utf-8").replace("/usr/bin/initadvisor", str(program))
        (tmp_path / path.name).write_text(re.sub(r"(?m)^Documentation=.*\n", "", text))
    assert analyze("verify", "--man=no", *(tmp_path / p.name for p in (SERVICE, TIMER))) == ""


def test_no_boot_waits_for_it() -> None:
    """The timer begins when the boot is complete; nothing is ordered after it or its service."""
    timer, service = unit(TIMER), unit(SERVICE)
    assert timer["Unit"]["After"] == "multi-user.target"
    assert timer["Unit"]["DefaultDependencies"] == "no"
    assert timer["Unit"]["Before"] == "shutdown.target"
    assert timer["Install"]["WantedBy"] == "timers.target"
    assert timer["Timer"]["OnActiveSec"] == "1min"
    assert "Install" not in service
    assert not {"Before", "RequiredBy", "WantedBy"} & set(service["Unit"])


def test_it_takes_only_what_nobody_else_wants() -> None:
    service = unit(SERVICE)["Service"]
    assert service["Type"] == "oneshot"
    assert (service["CPUSchedulingPolicy"], service["IOSchedulingClass"]) == ("idle", "idle")
    assert service["StateDirectory"] == service["CacheDirectory"] == "initadvisor"
    assert {"TimeoutStartSec", "MemoryMax", "Nice"} <= set(service)


@pytest.mark.parametrize("prefix", ["/usr", "/usr/local"])
def test_files_are_installed_below_the_prefix(tmp_path: Path, prefix: str) -> None:
    command = ["make", "install", f"DESTDIR={tmp_path}", f"PREFIX={prefix}"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=60)
    there = tmp_path / prefix.lstrip("/")
    installed = {str(path.relative_to(there)) for path in there.rglob("*") if path.is_file()}
    pages = {f"share/man/man{page.suffix[1:]}/{page.name}" for page in (ROOT / "man").iterdir()}
    units = {f"lib/systemd/system/{path.name}" for path in UNITS.iterdir()}
    assert installed == pages | units
    service = unit(there / "lib/systemd/system" / SERVICE.name)["Service"]
    assert service["ExecStart"] == f"{prefix}/bin/initadvisor measure"
