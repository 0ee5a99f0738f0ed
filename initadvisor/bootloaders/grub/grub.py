"""GRUB on EFI and on BIOS: entries in custom.cfg, selected for one boot by grub-reboot(8).

grub-reboot sets ``next_entry`` in the environment block; grub.cfg empties it with ``save_env``
before anything is booted. Where GRUB cannot write that block (LVM, RAID, btrfs, ZFS), the selection
would stand for ever: refused.

Our entry is the default entry's own text with another image and some words more: whatever it does
to find its disk and to set the screen up is kept as it is. Where entries are files (blscfg), ours
is in custom.cfg, too, with what GRUB makes of the default one's file. Among the files it could
become the default by its name, and who writes there (grubby, kernel-install) would change it.
"""

from __future__ import annotations

import re
from dataclasses import replace
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
    replaced,
)
from initadvisor.bootloaders.extra_cmdline import new_parameters, with_parameters
from initadvisor.bootloaders.grub import custom
from initadvisor.bootloaders.grub import menu as grub_menu
from initadvisor.bootloaders.grub.bls_menu import bls_menus, uses_bls
from initadvisor.bootloaders.grub.environment import (
    GrubPlace,
    environment,
    place,
    require_grub_writes,
    unset_next_entry,
)
from initadvisor.bootloaders.places import (
    file_named,
    file_system_of,
    loader_path,
    read_bytes,
    require_writable,
)
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.refusals import RefusalKind, RefusedError, refused
from initadvisor.core.text import decoded, encoded
from initadvisor.host.owner import owner_of_host
from initadvisor.host.replace import replace_file
from initadvisor.records.boot_start import BootMethod

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from initadvisor.bootloaders.grub.script import GrubWord, Statement
    from initadvisor.core.refusals import Refusal
    from initadvisor.host import Host


NAME: Final = "grub"
BOOT_METHODS: Final = frozenset({BootMethod.GRUB_EFI, BootMethod.GRUB_BIOS})

_TIMEOUT_S = 60
"""grub-reboot asks grub-probe, which looks at every disk."""


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
        lambda: _require_uncounted(default_entry(host)),
        partial(_require_harmless_custom, host, where),
        lambda: safety.require_none_pending(armed(host), where.how_to_clear),
        partial(safety.require_no_binding, host, default_entry),
    )


def default_entry(host: Host) -> BootEntry:
    """Return the entry that boots when ``next_entry`` is not set."""
    return _default(host, place(host))[1]


def trial(host: Host, request: TrialRequest) -> TrialPlan:
    """Plan the entry, which finds its disk as the default entry does."""
    where = place(host)
    menu, default = _default(host, where)
    _require_uncounted(default)
    image = loader_path(host, request.image, file_system_of(host, where.directory).mount_point)
    title = request.title_beside(default.title)
    added = new_parameters(default.options, request.parameters)
    options = with_parameters(default.options, added)
    images = replaced(default.initrds, request, image)
    identifier = custom.identifier(owner_of_host(host), request.kind)
    head = " ".join((_quoted(title), *menu.head, "--id", _quoted(identifier)))
    body = _body(menu, options, images)
    return TrialPlan(
        loader=NAME,
        request=request,
        default=default,
        identifier=identifier,
        title=title,
        options=options,
        extra_cmdline=added,
        target=where.custom,
        text=f"{managed_files.image_note(request.image)}menuentry {head} {{{body}}}\n",
    )


def write(host: Host, plan: TrialPlan) -> None:
    """Write the entry as a block of custom.cfg; what else is in there stays as it is."""
    owner, kind = owner_of_host(host), plan.request.kind
    managed_files.remove_unfinished(host, host.path(plan.target).parent)
    found = custom.split(_custom(host, plan.target), owner, kind)
    if found.block != plan.text:
        content = encoded(custom.joined(found.rest, plan.text, owner, kind))
        prefix = managed_files.unfinished_prefix(host)
        replace_file(host.path(plan.target), content, prefix=prefix)


def is_written(host: Host, text: str) -> bool:
    """Tell whether our trial's block is there and says just that."""
    return _split(host, place(host), EntryKind.TRIAL).block == text


def arm(host: Host, plan: TrialPlan, *, accepted: Collection[RefusalKind] = ()) -> None:
    """Have the next boot, and only that one, use the entry."""
    safety.require_trial(plan)
    safety.require_accepted(refusals(host), accepted)
    where = place(host)
    written = is_written(host, plan.text)
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
        owner = owner_of_host(host)
        selected = environment(host, place(host)).get("next_entry")
    except InitadvisorError as err:
        return OneShot(state=OneShotState.UNREADABLE, reason=err.message)
    if not selected:
        return OneShot(state=OneShotState.NONE)
    kinds = {custom.identifier(owner, kind): kind for kind in EntryKind}
    return safety.pending_selection(selected, kinds.get(selected))


