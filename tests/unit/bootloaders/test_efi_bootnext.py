"""The firmware's boot options: BootOrder stays, somebody else's BootNext stays, ours goes."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from initadvisor.bootloaders.efi import boot_options, efi_bootnext
from initadvisor.bootloaders.efi.boot_options import option, owned_options
from initadvisor.bootloaders.entry import OneShotState, TrialRequest
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.core.refusals import RefusalKind, RefusedError
from tests.fakes.boot_programs import load_option
from tests.fixtures.images import pe
from tests.fixtures.loader_machines import (
    PARTITION,
    WORDS,
    Machine,
    armed_machine,
    efi_stub_machine,
)
from tests.fixtures.owners import OWNER
from tests.fixtures.trees import GLOBAL, write, write_variable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OURS = load_option(f"initadvisor trial t0 [{OWNER}]", PARTITION, r"\x.efi", "initadvisor.trial=t0")


def variable(name: str, value: bytes) -> Callable[[Machine], object]:
    """Return what sets a variable of the firmware's."""
    return lambda machine: write_variable(machine.root, name, value, GLOBAL)


def default_option(program: str = r"\vmlinuz-linux", options: str = "", **how: bool) -> bytes:
    """Return a boot option to be the default."""
    return load_option("Arch Linux", PARTITION, program, options, **how)


def test_the_trials_option_is_the_defaults_with_another_image(tmp_path: Path) -> None:
    machine = efi_stub_machine(tmp_path)
    order = machine.programs.variable("BootOrder").read_bytes()
    armed_machine(efi_bootnext, machine)
    (ours,) = owned_options(machine.host)
    assert ours.number == 1  # the first that was free
    assert ours.option.description == f"initadvisor trial t1 [{OWNER}]"
    assert ours.option.file == r"\vmlinuz-linux"
    assert ours.option.partition_uuid == PARTITION
    assert ours.option.data.decode("utf-16-le") == (
        r"root=UUID=1234 rw initrd=\ucode.img initrd=\initadvisor\trial.img"
        " initadvisor.trial=t1 panic=30"
    )
    assert machine.programs.variable("BootOrder").read_bytes() == order
    assert machine.reboots() == "Boot0001"


def test_the_default_is_the_first_active_option(tmp_path: Path) -> None:
    machine = efi_stub_machine(tmp_path)
    write_variable(tmp_path, "Boot0004", default_option(active=False), GLOBAL)
    write_variable(tmp_path, "BootOrder", b"\4\0\7\0\3\0\0\0", GLOBAL)  # 7 is not there
    default = efi_bootnext.default_entry(machine.host)
    assert default.identifier == "Boot0003"
    assert default.title == "Arch Linux"
    assert [initrd.path for initrd in default.initrds] == [
        "/efi/ucode.img",
        "/efi/initramfs-linux.img",
    ]


def _no_partition(machine: Machine) -> None:
    (machine.root / "proc/self/mountinfo").write_text("20 1 8:2 / / rw - ext4 /dev/sda2 rw\n")


def _no_program(machine: Machine) -> None:
    machine.programs.programs = ()


def _no_image(machine: Machine) -> None:
    (machine.root / "efi/ucode.img").unlink()


def _trial_in_order(machine: Machine) -> None:
    variable("Boot0009", OURS)(machine)
    variable("BootOrder", b"\3\0\x09\0")(machine)


def _trial_first(machine: Machine) -> None:
    variable("Boot0009", OURS)(machine)
    variable("BootOrder", b"\x09\0\3\0")(machine)


