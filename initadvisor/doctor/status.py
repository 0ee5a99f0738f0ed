"""What ``status`` tells: what is configured, what this boot used, what is pending and kept."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.advise.loading import applied_loading
from initadvisor.apply.room import ways_to_make_room
from initadvisor.bootloaders.detect import detect_boot_loader
from initadvisor.bootloaders.entry import EntryKind
from initadvisor.boots.record import running_boot_id
from initadvisor.campaign.record import read_campaign
from initadvisor.core.errors import InitadvisorError, NeedsRootError, ProgramError, side_fact
from initadvisor.doctor.kernels import more_kernels
from initadvisor.doctor.loop_stages import StageReached, loop_stages
from initadvisor.doctor.software import ENABLED_BY_USER, runs_systemd, unit_states
from initadvisor.generators.detect import detect_generator
from initadvisor.host.configuration import load_config
from initadvisor.records.boot import RecordSource
from initadvisor.store.publish import published_at_s
from initadvisor.store.store import open_store
from initadvisor.transaction.backups import Backup, backups
from initadvisor.transaction.log import read_records
from initadvisor.transaction.transaction import Duty
from initadvisor.trial.ownership import Unrecorded, unrecorded

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from initadvisor.bootloaders import BootLoader
    from initadvisor.bootloaders.entry import BootEntry, OneShot
    from initadvisor.campaign.campaign import Campaign
    from initadvisor.core.config import Policy
    from initadvisor.core.estimates import Certainty
    from initadvisor.core.settings import Setting
    from initadvisor.doctor.kernels import MoreKernels
    from initadvisor.generators import ConfiguredSetting, InstalledImage
    from initadvisor.host import Host
    from initadvisor.transaction.transaction import Transaction


_NOT_MEASURED = "this boot was not measured: initadvisor measure does it"
_AS_ROOT = "only root may look at the boot loader"


def status(host: Host, *, check: bool = False) -> Status:
    """Return what there is; what cannot be read, or not by this user, is said in words.

    ``check``: have also what is kept of large files read whole, which takes time.
    """
    notes: list[str] = []
    generator, images, configured = _configured(host, notes)
    room = side_fact(lambda: more_kernels(host, images), "the room for kernels", notes)
    if room and room.room.is_full:
        notes.append(
            f"the next kernel does not fit on {room.room.mount_point}: "
            f"{ways_to_make_room(host, room.room.mount_point)}"
        )
    records = read_records(host)
    recorded = tuple(r for r in records if not isinstance(r, InitadvisorError))
    notes += [str(r) for r in records if isinstance(r, InitadvisorError)]
    kept, doubts = backups(host, recorded, check=check)
    notes += doubts
    if loading := applied_loading(host, recorded):
        notes.append(loading)
    since_s = None
    with contextlib.suppress(NeedsRootError):  # the records' own words say it
        since_s = published_at_s(host)
    return Status(
        generator=generator,
        image=images[0].path if images else None,
        kernels=room,
        configured=configured,
        running=_running(host),
        transactions=recorded,
        pending=tuple(t for t in recorded if t.state.duty is not Duty.NOTHING),
        backups=kept,
        entries=_entries(host),
        campaign=_campaign(host, notes),
        unrecorded=unrecorded(host),
        enabled=_enabled(host, notes),
        stages=loop_stages(host, recorded, notes),
        notes=tuple(dict.fromkeys(notes)),
        published_at_s=since_s,
    )


def _configured(
    host: Host, notes: list[str]
) -> tuple[str | None, tuple[InstalledImage, ...], ConfiguredSetting | None]:
    generator = detect_generator(host)
    if generator is None:
        notes.append(f"no generator of initramfs images was found below {host.root}")
        return None, (), None
    images: tuple[InstalledImage, ...] = ()
    try:
        images = generator.images(host)
        if not images:
            notes.append(f"no image of {generator.NAME} was found")
            return generator.NAME, (), None
        configured = generator.configured(host, images[0].kernel_release)
    except InitadvisorError as err:
        notes.append(err.message)
        return generator.NAME, images, None
    return generator.NAME, images, configured


def _enabled(host: Host, notes: list[str]) -> Enabled:
    policy = None
    try:
        policy = load_config(host).policy
    except InitadvisorError as err:
        notes.append(err.with_hint)
    if not runs_systemd(host):
        return Enabled(policy=policy)
    try:
        states = unit_states(host)
    except ProgramError as err:
        notes.append(f"which units are on is not known: {err.message}")
        return Enabled(policy=policy)
    on = {unit: states[unit].get("UnitFileState") == "enabled" for unit in ENABLED_BY_USER}
    return Enabled(policy=policy, units=on)


def _campaign(host: Host, notes: list[str]) -> Campaign | None:
    try:
        latest = read_campaign(host)
    except InitadvisorError as err:
        notes.append(err.with_hint)
        return None
    return latest if latest.number else None


def _running(host: Host) -> RunningBoot:
    try:
        boot_id = running_boot_id(host)
        with open_store(host, readonly=True) as store:
            record = store.boot(boot_id)
    except InitadvisorError as err:
        return RunningBoot(reason=err.message)
    if record is None or record.source is not RecordSource.UNIT:
        return RunningBoot(reason=_NOT_MEASURED)
    found = record.attribution
    return RunningBoot(
        reason=found.reason,
        certainty=found.certainty,
        image=found.image.path if found.image else None,
        setting=record.setting,
    )


def _entries(host: Host) -> Entries:
    try:
        loader = detect_boot_loader(host)
        default, unclear = _default_entry(host, loader)
        return Entries(
            loader=loader.NAME,
            default=default,
            unclear=unclear,
            trial=loader.entry(host, EntryKind.TRIAL),
            previous=loader.entry(host, EntryKind.PREVIOUS),
            next_boot=loader.armed(host),
        )
    except NeedsRootError:
        return Entries(problem=_AS_ROOT)
    except InitadvisorError as err:
        return Entries(problem=err.message)


def _default_entry(host: Host, loader: BootLoader) -> tuple[BootEntry | None, str]:
    """Return what boots by default, and why that is not known where it is not."""
    try:
        return loader.default_entry(host), ""
    except InitadvisorError as err:
        return None, err.message


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningBoot:
    """What the running boot used.

    ``image`` and ``setting`` are None where they are not known. ``certainty`` is None, and
    ``reason`` says why, where this boot was not measured.
    """

    reason: str
    certainty: Certainty | None = None
    image: str | None = None
    setting: Setting | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """What the boot loader has of ours: the images that our entries boot, None without one.

    ``default``: what boots otherwise, None where that is ``unclear``, with the reason.
    ``next_boot``: what is selected for the next boot only. ``problem``: why it cannot be told.
    """

    loader: str | None = None
    default: BootEntry | None = None
    unclear: str = ""
    trial: str | None = None
    previous: str | None = None
    next_boot: OneShot | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Enabled:
    """Whether the daemon works by itself: which units are on, and its policy.

    ``units`` is None where systemd does not run or cannot be asked, ``policy`` where the
    configuration cannot be read.
    """

    policy: Policy | None
    units: Mapping[str, bool] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """All of it; ``transactions`` are the earliest first, ``pending`` those that are not over.

    ``configured`` is None where there is no generator, or where it cannot be read; ``notes`` say
    why, and what else is worth knowing. ``campaign``: the latest one, None where there is none.
    ``unrecorded``: what no record tells of, other systems' and this one's.
    ``kernels``: how many more fit on the boot partition, None where there is none.
    ``published_at_s``: what ``store.publish.published_at_s`` returns.
    """

    generator: str | None
    image: Path | None
    configured: ConfiguredSetting | None
    running: RunningBoot
    transactions: tuple[Transaction, ...]
    pending: tuple[Transaction, ...]
    backups: tuple[Backup, ...]
    entries: Entries
    enabled: Enabled
    stages: tuple[StageReached, ...]
    notes: tuple[str, ...] = ()
    campaign: Campaign | None = None
    unrecorded: tuple[Unrecorded, ...] = ()
    kernels: MoreKernels | None = None
    published_at_s: int | None = None