def disarm(host: Host, kind: EntryKind = EntryKind.TRIAL) -> bool:
    """Take a selection of our entry back; leave anything else."""
    if armed(host).selects is not kind:
        return False
    where = place(host)
    unset_next_entry(host, where)
    safety.require_deselected(armed(host), kind, where.how_to_clear)
    return True


def entry(host: Host, kind: EntryKind) -> str | None:
    """Return the image that our written entry boots."""
    found = _split(host, place(host), kind)
    return managed_files.noted_image(found.block) if found.block else None


def owned_entries(host: Host) -> tuple[OwnedEntry, ...]:
    """Return the entries that this program has written, on this system and on others."""
    return tuple(
        OwnedEntry(
            owner=found.owner,
            kind=found.kind,
            identifier=custom.identifier(found.owner, found.kind),
            image=managed_files.noted_image(found.text),
        )
        for found in custom.blocks(_custom(host, place(host).custom) or "")
    )


def remove(host: Host, kind: EntryKind = EntryKind.TRIAL) -> bool:
    """Take a selection of our entry back and remove its block, and a file that was made for it."""
    disarm(host, kind)
    path = host.path(place(host).custom)
    managed_files.remove_unfinished(host, path.parent)
    found = _split(host, place(host), kind)
    if found.block is None:
        return False
    if found.rest is None:
        managed_files.remove_file(path)
    else:
        prefix = managed_files.unfinished_prefix(host)
        replace_file(path, encoded(found.rest), prefix=prefix)
    return True


def _default(host: Host, where: GrubPlace) -> tuple[grub_menu.GrubMenuEntry, BootEntry]:
    """Return the default entry as the menu has it, and what it boots."""
    content = read_bytes(host.path(where.configuration)) or b""
    text = decoded(content)
    script = grub_menu.parsed(text, where.configuration)
    grub_menu.refuse_what_keeps(script, where.configuration)
    kept = environment(host, where)
    mount_point = file_system_of(host, where.directory).mount_point
    if uses_bls(script):
        return _default_of_files(host, where, text, script, kept)
    saved = kept.get("saved_entry")
    menu = grub_menu.default_entry(text, script, where.configuration, saved_entry=saved)
    entry = boot_entry(host, menu, mount_point=mount_point, source=where.configuration)
    return menu, replace(entry, variables=_variables(entry.options, script, kept))


def _default_of_files(
    host: Host,
    where: GrubPlace,
    text: str,
    script: Sequence[Statement],
    kept: Mapping[str, str],
) -> tuple[grub_menu.GrubMenuEntry, BootEntry]:
    """Return the default entry of a menu that blscfg makes; without a saved one it is the first."""
    path = where.configuration
    mount_point = file_system_of(host, where.directory).mount_point
    found = []
    for made in bls_menus(host, where, text, script, kept):
        try:
            menu = grub_menu.default_entry(
                made.text,
                grub_menu.parsed(made.text, path),
                path,
                saved_entry=kept.get("saved_entry") or "0",
                variant=made.variant,
            )
            source = made.files.get(menu.path, path)
            entry = boot_entry(host, menu, mount_point=mount_point, source=source)
        except RefusedError as err:
            reason = "; ".join((err.refusal.reason, *made.damaged))
            raise refused(err.refusal.kind, reason, err.refusal.remedy) from err
        found.append((menu, replace(entry, damaged=made.damaged)))
    if len({entry for _, entry in found}) > 1:
        names = " or ".join(entry.identifier for _, entry in found)
        reason = f"whose GRUB reads {path} is not known, and so not whether it boots {names}"
        raise refused(RefusalKind.UNCLEAR_DEFAULT, reason, "save one: grub-set-default")
    return found[0]


_COUNTED = re.compile(r"\+\d+(-\d+)?\.conf\Z", re.ASCII)


def _require_uncounted(default: BootEntry) -> None:
    """Raise ``RefusedError`` where the default entry's file is renamed by what counts its boots."""
    if _COUNTED.search(default.source):
        reason = f"the name of {default.source} counts its boots, and changes with them"
        remedy = "wait until systemd-bless-boot.service has found it good, or rename the file"
        raise refused(RefusalKind.UNCLEAR_DEFAULT, reason, remedy)


def _split(host: Host, where: GrubPlace, kind: EntryKind) -> custom.Custom:
    return custom.split(_custom(host, where.custom), owner_of_host(host), kind)


def _custom(host: Host, path: str) -> str | None:
    content = read_bytes(host.path(path))
    return None if content is None else decoded(content)


