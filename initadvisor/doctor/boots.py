"""``doctor`` looks at recorded boots, the boot loader, disks' keys and what is not over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.bootloaders.detect import detect_boot_loader
from initadvisor.bootloaders.disk_unlocking import open_devices, require_no_binding
from initadvisor.campaign.record import read_campaign
from initadvisor.core.errors import UnsafeError
from initadvisor.core.refusals import RefusedError
from initadvisor.doctor.findings import Topic, fine, note, obstacle
from initadvisor.firmware.efi_variables import enforces_signatures
from initadvisor.store.store import open_store
from initadvisor.transaction.armed_boot import ProofStage
from initadvisor.transaction.log import read_transactions, unfinished
from initadvisor.transaction.transaction import Duty
from initadvisor.trial.default_boot import NoDefaultBootError, image_of
from initadvisor.trial.markers import was_rehearsed
from initadvisor.trial.recovery import left_over
from initadvisor.trial.risks import watchdog_s

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.bootloaders import BootLoader
    from initadvisor.doctor.findings import CheckedMachine, Finding
    from initadvisor.host import Host


_TODO = {
    Duty.WAIT: ("waits for a boot", "reboot when it suits you, or: sudo initadvisor rollback"),
    Duty.REPLACE: ("was interrupted", "sudo initadvisor settle"),
    Duty.RESTORE: ("was interrupted", "sudo initadvisor settle"),
}


def boots(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell how many boots are recorded, and how many of them count."""
    with open_store(subject.host, readonly=True) as store:
        figures = store.boot_figures()
    if not figures:
        yield note(Topic.BOOTS, "no boot is recorded", "sudo initadvisor measure --backfill")
        return
    counting = sum(1 for boot in figures if boot.kind.kernel_counts)
    text = f"boots recorded: {len(figures)}, of which the kernel's times count in {counting}"
    yield fine(Topic.BOOTS, text)


def loader(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell whether the boot loader can boot a trial once; reasons against it are in words."""
    host = subject.host
    found = detect_boot_loader(host)
    refusals = [refusal for refusal in found.refusals(host) if not refusal.kind.may_be_overridden]
    for refusal in refusals:
        yield obstacle(Topic.LOADER, refusal.reason, refusal.remedy)
    if refusals:
        return
    yield fine(Topic.LOADER, f"{found.NAME} can boot an entry once")
    yield from _tried_image(host, found)
    if was_rehearsed(host, found.NAME):
        yield fine(Topic.LOADER, "that was rehearsed on this machine")
    else:
        text = "that was not rehearsed yet: the first trial begins with a boot of today's image"
        yield note(Topic.LOADER, text)
    if watchdog_s(host) is None:
        text = "there is no hardware watchdog: a trial that hangs without a word needs somebody"
        yield note(Topic.LOADER, text)
    else:
        yield fine(Topic.LOADER, "a hardware watchdog ends a trial that hangs once systemd runs")


def _tried_image(host: Host, found: BootLoader) -> Iterator[Finding]:
    """Tell where the default entry loads what no trial can stand in for.

    Unified images can be applied nevertheless, copies of what the generator makes cannot.
    """
    try:
        image_of(host, found.default_entry(host))
    except NoDefaultBootError as err:
        yield obstacle(Topic.LOADER, err.message, err.hint)
    except UnsafeError as err:
        yield note(Topic.LOADER, err.message, err.hint)


def unlocking(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell what a trial's other image means for signatures and for keys in a TPM."""
    host = subject.host
    if enforces_signatures(host):
        text = "Secure Boot is on: unified kernel images are trusted as a whole or not at all"
        yield note(Topic.UNLOCKING, text)
    else:
        yield fine(Topic.UNLOCKING, "Secure Boot is off")
    devices = open_devices(host)
    if not devices:
        yield fine(Topic.UNLOCKING, "no encrypted disk is open")
        return
    try:
        require_no_binding(host)
    except RefusedError as err:
        yield note(Topic.UNLOCKING, err.refusal.reason, err.refusal.remedy)
    else:
        names = ", ".join(devices)
        yield fine(Topic.UNLOCKING, f"{names}: no key of a TPM depends on what is booted")


def changes(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell what was begun and is not over."""
    pending = unfinished(read_transactions(subject.host))
    for transaction in pending:
        words, advice = _TODO[transaction.state.duty]
        armed = transaction.armed_boot
        if armed and armed.stage is ProofStage.REHEARSAL:
            words += " with today's image, a rehearsal"
        text = f"transaction {transaction.number}, {transaction.purpose}, {words}"
        yield note(Topic.CHANGES, text, advice)
    campaign = read_campaign(subject.host)
    if not campaign.state.is_over:
        text = f"a campaign of trial boots is {campaign.state}"
        yield note(Topic.CHANGES, text, "initadvisor trial status")
        return
    left = left_over(subject.host)
    for text in left:
        yield note(Topic.CHANGES, text, "sudo initadvisor trial stop")
    if not pending and not left:
        yield fine(Topic.CHANGES, "nothing is pending")
