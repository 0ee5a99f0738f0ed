"""The doctor finds what is missing, says what to do about it, and is stopped by nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError, NeedsRootError
from initadvisor.doctor import boots, doctor, software
from initadvisor.doctor.doctor import diagnose
from initadvisor.doctor.findings import Grade, Topic
from initadvisor.generators import dracut
from initadvisor.vm import engines
from tests.fakes.runner import FakeRunner
from tests.fixtures.doctor_machine import (
    KERNEL_CONFIG,
    about,
    make_examinable,
    only,
    said_of,
    snapshot,
)
from tests.fixtures.waiting import HANGS_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from initadvisor.doctor.findings import Finding
    from initadvisor.host import Host
    from tests.fakes.boot_loader import FakeLoader
    from tests.fixtures.hosts import Machine


@pytest.fixture
def examined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Machine, FakeLoader]:
    """A machine with nothing in the way, and its boot loader."""
    return make_examinable(tmp_path, monkeypatch)


@pytest.fixture
def machine(examined: tuple[Machine, FakeLoader]) -> Machine:
    """The machine."""
    return examined[0]


def test_nothing_is_in_the_way_of_a_machine_that_has_it_all(machine: Machine) -> None:
    before = snapshot(machine.root)
    found = diagnose(machine)
    assert [about(found, topic, Grade.OBSTACLE) for topic in found] == [[]] * len(Topic)
    assert [topic for topic, findings in found.items() if findings] == list(Topic)
    assert snapshot(machine.root) == before
    generator = " ".join(f.text for f in about(found, Topic.GENERATOR))
    assert "dracut 059 makes" in generator
    assert "gzip is configured" in generator
    assert only(found, Topic.BOOTS, Grade.NOTE).advice == "sudo initadvisor measure --backfill"


def test_a_container_is_in_the_way(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(software, "elsewhere", lambda _host: "a container")
    assert "this is a container" in only(diagnose(machine), Topic.SYSTEM, Grade.OBSTACLE).text


@pytest.mark.parametrize(
    ("module", "grade", "advice"),
    [
        ("numpy", Grade.OBSTACLE, "sudo apt install --no-install-recommends python3-numpy"),
        ("psutil", Grade.OBSTACLE, "sudo apt install --no-install-recommends python3-psutil"),
        ("lzo", Grade.NOTE, "sudo apt install --no-install-recommends python3-lzo"),
    ],
)
def test_a_missing_module_is_named_with_its_package(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, module: str, grade: Grade, advice: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    found = only(diagnose(machine), Topic.PYTHON, grade)
    assert f"Python module {module} is not installed" in found.text
    assert found.advice == advice


def test_a_module_that_lacks_a_library_of_its_own_is_in_the_way(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine.root / "modules").mkdir()
    (machine.root / "modules/pyudev.py").write_text(
        "try:\n"
        "    raise ImportError('libudev.so.1: cannot open shared object file')\n"
        "except ImportError as err:\n"
        "    raise ImportError('READ THIS') from err\n"
    )
    monkeypatch.syspath_prepend(str(machine.root / "modules"))
    monkeypatch.delitem(sys.modules, "pyudev", raising=False)
    found = only(diagnose(machine), Topic.PYTHON, Grade.OBSTACLE)
    assert found.text == (
        "cannot look at disks: the Python module pyudev cannot be loaded: "
        "libudev.so.1: cannot open shared object file"
    )
    assert (
        found.advice == "install it again: sudo apt install --no-install-recommends python3-pyudev"
    )


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
    assert all(found[other] for other in Topic)
    assert "not known how much" in only(found, Topic.ROOM, Grade.NOTE).text


def test_a_missing_compressor_is_named_with_its_package(machine: Machine) -> None:
    runner = machine.runner
    assert isinstance(runner, FakeRunner)
    runner.programs = set(runner.programs) - {"lz4", "lzma"}
    found = diagnose(machine)
    missing = only(found, Topic.COMPRESSORS, Grade.NOTE)
    assert missing.text == "lz4 is not installed: no lz4 candidate can be built"
    assert missing.advice == "sudo apt install --no-install-recommends lz4"
    said = " ".join(finding.text for finding in about(found, Topic.COMPRESSORS, Grade.OK))
    assert "lzma is not installed" in said
    assert "candidates can be built with cat, gzip, bzip2, xz, lzop, zstd" in said


def test_what_can_be_built_and_not_configured_is_named(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dracut, "unusable", lambda _host, s: "it cannot" if not s.options else None)
    texts = [finding.text for finding in about(diagnose(machine), Topic.COMPRESSORS, Grade.NOTE)]
    assert "zstd can be measured, not applied: it cannot" in texts


def test_what_cannot_be_verified_is_not_built(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lz4", None)
    said = said_of(machine, Topic.COMPRESSORS)
    assert said == "candidates can be built with cat, gzip, bzip2, lzma, xz, lzop, zstd"


def test_what_the_kernel_cannot_unpack_is_named(machine: Machine) -> None:
    machine.path(KERNEL_CONFIG).write_text("CONFIG_RD_GZIP=y\nCONFIG_RD_ZSTD=y\n")
    found = diagnose(machine)
    assert about(found, Topic.KERNEL, Grade.OBSTACLE) == []
    assert "lz4 (CONFIG_RD_LZ4)" in only(found, Topic.KERNEL, Grade.NOTE).text
    machine.path(KERNEL_CONFIG).write_text("CONFIG_RD_ZSTD=y\n")
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
    assert found.advice == "sudo apt install --no-install-recommends qemu-system-x86"


def test_no_engine_is_started_unless_asked_for(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[object] = []
    monkeypatch.setattr(engines, "_try", lambda *_: pytest.fail("a virtual machine was started"))
    diagnose(machine)

    def states_of(_host: Host, _store: object, wanted: object) -> tuple[object, ...]:
        tried.append(wanted)
        return ()

    monkeypatch.setattr(boots, "engine_states", states_of)
    diagnose(machine, try_engines=True)
    assert len(tried) == 1


@pytest.mark.parametrize("topic", Topic)
def test_a_check_that_fails_fails_for_itself(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, topic: Topic
) -> None:
    def fail(_subject: object) -> Iterator[Finding]:
        raise failures[0]

    failures: list[Exception] = []
    monkeypatch.setitem(doctor._CHECKS, topic, fail)
    for error, grade in (
        (NeedsRootError("closed"), Grade.NOTE),
        (InitadvisorError("broken", hint="mend it"), Grade.OBSTACLE),
        (ModuleNotFoundError("no", name="numpy"), Grade.NOTE),
        (PermissionError(13, "Permission denied", "/boot"), Grade.NOTE),
    ):
        failures[:] = [error]
        found = diagnose(machine)
        assert [finding.grade for finding in about(found, topic)] == [grade]
        assert all(found[other] for other in Topic)


def test_it_runs_without_any_module_that_can_be_missing(tmp_path: Path) -> None:
    """Its own imports may need none of what it is to report."""
    missing = [name for name in software.MODULES if name != "click"]
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
        timeout=HANGS_S,
    )
    assert done.returncode == 1
    assert done.stderr == ""
    said = " ".join(done.stdout.split())
    for name in missing:
        assert f"the Python module {name} is not installed" in said
