"""What every loader checks before it arms a boot, and what signatures mean for our entries.

A disk may be unlocked by a TPM only as long as image and command line stay what they are: the TPM
gives the key away while its registers (PCRs) hold what they held when it was sealed. Those that a
trial changes are measured from the boot options (1), the programs and boot data that were started
(4, 5), GRUB's commands (8), the loaded files (9), and systemd-stub's parts and options (11, 12);
see the UAPI group's "Linux TPM PCR Registry". Only the disk's own header tells; a key that lies
elsewhere, or a token of another program's, may depend on anything, and counts as not known.
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any, Final

from initadvisor.bootloaders.crypttab import OpenDisk, keys_elsewhere, open_disks
from initadvisor.bootloaders.entry import EntryKind, OneShot, OneShotState, default_uki
from initadvisor.bootloaders.places import is_file
from initadvisor.core.errors import InitadvisorError, NeedsRootError, ProgramError, UnsafeError
from initadvisor.core.plain_values import from_json
from initadvisor.core.refusals import Refusal, RefusalKind, RefusedError, refused
from initadvisor.firmware.efi_variables import enforces_signatures

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path

    from initadvisor.bootloaders.entry import BootEntry, TrialPlan, TrialRequest
    from initadvisor.host import Host


def collected(*checks: Callable[[], object]) -> tuple[Refusal, ...]:
    """Run all checks and return what they refuse; one that cannot be made is a reason, too.

    ``NeedsRootError`` goes through: nothing can be said about what may not be looked at.
    """
    found: list[Refusal] = []
    for check in checks:
        try:
            check()
        except RefusedError as err:
            found.append(err.refusal)
        except NeedsRootError:
            raise
        except InitadvisorError as err:
            remedy = err.hint or "repair it; with -vv every program that is run is shown"
            found.append(Refusal(kind=RefusalKind.UNREADABLE, reason=err.message, remedy=remedy))
    return tuple(dict.fromkeys(found))


def require_accepted(refusals: Iterable[Refusal], accepted: Collection[RefusalKind]) -> None:
    """Raise ``RefusedError`` for the first reason that the user did not, or may not, override."""
    for refusal in refusals:
        if not (refusal.kind.may_be_overridden and refusal.kind in accepted):
            raise RefusedError(refusal)


def require_program(host: Host, program: str, package: str) -> None:
    """Raise ``RefusedError`` where a program is not installed."""
    if host.runner.which(program) is None:
        reason = f"{program} is not installed"
        raise refused(RefusalKind.MISSING_PROGRAM, reason, f"install {package}")


def require_trial(plan: TrialPlan) -> None:
    """Raise ``UnsafeError`` for an entry that this program has no business to select."""
    if plan.request.kind is not EntryKind.TRIAL:
        msg = f"not arming {plan.title}: only a trial's entry is selected by this program"
        raise UnsafeError(msg)


def pending_selection(identifier: str, selects: EntryKind | None) -> OneShot:
    """Return what is selected, whose entry of ours it may be; only the trial's is our doing."""
    is_ours = selects is EntryKind.TRIAL
    state = OneShotState.OURS if is_ours else OneShotState.OTHERS
    return OneShot(state=state, identifier=identifier, selects=selects)


def require_none_pending(pending: OneShot, how_to_clear: str) -> None:
    """Raise ``RefusedError`` where somebody else waits for the next boot (fwupd, the user)."""
    if pending.state is OneShotState.OTHERS:
        reason = f"the next boot is taken: {pending.identifier} was selected by somebody else"
        remedy = f"reboot first, or take it back: {how_to_clear}"
        raise refused(RefusalKind.PENDING_ONE_SHOT, reason, remedy)
    if pending.state is OneShotState.UNREADABLE:
        reason = f"it cannot be told what the next boot is to use: {pending.reason}"
        raise refused(RefusalKind.UNREADABLE, reason, how_to_clear)


def require_ours(pending: OneShot, what: str) -> None:
    """Raise ``InitadvisorError`` where a selection that was just made did not take."""
    if pending.state is not OneShotState.OURS:
        msg = f"{what} succeeded, but the next boot is not the trial's: {_told(pending)}"
        raise InitadvisorError(msg, hint="does the firmware keep variables?")


def require_deselected(pending: OneShot, kind: EntryKind, how_to_clear: str) -> None:
    """Raise ``InitadvisorError`` where our entry's selection stands although it was taken back."""
    if pending.selects is kind:
        msg = f"the next boot is still that of {_told(pending)}"
        raise InitadvisorError(msg, hint=f"take it back by hand: {how_to_clear}")


