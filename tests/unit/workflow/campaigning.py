"""A machine that goes through campaigns: candidates are at hand, and boot as a test wants."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from initadvisor.model.boot_entry import EntryKind
from initadvisor.model.campaign import (
    Campaign,
    Event,
    EventKind,
    Quarantined,
    TrialCandidate,
)
from initadvisor.workflow import (
    campaign,
    campaign_choice,
    campaign_judge,
    campaign_prepare,
    campaign_run,
)
from initadvisor.workflow.campaign import CampaignOptions, advance, start
from initadvisor.workflow.campaign_choice import Choice
from initadvisor.workflow.campaign_log import read_campaign
from initadvisor.workflow.observing import Unseen
from initadvisor.workflow.trial_notes import noted_entry
from tests.unit.workflow.provable import IMAGE, OLD, Provable, make_provable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

    from initadvisor.host import Host
    from initadvisor.model.boot_record import BootRecord
    from tests.fixtures.booted import Booted

SLOT = "/boot/.initadvisor-trial"
KERNEL = "/boot/vmlinuz"


class Manner(StrEnum):
    """How a candidate boots."""

    WELL = "well"
    PANICS = "panics"
    """And firmware keeps the kernel's last words."""
    VANISHES = "vanishes"
    """It never comes back, and nothing tells why."""


class PowerCutError(BaseException):
    """The power is gone: nothing that comes after it is done."""


def content(name: str, kib: int) -> bytes:
    """Return an image that no other is like, by its size either."""
    return b"\x02\x21\x4c\x18" + name.encode().ljust(kib * 1024 - 4, b"\0")


FOUR = {
    "lz4 -9": (content("lz4", 300), Manner.WELL),
    "gzip": (content("gzip", 320), Manner.PANICS),
    "xz": (content("xz", 340), Manner.VANISHES),
    "lzop": (content("lzop", 360), Manner.WELL),
}


