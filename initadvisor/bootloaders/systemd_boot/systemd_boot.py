"""systemd-boot: entries in files of their own (Type #1), selected for one boot by bootctl(1).

systemd-boot deletes LoaderEntryOneShot when it reads it, before it starts what it names (boot.c,
config_load_defaults). What boots otherwise is, in this order, what LoaderEntryPreferred and
``preferred`` name, LoaderEntryDefault, ``default`` of loader.conf; and with none of them the first
entry of the menu - so that a new entry could become the default where nothing is named.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

from initadvisor.bootloaders import managed_files, safety
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
from initadvisor.bootloaders.places import file_named, loader_path, read_bytes, require_writable
from initadvisor.bootloaders.systemd_boot.menu import (
    STEM,
    SystemdBootMenuEntry,
    default_of_menu,
    menu,
    partitions,
)
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.refusals import RefusalKind, refused
from initadvisor.core.text import decoded, encoded
from initadvisor.firmware.efi_variables import enforces_signatures, loader_text
from initadvisor.host.owner import OWNER, owner_of_host
from initadvisor.records.boot_start import BootMethod

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from initadvisor.core.refusals import Refusal
    from initadvisor.host import Host


NAME: Final = "systemd-boot"
BOOT_METHODS: Final = frozenset({BootMethod.SYSTEMD_BOOT, BootMethod.SYSTEMD_BOOT_UKI})

_PURPOSES: Final = {
    EntryKind.TRIAL: "for a trial; never the default, and removed when it is over.",
    EntryKind.PREVIOUS: "for the image before the last change; never the default.",
}
_NAME = re.compile(rf"{STEM}(?P<owner>{OWNER})-(?P<kind>{'|'.join(EntryKind)})\.conf")
_ONE_SHOT = "LoaderEntryOneShot"
_TIMEOUT_S = 20
_CLEAR = 'bootctl set-oneshot ""'


def identifier(owner: str, kind: EntryKind) -> str:
    """Return what systemd-boot calls an owner's entry, its file's name.

    It sorts behind all others where no entry is named, and has no sort-key because entries that
    have one come first: seen with ``bootctl list``, whose order is systemd-boot's. bootctl refuses
    a tilde, which would sort lower still.
    """
    return f"{STEM}{owner}-{kind}.conf"


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
        partial(safety.require_no_binding, host, default_entry),
    )


def default_entry(host: Host) -> BootEntry:
    """Return the entry that boots when nothing else is selected."""
    found = boot_entry(host, _default(host))
    if found.is_uki:
        safety.require_takes_words(host, found.kernel.path)
    return found


def trial(host: Host, request: TrialRequest) -> TrialPlan:
    """Plan the entry: the default one's lines, on its partition, with another image and words."""
    entry = _default(host)
    default = boot_entry(host, entry)
    if default.is_uki:
        safety.require_same_start(host, default.kernel.path, request)
    image = loader_path(host, request.image, entry.mount_point)
    title = request.title_beside(default.title)
    added = new_parameters(default.options, request.parameters)
    options = with_parameters(default.options, added)
    ignores_options = safety.ignores_options(host, default)
    # A unified kernel image that was replaced brings its own command line, which counts.
    has_own = ignores_options or (default.is_uki and not (added or _options(entry)))
    copied = entry.values.lines if entry.values else ()
    lines = (
        ("title", title),
        *(line for line in copied if line[0] not in _OWN_KEYS),
        *_programs(default, request, image),
        *(() if has_own else (("options", options),)),
    )
    owner = owner_of_host(host)
    comments = f"{_first_line(owner, request.kind)}\n{managed_files.image_note(request.image)}"
    plan = TrialPlan(
        loader=NAME,
        request=request,
        default=default,
        identifier=identifier(owner, request.kind),
        title=title,
        options=options,
        extra_cmdline=added,
        target=f"{_directory(entry)}/{identifier(owner, request.kind)}",
        text=comments + "".join(f"{key} {value}\n" for key, value in lines),
        needs_addon=ignores_options and bool(added),
    )
    safety.require_words_last(plan)
    return plan


def write(host: Host, plan: TrialPlan) -> None:
    """Write the entry's file under its name, or not at all."""
    target, content = host.path(plan.target), encoded(plan.text)
    _clear_unfinished(host)
    for path in _our_files(host, plan.request.kind):
        if path != target:
            managed_files.remove_file(path)
    if read_bytes(target) != content:
        managed_files.write_whole(host, target, content)


def is_written(host: Host, text: str) -> bool:
    """Tell whether our trial's file is there, one only, and says just that."""
    return [read_bytes(path) for path in _our_files(host, EntryKind.TRIAL)] == [encoded(text)]


def arm(host: Host, plan: TrialPlan, *, accepted: Collection[RefusalKind] = ()) -> None:
    """Have the next boot, and only that one, use the entry."""
    safety.require_trial(plan)
    safety.require_accepted(refusals(host), accepted)
    written = is_written(host, plan.text)
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
        owner = owner_of_host(host)
        selected = loader_text(host, _ONE_SHOT)
    except InitadvisorError as err:
        return OneShot(state=OneShotState.UNREADABLE, reason=err.message)
    if selected is None:
        return OneShot(state=OneShotState.NONE)
    kinds = {identifier(owner, kind): kind for kind in EntryKind}
    return safety.pending_selection(selected, kinds.get(selected.lower()))