def require_unchanged(host: Host, plan: TrialPlan, default: BootEntry, *, written: bool) -> None:
    """Raise ``UnsafeError`` where what a plan rests on is not what it was."""
    if default != plan.default:
        msg = f"not arming {plan.title}: the default entry has changed since"
        raise UnsafeError(msg, hint="a kernel was installed or removed? begin the trial anew")
    if not written:
        msg = f"not arming {plan.title}: its entry is not in {plan.target} as it was written"
        raise UnsafeError(msg, hint="somebody changed or removed it: begin the trial anew")
    if not is_file(host, plan.request.image):
        msg = f"not arming {plan.title}: {plan.request.image} is gone"
        raise UnsafeError(msg)


def _told(pending: OneShot) -> str:
    return pending.identifier or pending.reason or "nothing is selected"


def ignores_options(host: Host, default: BootEntry) -> bool:
    """Tell whether the default entry starts with the words of its image alone.

    systemd-stub takes no others when Secure Boot is on, but those of signed addons.
    """
    return default.is_uki and enforces_signatures(host)


def require_takes_words(host: Host, uki: str) -> None:
    """Raise ``RefusedError`` where a unified kernel image would not take a trial's words.

    The trial could not be told apart, and would hang for ever where it panics.
    """
    if enforces_signatures(host) and not default_uki(host, uki).takes_addons:
        reason = f"Secure Boot is on, and the stub of {uki} takes no words but its own"
        remedy = "have it made with the stub of systemd 254 or later"
        raise refused(RefusalKind.SIGNED_UKI, reason, remedy)


def require_words_last(plan: TrialPlan) -> None:
    """Raise ``RefusedError`` where an addon's words would not come where the entry has them."""
    if plan.needs_addon and plan.options != " ".join((plan.default.options, *plan.extra_cmdline)):
        reason = f"{plan.default.kernel.path} hands words over to init (--), and would all others"
        raise refused(RefusalKind.SIGNED_UKI, reason, "have its command line go without --")


def require_same_start(host: Host, uki: str, request: TrialRequest) -> None:
    """Raise ``RefusedError`` where an image in the place of ``uki`` would not start as asked for.

    The image that was replaced is signed as it was, and starts with its own command line.
    """
    match request.kind:
        case EntryKind.TRIAL:
            require_takes_words(host, uki)
        case EntryKind.PREVIOUS:
            _require_nothing_added(host, uki)


def _require_nothing_added(host: Host, uki: str) -> None:
    if host.path(f"{uki}.extra.d").is_dir():
        reason = f"{uki}.extra.d adds to {uki}, but would not to an image of another name"
        raise refused(RefusalKind.SIGNED_UKI, reason, "have it built into the image")


_CHANGED_BY_TRIAL: Final = frozenset({1, 4, 5, 8, 9, 11, 12})
_TIMEOUT_S = 20
_ANOTHER_TYPE = 1
"""What ``cryptsetup isLuks`` exits with; a device that cannot be read gives another status."""


_BOUND_TO_NO_BOOT = frozenset({"systemd-fido2", "systemd-pkcs11", "systemd-recovery", "ssh"})
"""Tokens that need a device, a person or a server, whatever was booted."""

_KNOWN_PINS = frozenset({"tpm2", "tang", "sss", "pkcs11"})
_CLEVIS_PCRS = re.compile(r'"pcr_ids"\s*:\s*"(?P<pcrs>[\d,\s]*)"')


def require_no_binding(host: Host, default_entry: Callable[[Host], BootEntry]) -> None:
    """Raise ``RefusedError`` where an open disk's key is bound to what a trial changes.

    Or where that cannot be found out. Both may be overridden: the worst is that somebody has to
    type the passphrase. ``default_entry`` is asked only where a key needs a signature of what PCR
    11 holds: a unified kernel image that brings one is tried with another that does.
    """
    for disk in open_disks(host):
        bound, by_signature = _bound(host, disk)
        if by_signature == {11} and _brings_signature(host, default_entry):
            by_signature = set()
        bound = (bound | by_signature) & _CHANGED_BY_TRIAL
        if bound:
            registers = ", ".join(map(str, sorted(bound)))
            reason = f"{disk.device} is unlocked by a TPM that is bound to PCR {registers}"
            other = "or PCR 11 by a signature that the image brings (ukify(1), PCRPrivateKey=), "
            ways = f"PCR 7, {other if bound == {11} else ''}"
            remedy = f"bind it to {ways}or have the passphrase at hand and override this"
            raise refused(RefusalKind.BOUND_TO_TPM, reason, remedy)


def open_devices(host: Host) -> tuple[str, ...]:
    """Return the devices of the encrypted disks that are open now, by the kernel's mappings."""
    return tuple(dict.fromkeys(disk.device for disk in open_disks(host)))


