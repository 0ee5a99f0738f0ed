"""Disks that a TPM unlocks: whose registers a trial changes, and how sure that is."""

from __future__ import annotations

import base64
import json
import socket
from typing import TYPE_CHECKING, Any

import pytest

from initadvisor.bootloaders.entry import OneShotState
from initadvisor.bootloaders.safety import open_devices, require_no_binding
from initadvisor.bootloaders.systemd_boot import systemd_boot
from initadvisor.core.errors import ProgramError
from initadvisor.core.refusals import RefusalKind, RefusedError
from tests.fixtures.images import pe
from tests.fixtures.loader_machines import Machine, systemd_boot_machine
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from pathlib import Path


UUID = "0123456789abcdef0123456789abcdef"


def encrypted(root: Path, *tokens: dict[str, Any], kind: str = f"LUKS2-{UUID}") -> Machine:
    """Return a machine with an open LUKS2 disk that has these tokens, and a mapping of LVM's."""
    machine = systemd_boot_machine(root)
    write(root, "/sys/block/dm-0/dm/uuid", f"CRYPT-{kind}-root\n")
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


def require_unbound(machine: Machine) -> None:
    """Require that no key is bound to what a trial changes."""
    require_no_binding(machine.host, systemd_boot.default_entry)


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
        require_unbound(machine)
        return
    with pytest.raises(RefusedError, match=registers) as caught:
        require_unbound(machine)
    assert caught.value.refusal.kind is RefusalKind.BOUND_TO_TPM


@pytest.mark.parametrize(
    ("registers", "sections", "refused_for"),
    [
        ([11], (".pcrsig",), None),
        ([11], (), "PCR 11"),
        ([11, 12], (".pcrsig",), "PCR 11, 12"),
    ],
)
def test_a_signature_of_what_pcr_11_holds_comes_with_a_unified_image(
    tmp_path: Path, registers: list[int], sections: tuple[str, ...], refused_for: str | None
) -> None:
    token = {"type": "systemd-tpm2", "tpm2-pcrs": [7], "tpm2_pubkey_pcrs": registers}
    machine = encrypted(tmp_path, token)
    own = [(".linux", b"MZ kernel"), (".cmdline", b"quiet"), (".initrd", b"image")]
    write(tmp_path, "/efi/EFI/Linux/arch.efi", pe(own + [(name, b"{}") for name in sections]))
    write(tmp_path, "/efi/loader/loader.conf", "default arch.efi\n")
    if refused_for is None:
        require_unbound(machine)
        return
    with pytest.raises(RefusedError, match=f"PCR {refused_for.removeprefix('PCR ')}$") as caught:
        require_unbound(machine)
    named = "by a signature that the image brings" in caught.value.refusal.remedy
    assert named == (registers == [11])


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
        require_unbound(machine)
    assert caught.value.refusal.kind is RefusalKind.UNKNOWN_UNLOCKING


def test_a_missing_cryptsetup_is_a_reason(tmp_path: Path) -> None:
    machine = encrypted(tmp_path)
    error = ProgramError("cannot run cryptsetup: not installed")
    machine.programs.answer(["cryptsetup", "isLuks"], error=error)
    with pytest.raises(RefusedError, match="not installed") as caught:
        require_unbound(machine)
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
    machine = encrypted(tmp_path, kind=f"LUKS1-{UUID}")
    machine.programs.answer(["cryptsetup", "isLuks"])
    require_no_binding(
        machine.host, systemd_boot.default_entry
    )  # without clevis, nothing has bound it
    machine.programs.programs = ("bootctl", "clevis")
    machine.programs.answer(["clevis", "luks", "list", "-d", str(tmp_path / "dev/sda3")], listed)
    if registers is None:
        require_unbound(machine)
        return
    with pytest.raises(RefusedError, match=registers):
        require_unbound(machine)


