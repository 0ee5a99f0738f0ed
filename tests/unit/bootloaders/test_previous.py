"""The entry of the previous image: beside a trial's, never the default, and never our selection."""

from __future__ import annotations

import errno
import os
from itertools import permutations
from typing import TYPE_CHECKING

import pytest

from initadvisor.apply.commit import remove_stale
from initadvisor.bootloaders.efi import efi_bootnext
from initadvisor.bootloaders.efi.boot_options import owned_options
from initadvisor.bootloaders.entry import EntryKind, OneShotState, TrialRequest
from initadvisor.bootloaders.grub import grub
from initadvisor.bootloaders.systemd_boot import systemd_boot
from initadvisor.core.errors import InitadvisorError, ProgramError, UnsafeError
from initadvisor.core.refusals import RefusalKind, RefusedError
from initadvisor.records.boot_class import comparable_command_line
from initadvisor.records.boot_start import TRIAL_TAG
from tests.fakes.boot_programs import load_option
from tests.fixtures.loader_machines import (
    LOADERS,
    PARTITION,
    WORDS,
    Case,
    Machine,
    armed_machine,
    efi_stub_machine,
    grub_machine,
    systemd_boot_machine,
    unified,
)
from tests.fixtures.owners import OWNER
from tests.fixtures.trees import GLOBAL, write, write_variable

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.bootloaders import BootLoader
    from initadvisor.host import Host

SELECTS: dict[str, tuple[str, ...]] = {
    "systemd-boot": ("bootctl", "set-oneshot", f"a-initadvisor-{OWNER}-previous.conf"),
    "grub": ("grub-reboot", "--boot-directory={root}/boot", f"initadvisor-{OWNER}-previous"),
    "grub2": ("grub2-reboot", "--boot-directory={root}/boot", f"initadvisor-{OWNER}-previous"),
    "efibootmgr 17": ("efibootmgr", "--bootnext", "0001"),
    "efibootmgr 18": ("efibootmgr", "--bootnext", "0001"),
}
"""What somebody does to boot the entry once."""


