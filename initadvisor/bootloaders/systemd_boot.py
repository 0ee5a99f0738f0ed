"""systemd-boot: an entry in a file of its own (Type #1), selected for one boot by bootctl(1).

systemd-boot deletes LoaderEntryOneShot when it reads it, before it starts what it names (boot.c,
config_load_defaults). What boots otherwise is, in this order, what LoaderEntryPreferred and
``preferred`` name, LoaderEntryDefault, ``default`` of loader.conf; and with none of them the first
entry of the menu - so that a new entry could become the default where nothing is named.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from initadvisor.bootloaders import ours, safety, type1
from initadvisor.bootloaders.disk_unlocking import require_no_binding
from initadvisor.bootloaders.places import loader_path, read_bytes, require_writable
from initadvisor.bootloaders.secure_boot import require_free_command_line
from initadvisor.bootloaders.systemd_boot_menu import MenuEntry, default_of_menu, menu, partitions
from initadvisor.bootloaders.type1_entry import boot_entry, trial_lines
from initadvisor.measure.efi import loader_text, loader_variables
from initadvisor.measure.way import boot_start
from initadvisor.model.boot_entry import BootEntry, TrialPlan, TrialRequest
from initadvisor.model.errors import InitadvisorError
from initadvisor.model.loader import BootWay
from initadvisor.model.one_shot import OneShot, OneShotState

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.model.refusal import Refusal, RefusalKind

NAME: Final = "systemd-boot"

IDENTIFIER: Final = "a-initadvisor-trial.conf"
"""Sorts behind all others where no entry is named, and has no sort-key because entries that have
one come first: seen with ``bootctl list``, whose order is systemd-boot's. bootctl refuses a tilde,
which would sort lower still."""

_COMMENT = "Written by initadvisor for a trial; never the default, and removed when it is over."
_TITLE = "initadvisor trial"
_ONE_SHOT = "LoaderEntryOneShot"
_TIMEOUT_S = 20
_CLEAR = 'bootctl set-oneshot ""'


def detect(host: Host) -> bool:
    """Tell whether the running system was started by systemd-boot."""
    way = boot_start(host, loader_variables(host)).way
    return way in {BootWay.SYSTEMD_BOOT, BootWay.SYSTEMD_BOOT_UKI}


def refusals(host: Host) -> tuple[Refusal, ...]:
    """Return every reason why arming would not be safe here as it is now."""
    if missing := safety.collected(
        partial(safety.require_program, host, "bootctl", "systemd-boot")
    ):
        return missing
    return safety.collected(
        partial(default_entry, host),
        lambda: require_writable(host, _directory(_default(host))),
        lambda: list(_our_files(host)),
        lambda: safety.require_none_pending(armed(host), _CLEAR),
        partial(require_no_binding, host),
    )


def default_entry(host: Host) -> BootEntry:
    """Return the entry that boots when nothing else is selected."""
    return _entry(host, _default(host))


def trial(host: Host, request: TrialRequest) -> TrialPlan:
    """Plan the trial's entry, on the partition that the default entry is on."""
    entry = _default(host)
    default = _entry(host, entry)
    image = loader_path(host, request.image, entry.mount_point)
    made = trial_lines(entry, default, request, image=image, title=_TITLE)
    return TrialPlan(
        loader=NAME,
        request=request,
        default=default,
        identifier=IDENTIFIER,
        title=made.title,
        options=made.options,
        own_words=made.own_words,
        target=f"{_directory(entry)}/{IDENTIFIER}",
        text=type1.entry_text(_COMMENT, made.lines),
    )


def write(host: Host, plan: TrialPlan) -> None:
    """Write the entry's file under its name, or not at all."""
    for path in _our_files(host):
        if path != host.path(plan.target):
            ours.remove_file(path)
    ours.write_whole(host.path(plan.target), ours.encoded(plan.text))


def arm(host: Host, plan: TrialPlan, *, accepted: Collection[RefusalKind] = ()) -> None:
    """Have the next boot, and only that one, use the entry."""
    safety.require_accepted(refusals(host), accepted)
    written = read_bytes(host.path(plan.target)) == ours.encoded(plan.text)
    safety.require_unchanged(host, plan, default_entry(host), written=written)
    try:
        _set_one_shot(host, IDENTIFIER)
        safety.require_ours(armed(host), "bootctl set-oneshot")
    except BaseException:
        disarm(host)
        raise


def armed(host: Host) -> OneShot:
    """Return what LoaderEntryOneShot names."""
    try:
        identifier = loader_text(host, _ONE_SHOT)
    except InitadvisorError as err:
        return OneShot(state=OneShotState.UNREADABLE, reason=err.message)
    if identifier is None:
        return OneShot(state=OneShotState.NONE)
    is_ours = identifier.lower() == IDENTIFIER
    state = OneShotState.OURS if is_ours else OneShotState.OTHERS
    return OneShot(state=state, identifier=identifier)


def disarm(host: Host) -> bool:
    """Take our selection back; leave anybody else's."""
    if armed(host).state is not OneShotState.OURS:
        return False
    _set_one_shot(host, "")
    safety.require_disarmed(armed(host), _CLEAR)
    return True


def remove(host: Host) -> bool:
    """Take our selection back and remove our entry."""
    disarm(host)
    found = list(_our_files(host))
    for path in found:
        ours.remove_file(path)
    return bool(found)


def _default(host: Host) -> MenuEntry:
    where = partitions(host)
    return default_of_menu(host, where, menu(host, where), ours=IDENTIFIER)


def _entry(host: Host, entry: MenuEntry) -> BootEntry:
    found = boot_entry(host, entry)
    if found.is_uki:
        require_free_command_line(host, found.kernel.path)
    return found


def _directory(entry: MenuEntry) -> str:
    return f"{entry.mount_point}/loader/entries"


def _our_files(host: Host) -> list[Path]:
    """Return our entry's files; raises ``RefusedError`` where one of that name is not ours."""
    where = partitions(host)
    paths = [
        host.path(f"{mount_point}/loader/entries/{IDENTIFIER}")
        for mount_point in dict.fromkeys((where.esp, where.boot))
    ]
    return [path for path in paths if ours.require_ours_or_free(path, f"# {_COMMENT}")]


def _set_one_shot(host: Host, identifier: str) -> None:
    host.runner.run(["bootctl", "set-oneshot", identifier], timeout_s=_TIMEOUT_S)