def _require_harmless_custom(host: Host, where: GrubPlace) -> None:
    """Raise ``RefusedError`` where custom.cfg itself decides what is booted."""
    owner = owner_of_host(host)
    foreign = custom.without_ours(_custom(host, where.custom), owner) or ""
    identifiers = [custom.identifier(owner, kind) for kind in EntryKind]
    for statement in grub_menu.parsed(foreign, where.custom):
        words = [word.raw for word in statement.words]
        if any(word.startswith(("default=", "next_entry", "check_signatures")) for word in words):
            reason = f"{where.custom} itself decides what is booted: {' '.join(words)[:80]}"
            raise refused(RefusalKind.UNCLEAR_DEFAULT, reason, "set GRUB_DEFAULT instead")
        if taken := [each for each in identifiers if each in " ".join(words)]:
            reason = f"{where.custom} has an entry {taken[0]} that is not ours"
            raise refused(RefusalKind.FOREIGN_ENTRY, reason, "rename it")


_LINUX = frozenset({"linux", "linuxefi", "linux16"})
_INITRD = frozenset({"initrd", "initrdefi", "initrd16"})
_LEFT_OUT = frozenset({"savedefault", "recordfail"})
"""Entries of ours are neither remembered as the default nor as a boot that failed."""

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_FOREIGN = frozenset(
    {"multiboot", "multiboot2", "xen_hypervisor", "module", "module2", "chainloader", "configfile"}
    | {"devicetree", "boot", "source", ".", "normal", "legacy_configfile", "kexec"}
)
_REMEDY = "have an entry that starts a kernel as grub-mkconfig writes it be the default"


def boot_entry(
    host: Host, entry: grub_menu.GrubMenuEntry, *, mount_point: str, source: str
) -> BootEntry:
    """Return what an entry boots; its files are looked for where ``mount_point`` is mounted.

    Raises ``RefusedError`` where that cannot be told, or a file is missing.
    """
    linux, initrd = _loading(entry)
    return BootEntry(
        identifier=entry.path,
        title=entry.title,
        kernel=_file(host, linux.words[1], mount_point),
        initrds=tuple(_file(host, word, mount_point) for word in initrd.words[1:]),
        options=_options(entry, linux),
        source=source,
    )


def _body(entry: grub_menu.GrubMenuEntry, options: str, images: Sequence[str]) -> str:
    """Return an entry's body with other options and images."""
    linux, initrd = _loading(entry)
    edits = [
        (linux.words[1].end, linux.end, f" {options}" if options else ""),
        (initrd.words[1].start, initrd.end, " ".join(images)),
        *((each.start, each.end, "") for each in entry.statements if each.command in _LEFT_OUT),
    ]
    body = entry.body
    for start, end, text in sorted(edits, reverse=True):
        body = body[: start - entry.body_start] + text + body[end - entry.body_start :]
    return body


def _loading(entry: grub_menu.GrubMenuEntry) -> tuple[Statement, Statement]:
    """Return the statements that load kernel and images, where nothing else decides on them."""
    linux = [each for each in entry.statements if each.command in _LINUX]
    initrd = [each for each in entry.statements if each.command in _INITRD]
    reason = None
    if strange := sorted({each.command for each in entry.statements} & _FOREIGN):
        reason = f"it uses {', '.join(strange)}"
    elif len(linux) != 1 or len(initrd) != 1:
        reason = "it does not load exactly one kernel and one set of images"
    elif min(len(linux[0].words), len(initrd[0].words)) < 2:
        reason = "it names no kernel or no image"
    elif any(each.conditional for each in (*linux, *initrd)):
        reason = "what it loads depends on a condition"
    elif any(each.conditional and each.command in _LEFT_OUT for each in entry.statements):
        reason = "whether it saves itself as the default depends on a condition"
    if reason:
        told = f"GRUB's default entry {entry.title!r} cannot be copied: {reason}"
        raise refused(RefusalKind.UNCLEAR_DEFAULT, told, _REMEDY)
    return linux[0], initrd[0]


def _options(entry: grub_menu.GrubMenuEntry, linux: Statement) -> str:
    start, end = linux.words[1].end - entry.body_start, linux.end - entry.body_start
    return re.sub(r"\\\n", " ", entry.body[start:end]).strip()


def _variables(
    options: str, script: Sequence[Statement], kept: Mapping[str, str]
) -> tuple[str, ...]:
    """Return what sets the variables that options name: GRUB's environment, and its script."""
    names = {found[1] or found[2] for found in _VARIABLE.finditer(options)}
    settings = [f"{name}={value}" for name, value in kept.items()]
    for statement in script:
        first = 1 if statement.command == "set" else 0
        settings += [word.raw for word in statement.words[first : first + 1]]
    return tuple(found for found in settings if found.partition("=")[0] in names and "=" in found)


def _file(host: Host, word: GrubWord, mount_point: str) -> BootFile:
    named = word.literal
    path = file_named(host, named, mount_point) if named else None
    if named is None or path is None:
        told = f"{word.raw}, which GRUB's default entry loads, is not found below {mount_point}"
        raise refused(RefusalKind.UNCLEAR_DEFAULT, told, _REMEDY)
    return BootFile(named=named, path=path)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