TPM2 = {"type": "systemd-tpm2", "tpm2-pcrs": [7]}
FIDO2 = {"type": "systemd-fido2"}
HYPHENED = f"{UUID[:8]}-{UUID[8:12]}-{UUID[12:16]}-{UUID[16:20]}-{UUID[20:]}"


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        ("root UUID=x none luks,header=/boot/root.header", ()),
        ("root UUID=x none luks,header=/boot/root.header:UUID=y", (TPM2,)),
        ("root UUID=x /etc/root.blob tpm2-device=auto", (TPM2,)),
        ("root UUID=x /etc/root.blob tpm2-device=auto,tpm2-pcrs=7", ()),
        ("root UUID=x none luks,tpm2-device=auto", ()),
        ("root UUID=x - tpm2-device=auto", (FIDO2,)),
        ("root UUID=x none tpm2-pcrlock=/var/lib/pcrlock.json", ()),
        ("root UUID=x none fido2-device=auto", (TPM2,)),
        ("root UUID=x /etc/fido.blob fido2-device=auto,fido2-cid=abc", (FIDO2,)),
        ("root UUID=x none pkcs11-uri=auto", ()),
        ("root UUID=x /key:LABEL=stick luks", ()),
        ("root\tUUID=x\t/dev/sdb4\tkeyfile-size=4096", ()),
        ("root UUID=x /run/key.socket luks", ()),
        ("root UUID=x none luks,keyscript=/usr/local/sbin/tpm2-getkey", ()),
    ],
)
@pytest.mark.parametrize("table", ["/etc/crypttab", "/etc/crypttab.initramfs"])
def test_a_key_that_is_not_in_the_header_is_a_reason_to_be_overridden(
    tmp_path: Path, table: str, line: str, tokens: tuple[dict[str, Any], ...]
) -> None:
    machine = encrypted(tmp_path, *tokens)
    place = tmp_path / "run/key.socket"
    place.parent.mkdir(exist_ok=True)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place))
    require_unbound(machine)
    write(tmp_path, table, f"# a comment\n\n{line}\n")
    with pytest.raises(RefusedError, match=f"/dev/sda3 is unlocked: {table} has ") as caught:
        require_unbound(machine)
    assert caught.value.refusal.kind is RefusalKind.UNKNOWN_UNLOCKING
    plan = systemd_boot.trial(machine.host, machine.request)
    systemd_boot.write(machine.host, plan)
    with pytest.raises(RefusedError, match="cannot be told"):
        systemd_boot.arm(machine.host, plan)
    assert systemd_boot.armed(machine.host).state is OneShotState.NONE
    systemd_boot.arm(machine.host, plan, accepted={RefusalKind.UNKNOWN_UNLOCKING})


@pytest.mark.parametrize("place", ["/etc/cryptsetup-keys.d", "/run/cryptsetup-keys.d"])
@pytest.mark.parametrize("key", ["none", "-"])
def test_a_sealed_key_where_keys_usually_are_counts_before_the_header_s(
    tmp_path: Path, place: str, key: str
) -> None:
    machine = encrypted(tmp_path, TPM2)
    write(tmp_path, f"{place}/root.key", "key")
    write(tmp_path, "/etc/crypttab", f"root UUID=x {key} luks\n")
    require_unbound(machine)
    write(tmp_path, "/etc/crypttab", f"root UUID=x {key} tpm2-device=auto\n")
    with pytest.raises(RefusedError, match="/dev/sda3 is unlocked: /etc/crypttab has ") as caught:
        require_unbound(machine)
    assert caught.value.refusal.kind is RefusalKind.UNKNOWN_UNLOCKING


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        ("root UUID=x", ()),
        ("root UUID=x none luks,discard", ()),
        ("root UUID=x /etc/keys/root.key luks,discard", ()),
        ("root UUID=x none tpm2-device=auto", (TPM2,)),
        ("root UUID=x - luks,fido2-device=auto", (FIDO2, TPM2)),
        ("# root UUID=x none header=/boot/root.header", ()),
        ("backup UUID=z none header=/boot/backup.header,noauto", ()),
    ],
)
def test_what_the_header_tells_or_what_is_not_open_is_no_reason(
    tmp_path: Path, line: str, tokens: tuple[dict[str, Any], ...]
) -> None:
    machine = encrypted(tmp_path, *tokens)
    write(tmp_path, "/etc/crypttab", f"{line}\n")
    require_unbound(machine)


