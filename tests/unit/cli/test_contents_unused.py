"""What ``contents --unused`` calls not used, and what it never does."""

from __future__ import annotations

import json
import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from initadvisor import host as host_package
from initadvisor.cli import root
from initadvisor.core.errors import ProgramError
from initadvisor.host import Host
from initadvisor.image.scan import scan
from initadvisor.target import source
from tests.fakes.compressors import fake_compressors
from tests.fixtures.booted import RELEASE
from tests.fixtures.used_modules import (
    FIRMWARE,
    NOT_USED,
    PLACES,
    SATA,
    add_boots,
    answer_modinfo,
    module_path,
    write_image_of_modules,
    write_modules,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from initadvisor.image.contents import ImageContents
    from tests.fakes.runner import FakeRunner

OTHER = "6.1.0-43-amd64"
RADEON = "pci:v00001002d00006798sv00001043sd0000043Dbc03sc00i00"
USB4 = "pci:v00008086d0000463Esv00001043sd00001662bc0Csc03i40"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """One whose kernel's modules are installed, and of which no boot is recorded."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    made = Host(root=tmp_path / "machine", runner=fake_compressors())
    write_modules(made)
    answer_modinfo(runner_of(made), FIRMWARE)
    monkeypatch.setattr(host_package, "Host", lambda: made)
    return made


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """One that has all modules."""
    return write_image_of_modules(tmp_path / "image")


def runner_of(machine: Host) -> FakeRunner:
    return machine.runner  # type: ignore[return-value]


def said(*words: object) -> str:
    done = CliRunner().invoke(root, ["contents", *map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def unused(image: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(said(image, "--unused", "--json"))["unused"]
    return found


def names(found: dict[str, Any]) -> set[str]:
    """Return the modules and firmware files that are called unused, without their directories."""
    return {PurePath(one["path"]).name.removesuffix(".ko") for one in found["files"]}


def test_only_what_is_built_in_and_was_never_there_is_called_unused(
    machine: Host, image: Path
) -> None:
    add_boots(machine, count=3)
    found = unused(image)
    assert names(found) == NOT_USED | {"a.bin", "wild.bin"}
    assert (found["boots"], found["since"]) == (3, "2026-03-02T12:00:00+00:00")
    used = {"ahci", "libahci", "sd_mod"}
    kept = sum(one["modules"] for one in found["kept"])
    assert kept == len(PLACES.keys() - NOT_USED - used)
    stored = sum(kind["stored_bytes"] for kind in found["kinds"])
    assert 0 < stored < image.stat().st_size
    for one in (*found["kinds"], found):
        assert 0 < one["boot_ms"]["low"] <= one["boot_ms"]["median"] <= one["boot_ms"]["high"]


@pytest.mark.parametrize(
    "boots",
    [
        {"release": OTHER},
        {"release": f"{RELEASE}-rt"},
        {"complete": False},
    ],
)
def test_boots_that_do_not_count(machine: Host, image: Path, boots: dict[str, Any]) -> None:
    add_boots(machine, count=5, **boots)
    found = unused(image)
    assert (found["boots"], found["since"], found["files"], found["kept"]) == (0, None, [], [])
    assert found["boot_ms"]["median"] == 0
    add_boots(machine, first=6)
    found = unused(image)
    assert found["boots"] == 1
    assert names(found) >= NOT_USED


@pytest.mark.usefixtures("machine")
def test_without_boots_it_is_said_what_to_do(image: Path) -> None:
    text = " ".join(said(image, "--unused").split())
    assert "What is not used is not known: no boot of this kernel has its modules recorded." in text


def test_what_any_boot_used_and_what_is_there_now_is_used(machine: Host, image: Path) -> None:
    add_boots(machine, count=2)
    add_boots(machine, first=3, release=OTHER, loaded="igb")
    proc, device = machine.path("/proc/modules"), machine.path("/sys/bus/pci/devices/0/modalias")
    for path, text in ((proc, "fan 16384 0 - Live 0x0\n"), (device, f"{RADEON}\n")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    found = unused(image)
    assert names(found) == {"pata_old"}
    assert found["boots"] == 2


def test_with_thunderbolt_more_may_be_plugged_in(machine: Host, image: Path) -> None:
    add_boots(machine, devices=(SATA, USB4))
    graphics = {"amdgpu", "radeon", "ttm", "drm", "a.bin", "wild.bin"}
    assert names(unused(image)) == graphics | {"fan"}


def test_modules_of_other_kernels_and_of_none_are_left_alone(machine: Host, tmp_path: Path) -> None:
    others = module_path("radeon", OTHER)
    another = write_image_of_modules(
        tmp_path / "another",
        more={
            others: b"a module",
            f"usr/lib/modules/{RELEASE}/kernel/drivers/misc/gone.ko": b"a module",
        },
    )
    add_boots(machine)
    found = unused(another)
    assert names(found) == NOT_USED
    assert others not in {one["path"] for one in found["files"]}


@pytest.mark.parametrize("lack", ["modinfo is not installed", "modinfo does not know"])
def test_without_modinfo_no_firmware_is_called_unused(
    machine: Host, image: Path, lack: str
) -> None:
    add_boots(machine)
    if lack == "modinfo does not know":
        answer_modinfo(runner_of(machine), FIRMWARE, without="uas")
    else:
        runner_of(machine).answer("modinfo", error=ProgramError(lack))
    assert names(unused(image)) == NOT_USED
    assert f"which firmware is used is not known: {lack}" in " ".join(
        said(image, "--unused").split()
    )


def test_without_what_depmod_wrote_nothing_is_called_unused(machine: Host, image: Path) -> None:
    add_boots(machine)
    machine.path(f"/usr/lib/modules/{RELEASE}/modules.alias").unlink()
    document = json.loads(said(image, "--unused", "--json"))
    assert document["unused"] is None
    [warning] = [one for one in document["warnings"] if "depmod" in one]
    assert warning.startswith("what of it boots used is not known: cannot read what depmod wrote")


def test_the_image_is_unpacked_once_and_then_no_more(
    machine: Host, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_boots(machine)
    scans: list[object] = []

    def counted(file: object, **named: Any) -> ImageContents:  # noqa: ANN401
        scans.append(file)
        return scan(file, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(source, "scan", counted)
    first = unused(image)
    assert len(scans) == 1
    assert unused(image) == first
    assert json.loads(said(image, "--json"))["unused"] is None
    assert len(scans) == 1


@pytest.mark.parametrize(
    "damage", [lambda text: text[:-20], lambda text: re.sub(r'\["ahci"\]', "[]", text)]
)
def test_a_damaged_cache_is_read_from_the_image_anew(
    machine: Host, image: Path, damage: Callable[[str], str]
) -> None:
    add_boots(machine)
    first = unused(image)
    [kept] = (machine.cache_dir() / "modules").iterdir()
    text = kept.read_text()
    kept.write_text(damage(text))
    assert kept.read_text() != text
    assert unused(image) == first
    assert kept.read_text() == text


def test_the_text_fits_and_files_lists_all(machine: Host, image: Path) -> None:
    add_boots(machine, count=2)
    lines = said(image, "--unused", "--files").splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("Not used in 2 boots since"))
    assert " ".join(lines[start : start + 2]).startswith(
        "Not used in 2 boots since 2026-03-02: 8 modules and 2 firmware files, "
    )
    after = lines[lines.index("not used, MB unpacked:") + 1 :]
    listed = after[: len(NOT_USED) + 2]
    assert {PurePath(line.split()[-1]).name for line in listed} == {
        *(f"{name}.ko" for name in NOT_USED),
        "a.bin",
        "wild.bin",
    }
    assert all(len(line) <= 80 for line in lines[start:] if "/" not in line)
