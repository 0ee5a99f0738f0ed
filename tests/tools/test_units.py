"""systemd's units: hardened, installed where they belong, and in no boot's way."""

from __future__ import annotations

import re
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest

from initadvisor.core.errors import UnsafeError
from tests.fixtures.waiting import HANGS_S

pytestmark = pytest.mark.tools

ROOT = Path(__file__).parents[2]
UNITS = ROOT / "systemd"
SERVICE = UNITS / "initadvisor-measure.service"
TIMER = UNITS / "initadvisor-measure.timer"
SETTLE = UNITS / "initadvisor-settle.service"
SETTLE_TIMER = UNITS / "initadvisor-settle.timer"
SLEEP = UNITS / "initadvisor-sleep.service"
SERVICES = sorted(UNITS.glob("*.service"))
KINDS = {".service", ".timer", ".path"}
MOST_EXPOSURE = 2.0


def analyze(*arguments: str | Path) -> str:
    """Return what systemd-analyze(1) says."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is missing; tools/setup test installs it")
    done = subprocess.run(
        [program, *map(str, arguments)], check=True, capture_output=True, text=True, timeout=HANGS_S
    )
    return done.stdout + done.stderr


def unit(path: Path) -> ConfigParser:
    """Read a unit whose keys appear once each, but for those that lists are made of."""
    parser = ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(path.read_text(encoding="utf-8"))
    return parser


def values(path: Path, key: str) -> set[str]:
    """Return the words of a key that may stand there several times."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [line.partition("=")[2] for line in lines if line.startswith(f"{key}=")]
    return {word for line in found for word in line.split()}


@pytest.mark.parametrize("service", SERVICES, ids=lambda path: path.name)
def test_a_service_is_exposed_as_little_as_it_has_to_be(service: Path) -> None:
    said = analyze("security", "--offline=true", "--no-pager", service)
    found = re.search(r"Overall exposure level for \S+: (\d+\.\d)", said)
    assert found is not None, said
    assert float(found[1]) <= MOST_EXPOSURE


def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    """Their programs have to be there, and their manuals, which are not installed here."""
    program = tmp_path / "initadvisor"
    for path in (program, tmp_path / "initadvisord"):
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    units = sorted(path for path in UNITS.iterdir() if path.suffix in KINDS)
    for path in units:
        text = path.read_text(encoding="utf-8").replace("/usr/bin/initadvisor", str(program))
        (tmp_path / path.name).write_text(re.sub(r"(?m)^Documentation=.*\n", "", text))
    assert analyze("verify", "--man=no", *(tmp_path / path.name for path in units)) == ""


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


def test_the_judge_waits_for_the_whole_boot_and_no_boot_for_the_judge() -> None:
    timer, service = unit(SETTLE_TIMER), unit(SETTLE)
    assert timer["Unit"]["After"] == "default.target"
    assert timer["Unit"]["DefaultDependencies"] == "no"
    assert timer["Unit"]["Before"] == "shutdown.target"
    assert not {"Before", "RequiredBy", "WantedBy", "Requires"} & set(service["Unit"])
    assert {"boot-complete.target", SERVICE.name} <= values(SETTLE, "After")
    # Required, a check that fails would keep it from ever being judged.
    assert values(SETTLE, "Wants") == {"boot-complete.target", SERVICE.name}


@pytest.mark.parametrize("path", [SETTLE, SETTLE_TIMER, SLEEP], ids=lambda path: path.name)
def test_nothing_is_started_where_nothing_was_begun(path: Path) -> None:
    conditions = [line for line in path.read_text().splitlines() if "ConditionPathExists" in line]
    assert conditions
    assert all("/var/lib/initadvisor/" in line for line in conditions)


