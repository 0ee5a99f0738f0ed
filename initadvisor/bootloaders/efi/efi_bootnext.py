"""The firmware itself: a boot option that starts a kernel or a unified kernel image.

Entries of ours are options that are not in BootOrder, made by efibootmgr(8), which selects the
trial's for one boot (BootNext). The firmware deletes BootNext before it starts what it names (UEFI
2.10, 3.1.2). Many a firmware's menu shows BootOrder only: the previous image's option is then
chosen with ``efibootmgr --bootnext``.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from initadvisor.bootloaders import safety
from initadvisor.bootloaders.efi import boot_options
from initadvisor.bootloaders.entry import (
    BootEntry,
    BootFile,
    EntryKind,
    OneShot,
    OneShotState,
    OwnedEntry,
    TrialPlan,
    TrialRequest,
    command_line_of,
    replaced,
)
from initadvisor.bootloaders.extra_cmdline import new_parameters, with_parameters
from initadvisor.bootloaders.places import (
    device_of_partition,
    disk_and_part,
    file_named,
    loader_path,
    mount_of_partition,
    require_writable,
)
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.core.refusals import RefusalKind, RefusedError, refused
from initadvisor.firmware.efi_variables import enforces_signatures
from initadvisor.host.owner import owner_of_host
from initadvisor.records.boot_start import BootMethod

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from initadvisor.bootloaders.efi.boot_options import Numbered
    from initadvisor.core.refusals import Refusal
    from initadvisor.firmware.efi_variables import BootOption
    from initadvisor.host import Host


NAME: Final = "efi-bootnext"
BOOT_METHODS: Final = frozenset({BootMethod.EFI_STUB, BootMethod.FIRMWARE_UKI})

_CLEAR = "efibootmgr --delete-bootnext"
_HAND_OVER = "--unicode"


def refusals(host: Host) -> tuple[Refusal, ...]:
    """Return every reason why arming would not be safe here as it is now."""
    return safety.collected(
        partial(safety.require_program, host, "efibootmgr", "efibootmgr"),
        partial(default_entry, host),
        lambda: require_writable(host, default_option(host).mount_point),
        partial(_require_ours_out_of_order, host),
        lambda: safety.require_none_pending(armed(host), _CLEAR),
        partial(safety.require_no_binding, host, default_entry),
    )


def default_entry(host: Host) -> BootEntry:
    """Return what the first active option of BootOrder starts."""
    found = default_option(host).entry
    if found.is_uki:
        safety.require_takes_words(host, found.kernel.path)
    return found


def trial(host: Host, request: TrialRequest) -> TrialPlan:
    """Plan the option, on the partition that the default one is on."""
    default = default_option(host)
    start = default.entry
    if start.is_uki:
        safety.require_same_start(host, start.kernel.path, request)
    image = loader_path(host, request.image, default.mount_point).replace("/", "\\")
    added = new_parameters(start.options, request.parameters)
    files = (start.kernel,) if start.is_uki else start.initrds
    images = list(replaced(files, request, image))
    if start.is_uki:
        program, options = images[0], start.options
    else:
        program, options = start.kernel.named, _with_images(start.options, images)
    options = with_parameters(options, added)
    disk, part = disk_and_part(host, default.device)
    title = boot_options.described(request.title, owner_of_host(host))
    command = ["--create-only", "--disk", disk, "--part", str(part), "--label", title]
    command += ["--loader", program]
    ignores_options = safety.ignores_options(host, start)
    # Without options a unified kernel image has the command line it brings.
    if not ignores_options and (default.handed or added):
        command += [_HAND_OVER, options]
    plan = TrialPlan(
        loader=NAME,
        request=request,
        default=start,
        identifier=title,
        title=title,
        options=options,
        extra_cmdline=added,
        target="EFI boot options",
        text=shlex.join(command),
        needs_addon=ignores_options and bool(added),
    )
    safety.require_words_last(plan)
    return plan


def write(host: Host, plan: TrialPlan) -> None:
    """Make the option, which BootOrder does not name."""
    if _planned(host, plan.request.kind, plan.text):
        return
    kind, order = plan.request.kind, boot_options.boot_order(host)
    older = _options_of(host, kind)
    try:
        listed = boot_options.run(host, *shlex.split(plan.text))
        _require_order(host, order)
        made = _options_of(host, kind, but=older)
        shown = [listed.get(each.number) for each in made]
        if shown != [plan.title] or not _is_planned(host, plan.text, made[0].option):
            msg = f"efibootmgr succeeded, but there is no boot option {plan.title!r} as planned"
            raise InitadvisorError(msg, hint="does the firmware keep variables?")
    except InitadvisorError:
        _delete(host, _options_of(host, kind, but=older))
        raise
    disarm(host, kind)  # else BootNext would name whatever gets that number next
    _delete(host, older)


def is_written(host: Host, text: str) -> bool:
    """Tell whether our trial's option is there, one only, and does just that."""
    return _planned(host, EntryKind.TRIAL, text) is not None