def _brings_signature(host: Host, default_entry: Callable[[Host], BootEntry]) -> bool:
    try:
        default = default_entry(host)
        return default.is_uki and default_uki(host, default.kernel.path).pcr_signed
    except RefusedError:
        return False


def _bound(host: Host, disk: OpenDisk) -> tuple[set[int], set[int]]:
    """Return the registers that a key is bound to, by their values and by a signature of those."""
    bound, by_signature, tokens = set[int](), set[int](), frozenset[str]()
    if disk.format.startswith("luks"):
        bound, by_signature, tokens = _told_by_header(host, disk)
    for why in keys_elsewhere(host, disk, tokens=tokens):
        raise _unknown(disk.device, why)
    return bound, by_signature


def _told_by_header(host: Host, disk: OpenDisk) -> tuple[set[int], set[int], frozenset[str]]:
    """Return the registers that a LUKS header binds a key to, and the types of its tokens."""
    path = host.path(disk.device)
    is_luks: list[str | Path] = ["cryptsetup", "isLuks", "--type", disk.format, path]
    try:
        answered = host.runner.run(is_luks, timeout_s=_TIMEOUT_S, check=False)
        if answered.returncode == _ANOTHER_TYPE:
            raise _unknown(disk.device, "its header is not on it")
        if disk.format == "luks1":
            return _bound_by_clevis(host, path), set(), frozenset()
        header: list[str | Path] = ["cryptsetup", "luksDump", "--dump-json-metadata", path]
        metadata = from_json(host.runner.run(header, timeout_s=_TIMEOUT_S).stdout)
        tokens = list(metadata["tokens"].values())
        bound = {pcr for token in tokens for pcr in _of_token(token)}
        signed = {int(pcr) for token in tokens for pcr in _signed_of_token(token)}
        return bound, signed, frozenset(token["type"] for token in tokens)
    except ProgramError as err:
        raise _unknown(disk.device, err.message) from err
    except (ValueError, KeyError, TypeError, AttributeError) as err:
        raise _unknown(disk.device, "its header is not understood") from err


def _bound_by_clevis(host: Host, path: Path) -> set[int]:
    """Ask clevis(1) about LUKS1, whose header has no room for tokens."""
    if host.runner.which("clevis") is None:
        return set()
    listed = host.runner.run(["clevis", "luks", "list", "-d", path], timeout_s=_TIMEOUT_S)
    text = listed.stdout.decode(errors="replace")
    for line in text.splitlines():
        _require_known_pin(line.split()[1])
    return set(_of_pins(text))


def _of_token(token: dict[str, Any]) -> Iterator[int]:
    """Yield the registers of a token: systemd-cryptenroll(1)'s, or clevis-luks-bind(1)'s."""
    if token["type"] == "systemd-tpm2":
        yield from map(int, token.get("tpm2-pcrs", []))
        if token.get("tpm2_pcrlock"):
            # systemd-pcrlock(8) predicts what installed images give, and no trial is one.
            yield from _CHANGED_BY_TRIAL
    elif token["type"] == "clevis":
        yield from _of_pins(_pins(token["jwe"]["protected"]))
    elif token["type"] not in _BOUND_TO_NO_BOOT:
        msg = f"no token of type {token['type']} is known"
        raise ValueError(msg)


def _signed_of_token(token: dict[str, Any]) -> list[Any]:
    """Return the registers whose values are to be signed (systemd-cryptenroll(1))."""
    return list(token.get("tpm2_pubkey_pcrs", [])) if token["type"] == "systemd-tpm2" else []


def _pins(protected: str) -> str:
    """Return what a header of clevis' (JWE, RFC 7516) says of its pins, as text."""
    padded = protected + "=" * (-len(protected) % 4)
    header = from_json(base64.urlsafe_b64decode(padded))
    _require_known_pin(header["clevis"]["pin"])
    # Shamir's sharing (the pin sss) has pins of its own, encoded again.
    shares = header["clevis"].get("sss", {}).get("jwe", [])
    return json.dumps(header["clevis"]) + "".join(
        _pins(share.partition(".")[0]) for share in shares
    )


def _require_known_pin(pin: str) -> None:
    if pin not in _KNOWN_PINS:
        msg = f"no pin {pin} is known"
        raise ValueError(msg)


def _of_pins(text: str) -> Iterator[int]:
    for match in _CLEVIS_PCRS.finditer(text):
        yield from (int(number) for number in match["pcrs"].replace(",", " ").split())


def _unknown(device: str, why: str) -> RefusedError:
    reason = f"it cannot be told how {device} is unlocked: {why}"
    remedy = "make sure that its passphrase is at hand, and override this"
    return refused(RefusalKind.UNKNOWN_UNLOCKING, reason, remedy)