def test_sleep_waits_until_nothing_is_armed() -> None:
    sleep = unit(SLEEP)
    assert sleep["Unit"]["Before"] == "sleep.target"
    assert sleep["Unit"]["StopWhenUnneeded"] == "yes"
    assert sleep["Service"]["RemainAfterExit"] == "yes"
    assert sleep["Service"]["ExecStart"].endswith("initadvisor settle --take-back")
    assert sleep["Service"]["ExecStop"].endswith("initadvisor settle")


def test_what_is_done_around_sleep_is_done_in_the_same_sandbox() -> None:
    begin = "ProtectSystem=strict\n"
    sandboxes = {path.read_text().partition(begin)[2] for path in (SETTLE, SLEEP)}
    assert len(sandboxes) == 1
    assert sandboxes != {""}


def test_what_waits_to_reboot_tries_again_and_has_not_failed() -> None:
    service = unit(UNITS / "initadvisor-reboot.service")
    assert service["Service"]["ExecStart"].endswith("initadvisor settle --reboot")
    assert service["Service"]["SuccessExitStatus"] == str(UnsafeError.exit_code)
    assert service["Service"]["RestartForceExitStatus"] == str(UnsafeError.exit_code)
    assert service["Service"]["RestartSec"] == "15min"
    assert service["Unit"]["StartLimitIntervalSec"] == "0"
    assert service["Unit"]["ConditionPathExists"] == "/var/lib/initadvisor/campaign-active"


@pytest.mark.parametrize(
    "name", ["initadvisor-settle", "initadvisor-sleep", "initadvisor-reboot", "initadvisord"]
)
def test_whoever_reads_headers_of_disks_may_lock_them(name: str) -> None:
    """Without, cryptsetup takes every disk for none of LUKS's."""
    assert "-/run/cryptsetup" in values(UNITS / f"{name}.service", "ReadWritePaths")
    assert "block-*" in values(UNITS / f"{name}.service", "DeviceAllow")


def test_the_daemon_s_path_has_a_way_to_be_empty() -> None:
    """A condition of the service that fails would leave it full, and start it for ever."""
    service, path = unit(UNITS / "initadvisord.service"), unit(UNITS / "initadvisord.path")
    conditions = {key for key in service["Unit"] if key.startswith(("Condition", "Assert"))}
    assert conditions <= {key for key in path["Unit"] if key.startswith("Condition")}
    assert path["Path"]["DirectoryNotEmpty"] == "/var/lib/initadvisor/queue"
    tmpfiles = (UNITS / "initadvisor.tmpfiles").read_text()
    assert f"d {path['Path']['DirectoryNotEmpty']} 0755 root root -" in tmpfiles


def test_the_state_is_open_to_root_only_whoever_makes_it() -> None:
    """Who can open a file can lock it; systemd sets these rights with every start."""
    services = [path for path in UNITS.glob("*.service") if "StateDirectory=" in path.read_text()]
    assert len(services) == 5
    assert {unit(path)["Service"]["StateDirectoryMode"] for path in services} == {"0700"}
    assert unit(UNITS / "initadvisord.path")["Path"]["DirectoryMode"] == "0700"
    lines = (UNITS / "initadvisor.tmpfiles").read_text().splitlines()
    assert {
        "d /var/lib/initadvisor 0700 root root -",
        "d /var/cache/initadvisor 0755 root root -",
    } <= {*lines}


def test_what_is_enabled_by_default_can_be_enabled() -> None:
    preset = (UNITS / "90-initadvisor.preset").read_text().splitlines()
    enabled = {line.removeprefix("enable ") for line in preset if not line.startswith("#")}
    wanted = {path.name for path in UNITS.iterdir() if "[Install]" in path.read_text()}
    assert enabled == wanted


def test_only_what_is_left_is_retried_and_only_with_power() -> None:
    timer = unit(UNITS / "initadvisord-retry.timer")
    assert timer["Unit"]["ConditionACPower"] == "true"
    assert timer["Timer"]["Unit"] == "initadvisord.service"
    assert "Install" not in timer
