"""systemd-boot: entries in files of their own (Type #1), selected for one boot by bootctl(1).

systemd-boot deletes LoaderEntryOneShot when it reads it, before it starts what it names (boot.c,
config_load_defaults). What boots otherwise is, in this order, what LoaderEntryPreferred and
``preferred`` name, LoaderEntryDefault, ``default`` of loader.conf; and with none of them the first
entry of the menu - so that a new entry could become the default where nothing is named.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from initadvisor.bootloaders import managed_files, safety
from initadvisor.bootloaders.disk_unlocking import require_no_binding
from initadvisor.bootloaders.entry import BootEntry, EntryKind, TrialPlan, TrialRequest
from initadvisor.bootloaders.one_shot import OneShot, OneShotState
from initadvisor.bootloaders.places import loader_path, read_bytes, require_writable
from initadvisor.bootloaders.safety import require_free_command_line, require_same_start
from initadvisor.bootloaders.systemd_boot import type1
from initadvisor.bootloaders.systemd_boot.entry import boot_entry, trial_lines
from initadvisor.bootloaders.systemd_boot.menu import (
    SystemdBootMenuEntry,
    default_of_menu,
    menu,
    partitions,
)
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.text import decoded, encoded
from initadvisor.firmware.boot_method import boot_start
from initadvisor.firmware.efi_variables import loader_text, loader_variables
from initadvisor.records.boot_start import BootMethod

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from initadvisor.core.refusals import Refusal, RefusalKind
    from initadvisor.host import Host


NAME: Final = "systemd-boot"

_FIRST_LINES: Final = {
    EntryKind.TRIAL: (
        "# Written by initadvisor for a trial; never the default, and removed when it is over."
    ),
    EntryKind.PREVIOUS: (
        "# Written by initadvisor for the image before the last change; never the default."
    ),
}
_ONE_SHOT = "LoaderEntryOneShot"
_TIMEOUT_S = 20
_CLEAR = 'bootctl set-oneshot ""'


def identifier(kind: EntryKind) -> str:
    """Return what systemd-boot calls our entry, its file's name.

    It sorts behind all others where no entry is named, and has no sort-key because entries that
    have one come first: seen with ``bootctl list``, whose order is systemd-boot's. bootctl refuses
    a tilde, which would sort lower still.
    """
    return f"a-initadvisor-{kind}.conf"


def detect(host: Host) -> bool:
    """Tell whether the running system was started by systemd-boot."""
    way = boot_start(host, loader_variables(host)).method
    return way in {BootMethod.SYSTEMD_BOOT, BootMethod.SYSTEMD_BOOT_UKI}


def refusals(host: Host) -> tuple[Refusal, ...]:
    """Return every reason why arming would not be safe here as it is now."""
    if missing := safety.collected(
        partial(safety.require_program, host, "bootctl", "systemd-boot")
    ):
        return missing
    return safety.collected(
        partial(default_entry, host),
        lambda: require_writable(host, _directory(_default(host))),
        *(partial(_our_files, host, kind) for kind in EntryKind),
        lambda: safety.require_none_pending(armed(host), _CLEAR),
        partial(require_no_binding, host),
    )


def default_entry(host: Host) -> BootEntry:
    """Return the entry that boots when nothing else is selected."""
    found = boot_entry(host, _default(host))
    if found.is_uki:
        require_free_command_line(host, found.kernel.path)
    return found


def trial(host: Host, request: TrialRequest) -> TrialPlan:
    """Plan the entry, on the partition that the default entry is on."""
    entry = _default(host)
    default = boot_entry(host, entry)
    if default.is_uki:
        require_same_start(host, default.kernel.path, request)
    image = loader_path(host, request.image, entry.mount_point)
    made = trial_lines(entry, default, request, image=image)
    first_lines = f"{_FIRST_LINES[request.kind]}\n{managed_files.image_note(request.image)}"
    return TrialPlan(
        loader=NAME,
        request=request,
        default=default,
        identifier=identifier(request.kind),
        title=made.title,
        options=made.options,
        extra_cmdline=made.extra_cmdline,
        target=f"{_directory(entry)}/{identifier(request.kind)}",
        text=type1.entry_text(first_lines, made.lines),
    )


def write(host: Host, plan: TrialPlan) -> None:
    """Write the entry's file under its name, or not at all."""
    target, content = host.path(plan.target), encoded(plan.text)
    _clear_unfinished(host)
    for path in _our_files(host, plan.request.kind):
        if path != target:
            managed_files.remove_file(path)
    if read_bytes(target) != content:
        managed_files.write_whole(target, content)


