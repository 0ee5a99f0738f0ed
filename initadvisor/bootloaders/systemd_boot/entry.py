"""From systemd-boot's files to the entry they make, and to the lines of ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.bootloaders.entry import BootEntry, BootFile, command_line_of, replaced
from initadvisor.bootloaders.extra_cmdline import new_parameters, with_parameters
from initadvisor.bootloaders.places import file_named
from initadvisor.core.refusals import RefusalKind, refused

if TYPE_CHECKING:
    from initadvisor.bootloaders.entry import TrialRequest
    from initadvisor.bootloaders.systemd_boot.menu import SystemdBootMenuEntry
    from initadvisor.host import Host


_PROGRAM_KEYS = ("efi", "uki")
_OWN_KEYS = ("title", "linux", "efi", "uki", "initrd", "options", "sort-key", "profile")
"""What an entry of ours says for itself, or had better not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialLines:
    """The lines of an entry of ours, and what of them the plan names."""

    title: str
    options: str
    extra_cmdline: tuple[str, ...]
    lines: tuple[tuple[str, str], ...]


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


def trial_lines(
    entry: SystemdBootMenuEntry, default: BootEntry, request: TrialRequest, *, image: str
) -> TrialLines:
    """Return the default entry's lines with another image and more words; ``image`` as named."""
    shown = request.title_beside(default.title)
    added = new_parameters(default.options, request.parameters)
    options = with_parameters(default.options, added)
    copied = entry.values.lines if entry.values else ()
    # A unified kernel image that was replaced brings its own command line, which counts.
    says_options = not default.is_uki or bool(added) or _options(entry)
    return TrialLines(
        title=shown,
        options=options,
        extra_cmdline=added,
        lines=(
            ("title", shown),
            *(line for line in copied if line[0] not in _OWN_KEYS),
            *_programs(default, request, image),
            *((("options", options),) if says_options else ()),
        ),
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
        options=_options(entry) or own,
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
