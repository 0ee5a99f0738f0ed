"""What systemd-boot finds on its partitions, and which entry of it boots by default.

Entries and configuration have a key and its value in each line. The form is that of the Boot Loader
Specification (Type #1) and loader.conf(5), as systemd-boot reads it: white space around both is
dropped, also a pair of double quotes around the value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from initadvisor.bootloaders.places import mount_of_partition, read_bytes
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.core.plain_values import from_json
from initadvisor.core.refusals import RefusalKind, refused
from initadvisor.core.text import decoded
from initadvisor.firmware.efi_variables import loader_text
from initadvisor.host.files import listing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from initadvisor.host import Host


_LINE = re.compile(r"(?P<key>\S+)[ \t]+(?P<value>\S.*)")
_COUNTER = re.compile(r"\+\d+(-\d+)?(?=\.(conf|efi)$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValues:
    """The lines of a file that say something, in order."""

    lines: tuple[tuple[str, str], ...]

    def all(self, *keys: str) -> tuple[str, ...]:
        """Return the values of every line with one of the keys."""
        return tuple(value for key, value in self.lines if key in keys)

    def last(self, key: str) -> str | None:
        """Return the value that counts: the last one."""
        values = self.all(key)
        return values[-1] if values else None


def key_values(text: str) -> KeyValues:
    """Read a file; comments and lines without a value are left out."""
    found = []
    for raw in re.split(r"[\r\n]+", text):
        line = raw.strip(" \t")
        match = _LINE.fullmatch(line)
        if match and not line.startswith("#"):
            found.append((match["key"], _unquoted(match["value"])))
    return KeyValues(lines=tuple(found))


def entry_identifier(file_name: str) -> str:
    """Return what systemd-boot calls an entry: its file's name, small, without boot counters."""
    return _COUNTER.sub("", file_name).lower()


def is_counted(file_name: str) -> bool:
    """Tell whether systemd-boot counts the boots of the entry in this file."""
    return _COUNTER.search(file_name) is not None


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == '"':
        return value[1:-1]
    return value


STEM: Final = "a-initadvisor-"
"""How the names of entries begin that this program writes, on whichever system."""

