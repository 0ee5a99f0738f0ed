"""A boot loader that keeps its entries in memory and boots when a test says so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from initadvisor.apply import commit, proving
from initadvisor.apply import loaded as apply_loaded
from initadvisor.apply import plan as apply_plan
from initadvisor.bootloaders import detect
from initadvisor.bootloaders.entry import (
    BootEntry,
    BootFile,
    EntryKind,
    OneShot,
    OneShotState,
    OwnedEntry,
    TrialPlan,
    TrialRequest,
)
from initadvisor.core.errors import UnsafeError
from initadvisor.core.refusals import RefusalKind, refused
from initadvisor.doctor import status
from initadvisor.host.owner import owner_of_host
from initadvisor.records.boot_start import BootMethod
from initadvisor.trial import campaign_actions, campaigns, ownership, recovery, risks, run

if TYPE_CHECKING:
    from collections.abc import Collection

    import pytest

    from initadvisor.core.refusals import Refusal
    from initadvisor.host import Host

_WHO_ASKS = (
    *(apply_loaded, apply_plan, commit, proving, status),
    *(campaigns, campaign_actions, ownership, run, recovery, risks),
)


@dataclass(slots=True)
class FakeLoader:
    """Boots ``image`` by default; ``against`` is what it has against arming.

    ``selected`` is what it says is next, whatever is. ``unremovable`` is why no entry can be
    removed. ``before``: images that are loaded before it, such as microcode. ``unclear``: why it
    is not certain what boots by default.
    """

    image: str
    NAME: Final[str] = "fake"
    BOOT_METHODS: Final[frozenset[BootMethod]] = frozenset(BootMethod)
    against: tuple[Refusal, ...] = ()
    entries: dict[EntryKind, TrialPlan] = field(default_factory=dict)
    is_armed: bool = False
    may_have_entries: bool = True
    selected: OneShot | None = None
    unremovable: Exception | None = None
    options: str = "root=/dev/sda1"
    before: tuple[str, ...] = ()
    unclear: str = ""

    def use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Be the loader that started the machine."""
        for module in _WHO_ASKS:
            monkeypatch.setattr(module, "detect_boot_loader", lambda _host: self)
        monkeypatch.setattr(detect, "BOOT_LOADERS", (self,))

    def boot(self) -> str:
        """Return the image that the next boot uses, with the selection used up."""
        image = self.entries[EntryKind.TRIAL].request.image if self.is_armed else self.image
        self.is_armed = False
        return image

    def refusals(self, host: Host) -> tuple[Refusal, ...]:
        """Return what is against arming."""
        del host
        return self.against

    def default_entry(self, host: Host) -> BootEntry:
        """Return the entry with the image."""
        del host
        if self.unclear:
            raise refused(RefusalKind.UNCLEAR_DEFAULT, self.unclear, "choose one")
        images = (*self.before, self.image)
        return BootEntry(
            identifier="default",
            title="Linux",
            kernel=BootFile(named="/vmlinuz", path="/boot/vmlinuz"),
            initrds=tuple(BootFile(named=image, path=image) for image in images),
            options=self.options,
            source="/boot/loader/entries/default.conf",
        )

    def trial(self, host: Host, request: TrialRequest) -> TrialPlan:
        """Plan it, for the image of the default entry only."""
        if request.replaces != self.image or not self.may_have_entries:
            msg = f"the default entry does not load {request.replaces}"
            raise UnsafeError(msg)
        default = self.default_entry(host)
        return TrialPlan(
            loader=self.NAME,
            request=request,
            default=default,
            identifier=request.kind,
            title=request.title,
            options=" ".join((default.options, *request.parameters)),
            extra_cmdline=request.parameters,
            target=f"/boot/loader/entries/{request.kind}.conf",
            text=request.image,
        )

    def write(self, host: Host, plan: TrialPlan) -> None:
        """Keep the entry."""
        del host
        self.entries[plan.request.kind] = plan

    def is_written(self, host: Host, text: str) -> bool:
        """Tell whether the trial's entry says just that."""
        del host
        found = self.entries.get(EntryKind.TRIAL)
        return found is not None and found.text == text

    def arm(self, host: Host, plan: TrialPlan, *, accepted: Collection[RefusalKind] = ()) -> None:
        """Select the trial's, whose image has to be there."""
        assert self.entries[EntryKind.TRIAL] == plan
        assert host.path(plan.request.image).is_file()
        assert not [refusal for refusal in self.against if refusal.kind not in accepted]
        self.is_armed = True

    def armed(self, host: Host) -> OneShot:
        """Return whether the trial's is selected."""
        del host
        if self.selected:
            return self.selected
        return OneShot(state=OneShotState.OURS if self.is_armed else OneShotState.NONE)

    def disarm(self, host: Host, kind: EntryKind = EntryKind.TRIAL) -> bool:
        """Take the selection back; only the trial's entry is ever selected."""
        del host
        if kind is not EntryKind.TRIAL:
            return False
        was_armed, self.is_armed = self.is_armed, False
        return was_armed

    def entry(self, host: Host, kind: EntryKind) -> str | None:
        """Return what an entry boots."""
        del host
        return self.entries[kind].request.image if kind in self.entries else None

    def owned_entries(self, host: Host) -> tuple[OwnedEntry, ...]:
        """Return the entries; all are this system's."""
        return tuple(
            OwnedEntry(
                owner=owner_of_host(host), kind=kind, identifier=kind, image=plan.request.image
            )
            for kind, plan in self.entries.items()
        )

    def remove(self, host: Host, kind: EntryKind = EntryKind.TRIAL) -> bool:
        """Forget an entry."""
        if self.unremovable:
            raise self.unremovable
        self.disarm(host, kind)
        return self.entries.pop(kind, None) is not None