def arm(host: Host, plan: TrialPlan, *, accepted: Collection[RefusalKind] = ()) -> None:
    """Have the next boot, and only that one, use the entry."""
    safety.require_trial(plan)
    safety.require_accepted(refusals(host), accepted)
    written = read_bytes(host.path(plan.target)) == encoded(plan.text)
    safety.require_unchanged(host, plan, default_entry(host), written=written)
    try:
        _set_one_shot(host, plan.identifier)
        safety.require_ours(armed(host), "bootctl set-oneshot")
    except BaseException:
        disarm(host)
        raise


def armed(host: Host) -> OneShot:
    """Return what LoaderEntryOneShot names."""
    try:
        selected = loader_text(host, _ONE_SHOT)
    except InitadvisorError as err:
        return OneShot(state=OneShotState.UNREADABLE, reason=err.message)
    if selected is None:
        return OneShot(state=OneShotState.NONE)
    kinds = {identifier(kind): kind for kind in EntryKind}
    return safety.pending_selection(selected, kinds.get(selected.lower()))


def disarm(host: Host) -> bool:
    """Take a trial's selection back; leave anything else."""
    return _deselect(host, EntryKind.TRIAL)


def entry(host: Host, kind: EntryKind) -> str | None:
    """Return the image that our written entry boots."""
    for path in _our_files(host, kind):
        if image := managed_files.noted_image(decoded(read_bytes(path) or b"")):
            return image
    return None


def remove(host: Host, kind: EntryKind = EntryKind.TRIAL) -> bool:
    """Take a selection of our entry back and remove it."""
    _deselect(host, kind)
    _clear_unfinished(host)
    found = _our_files(host, kind)
    for path in found:
        managed_files.remove_file(path)
    return bool(found)


def _default(host: Host) -> SystemdBootMenuEntry:
    where = partitions(host)
    identifiers = [identifier(kind) for kind in EntryKind]
    return default_of_menu(host, where, menu(host, where), ours=identifiers)


def _directory(entry: SystemdBootMenuEntry) -> str:
    return f"{entry.mount_point}/loader/entries"


def _our_files(host: Host, kind: EntryKind) -> list[Path]:
    """Return our entry's files; raises ``RefusedError`` where one of that name is not ours."""
    paths = [directory / identifier(kind) for directory in _directories(host)]
    return [path for path in paths if managed_files.require_ours_or_free(path, _FIRST_LINES[kind])]


def _clear_unfinished(host: Host) -> None:
    for directory in _directories(host):
        managed_files.remove_unfinished(directory)


def _directories(host: Host) -> list[Path]:
    """Return where systemd-boot looks for entries."""
    where = partitions(host)
    mount_points = dict.fromkeys((where.esp, where.boot))
    return [host.path(f"{mount_point}/loader/entries") for mount_point in mount_points]


def _deselect(host: Host, kind: EntryKind) -> bool:
    if armed(host).selects is not kind:
        return False
    _set_one_shot(host, "")
    safety.require_deselected(armed(host), kind, _CLEAR)
    return True


def _set_one_shot(host: Host, selected: str) -> None:
    host.runner.run(["bootctl", "set-oneshot", selected], timeout_s=_TIMEOUT_S)
