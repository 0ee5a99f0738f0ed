"""The doctor finds what is missing and in the way, says what to do, and is stopped by nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from initadvisor.model.codec import Codec
from initadvisor.model.diagnosis import Diagnosis, Finding, Grade, Topic
from initadvisor.model.errors import InitadvisorError, NeedsRootError
from initadvisor.model.refusal import Refusal, RefusalKind
from initadvisor.model.setting import Setting
from initadvisor.vm import engines
from initadvisor.workflow import (
    doctor_boots,
    doctor_lab,
    doctor_services,
    doctor_software,
    trial_notes,
)
from initadvisor.workflow.apply import ApplyChoices
from initadvisor.workflow.doctor import diagnose
from tests.fakes.runner import FakeRunner
from tests.fixtures.checkout import ROOT
from tests.unit.generators.conftest import RELEASE, Machine
from tests.unit.workflow.applying import make_appliable
from tests.unit.workflow.test_apply import applied_setting

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host
    from tests.fakes.boot_loader import FakeLoader

_KERNEL = f"/boot/config-{RELEASE}"
_MASKED = "initadvisor-sleep.service"


def states(**changes: str) -> str:
    """Return what systemctl says of all units, as they should be but for some changes.

    A change is a property's value by the unit's name, written with ``_`` for what is no letter.
    """
    blocks = []
    for unit in doctor_services.UNITS:
        enabled = "enabled" if unit in doctor_services.ENABLED_BY_USER else "static"
        values = {"Id": unit, "LoadState": "loaded", "UnitFileState": enabled}
        values["ActiveState"] = "inactive"
        for key, value in changes.items():
            name, _, change = key.partition("__")
            if unit.replace("-", "_").replace(".", "_") == name:
                values[change] = value
        blocks.append("\n".join(f"{name}={value}" for name, value in values.items()))
    return "\n\n".join(blocks) + "\n"


def with_units(machine: Machine, **changes: str) -> None:
    """Have systemd run, with all units installed, in these states."""
    runner = machine.runner
    assert isinstance(runner, FakeRunner)
    runner.answer("systemctl show", states(**changes))


@pytest.fixture
def appliable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Machine, FakeLoader]:
    """A Debian with nothing in the way, and its boot loader."""
    machine, loader = make_appliable(tmp_path, monkeypatch)
    files = {
        "/etc/os-release": 'PRETTY_NAME="A test"\nID=raspbian\nID_LIKE="debian other"\n',
        "/proc/cmdline": "root=/dev/sda2 quiet\n",
        "/run/systemd/system/.keep": "",
        "/etc/kernel/postinst.d/zz-initadvisor": "#!/bin/sh\n",
        "/etc/kernel/postrm.d/zz-initadvisor": "#!/bin/sh\n",
        _KERNEL: "\n".join(
            f"{option}=y"
            for option in ("CONFIG_BLK_DEV_INITRD", *(codec.spec.kernel_option for codec in Codec))
            if option
        ),
    }
    for name, text in files.items():
        machine.path(name).parent.mkdir(parents=True, exist_ok=True)
        machine.path(name).write_text(text)
        machine.path(name).chmod(0o755)
    runner = machine.runner
    assert isinstance(runner, FakeRunner)
    runner.programs = {*runner.programs, "systemctl", "qemu-system-x86_64"}
    runner.answer("qemu-system-x86_64 --version", "QEMU emulator version 10.0\n")
    with_units(machine)
    monkeypatch.setattr(doctor_software, "elsewhere", lambda _host: None)
    monkeypatch.setattr(doctor_boots, "detect_boot_loader", lambda _host: loader)
    monkeypatch.setattr(
        doctor_lab, "find_kernel", lambda _host, release: f"/boot/vmlinuz-{release}"
    )
    monkeypatch.setattr(Machine, "machine", lambda _host: "x86_64")
    return machine, loader


@pytest.fixture
def machine(appliable: tuple[Machine, FakeLoader]) -> Machine:
    """The machine."""
    return appliable[0]


def about(found: Diagnosis, topic: Topic, *grades: Grade) -> list[Finding]:
    """Return the findings about a topic, all or those of some grades."""
    return [f for f in found.findings if f.topic is topic and (not grades or f.grade in grades)]


def only(found: Diagnosis, topic: Topic, grade: Grade) -> Finding:
    """Return the only finding of this topic and grade."""
    (finding,) = about(found, topic, grade)
    return finding


def snapshot(root: Path) -> dict[str, float]:
    """Return all files and when they were changed."""
    return {str(path): path.lstat().st_mtime for path in root.rglob("*")}


def test_nothing_is_in_the_way_of_a_machine_that_has_it_all(machine: Machine) -> None:
    before = snapshot(machine.root)
    found = diagnose(machine)
    assert found.graded(Grade.OBSTACLE) == ()
    assert {finding.topic for finding in found.findings} == set(Topic)
    assert [f.topic for f in found.findings] == sorted(
        (f.topic for f in found.findings), key=list(Topic).index
    )
    assert snapshot(machine.root) == before
    generator = " ".join(f.text for f in about(found, Topic.GENERATOR))
    assert "dracut 059 makes" in generator
    assert "gzip is configured" in generator
    assert only(found, Topic.BOOTS, Grade.NOTE).advice == "sudo initadvisor measure --backfill"


def test_a_container_is_in_the_way(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_software, "elsewhere", lambda _host: "a container")
    assert "this is a container" in only(diagnose(machine), Topic.SYSTEM, Grade.OBSTACLE).text


@pytest.mark.parametrize(
    ("module", "grade", "advice"),
    [
        ("numpy", Grade.OBSTACLE, "sudo apt install python3-numpy"),
        ("psutil", Grade.OBSTACLE, "sudo apt install python3-psutil"),
        ("lzo", Grade.NOTE, "sudo apt install python3-lzo"),
    ],
)
def test_a_missing_module_is_named_with_its_package(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, module: str, grade: Grade, advice: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    found = only(diagnose(machine), Topic.PYTHON, grade)
    assert f"Python module {module} is missing" in found.text
    assert found.advice == advice


def test_what_no_distribution_packages_comes_from_elsewhere(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.path("/etc/os-release").write_text("ID=arch\n")
    monkeypatch.setitem(sys.modules, "lzo", None)
    assert only(diagnose(machine), Topic.PYTHON, Grade.NOTE).advice == "pip install python-lzo"


def test_a_configuration_with_a_mistake_is_in_the_way(machine: Machine) -> None:
    machine.path("/etc/initadvisor.toml").write_text("[recommend]\ncertainty = 2\n")
    found = only(diagnose(machine), Topic.CONFIGURATION, Grade.OBSTACLE)
    assert "recommend.certainty" in found.text


def test_no_generator_is_in_the_way_and_everything_else_is_still_looked_at(
    machine: Machine,
) -> None:
    machine.path("/usr/bin/dracut").unlink()
    machine.path("/usr/lib/dracut/dracut-version.sh").unlink()
    found = diagnose(machine)
    assert "no generator" in only(found, Topic.GENERATOR, Grade.OBSTACLE).text
    assert {finding.topic for finding in found.findings} == set(Topic)
    assert "not known how much" in only(found, Topic.ROOM, Grade.NOTE).text


def test_a_missing_compressor_is_named_with_its_package(machine: Machine) -> None:
    runner = machine.runner
    assert isinstance(runner, FakeRunner)
    runner.programs = set(runner.programs) - {"lz4", "lzma"}
    found = diagnose(machine)
    missing = only(found, Topic.COMPRESSORS, Grade.NOTE)
    assert missing.text == "lz4 is not installed: no lz4 candidate can be built"
    assert missing.advice == "sudo apt install lz4"
    said = " ".join(finding.text for finding in about(found, Topic.COMPRESSORS, Grade.OK))
    assert "lzma is not installed" in said
    assert "candidates can be built with cat, gzip, bzip2, xz, lzop, zstd" in said


def test_what_the_kernel_cannot_unpack_is_named(machine: Machine) -> None:
    machine.path(_KERNEL).write_text("CONFIG_RD_GZIP=y\nCONFIG_RD_ZSTD=y\n")
    found = diagnose(machine)
    assert about(found, Topic.KERNEL, Grade.OBSTACLE) == []
    assert "lz4 (CONFIG_RD_LZ4)" in only(found, Topic.KERNEL, Grade.NOTE).text
    machine.path(_KERNEL).write_text("CONFIG_RD_ZSTD=y\n")
    stopped = only(diagnose(machine), Topic.KERNEL, Grade.OBSTACLE)
    assert "cannot unpack gzip, which is configured" in stopped.text


@pytest.mark.parametrize("word", ["retain_initrd", "keepinitrd"])
def test_options_that_hide_the_unpack_are_named(machine: Machine, word: str) -> None:
    machine.path("/proc/cmdline").write_text(f"quiet {word} ro\n")
    assert word in only(diagnose(machine), Topic.KERNEL, Grade.NOTE).text


def test_without_an_engine_nothing_could_be_verified(machine: Machine) -> None:
    runner = machine.runner
    assert isinstance(runner, FakeRunner)
    runner.programs = set(runner.programs) - {"qemu-system-x86_64"}
    found = only(diagnose(machine), Topic.ENGINES, Grade.OBSTACLE)
    assert found.advice == "sudo apt install qemu-system-x86"


def test_no_engine_is_started_unless_asked_for(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[object] = []
    monkeypatch.setattr(engines, "_try", lambda *_: pytest.fail("a virtual machine was started"))
    diagnose(machine)

    def states_of(_host: Host, _store: object, wanted: object) -> tuple[object, ...]:
        tried.append(wanted)
        return ()

    monkeypatch.setattr(doctor_lab, "engine_states", states_of)
    diagnose(machine, try_engines=True)
    assert len(tried) == 1


def test_reasons_against_arming_are_in_words(
    machine: Machine, appliable: tuple[Machine, FakeLoader]
) -> None:
    reasons = (
        Refusal(kind=RefusalKind.NO_DEFAULT, reason="no default", remedy="set one"),
        Refusal(kind=RefusalKind.BOUND_TO_TPM, reason="bound", remedy="bind it to PCR 7"),
    )
    appliable[1].against = reasons[1:]
    assert about(diagnose(machine), Topic.LOADER, Grade.OBSTACLE) == []
    appliable[1].against = reasons
    found = only(diagnose(machine), Topic.LOADER, Grade.OBSTACLE)
    assert (found.text, found.advice) == ("no default", "set one")


def test_a_rehearsal_is_remembered(machine: Machine) -> None:
    assert "not rehearsed" in only(diagnose(machine), Topic.LOADER, Grade.NOTE).text
    trial_notes.note_rehearsed(machine, "fake")
    assert about(diagnose(machine), Topic.LOADER, Grade.NOTE) == []


def test_a_bound_key_is_worth_knowing(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_boots, "open_devices", lambda _host: ("/dev/sda3",))
    monkeypatch.setattr(doctor_boots, "require_no_binding", lambda _host: None)
    assert "/dev/sda3: no key" in diagnose_text(machine, Topic.UNLOCKING)

    def bound(_host: Host) -> None:
        from initadvisor.model.refusal import refused

        raise refused(RefusalKind.BOUND_TO_TPM, "bound to PCR 9", "bind it to PCR 7")

    monkeypatch.setattr(doctor_boots, "require_no_binding", bound)
    found = only(diagnose(machine), Topic.UNLOCKING, Grade.NOTE)
    assert (found.text, found.advice) == ("bound to PCR 9", "bind it to PCR 7")


def diagnose_text(machine: Machine, topic: Topic) -> str:
    """Return all that is said about a topic."""
    return " ".join(finding.text for finding in about(diagnose(machine), topic))


def test_too_little_room_is_in_the_way(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    from initadvisor.workflow import apply_room

    assert about(diagnose(machine), Topic.ROOM, Grade.OBSTACLE) == []
    monkeypatch.setattr(apply_room, "free_bytes", lambda _path: 1000)
    found = only(diagnose(machine), Topic.ROOM, Grade.OBSTACLE)
    assert "/: 0 MB are free" in found.text


def test_units_that_are_missing_disabled_masked_or_failed(machine: Machine) -> None:
    assert about(diagnose(machine), Topic.UNITS, Grade.NOTE) == []
    with_units(
        machine,
        initadvisor_measure_timer__UnitFileState="disabled",
        initadvisor_settle_service__ActiveState="failed",
        initadvisor_settle_timer__LoadState="not-found",
        initadvisor_sleep_service__LoadState="masked",
    )
    found = diagnose(machine)
    failed = only(found, Topic.UNITS, Grade.OBSTACLE)
    assert failed.advice == "journalctl -b -u initadvisor-settle.service"
    advice = [finding.advice for finding in about(found, Topic.UNITS, Grade.NOTE)]
    assert "sudo systemctl enable --now initadvisor-measure.timer" in advice
    assert f"sudo systemctl unmask {_MASKED}" in advice
    assert "not installed: initadvisor-settle.timer" in diagnose_text(machine, Topic.UNITS)


def test_without_systemd_nothing_happens_by_itself(machine: Machine) -> None:
    machine.path("/run/systemd/system/.keep").unlink()
    machine.path("/run/systemd/system").rmdir()
    found = only(diagnose(machine), Topic.UNITS, Grade.NOTE)
    assert found.advice == "after each boot: sudo initadvisor measure"


def test_every_unit_that_is_shipped_is_looked_at() -> None:
    shipped = {
        path.name
        for kind in ("service", "timer", "path")
        for path in (ROOT / "systemd").glob(f"*.{kind}")
    }
    assert set(doctor_services.UNITS) == shipped
    presets = " ".join(path.read_text() for path in (ROOT / "systemd").glob("*.preset"))
    assert all(f"enable {unit}\n" in presets for unit in doctor_services.ENABLED_BY_USER)


@pytest.mark.parametrize("distribution", ["debian", "arch", "fedora", "opensuse"])
def test_every_hook_that_is_looked_for_is_shipped(machine: Machine, distribution: str) -> None:
    machine.path("/etc/os-release").write_text(f"ID={distribution}\n")
    for name in ("postinst.d", "postrm.d"):
        machine.path(f"/etc/kernel/{name}/zz-initadvisor").unlink()
    shipped = {path.name: path for path in (ROOT / "hooks").rglob("*")}
    missing = about(diagnose(machine), Topic.HOOKS, Grade.NOTE)
    for finding in missing:
        path = finding.text.split()[-4]
        source = shipped[path.rpartition("/")[2]]
        target = machine.path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source.read_text())
        target.chmod(source.stat().st_mode)
    assert missing
    assert about(diagnose(machine), Topic.HOOKS, Grade.NOTE) == []


def test_a_hook_that_is_masked_or_cannot_be_run_is_named(machine: Machine) -> None:
    hook = machine.path("/etc/kernel/postinst.d/zz-initadvisor")
    hook.chmod(0o644)
    assert "is not executable" in only(diagnose(machine), Topic.HOOKS, Grade.NOTE).text
    hook.unlink()
    hook.symlink_to("/dev/null")
    assert "is masked" in only(diagnose(machine), Topic.HOOKS, Grade.NOTE).text


def test_what_is_not_over_is_told(machine: Machine) -> None:
    assert diagnose_text(machine, Topic.CHANGES) == "nothing is pending"
    applied_setting(machine, Setting(Codec.ZSTD), ApplyChoices())
    found = only(diagnose(machine), Topic.CHANGES, Grade.NOTE)
    assert "waits for a boot with today's image" in found.text


def test_the_extent_of_what_is_kept_is_told(machine: Machine) -> None:
    (machine.root / "state").mkdir()
    (machine.root / "state/some").write_bytes(bytes(1_000_000))
    os.sync()
    assert "1 files, 1.0 MB" in diagnose_text(machine, Topic.FILES)


@pytest.mark.parametrize("topic", Topic)
def test_a_check_that_fails_fails_for_itself(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, topic: Topic
) -> None:
    from initadvisor.workflow import doctor

    def fail(_subject: object) -> object:
        raise failures[0]

    failures: list[Exception] = []
    checks = [(other, fail if other is topic else check) for other, check in doctor._CHECKS]
    monkeypatch.setattr(doctor, "_CHECKS", checks)
    for error, grade in (
        (NeedsRootError("closed"), Grade.NOTE),
        (InitadvisorError("broken", hint="mend it"), Grade.OBSTACLE),
        (ModuleNotFoundError("no", name="numpy"), Grade.NOTE),
        (PermissionError(13, "Permission denied", "/boot"), Grade.NOTE),
    ):
        failures[:] = [error]
        found = diagnose(machine)
        assert [finding.grade for finding in about(found, topic)] == [grade]
        assert {finding.topic for finding in found.findings} == set(Topic)


def test_it_runs_without_any_module_that_can_be_missing(tmp_path: Path) -> None:
    """Its own imports may need none of what it is to report."""
    missing = [
        name for name in doctor_software.MODULES if name not in {"click", "typing_extensions"}
    ]
    script = f"""
import sys
for name in {missing!r}:
    sys.modules[name] = None
from initadvisor.cli import main
sys.argv[1:] = ["doctor"]
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "STATE_DIRECTORY": str(tmp_path), "CACHE_DIRECTORY": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr == ""
    said = " ".join(done.stdout.split())
    for name in missing:
        assert f"the Python module {name} is missing" in said
