"""Disks that a TPM unlocks: whose registers a trial changes, and how sure that is."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from initadvisor.bootloaders.entry import OneShotState
from initadvisor.bootloaders.safety import open_devices, require_no_binding
from initadvisor.bootloaders.systemd_boot import systemd_boot
from initadvisor.core.errors import ProgramError
from initadvisor.core.refusals import RefusalKind, RefusedError
from tests.fixtures.loader_machines import Machine, systemd_boot_machine
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from pathlib import Path


def encrypted(root: Path, *tokens: dict[str, Any]) -> Machine:
    """Return a machine with an open LUKS2 disk that has these tokens, and a mapping of LVM's."""
    machine = systemd_boot_machine(root)
    write(root, "/sys/block/dm-0/dm/uuid", "CRYPT-LUKS2-0123-root\n")
    write(root, "/sys/block/dm-0/slaves/sda3/dev", "8:3\n")
    write(root, "/sys/block/dm-1/dm/uuid", "LVM-0123\n")
    write(root, "/sys/block/dm-1/slaves/dm-0/dev", "254:0\n")
    device = str(root / "dev/sda3")
    header = {"tokens": {str(number): token for number, token in enumerate(tokens)}}
    machine.programs.answer(["cryptsetup", "isLuks", "--type", "luks2", device])
    machine.programs.answer(
        ["cryptsetup", "luksDump", "--dump-json-metadata", device], json.dumps(header)
    )
    return machine


def clevis(header: dict[str, Any]) -> dict[str, Any]:
    """Return a token as clevis-luks-bind writes it."""
    return {"type": "clevis", "keyslots": ["1"], "jwe": {"protected": encoded(header)}}


def encoded(header: dict[str, Any]) -> str:
    """Encode a header as in JWE: without padding."""
    return base64.urlsafe_b64encode(json.dumps(header).encode()).decode().rstrip("=")


def tpm2_pin(registers: str) -> dict[str, Any]:
    """Return a header of clevis' pin tpm2."""
    return {"clevis": {"pin": "tpm2", "tpm2": {"pcr_bank": "sha256", "pcr_ids": registers}}}


def shared(*headers: dict[str, Any]) -> dict[str, Any]:
    """Return a header of clevis' pin sss, which holds others."""
    shares = [f"{encoded(header)}..iv.text.tag" for header in headers]
    return {"clevis": {"pin": "sss", "sss": {"t": 1, "jwe": shares}}}


@pytest.mark.parametrize(
    ("tokens", "registers"),
    [
        ((), None),
        (({"type": "systemd-fido2"},), None),
        (({"type": "systemd-tpm2", "tpm2-pcrs": [7]},), None),
        (({"type": "systemd-tpm2", "tpm2-pcrs": []},), None),
        (({"type": "systemd-tpm2", "tpm2-pcrs": [7, 9]},), "PCR 9"),
        (({"type": "systemd-tpm2", "tpm2-pcrs": [0, 2, 12, 4]},), "PCR 4, 12"),
        (({"type": "systemd-tpm2", "tpm2-pcrs": [7], "tpm2_pubkey_pcrs": [11]},), "PCR 11"),
        (({"type": "systemd-tpm2", "tpm2-pcrs": [], "tpm2_pcrlock": True},), "PCR 1, 4"),
        ((clevis(tpm2_pin("7")),), None),
        ((clevis(tpm2_pin("7,9")),), "PCR 9"),
        ((clevis({"clevis": {"pin": "tpm2", "tpm2": {"hash": "sha256"}}}),), None),
        ((clevis({"clevis": {"pin": "tang", "tang": {"url": "x"}}}),), None),
        ((clevis(shared(tpm2_pin("7"), tpm2_pin("8"))),), "PCR 8"),
        (({"type": "systemd-fido2"}, {"type": "systemd-tpm2", "tpm2-pcrs": [5]}), "PCR 5"),
    ],
)
def test_registers_that_a_trial_changes_are_a_reason(
    tmp_path: Path, tokens: tuple[dict[str, Any], ...], registers: str | None
) -> None:
    machine = encrypted(tmp_path, *tokens)
    assert open_devices(machine.host) == ("/dev/sda3",)
    if registers is None:
        require_no_binding(machine.host)
        return
    with pytest.raises(RefusedError, match=registers) as caught:
        require_no_binding(machine.host)
    assert caught.value.refusal.kind is RefusalKind.BOUND_TO_TPM


def test_the_user_may_override_it(tmp_path: Path) -> None:
    machine = encrypted(tmp_path, {"type": "systemd-tpm2", "tpm2-pcrs": [9]})
    plan = systemd_boot.trial(machine.host, machine.request)
    systemd_boot.write(machine.host, plan)
    with pytest.raises(RefusedError, match="PCR 9"):
        systemd_boot.arm(machine.host, plan)
    assert systemd_boot.armed(machine.host).state is OneShotState.NONE
    systemd_boot.arm(machine.host, plan, accepted={RefusalKind.BOUND_TO_TPM})
    assert systemd_boot.armed(machine.host).state is OneShotState.OURS


@pytest.mark.parametrize(
    "header",
    [
        "",
        "[]",
        "{}",
        '{"tokens": {"0": {}}}',
        '{"tokens": {"0": {"type": "clevis", "jwe": 1}}}',
        '{"tokens": {"0": {"type": "systemd-tpm2", "tpm2-pcrs": "many"}}}',
        '{"tokens": {"0": {"type": "clevis", "jwe": {"protected": "!"}}}}',
    ],
)
def test_a_header_that_is_not_understood_is_a_reason(tmp_path: Path, header: str) -> None:
    machine = encrypted(tmp_path)
    machine.programs.answer(["cryptsetup", "luksDump"], header)
    with pytest.raises(RefusedError, match="not understood") as caught:
        require_no_binding(machine.host)
    assert caught.value.refusal.kind is RefusalKind.UNKNOWN_UNLOCKING


def test_a_missing_cryptsetup_is_a_reason(tmp_path: Path) -> None:
    machine = encrypted(tmp_path)
    error = ProgramError("cannot run cryptsetup: not installed")
    machine.programs.answer(["cryptsetup", "isLuks"], error=error)
    with pytest.raises(RefusedError, match="not installed") as caught:
        require_no_binding(machine.host)
    assert caught.value.refusal.kind is RefusalKind.UNKNOWN_UNLOCKING


@pytest.mark.parametrize(
    ("listed", "registers"),
    [
        ("", None),
        ("""1: tpm2 '{"hash":"sha256","key":"ecc","pcr_bank":"sha256","pcr_ids":"7"}'\n""", None),
        ("""1: tpm2 '{"key":"ecc","pcr_bank":"sha256","pcr_ids":"0,4"}'\n""", "PCR 4"),
        ("""1: sss '{"t":1,"pins":{"tpm2":[{"pcr_ids":"9"}],"tang":[]}}'\n""", "PCR 9"),
    ],
)
def test_older_headers_are_asked_of_clevis(
    tmp_path: Path, listed: str, registers: str | None
) -> None:
    machine = encrypted(tmp_path)
    machine.programs.answer(["cryptsetup", "isLuks"], returncode=1)
    require_no_binding(machine.host)  # without clevis, nothing has bound it
    machine.programs.programs = ("bootctl", "clevis")
    machine.programs.answer(["clevis", "luks", "list", "-d", str(tmp_path / "dev/sda3")], listed)
    if registers is None:
        require_no_binding(machine.host)
        return
    with pytest.raises(RefusedError, match=registers):
        require_no_binding(machine.host)
