"""Kernels with a configuration of their own: all of them are rewritten, if that is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.apply import plan as apply_plan
from initadvisor.apply import room as apply_room
from initadvisor.apply.plan import ApplyRequest, plan_apply
from initadvisor.apply.plan_values import ApplyStep
from initadvisor.core.settings import Setting
from initadvisor.generators import mkinitcpio
from initadvisor.lab.observing import Unseen
from initadvisor.target import target as target_module
from tests.fixtures.dracut_machine import OTHER, make_machine, nothing_weighed, snapshot
from tests.fixtures.hosts import RELEASE

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.apply.plan_values import ApplyPlan
    from tests.fixtures.hosts import Machine

MAIN, DROP_IN, LTS = (
    "/etc/mkinitcpio.conf",
    "/etc/mkinitcpio.conf.d/own.conf",
    "/etc/mkinitcpio-lts.conf",
)


@pytest.fixture
def arch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with mkinitcpio and a second kernel whose preset has its own configuration."""
    found = make_machine(tmp_path, monkeypatch)
    monkeypatch.setattr(target_module, "detect_generator", lambda _host: mkinitcpio)
    monkeypatch.setattr(apply_plan, "recommend", nothing_weighed)
    monkeypatch.setattr(apply_plan, "_of_the_boot_loader", lambda _host, _images: ())
    write(found, "/usr/bin/mkinitcpio", "declare -r version='41'\n")
    write(found, MAIN, "HOOKS=(base)\nCOMPRESSION=gzip\n")
    write(found, LTS, "HOOKS=(base)\nCOMPRESSION=xz # as ever\n")
    preset(found, "linux", RELEASE)
    preset(found, "linux-lts", OTHER, f"ALL_config={LTS}\n")
    return found


def write(machine: Machine, name: str, text: str) -> None:
    """Write a file of the machine."""
    path = machine.path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def preset(machine: Machine, kernel: str, release: str, more: str = "") -> None:
    """Write a preset and its image."""
    text = f"PRESETS=(default)\nALL_kver={release}\ndefault_image=/boot/{kernel}.img\n{more}"
    write(machine, f"/etc/mkinitcpio.d/{kernel}.preset", text)
    write(machine, f"/boot/{kernel}.img", "an image\n")


def planned(machine: Machine, text: str, *, everything: bool = True) -> ApplyPlan:
    """Return the plan to apply a setting."""
    request = ApplyRequest(setting=Setting.parse(text), everything=everything)
    before = snapshot(machine)
    plan = plan_apply(machine, request, observer=Unseen())
    assert snapshot(machine) == before
    return plan


def changed(machine: Machine, plan: ApplyPlan) -> dict[str, str]:
    """Return what each file of the machine would hold."""
    found = {edit.path.removeprefix(str(machine.root)): edit.after for edit in plan.edits}
    assert len(found) == len(plan.edits)
    for edit in plan.edits:
        path = machine.root / edit.path.removeprefix(str(machine.root)).lstrip("/")
        assert edit.before == (path.read_text() if path.exists() else None)
    return found


def rebuilt(plan: ApplyPlan) -> dict[str, str]:
    """Return which images would be made anew, with what."""
    assert [obstacle for obstacle in plan.blockers if obstacle.step is ApplyStep.BUILD] == []
    return {planned.image.path.name: str(planned.after.setting) for planned in plan.rebuilt}


def test_a_configuration_of_its_own_is_rewritten_if_all_is_asked_for(arch: Machine) -> None:
    plan = planned(arch, "zstd -19")
    assert rebuilt(plan) == {"linux.img": "zstd -19", "linux-lts.img": "zstd -19"}
    assert changed(arch, plan).keys() == {MAIN, LTS}
    assert changed(arch, plan)[LTS].startswith("HOOKS=(base)\nCOMPRESSION=zstd # as ever\n")
    assert plan.warnings[1:] == ()


def test_it_is_left_alone_otherwise(arch: Machine) -> None:
    plan = planned(arch, "zstd -19", everything=False)
    assert rebuilt(plan) == {"linux.img": "zstd -19"}
    assert changed(arch, plan).keys() == {MAIN}