@pytest.mark.parametrize(
    ("spoil", "kind", "words"),
    [
        (_no_program, RefusalKind.MISSING_PROGRAM, "efibootmgr is not installed"),
        (_no_partition, RefusalKind.OTHER_PARTITION, "starts nothing on a mounted partition"),
        (_no_image, RefusalKind.UNCLEAR_DEFAULT, r"starts \ucode.img: not found"),
        (_trial_in_order, RefusalKind.TRIAL_MAY_BECOME_DEFAULT, "got into BootOrder"),
        (_trial_first, RefusalKind.TRIAL_MAY_BECOME_DEFAULT, "got into BootOrder"),
        (variable("BootOrder", b""), RefusalKind.NO_DEFAULT, "names no boot option"),
        (variable("BootOrder", b"\0\0"), RefusalKind.UNCLEAR_DEFAULT, "not found"),
        (variable("Boot0003", b"\1"), RefusalKind.UNCLEAR_DEFAULT, "not found"),
        (
            variable("Boot0003", default_option()),
            RefusalKind.UNCLEAR_DEFAULT,
            "no unified kernel image",
        ),
        (variable("BootNext", b"\0\0"), RefusalKind.PENDING_ONE_SHOT, "Boot0000 (Windows)"),
        (variable("BootNext", b"\x42\0"), RefusalKind.PENDING_ONE_SHOT, "Boot0042"),
        (variable("BootNext", b"\0"), RefusalKind.UNREADABLE, "1 bytes instead of 2"),
    ],
)
def test_every_reason_is_told_with_what_to_do_and_nothing_is_armed(
    tmp_path: Path, spoil: Callable[[Machine], object], kind: RefusalKind, words: str
) -> None:
    machine = efi_stub_machine(tmp_path)
    plan = efi_bootnext.trial(machine.host, machine.request)
    spoil(machine)
    before = machine.tree()
    found = [
        refusal
        for refusal in efi_bootnext.refusals(machine.host)
        if refusal.kind is kind and words in refusal.reason
    ]
    assert found
    assert all(refusal.remedy for refusal in found)
    with pytest.raises(RefusedError):
        efi_bootnext.arm(machine.host, plan)
    assert machine.tree() == before


def test_somebody_elses_selection_is_left_alone(tmp_path: Path) -> None:
    machine = efi_stub_machine(tmp_path)
    armed_machine(efi_bootnext, machine)
    variable("BootNext", b"\0\0")(machine)
    assert not efi_bootnext.disarm(machine.host)
    assert efi_bootnext.remove(machine.host)
    pending = efi_bootnext.armed(machine.host)
    assert pending.state is OneShotState.OTHERS
    assert pending.identifier == "Boot0000 (Windows)"


def test_a_selection_does_not_pass_to_the_next_option_of_its_number(tmp_path: Path) -> None:
    machine = efi_stub_machine(tmp_path)
    armed_machine(efi_bootnext, machine)
    words = ("initadvisor.trial=t2", "panic=30")
    later = dataclasses.replace(machine.request, trial="t2", parameters=words)
    efi_bootnext.write(machine.host, efi_bootnext.trial(machine.host, later))
    assert efi_bootnext.armed(machine.host).state is OneShotState.NONE
    efi_bootnext.write(machine.host, efi_bootnext.trial(machine.host, machine.previous))
    assert [each.number for each in owned_options(machine.host)] == [1, 2]
    assert machine.reboots() is None


def test_an_option_that_only_looks_like_ours_is_left_alone(tmp_path: Path) -> None:
    machine = efi_stub_machine(tmp_path)
    lookalike = load_option(f"initadvisor trial of mine [{OWNER}]", PARTITION, r"\x.efi", "quiet")
    variable("Boot0007", lookalike)(machine)
    armed_machine(efi_bootnext, machine)
    assert efi_bootnext.remove(machine.host)
    assert option(machine.host, 7) is not None


def test_firmware_that_makes_no_option_is_an_error(tmp_path: Path) -> None:
    machine = efi_stub_machine(tmp_path)
    before = machine.tree()
    machine.programs.forgetful = True
    with pytest.raises(InitadvisorError, match="there is no boot option"):
        efi_bootnext.write(machine.host, efi_bootnext.trial(machine.host, machine.request))
    assert machine.tree() == before


def test_firmware_that_reorders_by_itself_is_told_and_the_option_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = efi_stub_machine(tmp_path)
    plan = efi_bootnext.trial(machine.host, machine.request)
    real = boot_options.run

    def reordering(*args: object) -> object:
        listing = real(*args)  # type: ignore[arg-type]
        variable("BootOrder", b"\1\0\3\0")(machine)
        return listing

    monkeypatch.setattr(boot_options, "run", reordering)
    with pytest.raises(UnsafeError, match="changed its BootOrder") as caught:
        efi_bootnext.write(machine.host, plan)
    assert caught.value.hint == "it was: efibootmgr --bootorder 0003,0000"
    assert owned_options(machine.host) == ()


