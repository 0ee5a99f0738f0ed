"""What the doctor says of the boot loader, room, units, hooks and what was begun."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from initadvisor.apply import room
from initadvisor.apply.apply import ApplyChoices
from initadvisor.bootloaders.grub import grub
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import UnsafeError
from initadvisor.core.refusals import Refusal, RefusalKind, refused
from initadvisor.core.settings import Setting
from initadvisor.doctor import boots, software
from initadvisor.doctor.doctor import diagnose
from initadvisor.doctor.findings import CheckedMachine, Grade, Topic
from initadvisor.trial import markers
from tests.fixtures.bls_machine import RESCUE, bls_machine, identifier
from tests.fixtures.checkout import ROOT
from tests.fixtures.doctor_machine import about, make_examinable, only, said_of, with_units
from tests.fixtures.dracut_machine import applied_setting
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from pathlib import Path

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


def test_reasons_against_arming_are_in_words(
    machine: Machine, examined: tuple[Machine, FakeLoader]
) -> None:
    reasons = (
        Refusal(kind=RefusalKind.NO_DEFAULT, reason="no default", remedy="set one"),
        Refusal(kind=RefusalKind.BOUND_TO_TPM, reason="bound", remedy="bind it to PCR 7"),
    )
    examined[1].against = reasons[1:]
    assert about(diagnose(machine), Topic.LOADER, Grade.OBSTACLE) == []
    examined[1].against = reasons
    found = only(diagnose(machine), Topic.LOADER, Grade.OBSTACLE)
    assert (found.text, found.advice) == ("no default", "set one")


def test_a_copy_of_the_generator_s_image_is_in_the_way(
    machine: Machine, examined: tuple[Machine, FakeLoader]
) -> None:
    examined[1].image = "/boot/efi/debian/6.12/initrd.img"
    found = only(diagnose(machine), Topic.LOADER, Grade.OBSTACLE)
    assert found.text == "the default entry default loads no image that this machine makes"
    assert found.advice == "have it boot the image that the generator makes"


def test_a_unified_image_is_worth_knowing(
    machine: Machine, examined: tuple[Machine, FakeLoader], monkeypatch: pytest.MonkeyPatch
) -> None:
    default = examined[1].default_entry(machine)
    unified = replace(default, kernel=default.initrds[0], initrds=(), is_uki=True)
    monkeypatch.setattr(type(examined[1]), "default_entry", lambda _self, _host: unified)
    assert about(diagnose(machine), Topic.LOADER, Grade.OBSTACLE) == []
    assert "a unified kernel image: ukify is not installed" in said_of(machine, Topic.LOADER)

    def nothing_signs(_host: Host, _default: object) -> None:
        msg = "nothing signs"
        raise UnsafeError(msg)

    monkeypatch.setattr(boots, "require_can_sign", nothing_signs)
    assert "nothing signs" in said_of(machine, Topic.LOADER)
    assert "apply goes without it" not in str(diagnose(machine)[Topic.LOADER])


def test_files_that_grub_does_not_read_as_they_are_meant_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boots, "detect_boot_loader", lambda _host: grub)
    machine = bls_machine(tmp_path, variables=f"saved_entry={identifier(RESCUE)}\n")
    subject = CheckedMachine(host=machine.host, generator=None, images=(), try_engines=False)
    write(tmp_path, "/boot/loader/entries/a.conf", "title A\n")
    write(tmp_path, "/boot/loader/entries/b.conf", "linux /k\n\noptions quiet\n")
    by_default, *found = boots.loader(subject)
    damaged, able = found[:2], found[2]
    assert by_default.grade is Grade.OK
    assert by_default.text.startswith(f"grub boots by default: Fedora Linux ({RESCUE})")
    assert [(each.grade, each.text, each.advice) for each in damaged] == [
        (Grade.NOTE, f"/boot/loader/entries/{text}", "mend or remove that file")
        for text in (
            "b.conf goes on behind a line without a value, where GRUB stops reading",
            "a.conf names no kernel, so that GRUB does not show it",
        )
    ]
    assert (able.grade, able.text) == (Grade.OK, "grub can boot an entry once")
    write(tmp_path, "/boot/loader/entries/a.conf.b.conf", "linux /k\n")
    found = list(boots.loader(subject))
    assert {each.grade for each in found} == {Grade.OBSTACLE}
    assert [each.advice for each in found if "Fedora's GRUB hangs" in each.text] == [
        "rename that file before the next boot"
    ]


def test_a_rehearsal_is_remembered(machine: Machine) -> None:
    assert "not rehearsed" in said_of(machine, Topic.LOADER)
    markers.note_rehearsed(machine, "fake")
    assert "not rehearsed" not in said_of(machine, Topic.LOADER)


def test_a_watchdog_makes_a_difference(machine: Machine) -> None:
    assert "no hardware watchdog" in said_of(machine, Topic.LOADER)
    identity = machine.path("/sys/class/watchdog/watchdog0/identity")
    identity.parent.mkdir(parents=True)
    identity.write_text("iTCO_wdt\n")
    assert "no hardware watchdog" not in said_of(machine, Topic.LOADER)


def test_a_bound_key_is_worth_knowing(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boots, "open_devices", lambda _host: ("/dev/sda3",))
    monkeypatch.setattr(boots, "require_no_binding", lambda _host, _default: None)
    assert "/dev/sda3: no key" in said_of(machine, Topic.UNLOCKING)

    def bound(_host: Host, _default: object) -> None:
        raise refused(RefusalKind.BOUND_TO_TPM, "bound to PCR 9", "bind it to PCR 7")

    monkeypatch.setattr(boots, "require_no_binding", bound)
    found = only(diagnose(machine), Topic.UNLOCKING, Grade.NOTE)
    advice = "bind it to PCR 7 (--ignore-unlocking)"
    assert (found.text, found.advice) == ("bound to PCR 9", advice)


def test_too_little_room_is_in_the_way(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert about(diagnose(machine), Topic.ROOM, Grade.OBSTACLE) == []
    monkeypatch.setattr(room, "free_bytes", lambda _path: 1000)
    found = only(diagnose(machine), Topic.ROOM, Grade.OBSTACLE)
    assert "/: 0 MB are free" in found.text


def test_a_trial_s_image_has_to_fit_beside_today_s(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert about(diagnose(machine), Topic.ROOM, Grade.NOTE) == []
    monkeypatch.setattr(boots, "free_bytes", lambda _path: 10)
    found = only(diagnose(machine), Topic.ROOM, Grade.NOTE)
    assert "a trial's image of up to 0 MB fits" in found.text


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
    assert "sudo initadvisor enable" in advice
    assert f"sudo systemctl unmask {'initadvisor-sleep.service'}" in advice
    assert "not installed: initadvisor-settle.timer" in said_of(machine, Topic.UNITS)


def test_units_that_do_not_do_what_they_are_there_for(machine: Machine) -> None:
    with_units(
        machine,
        initadvisord_path__ActiveState="inactive",
        initadvisord_service__ActiveState="activating",
        initadvisord_service__SubState="auto-restart",
        initadvisor_settle_timer__WantedBy="",
    )
    found = diagnose(machine)
    assert only(found, Topic.UNITS, Grade.OBSTACLE).text.startswith("initadvisord.service")
    assert [finding.advice for finding in about(found, Topic.UNITS, Grade.NOTE)] == [
        "sudo systemctl start initadvisord.path",
        "sudo systemctl add-wants timers.target initadvisor-settle.timer",
    ]


def test_a_reboot_that_waits_has_not_failed(machine: Machine) -> None:
    with_units(machine, initadvisor_reboot_service__SubState="auto-restart")
    assert about(diagnose(machine), Topic.UNITS, Grade.OBSTACLE) == []
    with_units(machine, initadvisor_reboot_service__ActiveState="failed")
    assert about(diagnose(machine), Topic.UNITS, Grade.OBSTACLE) != []


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
    assert set(software.UNITS) == shipped
    presets = " ".join(path.read_text() for path in (ROOT / "systemd").glob("*.preset"))
    assert all(f"enable {unit}\n" in presets for unit in software.ENABLED_BY_USER)


@pytest.mark.parametrize("distribution", ["debian", "arch", "fedora", "opensuse"])
def test_every_hook_that_is_looked_for_is_shipped(machine: Machine, distribution: str) -> None:
    machine.path("/etc/os-release").write_text(f"ID={distribution}\n")
    for name in ("postinst.d", "postrm.d"):
        machine.path(f"/etc/kernel/{name}/zz-initadvisor").unlink()
    missing = about(diagnose(machine), Topic.HOOKS, Grade.NOTE)
    for finding in missing:
        target = machine.path(finding.text.split()[-4])
        named = sorted((ROOT / "hooks").rglob(target.name))
        source = next((p for p in named if p.parent.name == target.parent.name), named[0])
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


def test_a_hook_whose_program_is_gone_is_named(machine: Machine) -> None:
    hook = machine.path("/etc/initramfs/post-update.d/initadvisor")
    hook.write_text((ROOT / "hooks/debian/initramfs/post-update.d/initadvisor").read_text())
    assert about(diagnose(machine), Topic.HOOKS, Grade.NOTE) == []
    machine.path("/usr/lib/initadvisor/queue").unlink()
    text = only(diagnose(machine), Topic.HOOKS, Grade.NOTE).text
    assert "calls" in text
    assert "/usr/lib/initadvisor/queue" in text


def test_what_is_not_over_is_told(machine: Machine) -> None:
    assert said_of(machine, Topic.CHANGES) == "nothing is pending"
    applied_setting(machine, Setting(Codec.ZSTD), ApplyChoices())
    found = only(diagnose(machine), Topic.CHANGES, Grade.NOTE)
    assert "waits for a boot with today's image" in found.text


def test_the_extent_of_what_is_kept_is_told(machine: Machine) -> None:
    (machine.root / "state").mkdir()
    (machine.root / "state/some").write_bytes(bytes(1_000_000))
    os.sync()
    assert "1 files, 1.0 MB" in said_of(machine, Topic.FILES)
