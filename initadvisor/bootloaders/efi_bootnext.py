"""The firmware itself: a boot option that starts a kernel or a unified kernel image.

The trial has an option of its own that is not in BootOrder, made and selected (BootNext) by
efibootmgr(8). The firmware deletes BootNext before it starts what it names (UEFI 2.10, 3.1.2).
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from initadvisor.bootloaders import boot_options, efibootmgr, safety
from initadvisor.bootloaders.boot_options import LABEL, Numbered
from initadvisor.bootloaders.disk_unlocking import require_no_binding
from initadvisor.bootloaders.places import (
    device_of_partition,
    disk_and_part,
    file_named,
    loader_path,
    mount_of_partition,
)
from initadvisor.bootloaders.replacing import replaced
from initadvisor.bootloaders.secure_boot import require_free_command_line
from initadvisor.bootloaders.uki import command_line_of
from initadvisor.measure.efi import loader_variables
from initadvisor.measure.way import boot_start
from initadvisor.model.boot_entry import BootEntry, BootFile, TrialPlan, TrialRequest
from initadvisor.model.errors import InitadvisorError, UnsafeError
from initadvisor.model.loader import BootWay
from initadvisor.model.one_shot import OneShot, OneShotState
from initadvisor.model.refusal import RefusalKind, RefusedError, refused
from initadvisor.model.trial_words import new_words, with_words

if TYPE_CHECKING:
    from collections.abc import Collection

    from initadvisor.host import Host
    from initadvisor.model.refusal import Refusal

NAME: Final = "efi-bootnext"

_CLEAR = "efibootmgr --delete-bootnext"
_INITRD = re.compile(r"(?<!\S)initrd=(\S+)")
_ORDER_REMEDY = "put the kernel's boot option first: efibootmgr --bootorder"


def detect(host: Host) -> bool:
    """Tell whether the firmware itself started the running system's kernel."""
    way = boot_start(host, loader_variables(host)).way
    return way in {BootWay.EFI_STUB, BootWay.FIRMWARE_UKI}


def refusals(host: Host) -> tuple[Refusal, ...]:
    """Return every reason why arming would not be safe here as it is now."""
    return safety.collected(
        partial(safety.require_program, host, "efibootmgr", "efibootmgr"),
        partial(default_entry, host),
        partial(_require_ours_out_of_order, host),
        lambda: safety.require_none_pending(armed(host), _CLEAR),
        partial(require_no_binding, host),
    )


def default_entry(host: Host) -> BootEntry:
    """Return what the first active option of BootOrder starts."""
    return _default(host).entry


def trial(host: Host, request: TrialRequest) -> TrialPlan:
    """Plan the trial's option, on the partition that the default one is on."""
    default = _default(host)
    entry = default.entry
    image = loader_path(host, request.image, default.mount_point).replace("/", "\\")
    title = f"{LABEL} {request.trial}"
    added = new_words(entry.options, request.words)
    files = (entry.kernel,) if entry.is_uki else entry.initrds
    images = list(replaced(files, request, image))
    if entry.is_uki:
        program, options = images[0], entry.options
    else:
        program, options = entry.kernel.named, _with_images(entry.options, images)
    options = with_words(options, added)
    disk, part = disk_and_part(host, default.device)
    command = ["--create-only", "--disk", disk, "--part", str(part), "--label", title]
    command += ["--loader", program, "--unicode", options]
    return TrialPlan(
        loader=NAME,
        request=request,
        default=entry,
        identifier=title,
        title=title,
        options=options,
        own_words=added,
        target="EFI boot options",
        text=shlex.join(command),
    )


def write(host: Host, plan: TrialPlan) -> None:
    """Make the option, which BootOrder does not name."""
    _remove_options(host)
    order = boot_options.boot_order(host)
    listing = efibootmgr.run(host, *shlex.split(plan.text))
    try:
        _require_order(host, order)
        made = _planned(host, plan)
        if made is None or listing.descriptions.get(made.number) != plan.title:
            msg = f"efibootmgr succeeded, but there is no boot option {plan.title!r} as planned"
            raise InitadvisorError(msg, hint="does the firmware keep variables?")
    except InitadvisorError:
        _remove_options(host)
        raise


def arm(host: Host, plan: TrialPlan, *, accepted: Collection[RefusalKind] = ()) -> None:
    """Have the next boot, and only that one, use the option."""
    safety.require_accepted(refusals(host), accepted)
    found = _planned(host, plan)
    safety.require_unchanged(host, plan, default_entry(host), written=found is not None)
    if found is None:
        raise AssertionError(plan)
    order = boot_options.boot_order(host)
    try:
        efibootmgr.run(host, "--bootnext", f"{found.number:04X}")
        safety.require_ours(armed(host), "efibootmgr --bootnext")
        _require_order(host, order)
    except BaseException:
        disarm(host)
        raise