@pytest.mark.parametrize(
    ("words", "is_reason"),
    [
        ("rd.luks.options=header=/root.header", True),
        (f"rd.luks.options={HYPHENED}=tpm2-device=auto", True),
        (f"luks.options=luks-{HYPHENED}=fido2-device=auto", True),
        ("rd.luks.options=discard,timeout=0", False),
        (f"rd.luks.options={HYPHENED[::-1]}=tpm2-device=auto", False),
        (f"rd.luks.key={HYPHENED}=/key:LABEL=stick", True),
        (f"rd.luks.key={HYPHENED}=/etc/keys/root.key", False),
        (f"rd.luks.data={HYPHENED}=/dev/sda3", True),
        ("cryptkey=LABEL=stick:ext4:/key", True),
        ("cryptkey=rootfs:/crypto_keyfile.bin", False),
    ],
)
def test_what_the_command_line_says_of_keys_counts(
    tmp_path: Path, words: str, is_reason: bool
) -> None:
    machine = encrypted(tmp_path)
    write(tmp_path, "/proc/cmdline", f"root=/dev/mapper/root {words} quiet\n")
    if not is_reason:
        require_unbound(machine)
        return
    with pytest.raises(RefusedError, match="cannot be told") as caught:
        require_unbound(machine)
    assert caught.value.refusal.kind is RefusalKind.UNKNOWN_UNLOCKING


@pytest.mark.parametrize("kind", [f"LUKS1-{UUID}", f"LUKS2-{UUID}"])
def test_a_disk_whose_header_is_elsewhere_is_a_reason(tmp_path: Path, kind: str) -> None:
    """Whatever says where it is: nobody has to, cryptsetup open --header does."""
    machine = encrypted(tmp_path, kind=kind)
    machine.programs.answer(["cryptsetup", "isLuks"], returncode=1)
    with pytest.raises(RefusedError, match="its header is not on it") as caught:
        require_unbound(machine)
    assert caught.value.refusal.kind is RefusalKind.UNKNOWN_UNLOCKING


@pytest.mark.parametrize(
    "token",
    [
        {"type": "made-up"},
        {"type": "luks2-keyring", "key_description": "cryptsetup"},
        clevis({"clevis": {"pin": "made-up", "made-up": {}}}),
        clevis(shared({"clevis": {"pin": "made-up", "made-up": {}}})),
    ],
)
def test_a_token_of_another_program_is_a_reason(tmp_path: Path, token: dict[str, Any]) -> None:
    machine = encrypted(tmp_path, token)
    with pytest.raises(RefusedError, match="not understood") as caught:
        require_unbound(machine)
    assert caught.value.refusal.kind is RefusalKind.UNKNOWN_UNLOCKING


@pytest.mark.parametrize(
    ("kind", "line", "is_reason"),
    [
        ("PLAIN", "root /dev/sda3 /dev/urandom swap", False),
        ("PLAIN", "root /dev/sda3 /etc/blob plain,tpm2-device=auto", True),
        ("BITLK", "root /dev/sda3 /key:LABEL=stick bitlk", True),
        ("VERITY", "root /dev/sda3 /key:LABEL=stick", False),
    ],
)
def test_disks_without_a_header_of_tokens(
    tmp_path: Path, kind: str, line: str, is_reason: bool
) -> None:
    machine = encrypted(tmp_path, kind=kind)
    write(tmp_path, "/etc/crypttab", f"{line}\n")
    if not is_reason:
        require_unbound(machine)
        return
    with pytest.raises(RefusedError, match="cannot be told"):
        require_unbound(machine)