def test_an_option_that_was_changed_since_is_not_armed(tmp_path: Path) -> None:
    machine = efi_stub_machine(tmp_path)
    plan = efi_bootnext.trial(machine.host, machine.request)
    efi_bootnext.write(machine.host, plan)
    changed = load_option(plan.title, PARTITION, r"\vmlinuz-linux", f"{plan.options} init=/bin/sh")
    variable("Boot0001", changed)(machine)
    with pytest.raises(UnsafeError, match="not in EFI boot options as it was written"):
        efi_bootnext.arm(machine.host, plan)
    assert efi_bootnext.armed(machine.host).state is OneShotState.NONE


@pytest.mark.parametrize("options", ["", "root=UUID=7 quiet"])
def test_a_unified_kernel_image_is_tried_with_the_defaults_options(
    tmp_path: Path, options: str
) -> None:
    machine = efi_stub_machine(tmp_path)
    image = pe([(".linux", b"MZ kernel"), (".cmdline", b"root=UUID=7 quiet"), (".initrd", b"i")])
    write(tmp_path, "/efi/EFI/Linux/arch.efi", image)
    write(tmp_path, "/efi/EFI/Linux/trial.efi", image)
    variable("Boot0003", default_option(r"\EFI\Linux\arch.efi", options))(machine)
    request = TrialRequest(
        trial="t1",
        replaces="/efi/EFI/Linux/arch.efi",
        image="/efi/EFI/Linux/trial.efi",
        parameters=WORDS,
    )
    plan = efi_bootnext.trial(machine.host, request)
    efi_bootnext.write(machine.host, plan)
    efi_bootnext.arm(machine.host, plan)
    (ours,) = owned_options(machine.host)
    assert ours.option.file == r"\EFI\Linux\trial.efi"
    assert plan.options == "root=UUID=7 quiet initadvisor.trial=t1 panic=30"


V15 = """\
BootCurrent: 0003
Timeout: 1 seconds
BootOrder: 0003,0000
Boot0000* Windows Boot Manager
Boot0003* Arch Linux
Boot0004  initadvisor trial t1
"""
V17_VERBOSE = """\
BootNext: 0004
BootCurrent: 0003
BootOrder: 0003,000A
Boot0003* Arch Linux\tHD(1,GPT,11111111-2222-4333-8444-555555555555,0x800,0x186a0)/File(\\v)r.o.o.t.
Boot0004* initadvisor trial t1\tHD(1,GPT,x)/File(\\v)BootNext: 0009
Boot000A* UEFI: Built-in EFI Shell\tVenMedia(5023b95c-db26-429b-a648-bd47664c8012)
"""
V18 = """\
BootNext: 0004
BootCurrent: 0003
Timeout: 0 seconds
BootOrder: 0003
Boot0003* Arch Linux\tHD(1,GPT,11111111-2222-4333-8444-555555555555,0x800,0x186a0)/\\vroot=x
      dp: 04 01 2a 00 01 00 00 00 / 7f ff 04 00
    data: 72 00 6f 00
Boot0004* initadvisor trial t1\tHD(1,GPT,x)/\\EFI\\Linux\\t.efi
MirroredPercentageAbove4G: 0.00
MirrorMemoryBelow4GB: false
"""


@pytest.mark.parametrize(
    ("text", "descriptions"),
    [
        (
            V15,
            {0: "Windows Boot Manager", 3: "Arch Linux", 4: "initadvisor trial t1"},
        ),
        (
            V17_VERBOSE,
            {3: "Arch Linux", 4: "initadvisor trial t1", 10: "UEFI: Built-in EFI Shell"},
        ),
        (V18, {3: "Arch Linux", 4: "initadvisor trial t1"}),
        ("No BootOrder is set; firmware will attempt recovery\n", {}),
        ("", {}),
    ],
)
def test_what_every_version_prints_is_understood(text: str, descriptions: dict[int, str]) -> None:
    assert boot_options.parse(text) == descriptions