def arm(host: Host, plan: TrialPlan, *, accepted: Collection[RefusalKind] = ()) -> None:
    """Have the next boot, and only that one, use the option."""
    safety.require_trial(plan)
    safety.require_accepted(refusals(host), accepted)
    found = _planned(host, EntryKind.TRIAL, plan.text)
    safety.require_unchanged(host, plan, default_entry(host), written=found is not None)
    if found is None:
        raise AssertionError(plan)
    order = boot_options.boot_order(host)
    try:
        boot_options.run(host, "--bootnext", f"{found.number:04X}")
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
    shown = f"{found.identifier} ({found.option.description})"
    return safety.pending_selection(shown, found.kind)


def disarm(host: Host, kind: EntryKind = EntryKind.TRIAL) -> bool:
    """Take a selection of our entry back; leave anything else."""
    if armed(host).selects is not kind:
        return False
    boot_options.run(host, "--delete-bootnext")
    safety.require_deselected(armed(host), kind, _CLEAR)
    return True


def entry(host: Host, kind: EntryKind) -> str | None:
    """Return the image that our option boots.

    Of several it is the last one that the default option does not load, too: microcode comes first.
    """
    found = next(iter(_options_of(host, kind)), None)
    return _image(host, found) if found else None


def owned_entries(host: Host) -> tuple[OwnedEntry, ...]:
    """Return the options that this program has made, on this system and on others."""
    return tuple(
        OwnedEntry(
            owner=found.owned[0],
            kind=found.owned[1],
            identifier=f"{found.identifier} ({found.option.description})",
            image=_image(host, found) if found.kind else None,
        )
        for found in boot_options.owned_options(host)
        if found.owned
    )


def _image(host: Host, found: Numbered) -> str:
    """Return the image that an option of ours boots; see ``entry``."""
    mount = mount_of_partition(host, found.option.partition_uuid or "")
    if mount is None or found.option.file is None:
        msg = f"cannot tell what {found.identifier} boots: its partition is not mounted"
        raise InitadvisorError(msg, hint="mount the partition that the kernel is on")
    named = INITRD.findall(boot_options.data_text(found.option)) or [found.option.file]
    try:
        shared = {file.named for file in default_option(host).entry.initrds}
    except RefusedError:
        shared = set()
    image = ([each for each in named if each not in shared] or named)[-1]
    return str(PurePosixPath(mount.mount_point) / image.replace("\\", "/").lstrip("/"))


def remove(host: Host, kind: EntryKind = EntryKind.TRIAL) -> bool:
    """Take a selection of our options back and delete them."""
    disarm(host, kind)
    found = _options_of(host, kind)
    _delete(host, found)
    return bool(found)


def _require_ours_out_of_order(host: Host) -> None:
    """Raise ``RefusedError`` where the firmware has put a trial's option into BootOrder."""
    order = boot_options.boot_order(host)
    for found in _options_of(host, EntryKind.TRIAL):
        if found.number in order:
            raise ours_in_order(found)


def _require_order(host: Host, order: tuple[int, ...]) -> None:
    """Raise ``UnsafeError`` where BootOrder is not what it was."""
    if boot_options.boot_order(host) != order:
        before = ",".join(f"{number:04X}" for number in order)
        msg = "the firmware changed its BootOrder by itself when a boot option was made or selected"
        raise UnsafeError(msg, hint=f"it was: efibootmgr --bootorder {before}")


def _planned(host: Host, kind: EntryKind, text: str) -> Numbered | None:
    """Return our option if it is the only one of its kind and does what was planned."""
    found = _options_of(host, kind)
    return found[0] if len(found) == 1 and _is_planned(host, text, found[0].option) else None