@dataclass(slots=True, kw_only=True)
class Campaigning:
    """The machine, and its candidates by their settings; ``refused``: what a kernel refuses.

    ``blocked``: why nothing can be prepared; ``busy``: the package managers that are at work.
    """

    provable: Provable
    cache: Path
    candidates: dict[str, tuple[bytes, Manner]]
    refused: dict[str, str] = field(default_factory=dict)
    blocked: str = ""
    busy: tuple[str, ...] = ()
    booted: list[str] = field(default_factory=list)
    prepared_times: int = 0

    @property
    def host(self) -> Host:
        """The host."""
        return self.provable.host

    @property
    def record(self) -> Campaign:
        """What is recorded of the campaign."""
        return read_campaign(self.host)

    def start(self, **options: object) -> None:
        """Begin one, as the user would."""
        chosen = CampaignOptions(**options)  # type: ignore[arg-type]
        start(self.host, chosen, observer=Unseen())

    def prepare(self, host: Host, found: Campaign, *, observer: object) -> Iterator[Event]:
        """Have all candidates there, but for those that are refused or failed before."""
        del host, observer
        self.prepared_times += 1
        if self.blocked:
            yield Event(kind=EventKind.BLOCKED, reason=self.blocked)
            return
        installed = self.host.path(IMAGE).read_bytes()
        ready = [
            TrialCandidate(
                setting="zstd -19",
                path=IMAGE,
                sha256=hashlib.sha256(installed).hexdigest(),
                size_bytes=len(installed),
                today=True,
            )
        ]
        out = {known.setting for known in found.quarantined}
        for setting, (image, _) in self.candidates.items():
            path = self.cache / f"{setting.replace(' ', '')}.img"
            path.write_bytes(image)
            digest = hashlib.sha256(image).hexdigest()
            if reason := self.refused.get(setting):
                refused = Quarantined(setting=setting, reason=reason, sha256=digest)
                yield Event(kind=EventKind.REFUSED, refused=refused)
            elif setting not in out:
                ready.append(
                    TrialCandidate(
                        setting=setting, path=str(path), sha256=digest, size_bytes=len(image)
                    )
                )
        yield Event(kind=EventKind.PREPARED, ready=tuple(ready))

    def choose(self, host: Host, found: Campaign, *, observer: object) -> Choice:
        """Choose what has not booted yet, in the order of the candidates."""
        del host, observer
        for candidate in found.eligible:
            if not candidate.today and not found.booted(candidate.setting):
                return Choice(candidate=candidate, words="it has not booted yet")
        return Choice(candidate=None, words="all have booted")

    def reboot(self) -> None:
        """Boot what is selected; where that does not come up, boot again."""
        machine, loader = self.provable.machine, self.provable.loader
        for left in self.host.path("/sys/fs/pstore").glob("*"):
            left.unlink()
        if loader.is_armed:
            image = self.host.path(loader.entries[EntryKind.TRIAL].request.image).read_bytes()
            names = [name for name, (known, _) in self.candidates.items() if known == image]
            self.booted += names or ["zstd -19"]
            manner = self.candidates[names[0]][1] if names else Manner.WELL
            if manner is not Manner.WELL:
                loader.boot()  # which uses the selection up
            if manner is Manner.PANICS:
                words = "<0>[1.5] Kernel panic - not syncing: No working init found.\n"
                machine.write("/sys/fs/pstore/dmesg-efi-1", words)
        self.provable.reboot()

    def settle(self, *, may_build: bool = True) -> tuple[str, ...]:
        """Record the boot and go on, as the unit does."""
        self.provable.measure()
        return advance(self.host, may_build=may_build).told

    def boot(self) -> BootRecord:
        """Reboot, and have the unit run."""
        self.reboot()
        record = self.provable.measure()
        advance(self.host)
        return record

    def run(self, most: int = 25) -> None:
        """Reboot until the campaign is over."""
        for _ in range(most):
            if self.record.state.is_over:
                return
            self.boot()
            self.require_default()
        msg = f"it is still {self.record.state}: {self.record.reason}"
        raise AssertionError(msg)

    def require_default(self) -> None:
        """Require that what boots by default is whole, and what it always was."""
        assert self.provable.loader.image == IMAGE
        assert self.host.path(IMAGE).read_bytes() == OLD

    def require_nothing_armed(self) -> None:
        """Require that nothing stands: no entry, no selection, no image in the slot."""
        loader = self.provable.loader
        assert (loader.is_armed, loader.entries, noted_entry(self.host)) == (False, {}, None)
        assert self.provable.litter() == []

    def require_nothing(self) -> None:
        """Require that nothing of a campaign is left."""
        self.require_nothing_armed()
        assert not (self.host.state_dir() / "campaign-active").exists()

    def verdicts(self) -> dict[str, str]:
        """Return why which setting is not booted any more."""
        return {found.setting: found.reason for found in self.record.quarantined}


def make_campaigning(machine: Booted, monkeypatch: pytest.MonkeyPatch) -> Campaigning:
    """Return it, with four candidates of which one panics and one never comes back."""
    provable = make_provable(machine, monkeypatch)
    machine.write(KERNEL, b"a kernel")
    cache = machine.root.parent / "candidates"
    cache.mkdir()
    made = Campaigning(provable=provable, cache=cache, candidates=dict(FOUR))
    monkeypatch.setattr(campaign_prepare, "prepared", made.prepare)
    monkeypatch.setattr(campaign_choice, "choice", made.choose)
    monkeypatch.setattr(campaign, "require_boot_time_unit", lambda _host: None)
    for module in (campaign_judge, campaign_run):
        monkeypatch.setattr(module, "busy_package_managers", lambda _host: made.busy)
    return made


@contextlib.contextmanager
def power_cut(before: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Have the power go before an action, by its number; yield how many there were.

    Actions, records and what is found out at length count alike.
    """
    counted = [0]
    run = campaign_run.CampaignRun

    def cut(name: str) -> None:
        original = getattr(run, name)

        def call(self: object, *arguments: object) -> object:
            counted[0] += 1
            if counted[0] == before:
                raise PowerCutError
            return original(self, *arguments)

        patched.setattr(run, name, call)

    with monkeypatch.context() as patched:
        for name in ("_done", "_recorded", "_at_length"):
            cut(name)
        yield counted