@pytest.fixture(params=LOADERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def case(name: str, tmp_path: Path) -> Case:
    """Return a loader with a machine that it boots."""
    loader, make = LOADERS[name]
    return loader, make(tmp_path)


def write_previous(loader: BootLoader, machine: Machine) -> None:
    """Write the entry of the previous image."""
    loader.write(machine.host, loader.trial(machine.host, machine.previous))


def test_it_starts_what_the_default_does_with_the_image_that_was_replaced(case: Case) -> None:
    loader, machine = case
    default = loader.default_entry(machine.host)
    plan = loader.trial(machine.host, machine.previous)
    assert plan.default == default
    assert plan.extra_cmdline == ()
    assert "initadvisor: previous image (zstd -19)" in plan.title
    assert plan.title != default.title
    assert comparable_command_line(plan.options) == comparable_command_line(default.options)
    assert TRIAL_TAG not in plan.text
    assert "panic=" not in plan.text
    assert f".initadvisor-{OWNER}-3-0.old" in plan.text


def test_the_default_stays_the_default(case: Case) -> None:
    loader, machine = case
    default = loader.default_entry(machine.host)
    write_previous(loader, machine)
    assert loader.default_entry(machine.host) == default
    assert loader.refusals(machine.host) == ()
    assert loader.armed(machine.host).state is OneShotState.NONE
    assert machine.reboots() is None


def test_each_kind_is_found_by_its_image(case: Case) -> None:
    loader, machine = case
    assert [loader.entry(machine.host, kind) for kind in EntryKind] == [None, None]
    write_previous(loader, machine)
    assert loader.entry(machine.host, EntryKind.TRIAL) is None
    assert loader.entry(machine.host, EntryKind.PREVIOUS) == machine.previous.image
    armed_machine(loader, machine)
    assert loader.entry(machine.host, EntryKind.TRIAL) == machine.candidate
    assert loader.entry(machine.host, EntryKind.PREVIOUS) == machine.previous.image


def test_both_come_and_go_in_any_order_without_a_trace(case: Case) -> None:
    loader, machine = case
    requests = {EntryKind.TRIAL: machine.request, EntryKind.PREVIOUS: machine.previous}
    before = machine.tree()
    alone = {}
    for kind, request in requests.items():
        loader.write(machine.host, loader.trial(machine.host, request))
        alone[kind] = our_parts(machine)
        assert loader.remove(machine.host, kind)
        assert machine.tree() == before
    for first, second in permutations(EntryKind):
        for removed, left in permutations(EntryKind):
            for kind in (first, second):
                loader.write(machine.host, loader.trial(machine.host, requests[kind]))
            assert our_parts(machine) == sorted(part for kind in alone for part in alone[kind])
            assert loader.remove(machine.host, removed)
            assert our_parts(machine) == alone[left]
            assert loader.remove(machine.host, left)
            assert machine.tree() == before


def our_parts(machine: Machine) -> list[bytes]:
    """Return each of our entries as it is written, wherever that is."""
    parts: list[bytes] = []
    for name, content in machine.tree().items():
        if "a-initadvisor-" in name:
            parts.append(content)
        elif name.endswith("custom.cfg"):
            parts += [b"menuentry" + part for part in content.split(b"menuentry")[1:]]
    ends = [part.partition(b"\n### END")[0] for part in parts]
    found = owned_options(machine.host)
    return sorted([*ends, *(option.option.description.encode() for option in found)])


def test_an_entry_that_is_as_planned_is_not_written_again(case: Case) -> None:
    loader, machine = case
    write_previous(loader, machine)
    files = {path: path.stat().st_mtime_ns for path in machine.root.rglob("*") if path.is_file()}
    ran = len(machine.programs.calls)
    write_previous(loader, machine)
    changes = {"--create-only", "--delete-bootnum"}
    assert not [call for call in machine.programs.calls[ran:] if changes & set(call.argv)]
    assert files == {path: path.stat().st_mtime_ns for path in files}


def test_a_later_one_takes_its_place(case: Case) -> None:
    loader, machine = case
    write_previous(loader, machine)
    image = machine.previous.image.replace("3-0", "4-0")
    write(machine.root, image, "image of later")
    later = TrialRequest(kind=EntryKind.PREVIOUS, replaces=machine.installed, image=image)
    plan = loader.trial(machine.host, later)
    assert "initadvisor: previous image" in plan.title
    assert "(zstd" not in plan.title
    loader.write(machine.host, plan)
    assert loader.entry(machine.host, EntryKind.PREVIOUS) == image
    texts = b"".join(machine.tree().values()).replace(b"\0", b"").decode(errors="replace")
    assert "-3-0" not in texts


def test_an_entry_that_cannot_be_replaced_stays(case: Case) -> None:
    loader, machine = case
    write_previous(loader, machine)
    image = machine.previous.image.replace("3-0", "4-0")
    write(machine.root, image, "image of later")
    later = TrialRequest(kind=EntryKind.PREVIOUS, replaces=machine.installed, image=image)
    plan = loader.trial(machine.host, later)
    before = machine.tree()
    machine.programs.answer("efibootmgr --create-only", error=ProgramError("no space left"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", _full_disk)
        with pytest.raises(InitadvisorError):
            loader.write(machine.host, plan)
    assert machine.tree() == before
    assert loader.entry(machine.host, EntryKind.PREVIOUS) == machine.previous.image


def _full_disk(_descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_it_is_not_armed(case: Case) -> None:
    loader, machine = case
    plan = loader.trial(machine.host, machine.previous)
    loader.write(machine.host, plan)
    before = machine.tree()
    with pytest.raises(UnsafeError, match="only a trial's entry"):
        loader.arm(machine.host, plan)
    assert machine.tree() == before


def test_who_selected_it_is_asked_before_a_trial_and_loses_it_with_the_entry(
    name: str, case: Case
) -> None:
    loader, machine = case
    write_previous(loader, machine)
    plan = loader.trial(machine.host, machine.request)
    loader.write(machine.host, plan)
    command = [word.format(root=machine.root) for word in SELECTS[name]]
    machine.programs.run(command, timeout_s=1)
    pending = loader.armed(machine.host)
    assert pending.state is OneShotState.OTHERS
    assert pending.selects is EntryKind.PREVIOUS
    assert [each.kind for each in loader.refusals(machine.host)] == [RefusalKind.PENDING_ONE_SHOT]
    with pytest.raises(RefusedError, match="selected by somebody else"):
        loader.arm(machine.host, plan)
    assert not loader.disarm(machine.host)
    assert loader.remove(machine.host, EntryKind.TRIAL)
    assert loader.armed(machine.host) == pending
    assert loader.remove(machine.host, EntryKind.PREVIOUS)
    assert loader.armed(machine.host).state is OneShotState.NONE


def test_a_trial_that_is_armed_survives_the_removal_of_the_previous_image(case: Case) -> None:
    loader, machine = case
    write_previous(loader, machine)
    armed_machine(loader, machine)
    pending = loader.armed(machine.host)
    assert pending.selects is EntryKind.TRIAL
    assert loader.remove(machine.host, EntryKind.PREVIOUS)
    assert loader.armed(machine.host) == pending
    assert machine.reboots() is not None


def entries_left(host: Host, loader: BootLoader) -> list[EntryKind]:
    """Remove stale entries and return which are there then."""
    remove_stale(host, loader)
    return [kind for kind in EntryKind if loader.entry(host, kind) is not None]


def test_an_entry_goes_when_its_image_is_gone(case: Case) -> None:
    loader, machine = case
    write_previous(loader, machine)
    armed_machine(loader, machine)
    assert entries_left(machine.host, loader) == [EntryKind.TRIAL, EntryKind.PREVIOUS]
    (machine.root / machine.previous.image.lstrip("/")).unlink()
    assert entries_left(machine.host, loader) == [EntryKind.TRIAL]
    assert loader.armed(machine.host).state is OneShotState.OURS
    (machine.root / machine.candidate.lstrip("/")).unlink()
    assert entries_left(machine.host, loader) == []
    assert loader.armed(machine.host).state is OneShotState.NONE
    assert entries_left(machine.host, loader) == []


def test_where_nothing_names_a_default_it_is_not_planned(tmp_path: Path) -> None:
    machine = systemd_boot_machine(tmp_path, loader_conf="timeout 3\n")
    with pytest.raises(RefusedError, match="could become it"):
        systemd_boot.trial(machine.host, machine.previous)


@pytest.mark.parametrize("label", ["a\nlinux /x", "z\xe9", "\t"])
def test_a_label_that_is_more_than_a_title_is_nobodys(label: str) -> None:
    with pytest.raises(ValueError, match="nothing that every loader shows"):
        TrialRequest(kind=EntryKind.PREVIOUS, replaces="/a", image="/b", label=label)


@pytest.mark.parametrize(
    ("kind", "trial", "words"),
    [
        (EntryKind.TRIAL, "", WORDS),
        (EntryKind.TRIAL, "t1", ()),
        (EntryKind.PREVIOUS, "t1", ()),
        (EntryKind.PREVIOUS, "", WORDS),
    ],
)
def test_a_request_is_of_one_kind(kind: EntryKind, trial: str, words: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=kind):
        TrialRequest(kind=kind, replaces="/a", image="/b", trial=trial, parameters=words)


def test_a_unified_kernel_image_beside_the_default_is_no_entry_of_its_own(tmp_path: Path) -> None:
    machine = systemd_boot_machine(tmp_path, loader_conf="default *.efi\n")
    request = unified(machine)
    machine.programs.listed = ""
    assert systemd_boot.default_entry(machine.host).identifier == "arch.efi"
    plan = systemd_boot.trial(machine.host, request)
    assert plan.text.splitlines()[1:] == [
        f"# image /efi/EFI/Linux/.initadvisor-{OWNER}-3-0.old",
        "title arch.efi - initadvisor: previous image (zstd -19)",
        f"efi /EFI/Linux/.initadvisor-{OWNER}-3-0.old",
    ]


@pytest.mark.parametrize("options", ["", "root=UUID=8"])
def test_a_previous_unified_kernel_image_starts_as_the_entry_had_it(
    tmp_path: Path, options: str
) -> None:
    """With its own command line, where the entry says none."""
    machine = systemd_boot_machine(tmp_path, loader_conf="default x.conf\n")
    request = unified(machine)
    said = f"options {options}\n" if options else ""
    write(machine.root, "/efi/loader/entries/x.conf", f"title X\nefi /EFI/Linux/arch.efi\n{said}")
    text = systemd_boot.trial(machine.host, request).text
    assert text.partition("options ")[2] == (f"{options}\n" if options else "")


@pytest.mark.parametrize("options", ["", "root=UUID=8"])
def test_a_previous_unified_kernel_image_is_handed_over_what_the_default_one_is(
    tmp_path: Path, options: str
) -> None:
    machine = efi_stub_machine(tmp_path)
    request = unified(machine)
    default = load_option("Arch Linux", PARTITION, r"\EFI\Linux\arch.efi", options)
    write_variable(machine.root, "Boot0003", default, GLOBAL)
    efi_bootnext.write(machine.host, efi_bootnext.trial(machine.host, request))
    (ours,) = owned_options(machine.host)
    assert ours.option.file == rf"\EFI\Linux\.initadvisor-{OWNER}-3-0.old"
    assert ours.option.data.decode("utf-16-le") == options
    assert efi_bootnext.entry(machine.host, EntryKind.PREVIOUS) == request.image


def test_a_signed_image_that_was_replaced_starts_under_secure_boot(tmp_path: Path) -> None:
    """Its stub takes no words for a trial there, and it needs none."""
    machine = systemd_boot_machine(tmp_path, loader_conf="default arch.efi\n")
    request = unified(machine)
    write_variable(machine.root, "SecureBoot", b"\1", GLOBAL)
    write_variable(machine.root, "SetupMode", b"\0", GLOBAL)
    systemd_boot.write(machine.host, systemd_boot.trial(machine.host, request))
    assert systemd_boot.entry(machine.host, EntryKind.PREVIOUS) == request.image
    trial = TrialRequest(
        trial="t1", replaces=request.replaces, image=request.image, parameters=WORDS
    )
    with pytest.raises(RefusedError, match="takes no words but its own"):
        systemd_boot.trial(machine.host, trial)
    (machine.root / "efi/EFI/Linux/arch.efi.extra.d").mkdir()
    with pytest.raises(RefusedError, match="another name"):
        systemd_boot.trial(machine.host, request)


def test_an_option_that_got_into_the_order_behind_the_default_does_no_harm(tmp_path: Path) -> None:
    """Some firmware adds every option to its order; first it must not be."""
    machine = efi_stub_machine(tmp_path)
    write_previous(efi_bootnext, machine)
    write_variable(tmp_path, "BootOrder", b"\3\0\0\0\1\0", GLOBAL)
    assert efi_bootnext.refusals(machine.host) == ()
    write_variable(tmp_path, "BootOrder", b"\1\0\3\0\0\0", GLOBAL)
    refusals = efi_bootnext.refusals(machine.host)
    assert {each.kind for each in refusals} == {RefusalKind.TRIAL_MAY_BECOME_DEFAULT}


def test_a_saved_default_is_not_ours(tmp_path: Path) -> None:
    machine = grub_machine(tmp_path, configuration="saved.cfg", variables="saved_entry=0")
    default = grub.default_entry(machine.host)
    write_previous(grub, machine)
    assert "savedefault" not in (tmp_path / "boot/grub/custom.cfg").read_text()
    assert grub.default_entry(machine.host) == default