def _is_planned(host: Host, text: str, option: BootOption) -> bool:
    words = shlex.split(text)
    program = words[words.index("--loader") + 1]
    handed = words[-1] if _HAND_OVER in words else ""
    return (
        option.active
        and option.description == words[words.index("--label") + 1]
        and option.file is not None
        and option.file.lower() == program.replace("/", "\\").lower()
        and boot_options.data_text(option) == handed
        and option.partition_uuid == first_option(host).option.partition_uuid
    )


def _options_of(
    host: Host, kind: EntryKind, *, but: Collection[Numbered] = ()
) -> tuple[Numbered, ...]:
    owner_of_host(host)  # without which nothing is known to be ours, or not
    owned = boot_options.owned_options(host)
    return tuple(each for each in owned if each.kind is kind and each not in but)


def _delete(host: Host, options: Iterable[Numbered]) -> None:
    for each in options:
        boot_options.run(host, "--bootnum", f"{each.number:04X}", "--delete-bootnum")


def _with_images(options: str, images: list[str]) -> str:
    """Return the options with their ``initrd=`` words naming these images, in order."""
    left = iter(images)
    return INITRD.sub(lambda _: f"initrd={next(left)}", options)


INITRD: Final = re.compile(r"(?<!\S)initrd=(\S+)")
"""What the kernel's EFI stub reads an image by."""

_REMEDY = "put the kernel's boot option first: efibootmgr --bootorder"


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultOption:
    """An option as an entry, and where it is.

    ``handed``: what it hands over, which a unified kernel image does without. ``mount_point`` and
    ``device`` (``nvme0n1p1``) are those of the partition that it starts from.
    """

    entry: BootEntry
    handed: str
    mount_point: str
    device: str


def default_option(host: Host) -> DefaultOption:
    """Return what the first active option of BootOrder starts.

    Raises ``RefusedError`` where that is nothing on a mounted partition, or a file of it is gone.
    """
    first = first_option(host)
    option = first.option
    device = device_of_partition(host, option.partition_uuid or "")
    mount = mount_of_partition(host, option.partition_uuid or "")
    if option.file is None or mount is None or device is None:
        reason = f"{first.identifier} ({option.description}) starts nothing on a mounted partition"
        remedy = "mount the partition that the kernel is on, or see efibootmgr -v"
        raise refused(RefusalKind.OTHER_PARTITION, reason, remedy)
    kernel = _file(host, first, option.file, mount.mount_point)
    handed = boot_options.data_text(option)
    named = INITRD.findall(handed)
    is_uki = not named
    own = command_line_of(host, kernel.path) if is_uki else ""
    if own and enforces_signatures(host):
        handed = ""  # systemd-stub takes no notice of it
    start = BootEntry(
        identifier=first.identifier,
        title=option.description,
        kernel=kernel,
        initrds=tuple(_file(host, first, name, mount.mount_point) for name in named),
        options=handed or own,
        source=f"EFI variable {first.identifier}",
        is_uki=is_uki,
    )
    return DefaultOption(entry=start, handed=handed, mount_point=mount.mount_point, device=device)


def first_option(host: Host) -> Numbered:
    """Return the first option of BootOrder that the firmware would try.

    Raises ``RefusedError`` where there is none, or it is ours.
    """
    for number in boot_options.boot_order(host):
        found = boot_options.option(host, number)
        if found and found.option.active:
            if found.owned:
                raise ours_in_order(found)
            return found
    reason = "the firmware's BootOrder names no boot option that could be started"
    raise refused(RefusalKind.NO_DEFAULT, reason, _REMEDY)


def ours_in_order(found: Numbered) -> RefusedError:
    """Return the error for an option of ours that somebody has put into BootOrder."""
    reason = f"{found.identifier} ({found.option.description}) has got into BootOrder"
    remedy = f"remove it: efibootmgr --bootnum {found.number:04X} --delete-bootnum"
    return refused(RefusalKind.TRIAL_MAY_BECOME_DEFAULT, reason, remedy)


def _file(host: Host, found: Numbered, named: str, mount_point: str) -> BootFile:
    path = file_named(host, named, mount_point)
    if path is None:
        reason = f"{found.identifier} ({found.option.description}) starts {named}: not found"
        raise refused(RefusalKind.UNCLEAR_DEFAULT, reason, _REMEDY)
    return BootFile(named=named, path=path)
