"""A machine that the doctor looks at, and what it says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.model.codec import Codec
from initadvisor.workflow import doctor_boots, doctor_lab, doctor_services, doctor_software
from initadvisor.workflow.doctor import diagnose
from tests.fakes.runner import FakeRunner
from tests.fixtures.hosts import RELEASE, Machine
from tests.unit.workflow.applying import make_appliable

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from initadvisor.model.diagnosis import Diagnosis, Finding, Grade, Topic
    from tests.fakes.boot_loader import FakeLoader

KERNEL_CONFIG = f"/boot/config-{RELEASE}"


def states(**changes: str) -> str:
    """Return what systemctl says of all units, as they should be but for some changes.

    A change is a property's value by the unit's name, written with ``_`` for what is no letter.
    """
    blocks = []
    for unit in doctor_services.UNITS:
        enabled = "enabled" if unit in doctor_services.ENABLED_BY_USER else "static"
        values = {"Id": unit, "LoadState": "loaded", "UnitFileState": enabled}
        values["ActiveState"] = "active" if enabled == "enabled" else "inactive"
        values["SubState"] = "waiting" if enabled == "enabled" else "dead"
        values["WantedBy"] = "timers.target sleep.target"
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


def make_examinable(root: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Machine, FakeLoader]:
    """Return a Debian with nothing in the way, and its boot loader."""
    machine, loader = make_appliable(root, monkeypatch)
    files = {
        "/etc/os-release": 'PRETTY_NAME="A test"\nID=raspbian\nID_LIKE="debian other"\n',
        "/proc/cmdline": "root=/dev/sda2 quiet\n",
        "/run/systemd/system/.keep": "",
        "/etc/kernel/postinst.d/zz-initadvisor": "#!/bin/sh\n",
        "/etc/kernel/postrm.d/zz-initadvisor": "#!/bin/sh\n",
        "/etc/initramfs/post-update.d/initadvisor": "#!/bin/sh\n",
        "/usr/lib/initadvisor/queue": "#!/bin/sh\n",
        KERNEL_CONFIG: "\n".join(
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


def said_of(machine: Machine, topic: Topic) -> str:
    """Return all that is said about a topic."""
    return " ".join(finding.text for finding in about(diagnose(machine), topic))
