"""What can be seen of a boot that was armed: in the loader, in systemd, in what was recorded.

Of one that has left nothing in the journal: panics, the watchdog, the menu.
"""

from __future__ import annotations

import hashlib
import logging
import re
from typing import TYPE_CHECKING

from initadvisor.bootloaders.extra_cmdline import PANIC_S
from initadvisor.boots.journal import opened_journal
from initadvisor.boots.journal_files import JournalSource
from initadvisor.boots.record import running_boot_id
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.firmware.boot_method import boot_start
from initadvisor.firmware.efi_variables import loader_variables
from initadvisor.records.boot import RecordSource, RejectionReason
from initadvisor.records.boot_class import parameters
from initadvisor.records.boot_start import TRIAL_TAG, BootMethod
from initadvisor.records.trial_outcome import BootEndSigns
from initadvisor.store.store import open_store
from initadvisor.trial.evaluation import (
    ArmedBootEvidence,
    Completion,
    JournalEvidence,
    measured_boot,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from initadvisor.bootloaders import BootLoader
    from initadvisor.boots.journal import BootSpan, Journal
    from initadvisor.campaign.campaign import TrialBoot
    from initadvisor.host import Host
    from initadvisor.records.boot import BootRecord
    from initadvisor.transaction.transaction import ArmedBoot


_log = logging.getLogger(__name__)

_SETTLE_SERVICE = "initadvisor-settle.service"
_SETTLE_TIMER = "initadvisor-settle.timer"
_TIMERS = "timers.target"
_TARGETS = ("default.target", "boot-complete.target")
_STARTED = "ExecMainStartTimestampMonotonic"
_TIMEOUT_S = 20
_LATEST_FILES = 3
_MOST_BOOTS = 8
"""So many boots back the journal is searched for the trial's; there should be none in between."""


def evidence_of(
    host: Host, loader: BootLoader, armed: ArmedBoot, *, trial_boot: TrialBoot | None = None
) -> ArmedBootEvidence:
    """Return what there is to see now.

    ``trial_boot``: a campaign's; signs of how its boot ended are looked for from then on. Without
    it only the watchdog tells, which needs no earlier ones to be told from.

    Raises ``InitadvisorError`` where not even this boot's identifier can be read, or what was
    measured cannot.
    """
    boot = running_boot_id(host)
    record = _record(host, boot)
    trials = parameters(host.read_text("/proc/cmdline") or "", TRIAL_TAG)
    trial = trials[-1] if trials else None
    is_kexec = boot_start(host, loader_variables(host)).method is BootMethod.KEXEC
    is_its_own = trial == armed.trial
    is_over = boot != armed.armed_in_boot and not is_its_own
    return ArmedBootEvidence(
        boot=boot,
        one_shot=loader.armed(host),
        trial=trial,
        kexec=is_kexec or (record is not None and RejectionReason.KEXEC in record.rejections),
        measured=measured_boot(record) if record else None,
        completion=completion(host) if is_its_own else Completion.STARTING,
        failed_units=failed_units(host) if is_its_own else (),
        journal=_journal_evidence(host, armed, boot) if is_over else JournalEvidence.NOTHING,
        signs=_signs(host, trial_boot, record) if is_over else BootEndSigns(),
    )


def _signs(host: Host, trial_boot: TrialBoot | None, record: BootRecord | None) -> BootEndSigns:
    if trial_boot is None:
        return BootEndSigns(watchdog=any(_watchdogs(host)))
    return signs_since(host, trial_boot.at_s, record, known=trial_boot.known_panics)


def completion(host: Host) -> Completion:
    """Return how far the running boot has come, by systemd's account.

    boot-complete.target is reached by nobody's doing where nobody asks for it, and asking for it
    has its checks made. So this boot has missed it only where the service that asks for it was run;
    that it is reached says nothing while the default target is not, which its checks need not wait
    for.
    """
    if not host.path("/run/systemd/system").is_dir():  # sd_booted(3)
        return Completion.STARTING
    units = (*_TARGETS, _SETTLE_SERVICE)
    said = _systemctl(host, "show", f"--property=ActiveState,{_STARTED}", *units).split("\n\n")
    if len(said) != len(units):
        return Completion.STARTING
    *targets, service = (_properties(block) for block in said)
    if all(target.get("ActiveState") == "active" for target in targets):
        return Completion.COMPLETE
    was_asked = service.get(_STARTED, "0") not in {"", "0"}
    return Completion.FAILED if was_asked else Completion.STARTING


def failed_units(host: Host) -> tuple[str, ...]:
    """Return the units of systemd's that have failed in this boot."""
    listed = _systemctl(host, "list-units", "--state=failed", "--plain", "--no-legend", "--full")
    return tuple(line.split()[0] for line in listed.splitlines() if line.split())


def require_boot_time_unit(host: Host) -> None:
    """Raise ``UnsafeError`` where nothing would judge a boot: systemd's timer for it is missing."""
    hint = "install initadvisor's units; --immediate goes without a proving boot"
    if not host.path("/run/systemd/system").is_dir():
        msg = "nothing would judge a proving boot: this system does not run systemd"
        raise UnsafeError(msg, hint=hint)
    said = _properties(_systemctl(host, "show", "--property=LoadState,WantedBy", _SETTLE_TIMER))
    if said.get("LoadState") != "loaded" or _TIMERS not in said.get("WantedBy", "").split():
        msg = f"nothing would judge a proving boot: {_TIMERS} does not start {_SETTLE_TIMER}"
        raise UnsafeError(msg, hint=hint)


def _record(host: Host, boot: str) -> BootRecord | None:
    with open_store(host, readonly=True) as store:
        record = store.boot(boot)
    return record if record is not None and record.source is RecordSource.UNIT else None


def _journal_evidence(host: Host, armed: ArmedBoot, boot: str) -> JournalEvidence:
    """Return what the trial's boot has left in the journal, between the arming and this boot."""
    try:
        with opened_journal(host, JournalSource(latest=_LATEST_FILES)) as journal:
            return _journal_evidence_in(journal, armed, boot)
    except InitadvisorError as err:
        _log.info("what became of the trial's boot is not known: %s", err.message)
        return JournalEvidence.NOTHING


def _journal_evidence_in(journal: Journal, armed: ArmedBoot, boot: str) -> JournalEvidence:
    for span in _boots_since(journal, armed.armed_in_boot, boot)[:_MOST_BOOTS]:
        found = journal.read(span)
        if armed.trial in parameters(found.kernel.timestamps.command_line or "", TRIAL_TAG):
            came_up = found.startup is not None and not found.emergency
            return JournalEvidence.WHOLE if came_up else JournalEvidence.BEGINNING
    return JournalEvidence.NOTHING


def _boots_since(journal: Journal, armed_in_boot: str, boot: str) -> list[BootSpan]:
    """Return the boots that may lie between two: first those that do by the wall clock.

    A clock that went back puts a boot before the one that armed it, or after the running one.
    """
    spans = {span.boot_id: span for span in journal.spans()}
    ends = [spans.pop(boot_id, None) for boot_id in (armed_in_boot, boot)]
    first, last = (span.first.realtime_us if span else 0 for span in ends)
    others = reversed(spans.values())
    return sorted(others, key=lambda span: not first < span.first.realtime_us < last)


def _systemctl(host: Host, *words: str) -> str:
    done = host.runner.run(["systemctl", *words], timeout_s=_TIMEOUT_S, check=False)
    return done.stdout.decode(errors="replace").strip()


def _properties(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


_PSTORE = ("/sys/fs/pstore", "/var/lib/systemd/pstore")
"""Where the kernel shows what it saved when it died, and where systemd-pstore.service moves it."""

_PANIC = re.compile(r"Kernel panic - not syncing: ([^\r\n]{1,200})")
_LARGEST_BYTES = 1 << 20
_WATCHDOG_RESET = 0x20
"""WDIOF_CARDRESET of linux/watchdog.h: the card has reset the processor before this boot."""

_EARLIEST_S = 1_577_836_800
"""The beginning of 2020: no boot was armed before that, only by a clock that nobody had set."""


def signs_since(
    host: Host, since_s: float, record: BootRecord | None, *, known: Collection[str] = ()
) -> BootEndSigns:
    """Return what there is to see since ``since_s`` (seconds since 1970).

    ``record``: what was measured of the running boot, None where it was not. ``known``: the panics
    that were there before (``known_panics``), whatever a clock says. Where the clock of ``since_s``
    was not set, no panic is a sign: it may be of any time.
    """
    panics = _panics(host, since_s) if since_s >= _EARLIEST_S else iter(())
    return BootEndSigns(
        panic=next((words for digest, words in panics if digest not in known), ""),
        watchdog=any(_watchdogs(host)),
        menu=_was_chosen(record),
    )


def known_panics(host: Host) -> tuple[str, ...]:
    """Return the digests of what is there of panics."""
    return tuple(digest for digest, _ in _panics(host, 0))


def _panics(host: Host, since_s: float) -> Iterator[tuple[str, str]]:
    for place in _PSTORE:
        for path in sorted(host.path(place).rglob("dmesg*")):
            if (data := _content(path, since_s)) is None:
                continue
            if found := _PANIC.search(data.decode(errors="replace")):
                yield hashlib.sha256(data).hexdigest()[:32], found[1].strip()


def _content(path: Path, since_s: float) -> bytes | None:
    try:
        if not path.is_file() or path.stat().st_mtime < since_s:
            return None
        with path.open("rb") as file:
            return file.read(_LARGEST_BYTES)
    except OSError:
        return None


def _watchdogs(host: Host) -> Iterator[bool]:
    for path in sorted(host.path("/sys/class/watchdog").glob("watchdog*/bootstatus")):
        try:
            yield bool(int(path.read_text(encoding="ascii").strip(), 0) & _WATCHDOG_RESET)
        except (OSError, ValueError):
            continue


def _was_chosen(record: BootRecord | None) -> bool:
    """Tell whether the menu was used and no boot that waits after a panic fits before this one."""
    if record is None or RejectionReason.MENU not in record.rejections:
        return False
    gap_us = record.reboot_gap.duration_us
    return gap_us is not None and gap_us < PANIC_S * 1_000_000