def test_a_kernel_that_has_the_setting_keeps_others_from_nothing(arch: Machine) -> None:
    write(arch, MAIN, "HOOKS=(base)\nCOMPRESSION=zstd\n")
    assert planned(arch, "zstd", everything=False).edits == ()
    plan = planned(arch, "zstd")
    assert rebuilt(plan) == {"linux-lts.img": "zstd"}
    assert changed(arch, plan).keys() == {LTS}
    (obstacle,) = plan.blockers
    assert obstacle.step is ApplyStep.PROVING_BOOT
    assert "there is nothing new to boot" in obstacle.reason


def test_one_file_that_is_read_in_two_ways_is_right_for_both(arch: Machine) -> None:
    """What names its configuration reads no drop-ins (option -c)."""
    write(arch, MAIN, "HOOKS=(base)\nCOMPRESSION=xz\nCOMPRESSION_OPTIONS=(-1)\n")
    write(arch, DROP_IN, "COMPRESSION=gzip\n")
    preset(arch, "linux-lts", OTHER, f"ALL_config={MAIN}\n")
    plan = planned(arch, "zstd -19")
    assert rebuilt(plan) == {"linux.img": "zstd -19", "linux-lts.img": "zstd -19"}
    assert changed(arch, plan) == {
        MAIN: "HOOKS=(base)\nCOMPRESSION=zstd\nCOMPRESSION_OPTIONS=(-19)\n",
        DROP_IN: "COMPRESSION=zstd\n",
    }


def test_what_cannot_be_rewritten_is_told_and_hinders_nothing_else(arch: Machine) -> None:
    write(arch, LTS, "HOOKS=(base)\nCOMPRESSION=$(cat /etc/compressor)\n")
    write(arch, "/etc/compressor", "xz\n")
    plan = planned(arch, "zstd -19")
    assert rebuilt(plan) == {"linux.img": "zstd -19"}
    assert "/boot/linux-lts.img cannot be given the setting: " in plan.warnings[0]
    assert LTS in plan.warnings[0]


def test_a_fallback_image_with_its_own_configuration_gets_the_setting_as_well(
    arch: Machine,
) -> None:
    with_fallback(arch, f"fallback_config={LTS}\n")
    plan = planned(arch, "zstd -19")
    assert rebuilt(plan) == dict.fromkeys(("linux.img", "rescue.img", "linux-lts.img"), "zstd -19")
    assert changed(arch, plan).keys() == {MAIN, LTS}


def test_a_fallback_image_is_rebuilt_together_with_the_default_one(
    arch: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_fallback(arch, "")
    both = planned(arch, "zstd -19", everything=False)
    assert rebuilt(both) == dict.fromkeys(("linux.img", "rescue.img"), "zstd -19")
    (room,) = both.space
    with monkeypatch.context() as patched:
        patched.setattr(apply_room, "free_bytes", lambda _path: room.needed_bytes - 1)
        tight = planned(arch, "zstd -19", everything=False)
    assert rebuilt(tight) == {"linux.img": "zstd -19"}
    assert "/boot/rescue.img stays as it is: there is no room to rebuild it, too" in " ".join(
        tight.warnings
    )
    assert not tight.blockers
    with_fallback(arch, "fallback_options='-z xz'\n")
    own = planned(arch, "zstd -19", everything=False)
    assert rebuilt(own) == {"linux.img": "zstd -19"}
    assert not own.blockers


def test_a_preset_that_names_a_compressor_is_in_the_way_before_anything_is_built(
    arch: Machine,
) -> None:
    with_fallback(arch, "fallback_options='-z xz'\n")
    plan = planned(arch, "zstd -19")
    assert "/boot/rescue.img cannot be given the setting: " in plan.warnings[0]
    (obstacle,) = plan.blockers
    assert obstacle.step is ApplyStep.BUILD
    assert "/boot/rescue.img would be made with xz" in obstacle.reason


def with_fallback(machine: Machine, text: str) -> None:
    """Have the first kernel's preset make a fallback image, too."""
    path = machine.path("/etc/mkinitcpio.d/linux.preset")
    more = f"PRESETS=(default fallback)\nfallback_image=/boot/rescue.img\n{text}"
    path.write_text(path.read_text() + more)
    write(machine, "/boot/rescue.img", "an image\n")
