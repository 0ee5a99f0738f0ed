"""Disks that ask for a passphrase when the machine boots, and what unlocks the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from initadvisor.bootloaders.grub import grub
from initadvisor.bootloaders.passphrases import passphrase_prompt
from initadvisor.bootloaders.systemd_boot import systemd_boot
from tests.fixtures.encrypted_disks import DEVICE, UUID, with_open_disk
from tests.fixtures.loader_machines import Machine, grub_machine, systemd_boot_machine
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from pathlib import Path

TPM = {"type": "systemd-tpm2", "tpm2-pcrs": [7]}
CLEVIS = {"type": "clevis", "jwe": {"protected": "eyJjbGV2aXMiOnsicGluIjoidGFuZyJ9fQ"}}
FLAGS = ("fido2-clientPin-required", "fido2-up-required", "fido2-uv-required")
ASKED = f"it asks for the passphrase of {DEVICE} when it boots"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine whose kernels are on an ESP."""
    return systemd_boot_machine(tmp_path)


def prompt(machine: Machine) -> str | None:
    return passphrase_prompt(machine.host, systemd_boot)


def test_without_an_encrypted_disk_nothing_asks(machine: Machine) -> None:
    assert prompt(machine) is None


@pytest.mark.parametrize(
    "token",
    [
        None,
        {**TPM, "tpm2-pin": True},
        {"type": "systemd-fido2"},
        *({"type": "systemd-fido2", **dict.fromkeys(FLAGS, False), flag: True} for flag in FLAGS),
        {"type": "systemd-pkcs11"},
        {"type": "systemd-recovery"},
    ],
)
def test_a_disk_asks_that_nothing_unlocks_without_a_person(
    machine: Machine, token: dict[str, Any] | None
) -> None:
    with_open_disk(machine.root, machine.programs, *([token] if token else []))
    assert prompt(machine) == ASKED


@pytest.mark.parametrize(
    "token", [TPM, CLEVIS, {"type": "systemd-fido2", **dict.fromkeys(FLAGS, False)}]
)
def test_a_token_unlocks_it_that_needs_nobody(machine: Machine, token: dict[str, Any]) -> None:
    with_open_disk(machine.root, machine.programs, {"type": "systemd-recovery"}, token)
    assert prompt(machine) is None


@pytest.mark.parametrize("kind", ["LUKS2-" + UUID, "PLAIN", "BITLK", "TCRYPT"])
def test_a_key_file_unlocks_it_if_it_is_there(machine: Machine, kind: str) -> None:
    with_open_disk(machine.root, machine.programs, kind=kind)
    write(machine.root, "/etc/crypttab", "# keys\nroot UUID=1 /etc/keys/root discard\n")
    assert prompt(machine) == ASKED
    write(machine.root, "/etc/keys/root", "key")
    assert prompt(machine) is None


@pytest.mark.parametrize(
    "line",
    [
        "root UUID=1",
        "root UUID=1 none luks",
        "root UUID=1 - luks",
        "root UUID=1 /etc/keys/root keyscript=/lib/cryptsetup/scripts/decrypt_gnupg",
        "root UUID=1 /etc/keys/root tpm2-device=auto",
        "root UUID=1 /key:UUID=7 luks",
        "other UUID=1 /etc/keys/root",
    ],
)
def test_what_crypttab_says_otherwise_is_no_key_file(machine: Machine, line: str) -> None:
    with_open_disk(machine.root, machine.programs)
    write(machine.root, "/etc/keys/root", "key")
    write(machine.root, "/etc/crypttab", line)
    said = prompt(machine)
    assert said is not None
    assert "/dev/sda3" in said


@pytest.mark.parametrize(
    ("word", "path"),
    [
        ("rd.luks.key=/keys/root", "/keys/root"),
        (f"luks.key={UUID}=/keys/root", "/keys/root"),
        ("cryptkey=rootfs:/keys/root", "/keys/root"),
        ("quiet", "/crypto_keyfile.bin"),
        ("quiet", "/etc/cryptsetup-keys.d/root.key"),
    ],
)
def test_keys_are_found_where_the_initramfs_looks(machine: Machine, word: str, path: str) -> None:
    with_open_disk(machine.root, machine.programs)
    line = (machine.root / "proc/cmdline").read_text().strip()
    write(machine.root, "/proc/cmdline", f"{line} {word}\n")
    assert prompt(machine) == ASKED
    write(machine.root, path, "key")
    assert prompt(machine) is None


@pytest.mark.parametrize("line", ["root UUID=1 none noauto", "root /dev/sda3 /dev/urandom swap"])
def test_a_disk_that_is_not_opened_or_made_anew_asks_for_nothing(
    machine: Machine, line: str
) -> None:
    with_open_disk(machine.root, machine.programs)
    write(machine.root, "/etc/crypttab", line)
    assert prompt(machine) is None


def test_a_disk_that_the_command_line_names_is_opened_all_the_same(machine: Machine) -> None:
    with_open_disk(machine.root, machine.programs)
    write(machine.root, "/etc/crypttab", "root UUID=1 none noauto")
    named = f"{UUID[:8]}-{UUID[8:12]}-{UUID[12:16]}-{UUID[16:20]}-{UUID[20:]}"
    line = (machine.root / "proc/cmdline").read_text().strip()
    write(machine.root, "/proc/cmdline", f"{line} rd.luks.uuid={named}\n")
    assert prompt(machine) == ASKED


@pytest.mark.parametrize(("listed", "asked"), [("", ASKED), ("1: tang '{}'\n", None)])
def test_older_headers_are_asked_of_clevis(
    machine: Machine, listed: str, asked: str | None
) -> None:
    with_open_disk(machine.root, machine.programs, kind=f"LUKS1-{UUID}")
    machine.programs.answer("cryptsetup isLuks --type luks1", "")
    assert prompt(machine) == ASKED
    machine.programs.programs = ("bootctl", "clevis")
    machine.programs.answer("clevis luks list", listed)
    assert prompt(machine) == asked


def test_a_key_that_depends_on_what_is_booted_may_not_be_given_away(machine: Machine) -> None:
    with_open_disk(machine.root, machine.programs, {**TPM, "tpm2-pcrs": [9]})
    assert "PCR 9" in (prompt(machine) or "")


def test_integrity_without_a_key_asks_for_nothing(machine: Machine) -> None:
    with_open_disk(machine.root, machine.programs, kind="VERITY")
    assert prompt(machine) is None


@pytest.mark.parametrize("below", ["dm/uuid", "slaves/dm-0/dm/uuid"])
def test_a_boot_loader_that_reads_an_encrypted_disk_asks_itself(tmp_path: Path, below: str) -> None:
    """Whatever unlocks it later: GRUB has no such key."""
    machine = grub_machine(tmp_path)
    assert passphrase_prompt(machine.host, grub) is None
    write(machine.root, f"/sys/dev/block/8:3/{below}", f"CRYPT-LUKS2-{UUID}-boot\n")
    assert "its boot loader asks" in (passphrase_prompt(machine.host, grub) or "")


def test_a_file_system_that_names_its_disk_is_followed_too(tmp_path: Path) -> None:
    machine = grub_machine(tmp_path)
    with_open_disk(machine.root, machine.programs, TPM)
    mounts = "30 1 0:33 / /boot rw - btrfs /dev/mapper/root rw\n"
    write(machine.root, "/proc/self/mountinfo", mounts)
    assert "its boot loader asks" in (passphrase_prompt(machine.host, grub) or "")