def disarm(host: Host, kind: EntryKind = EntryKind.TRIAL) -> bool:
    """Take a selection of our entry back; leave anything else."""
    if armed(host).selects is not kind:
        return False
    _set_one_shot(host, "")
    safety.require_deselected(armed(host), kind, _CLEAR)
    return True


def entry(host: Host, kind: EntryKind) -> str | None:
    """Return the image that our written entry boots."""
    for path in _our_files(host, kind):
        if image := managed_files.noted_image(decoded(read_bytes(path) or b"")):
            return image
    return None


def owned_entries(host: Host) -> tuple[OwnedEntry, ...]:
    """Return the entries that this program has written, on this system and on others."""
    return tuple(
        OwnedEntry(
            owner=named["owner"],
            kind=EntryKind(named["kind"]),
            identifier=found.identifier,
            image=managed_files.noted_image(decoded(read_bytes(host.path(found.path)) or b"")),
        )
        for found in menu(host, partitions(host))
        if (named := _NAME.fullmatch(found.identifier))
    )


def remove(host: Host, kind: EntryKind = EntryKind.TRIAL) -> bool:
    """Take a selection of our entry back and remove it."""
    disarm(host, kind)
    _clear_unfinished(host)
    found = _our_files(host, kind)
    for path in found:
        managed_files.remove_file(path)
    return bool(found)


def _default(host: Host) -> SystemdBootMenuEntry:
    where = partitions(host)
    identifiers = [identifier(owner_of_host(host), kind) for kind in EntryKind]
    return default_of_menu(host, where, menu(host, where), ours=identifiers)


def _directory(entry: SystemdBootMenuEntry) -> str:
    return f"{entry.mount_point}/loader/entries"


def _our_files(host: Host, kind: EntryKind) -> list[Path]:
    """Return our entry's files; raises ``RefusedError`` where one of that name is not ours."""
    owner = owner_of_host(host)
    paths = [directory / identifier(owner, kind) for directory in _directories(host)]
    first = _first_line(owner, kind)
    return [path for path in paths if managed_files.require_ours_or_free(path, first)]


def _first_line(owner: str, kind: EntryKind) -> str:
    return f"# Written by initadvisor on system {owner} {_PURPOSES[kind]}"


def _clear_unfinished(host: Host) -> None:
    for directory in _directories(host):
        managed_files.remove_unfinished(host, directory)


def _directories(host: Host) -> list[Path]:
    """Return where systemd-boot looks for entries."""
    where = partitions(host)
    mount_points = dict.fromkeys((where.esp, where.boot))
    return [host.path(f"{mount_point}/loader/entries") for mount_point in mount_points]


def _set_one_shot(host: Host, selected: str) -> None:
    host.runner.run(["bootctl", "set-oneshot", selected], timeout_s=_TIMEOUT_S)


_PROGRAM_KEYS = ("efi", "uki")
_OWN_KEYS = ("title", "linux", "efi", "uki", "initrd", "options", "sort-key", "profile")
"""What an entry of ours says for itself, or had better not say."""


def boot_entry(host: Host, entry: SystemdBootMenuEntry) -> BootEntry:
    """Return what an entry boots.

    Raises ``RefusedError`` where it is no kernel, or a file of it is missing.
    """
    if entry.values is None:
        return _uki_entry(host, entry, named=entry.path.removeprefix(entry.mount_point))
    kernel = entry.values.last("linux")
    if kernel is None:
        programs = entry.values.all(*_PROGRAM_KEYS)
        if not programs or entry.values.all("profile"):
            reason = f"the default entry {entry.path} starts no kernel that could be tried"
            raise refused(RefusalKind.UNCLEAR_DEFAULT, reason, "have a kernel be the default")
        return _uki_entry(host, entry, named=programs[-1])
    return BootEntry(
        identifier=entry.identifier,
        title=entry.values.last("title") or entry.identifier,
        kernel=_file(host, entry, kernel),
        initrds=tuple(_file(host, entry, named) for named in entry.values.all("initrd")),
        options=_options(entry),
        source=entry.path,
    )


def _programs(default: BootEntry, request: TrialRequest, image: str) -> list[tuple[str, str]]:
    if not default.is_uki:
        initrds = replaced(default.initrds, request, image)
        return [("linux", default.kernel.named), *(("initrd", named) for named in initrds)]
    replaced((default.kernel,), request, image)
    return [("efi", image)]


def _uki_entry(host: Host, entry: SystemdBootMenuEntry, *, named: str) -> BootEntry:
    file = _file(host, entry, named)
    own = command_line_of(host, file.path)
    return BootEntry(
        identifier=entry.identifier,
        title=(entry.values and entry.values.last("title")) or entry.identifier,
        kernel=file,
        initrds=(),
        options=own if enforces_signatures(host) else _options(entry) or own,
        source=entry.path,
        is_uki=True,
    )


def _options(entry: SystemdBootMenuEntry) -> str:
    return " ".join(entry.values.all("options")) if entry.values else ""


def _file(host: Host, entry: SystemdBootMenuEntry, named: str) -> BootFile:
    path = file_named(host, named, entry.mount_point)
    if path is None:
        reason = f"{named}, which the default entry {entry.path} loads, is not on its partition"
        remedy = "repair the default entry, or have another one be the default"
        raise refused(RefusalKind.UNCLEAR_DEFAULT, reason, remedy)
    return BootFile(named=named, path=path)