_TIMEOUT_S = 20
_NAME_ONE = (
    "name one: bootctl set-default ENTRY (bootctl list shows them), or a pattern whose first entry "
    "is the newest kernel's as default in loader.conf: debian-*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """Where the ESP is mounted, and what holds entries beside it: XBOOTLDR, or the ESP itself."""

    esp: str
    boot: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemdBootMenuEntry:
    """A file that systemd-boot makes an entry of; ``path`` is of this machine.

    ``values`` is None for a unified kernel image in ``EFI/Linux`` (Type #2).
    """

    identifier: str
    path: str
    mount_point: str
    values: KeyValues | None


def partitions(host: Host) -> Partitions:
    """Ask bootctl(1), as kernel-install(8) does.

    Raises ``RefusedError`` where the loader was started from another ESP than the mounted one, and
    ``InitadvisorError`` where bootctl finds none.
    """
    esp = _printed_path(host, "--print-esp-path")
    boot = _printed_path(host, "--print-boot-path")
    started_from = loader_text(host, "LoaderDevicePartUUID")
    mount = mount_of_partition(host, started_from) if started_from else None
    if started_from and (mount is None or mount.mount_point != esp):
        reason = f"systemd-boot was started from partition {started_from.lower()}, not from {esp}"
        raise refused(RefusalKind.OTHER_PARTITION, reason, "mount that partition as the ESP")
    return Partitions(esp=esp, boot=boot)


def menu(host: Host, where: Partitions) -> tuple[SystemdBootMenuEntry, ...]:
    """Return what systemd-boot makes entries of, on both partitions."""
    found: list[SystemdBootMenuEntry] = []
    for mount_point in dict.fromkeys((where.esp, where.boot)):
        found += _type1(host, mount_point)
        found += _type2(host, mount_point)
    return tuple(found)


def default_of_menu(
    host: Host, where: Partitions, entries: Sequence[SystemdBootMenuEntry], *, ours: Collection[str]
) -> SystemdBootMenuEntry:
    """Return the entry that something names as the default.

    Raises ``RefusedError`` where nothing does, where it may be one of ``ours``, and where
    systemd-boot counts its boots: an entry that is out of tries is passed over.
    """
    for source, pattern in _wishes(host, where):
        if pattern.startswith("@"):
            reason = f"{source} is {pattern}: whichever entry was booted last becomes the default"
            raise refused(RefusalKind.TRIAL_MAY_BECOME_DEFAULT, reason, _NAME_ONE)
        if any(fnmatchcase(identifier, pattern.lower()) for identifier in ours):
            reason = f"{source} is {pattern}, which fits an entry of initadvisor's, too"
            raise refused(RefusalKind.TRIAL_MAY_BECOME_DEFAULT, reason, _NAME_ONE)
        fitting = [entry for entry in entries if fnmatchcase(entry.identifier, pattern.lower())]
        if any(entry.identifier.startswith(STEM) for entry in fitting):
            reason = f"{source} is {pattern}, which fits an entry of another system's initadvisor"
            raise refused(RefusalKind.TRIAL_MAY_BECOME_DEFAULT, reason, _NAME_ONE)
        if fitting:
            return _checked(_first(host, fitting, source, pattern), fitting)
    reason = "no entry is named as systemd-boot's default, so that a new one could become it"
    raise refused(RefusalKind.NO_DEFAULT, reason, _NAME_ONE)


def _wishes(host: Host, where: Partitions) -> Iterator[tuple[str, str]]:
    """Yield what names a default, in the order in which systemd-boot heeds it."""
    content = read_bytes(host.path(f"{where.esp}/loader/loader.conf"))
    configured = key_values(decoded(content or b""))
    for variable, key in (("LoaderEntryPreferred", "preferred"), ("LoaderEntryDefault", "default")):
        if text := loader_text(host, variable):
            yield f"the EFI variable {variable}", text
        if value := configured.last(key):
            yield f"{key} in {where.esp}/loader/loader.conf", value


def _first(
    host: Host, fitting: Sequence[SystemdBootMenuEntry], source: str, pattern: str
) -> SystemdBootMenuEntry:
    """Return the one of several that systemd-boot would take: the first in its order."""
    if len({entry.identifier for entry in fitting}) == 1:
        return fitting[0]
    by_identifier = {entry.identifier: entry for entry in fitting}
    for identifier in _order(host):
        if identifier in by_identifier:
            return by_identifier[identifier]
    reason = f"{source} is {pattern}, which fits several entries, and bootctl does not order them"
    raise refused(RefusalKind.UNCLEAR_DEFAULT, reason, _NAME_ONE)


def _checked(
    entry: SystemdBootMenuEntry, fitting: Sequence[SystemdBootMenuEntry]
) -> SystemdBootMenuEntry:
    same = [other for other in fitting if other.identifier == entry.identifier]
    if len(same) > 1:
        reason = f"there are several entries {entry.identifier}: {same[0].path}, {same[1].path}"
        raise refused(RefusalKind.UNCLEAR_DEFAULT, reason, "remove all but one")
    if is_counted(entry.path):
        reason = f"systemd-boot still counts the boots of {entry.path}"
        remedy = "wait until systemd-bless-boot.service has found it good"
        raise refused(RefusalKind.UNCLEAR_DEFAULT, reason, remedy)
    return entry


def _order(host: Host) -> tuple[str, ...]:
    """Return the entries in the order of bootctl(1), which is the loader's.

    systemd 252 prints an object in each line, later versions one array; older ones know no JSON.
    """
    done = host.runner.run(
        ["bootctl", "list", "--json=short", "--no-pager"], timeout_s=_TIMEOUT_S, check=False
    )
    lines = done.stdout.decode(errors="replace").splitlines()
    try:
        values = [from_json(line) for line in lines if line.strip()]
        entries = values[0] if len(values) == 1 and isinstance(values[0], list) else values
        return tuple(entry_identifier(entry["id"]) for entry in entries)
    except (ValueError, TypeError, KeyError):
        return ()


def _printed_path(host: Host, option: str) -> str:
    done = host.runner.run(["bootctl", option], timeout_s=_TIMEOUT_S)
    path = done.stdout.decode(errors="surrogateescape").strip()
    if not path.startswith("/"):
        msg = f"bootctl {option} names no directory: {path!r}"
        raise InitadvisorError(msg)
    return path


def _type1(host: Host, mount_point: str) -> Iterator[SystemdBootMenuEntry]:
    for file in listing(host, f"{mount_point}/loader/entries"):
        name = file.name
        if name.startswith((".", "auto-")) or not name.lower().endswith(".conf"):
            continue
        content = read_bytes(file)
        if content is None:
            msg = f"cannot read {file}: it went away"
            raise UnsafeError(msg)
        yield SystemdBootMenuEntry(
            identifier=entry_identifier(name),
            path=f"{mount_point}/loader/entries/{name}",
            mount_point=mount_point,
            values=key_values(decoded(content)),
        )


def _type2(host: Host, mount_point: str) -> Iterator[SystemdBootMenuEntry]:
    for file in listing(host, f"{mount_point}/EFI/Linux"):
        if file.name.lower().endswith(".efi"):
            yield SystemdBootMenuEntry(
                identifier=entry_identifier(file.name),
                path=f"{mount_point}/EFI/Linux/{file.name}",
                mount_point=mount_point,
                values=None,
            )
