"""GRUB on EFI and on BIOS: entries in custom.cfg, selected for one boot by grub-reboot(8).

grub-reboot sets ``next_entry`` in the environment block; grub.cfg empties it with ``save_env``
before anything is booted. Where GRUB cannot write that block (LVM, RAID, btrfs, ZFS), the selection
would stand for ever: refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from initadvisor.bootloaders import managed_files, safety
from initadvisor.bootloaders.disk_unlocking import require_no_binding
from initadvisor.bootloaders.entry import BootEntry, EntryKind, TrialPlan, TrialRequest
from initadvisor.bootloaders.grub import custom
from initadvisor.bootloaders.grub import menu as grub_menu
from initadvisor.bootloaders.grub.entry import boot_entry, trial_text
from initadvisor.bootloaders.grub.environment import (
    GrubPlace,
    environment,
    place,
    require_grub_writes,
    unset_next_entry,
)
from initadvisor.bootloaders.managed_files import PREFIX
from initadvisor.bootloaders.one_shot import OneShot, OneShotState
from initadvisor.bootloaders.places import loader_path, mount_point_of, read_bytes, require_writable
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.refusals import RefusalKind, refused
from initadvisor.core.text import decoded, encoded
from initadvisor.firmware.boot_method import boot_start
from initadvisor.firmware.efi_variables import loader_variables
from initadvisor.host.replace import replace_file
from initadvisor.records.boot_start import BootMethod

if TYPE_CHECKING:
    from collections.abc import Collection

    from initadvisor.core.refusals import Refusal
    from initadvisor.host import Host


NAME: Final = "grub"

_TIMEOUT_S = 60
"""grub-reboot asks grub-probe, which looks at every disk."""


def detect(host: Host) -> bool:
    """Tell whether the running system was started by GRUB."""
    way = boot_start(host, loader_variables(host)).method
    return way in {BootMethod.GRUB_EFI, BootMethod.GRUB_BIOS}


def refusals(host: Host) -> tuple[Refusal, ...]:
    """Return every reason why arming would not be safe here as it is now."""
    try:
        where = place(host)
    except InitadvisorError:
        return safety.collected(partial(place, host))
    if missing := safety.collected(
        *(
            partial(safety.require_program, host, where.program(name), "GRUB's tools")
            for name in ("grub-reboot", "grub-editenv", "grub-probe")
        )
    ):
        return missing
    return safety.collected(
        partial(require_writable, host, where.directory),
        partial(require_grub_writes, host, where),
        partial(default_entry, host),
        partial(_require_harmless_custom, host, where),
        lambda: safety.require_none_pending(armed(host), where.how_to_clear),
        partial(require_no_binding, host),
    )


def default_entry(host: Host) -> BootEntry:
    """Return the entry that boots when ``next_entry`` is not set."""
    return _default(host, place(host)).entry


def trial(host: Host, request: TrialRequest) -> TrialPlan:
    """Plan the entry, which finds its disk as the default entry does."""
    where = place(host)
    default = _default(host, where)
    image = loader_path(host, request.image, default.mount_point)
    made = trial_text(default.menu, default.entry, request, image=image)
    return TrialPlan(
        loader=NAME,
        request=request,
        default=default.entry,
        identifier=custom.identifier(request.kind),
        title=made.title,
        options=made.options,
        extra_cmdline=made.extra_cmdline,
        target=where.custom,
        text=made.text,
    )


def write(host: Host, plan: TrialPlan) -> None:
    """Write the entry as a block of custom.cfg; what else is in there stays as it is."""
    kind = plan.request.kind
    managed_files.remove_unfinished(host.path(plan.target).parent)
    found = custom.split(_custom(host, plan.target), kind)
    if found.block != plan.text:
        content = encoded(custom.joined(found.rest, plan.text, kind))
        replace_file(host.path(plan.target), content, prefix=PREFIX)


def arm(host: Host, plan: TrialPlan, *, accepted: Collection[RefusalKind] = ()) -> None:
    """Have the next boot, and only that one, use the entry."""
    safety.require_trial(plan)
    safety.require_accepted(refusals(host), accepted)
    where = place(host)
    found = custom.split(_custom(host, where.custom), plan.request.kind)
    written = found.block == plan.text
    safety.require_unchanged(host, plan, default_entry(host), written=written)
    boot_directory = host.path(where.directory).parent
    command = [where.program("grub-reboot"), f"--boot-directory={boot_directory}"]
    try:
        host.runner.run([*command, plan.identifier], timeout_s=_TIMEOUT_S)
        safety.require_ours(armed(host), command[0])
    except BaseException:
        disarm(host)
        raise


def armed(host: Host) -> OneShot:
    """Return what ``next_entry`` names; empty it is as good as unset."""
    try:
        selected = environment(host, place(host)).get("next_entry")
    except InitadvisorError as err:
        return OneShot(state=OneShotState.UNREADABLE, reason=err.message)
    if not selected:
        return OneShot(state=OneShotState.NONE)
    kinds = {custom.identifier(kind): kind for kind in EntryKind}
    return safety.pending_selection(selected, kinds.get(selected))


def disarm(host: Host) -> bool:
    """Take a trial's selection back; leave anything else."""
    return _deselect(host, EntryKind.TRIAL)