def armed(host: Host) -> OneShot:
    """Return what BootNext names."""
    try:
        number = boot_options.next_number(host)
        found = None if number is None else boot_options.option(host, number)
    except InitadvisorError as err:
        return OneShot(state=OneShotState.UNREADABLE, reason=err.message)
    if number is None:
        return OneShot(state=OneShotState.NONE)
    if found is None:
        return OneShot(state=OneShotState.OTHERS, identifier=f"Boot{number:04X}")
    state = OneShotState.OURS if found.is_ours else OneShotState.OTHERS
    return OneShot(state=state, identifier=f"{found.identifier} ({found.option.description})")


def disarm(host: Host) -> bool:
    """Take our selection back; leave anybody else's."""
    if armed(host).state is not OneShotState.OURS:
        return False
    efibootmgr.run(host, "--delete-bootnext")
    safety.require_disarmed(armed(host), _CLEAR)
    return True


def remove(host: Host) -> bool:
    """Take our selection back and delete our options."""
    disarm(host)
    return _remove_options(host)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Default:
    entry: BootEntry
    mount_point: str
    device: str


def _default(host: Host) -> _Default:
    first = _first(host)
    option = first.option
    device = device_of_partition(host, option.partition_uuid or "")
    mount = mount_of_partition(host, option.partition_uuid or "")
    if option.file is None or mount is None or device is None:
        reason = f"{first.identifier} ({option.description}) starts nothing on a mounted partition"
        remedy = "mount the partition that the kernel is on, or see efibootmgr -v"
        raise refused(RefusalKind.OTHER_PARTITION, reason, remedy)
    kernel = _file(host, first, option.file, mount.mount_point)
    options = boot_options.data_text(option)
    named = _INITRD.findall(options)
    is_uki = not named
    if is_uki:
        own = command_line_of(host, kernel.path)
        options = options or own
        require_free_command_line(host, kernel.path)
    entry = BootEntry(
        identifier=first.identifier,
        title=option.description,
        kernel=kernel,
        initrds=tuple(_file(host, first, name, mount.mount_point) for name in named),
        options=options,
        source=f"EFI variable {first.identifier}",
        is_uki=is_uki,
    )
    return _Default(entry=entry, mount_point=mount.mount_point, device=device)


def _first(host: Host) -> Numbered:
    """Return the first option of BootOrder that the firmware would try."""
    for number in boot_options.boot_order(host):
        found = boot_options.option(host, number)
        if found and found.option.active:
            if found.is_ours:
                raise _ours_in_order(found)
            return found
    reason = "the firmware's BootOrder names no boot option that could be started"
    raise refused(RefusalKind.NO_DEFAULT, reason, _ORDER_REMEDY)


def _require_ours_out_of_order(host: Host) -> None:
    """Raise ``RefusedError`` where the firmware has put a trial's option into BootOrder."""
    order = boot_options.boot_order(host)
    for found in boot_options.our_options(host):
        if found.number in order:
            raise _ours_in_order(found)


def _ours_in_order(found: Numbered) -> RefusedError:
    reason = f"{found.identifier}, a trial's boot option, has got into BootOrder"
    remedy = f"remove it: efibootmgr --bootnum {found.number:04X} --delete-bootnum"
    return refused(RefusalKind.TRIAL_MAY_BECOME_DEFAULT, reason, remedy)


def _require_order(host: Host, order: tuple[int, ...]) -> None:
    """Raise ``UnsafeError`` where BootOrder is not what it was."""
    if boot_options.boot_order(host) != order:
        before = ",".join(f"{number:04X}" for number in order)
        msg = "the firmware changed its BootOrder by itself when a boot option was made or selected"
        raise UnsafeError(msg, hint=f"it was: efibootmgr --bootorder {before}")


def _planned(host: Host, plan: TrialPlan) -> Numbered | None:
    """Return our option if it is the only one and does what was planned."""
    found = boot_options.our_options(host)
    if len(found) != 1 or not found[0].option.active:
        return None
    option = found[0].option
    program = shlex.split(plan.text)[shlex.split(plan.text).index("--loader") + 1]
    is_planned = (
        option.description == plan.title
        and option.file is not None
        and option.file.lower() == program.replace("/", "\\").lower()
        and boot_options.data_text(option) == plan.options
        and option.partition_uuid == _first(host).option.partition_uuid
    )
    return found[0] if is_planned else None


def _remove_options(host: Host) -> bool:
    found = boot_options.our_options(host)
    for each in found:
        efibootmgr.run(host, "--bootnum", f"{each.number:04X}", "--delete-bootnum")
    return bool(found)


def _with_images(options: str, images: list[str]) -> str:
    """Return the options with their ``initrd=`` words naming these images, in order."""
    left = iter(images)
    return _INITRD.sub(lambda _: f"initrd={next(left)}", options)


def _file(host: Host, found: Numbered, named: str, mount_point: str) -> BootFile:
    path = file_named(host, named, mount_point)
    if path is None:
        reason = f"{found.identifier} ({found.option.description}) starts {named}: not found"
        raise refused(RefusalKind.UNCLEAR_DEFAULT, reason, _ORDER_REMEDY)
    return BootFile(named=named, path=path)
