"""The real tools of GRUB, efibootmgr and cryptsetup, over files and variables of a test's own."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

import pytest

from initadvisor.bootloaders.efi import efi_bootnext
from initadvisor.bootloaders.efi.boot_options import owned_options
from initadvisor.bootloaders.entry import EntryKind, OneShotState
from initadvisor.bootloaders.grub import grub
from initadvisor.bootloaders.safety import require_no_binding
from initadvisor.core.errors import UnsafeError
from initadvisor.core.refusals import RefusedError
from initadvisor.host.run import Completed, Priority, SystemRunner
from tests.fakes.boot_programs import BootPrograms, load_option
from tests.fixtures.loader_machines import (
    GRUB_FIXTURES,
    PARTITION,
    Machine,
    armed_machine,
    efi_stub_machine,
    grub_machine,
)
from tests.fixtures.owners import OWNER
from tests.fixtures.trees import GLOBAL, write, write_variable
from tests.fixtures.waiting import HANGS_S
from tests.vm.disk import FAT32_BYTES, FileSystem, format_ext4, format_vfat

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

pytestmark = pytest.mark.tools


@dataclass(slots=True)
class RealPrograms(BootPrograms):
    """Runs the programs named in ``real`` as they are installed here, and fakes the others.

    efibootmgr is given the tree's variables (libefivar's EFIVARFS_PATH). What needs a disk is
    faked: grub-probe, and making a boot option.
    """

    real: tuple[str, ...] = ()
    runner: SystemRunner = field(default_factory=SystemRunner)

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        timeout_s: float,
        check: bool = True,
        stdin: IO[bytes] | None = None,
        stdout: IO[bytes] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        priority: Priority = Priority.NORMAL,
    ) -> Completed:
        """Run it or fake it."""
        del stdin, stdout, env, cwd, priority
        if str(argv[0]) not in self.real or "--create-only" in argv:
            return super(RealPrograms, self).run(argv, timeout_s=timeout_s, check=check)
        variables = {"EFIVARFS_PATH": f"{self.variable('').parent}/"}
        return self.runner.run(argv, timeout_s=timeout_s, check=check, env=variables)


def with_real(machine: Machine, *real: str) -> Machine:
    """Return the machine with some programs that are real."""
    fakes = machine.programs
    programs = RealPrograms(root=machine.root, programs=fakes.programs, real=real)
    return Machine(
        root=machine.root,
        programs=programs,
        installed=machine.installed,
        candidate=machine.candidate,
    )


def tool(program: str, *words: str | Path, stdin: str = "") -> str:
    """Run a program and return what it prints."""
    path = SystemRunner().which(program)
    assert path is not None, f"{program} is missing; tools/setup test installs it"
    command = [str(path), *map(str, words)]
    done = subprocess.run(
        command, input=stdin, check=True, capture_output=True, text=True, timeout=HANGS_S
    )
    return done.stdout


def listed(machine: Machine) -> str:
    """Return what grub-editenv lists."""
    return tool("grub-editenv", machine.root / "boot/grub/grubenv", "list")


@pytest.mark.parametrize("custom", [None, "menuentry 'Mine' {\n\ttrue\n}", "# Mine\n"])
def test_grubs_own_tools_select_and_forget_the_entry(tmp_path: Path, custom: str | None) -> None:
    machine = with_real(grub_machine(tmp_path), "grub-editenv", "grub-reboot")
    environment = tmp_path / "boot/grub/grubenv"
    environment.unlink()
    tool("grub-editenv", environment, "create")
    tool("grub-editenv", environment, "set", "saved_entry=x y=z")
    if custom is not None:
        write(tmp_path, "/boot/grub/custom.cfg", custom)
    before = machine.tree()
    armed_machine(grub, machine)
    assert listed(machine) == f"saved_entry=x y=z\nnext_entry=initadvisor-{OWNER}-trial\n"
    assert grub.armed(machine.host).state is OneShotState.OURS
    tool("grub-script-check", tmp_path / "boot/grub/custom.cfg")
    assert grub.remove(machine.host)
    assert machine.tree() == before


@pytest.mark.parametrize("custom", [None, "menuentry 'Mine' {\n\ttrue\n}"])
def test_grubs_own_tools_read_entries_of_both_kinds(tmp_path: Path, custom: str | None) -> None:
    machine = with_real(grub_machine(tmp_path), "grub-editenv", "grub-reboot")
    if custom is not None:
        write(tmp_path, "/boot/grub/custom.cfg", custom)
    previous = grub.trial(machine.host, machine.previous)
    before = machine.tree()
    grub.write(machine.host, previous)
    armed_machine(grub, machine)
    tool("grub-script-check", tmp_path / "boot/grub/custom.cfg")
    assert grub.disarm(machine.host)
    tool("grub-reboot", f"--boot-directory={tmp_path}/boot", previous.identifier)
    assert grub.armed(machine.host).selects is EntryKind.PREVIOUS
    assert grub.remove(machine.host, EntryKind.PREVIOUS)
    assert grub.armed(machine.host).state is OneShotState.NONE
    assert grub.remove(machine.host, EntryKind.TRIAL)
    assert machine.tree() == before


@pytest.mark.parametrize("file_system", FileSystem)
def test_grub_finds_images_under_the_names_they_are_kept_by(
    tmp_path: Path, file_system: FileSystem
) -> None:
    image, disk = tmp_path / "image", tmp_path / "disk"
    image.write_bytes(random.Random(1).randbytes(1 << 20))
    disk.touch()
    os.truncate(disk, FAT32_BYTES)
    make = format_vfat if file_system is FileSystem.VFAT else format_ext4
    files = make(disk, 0, FAT32_BYTES)
    names = (f"/.initadvisor-{OWNER}-3-0.new", f"/EFI/Linux/.initadvisor-{OWNER}-12-1.old")
    files.put(dict.fromkeys(names, image))
    for name in names:
        tool("grub-fstest", disk, "cmp", name, image)
    write(tmp_path, "/other", b"another")
    with pytest.raises(subprocess.CalledProcessError):
        tool("grub-fstest", disk, "cmp", names[0], tmp_path / "other")


def test_a_block_that_grub_has_emptied_is_as_good_as_none(tmp_path: Path) -> None:
    machine = with_real(grub_machine(tmp_path), "grub-editenv", "grub-reboot")
    armed_machine(grub, machine)
    environment = tmp_path / "boot/grub/grubenv"
    tool("grub-editenv", environment, "set", "next_entry=")
    assert listed(machine) == "next_entry=\n"
    assert grub.armed(machine.host).state is OneShotState.NONE
    assert grub.refusals(machine.host) == ()


def test_the_fake_block_is_the_real_one(tmp_path: Path) -> None:
    fake = grub_machine(tmp_path / "fake", variables="saved_entry=0")
    real = with_real(
        grub_machine(tmp_path / "real", variables="saved_entry=0"), "grub-editenv", "grub-reboot"
    )
    for machine in (fake, real):
        armed_machine(grub, machine)
    assert fake.tree() == real.tree()
    for machine in (fake, real):
        grub.disarm(machine.host)
    assert fake.tree() == real.tree()


@pytest.mark.parametrize("name", ["numbered.cfg", "saved.cfg"])
def test_the_menus_are_such_that_grub_reads(name: str) -> None:
    tool("grub-script-check", GRUB_FIXTURES / name)


def test_efibootmgr_selects_and_forgets_the_option(tmp_path: Path) -> None:
    machine = with_real(efi_stub_machine(tmp_path), "efibootmgr")
    before = machine.tree()
    armed_machine(efi_bootnext, machine)
    assert machine.programs.variable("BootNext").read_bytes()[4:] == b"\1\0"
    assert efi_bootnext.armed(machine.host).state is OneShotState.OURS
    assert efi_bootnext.disarm(machine.host)
    assert len(owned_options(machine.host)) == 1
    assert efi_bootnext.remove(machine.host)
    assert machine.tree() == before


def test_efibootmgr_removes_one_of_owned_options_and_leaves_the_other(tmp_path: Path) -> None:
    machine = with_real(efi_stub_machine(tmp_path), "efibootmgr")
    efi_bootnext.write(machine.host, efi_bootnext.trial(machine.host, machine.previous))
    before = machine.tree()
    armed_machine(efi_bootnext, machine)
    assert [each.kind for each in owned_options(machine.host)] == [
        EntryKind.PREVIOUS,
        EntryKind.TRIAL,
    ]
    assert efi_bootnext.remove(machine.host, EntryKind.TRIAL)
    assert machine.tree() == before
    assert efi_bootnext.remove(machine.host, EntryKind.PREVIOUS)
    assert owned_options(machine.host) == ()


def test_efibootmgr_takes_an_option_out_of_the_order_with_it(tmp_path: Path) -> None:
    machine = with_real(efi_stub_machine(tmp_path), "efibootmgr")
    ours = load_option(
        f"initadvisor trial t0 [{OWNER}]", PARTITION, r"\x.efi", "initadvisor.trial=t0"
    )
    write_variable(tmp_path, "Boot0009", ours, GLOBAL)
    write_variable(tmp_path, "BootOrder", b"\3\0\x09\0\0\0", GLOBAL)
    assert efi_bootnext.remove(machine.host)
    # Unlike efivarfs, a plain file keeps what is behind a shorter value.
    assert machine.programs.variable("BootOrder").read_bytes()[4:8] == b"\3\0\0\0"


def test_efibootmgr_lists_what_the_fake_lists(tmp_path: Path) -> None:
    machine = with_real(efi_stub_machine(tmp_path), "efibootmgr")
    write_variable(tmp_path, "BootNext", b"\0\0", GLOBAL)
    real = machine.programs.run(["efibootmgr", "--bootnext", "0003"], timeout_s=20).stdout.decode()
    fake = efi_stub_machine(tmp_path / "fake").programs
    faked = fake.run(["efibootmgr", "--bootnext", "0003"], timeout_s=20).stdout.decode()
    without_path = [re.sub(r"\t.*", "", line) for line in real.splitlines()]
    assert [line for line in without_path if "BootCurrent" not in line] == faked.splitlines()


@pytest.mark.parametrize(("registers", "refused"), [([7], False), ([7, 9], True)])
def test_cryptsetup_tells_the_tokens_of_a_disk(
    tmp_path: Path, registers: list[int], refused: bool
) -> None:
    machine = with_real(grub_machine(tmp_path), "cryptsetup")
    write(tmp_path, "/sys/block/dm-0/dm/uuid", "CRYPT-LUKS2-0123-root\n")
    write(tmp_path, "/sys/block/dm-0/slaves/sda3/dev", "8:3\n")
    write(tmp_path, "/dev/sda3", bytes(20 << 20))
    disk = tmp_path / "dev/sda3"
    fast = ["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000"]
    kind = ["--batch-mode", "--type", "luks2", *fast]
    tool("cryptsetup", "luksFormat", *kind, disk, "-", stdin="passphrase")
    token = {"type": "systemd-tpm2", "keyslots": ["0"], "tpm2-pcrs": registers}
    token |= {"tpm2-blob": "AA==", "tpm2-policy-hash": "00"}
    tool("cryptsetup", "token", "import", disk, stdin=json.dumps(token))
    if refused:
        with pytest.raises(RefusedError, match="PCR 9"):
            require_no_binding(machine.host, grub.default_entry)
    else:
        require_no_binding(machine.host, grub.default_entry)


def test_a_disk_that_cannot_be_read_is_not_taken_for_one_without_tokens(tmp_path: Path) -> None:
    machine = with_real(grub_machine(tmp_path), "cryptsetup")
    write(tmp_path, "/sys/block/dm-0/dm/uuid", "CRYPT-LUKS2-0123-root\n")
    write(tmp_path, "/sys/block/dm-0/slaves/sda3/dev", "8:3\n")
    with pytest.raises(UnsafeError, match="cannot be told how /dev/sda3 is unlocked"):
        require_no_binding(machine.host, grub.default_entry)