def entry(host: Host, kind: EntryKind) -> str | None:
    """Return the image that our written entry boots."""
    found = custom.split(_custom(host, place(host).custom), kind)
    return managed_files.noted_image(found.block) if found.block else None


def remove(host: Host, kind: EntryKind = EntryKind.TRIAL) -> bool:
    """Take a selection of our entry back and remove its block, and a file that was made for it."""
    _deselect(host, kind)
    path = host.path(place(host).custom)
    managed_files.remove_unfinished(path.parent)
    found = custom.split(_custom(host, place(host).custom), kind)
    if found.block is None:
        return False
    if found.rest is None:
        managed_files.remove_file(path)
    else:
        replace_file(path, encoded(found.rest), prefix=PREFIX)
    return True


def _deselect(host: Host, kind: EntryKind) -> bool:
    if armed(host).selects is not kind:
        return False
    where = place(host)
    unset_next_entry(host, where)
    safety.require_deselected(armed(host), kind, where.how_to_clear)
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Default:
    menu: grub_menu.GrubMenuEntry
    entry: BootEntry
    mount_point: str


def _default(host: Host, where: GrubPlace) -> _Default:
    content = read_bytes(host.path(where.configuration)) or b""
    text = decoded(content)
    script = grub_menu.parsed(text, where.configuration)
    grub_menu.refuse_what_keeps(script, where.configuration)
    saved = environment(host, where).get("saved_entry")
    menu = grub_menu.default_entry(text, script, where.configuration, saved_entry=saved)
    mount_point = mount_point_of(host, where.directory)
    entry = boot_entry(host, menu, mount_point=mount_point, source=where.configuration)
    return _Default(menu=menu, entry=entry, mount_point=mount_point)


def _custom(host: Host, path: str) -> str | None:
    content = read_bytes(host.path(path))
    return None if content is None else decoded(content)


def _require_harmless_custom(host: Host, where: GrubPlace) -> None:
    """Raise ``RefusedError`` where custom.cfg itself decides what is booted."""
    foreign = custom.without_ours(_custom(host, where.custom)) or ""
    identifiers = [custom.identifier(kind) for kind in EntryKind]
    for statement in grub_menu.parsed(foreign, where.custom):
        words = [word.raw for word in statement.words]
        if any(word.startswith(("default=", "next_entry", "check_signatures")) for word in words):
            reason = f"{where.custom} itself decides what is booted: {' '.join(words)[:80]}"
            raise refused(RefusalKind.UNCLEAR_DEFAULT, reason, "set GRUB_DEFAULT instead")
        if taken := [each for each in identifiers if each in " ".join(words)]:
            reason = f"{where.custom} has an entry {taken[0]} that is not ours"
            raise refused(RefusalKind.FOREIGN_ENTRY, reason, "rename it")
