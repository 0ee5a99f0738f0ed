"""What depmod(8) wrote of a kernel's modules: for which a device asks, and which need which."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError
from initadvisor.image.modules import module_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from initadvisor.host import Host


_CONFIGURATION = ("/etc/modprobe.d", "/run/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d")
_SUFFIX = re.compile(r"\.ko(\.\w+)?$")
_TOP = re.compile(r"^(kernel|updates|extra)(/|$)")
_BUS = re.compile(r"^(\w+)\*?:")


class ModuleIndex:
    """The modules of one kernel release.

    ``directories``: where each module that is no part of the kernel itself is in the kernel's
    source. ``buses``: what the aliases of a module begin with, "" for an alias of no device.
    ``builtin_firmware``: what parts of the kernel itself ask for.
    """

    def __init__(self, dep: str, *texts: str, builtin: str = "") -> None:
        """Take the texts of modules.dep, of modules.builtin.modinfo, and of any others that have
        lines as modules.alias, modules.softdep and modules.weakdep have them.
        """
        self.directories: dict[str, str] = {}
        self.buses: dict[str, set[str]] = defaultdict(set)
        self.builtin_firmware: set[str] = set()
        self._needs: dict[str, list[str]] = defaultdict(list)
        self._aliases: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for line in dep.splitlines():
            path, _, needed = line.partition(":")
            name = module_of_path(path)
            self.directories[name] = _TOP.sub("", path.rpartition("/")[0])
            self._needs[name] += map(module_of_path, needed.split())
        for text in texts:
            for line in text.splitlines():
                self._add(*line.split())
        for line in builtin.split("\0"):
            name, _, field = line.partition(".")
            key, _, value = field.partition("=")
            if key == "firmware":
                self.builtin_firmware.add(value)
            elif key == "alias":
                self._add(key, value, name)
            elif key in {"softdep", "weakdep"}:
                self._add(key, name, *value.split())

    def _add(self, what: str = "", *words: str) -> None:
        # kmod knows no alias with brackets in brackets or without their other half.
        if what == "alias" and len(words) == 2 and _BALANCED.fullmatch(words[0]):
            name = module_name(words[1])
            pattern = _underscored(words[0])
            bus = _BUS.match(pattern)
            self.buses[name].add(bus[1] if bus else "")
            self._aliases[_literal(pattern)].append((pattern, name))
        elif what in {"softdep", "weakdep"} and words:
            self._needs[module_name(words[0])] += [one for one in words[1:] if one[-1] != ":"]

    def asked_for(self, name: str) -> Iterator[str]:
        """Yield the modules that a name stands for: its own, and those with a fitting alias."""
        name = module_name(name)
        yield name
        for end in range(len(name) + 1):
            for pattern, module in self._aliases.get(name[:end], ()):
                if _expression(pattern[end:]).fullmatch(name, end):
                    yield module

    def with_needed(self, names: Iterable[str]) -> set[str]:
        """Return the modules that these names stand for, with all that they need or would like."""
        found: set[str] = set()
        left = list(names)
        while left:
            for module in self.asked_for(left.pop()):
                if module not in found:
                    found.add(module)
                    left += self._needs.get(module, ())
        return found


def module_of_path(path: str) -> str:
    """Return the name of the module in a file."""
    return module_name(_SUFFIX.sub("", path.rpartition("/")[2]))


_WILD = re.compile(r"[*?\[]")
_BALANCED = re.compile(r"(?:[^\[\]]|\[[^\]]*\])*+")
_HYPHEN = re.compile(r"\[[^\]]*\]|-")
"""Outside of brackets; kmod takes hyphens and underscores in names and aliases for the same."""


def _underscored(pattern: str) -> str:
    if "[" not in pattern:
        return module_name(pattern)
    return _HYPHEN.sub(lambda found: "_" if found[0] == "-" else found[0], pattern)


def _literal(pattern: str) -> str:
    """Return the part before anything wild, in which kmod's index takes no backslash for one."""
    wild = _WILD.search(pattern)
    return pattern[: wild.start()] if wild else pattern


_PIECE = re.compile(
    r"\\(?P<escaped>.)|\[(?P<negated>[!^]?+)(?P<set>[^\]]+)\]|(?P<other>.)",
    re.DOTALL,
)
_RANGE = re.compile(r"\\?(.)(?:-\\?(.))?", re.DOTALL)


@functools.lru_cache(maxsize=1 << 16)
def _expression(pattern: str) -> re.Pattern[str]:
    """Translate what fnmatch(3) takes without flags, which Python's module does not: it knows
    ``[!...]``, ``[^...]`` and backslashes. No alias has classes (``[:alpha:]``) in its brackets.
    """
    parts = [""]
    for piece in _PIECE.finditer(pattern):
        if piece["other"] == "*":
            parts.append("")
        elif piece["other"] == "?":
            parts[-1] += "."
        elif piece["set"] is not None:
            parts[-1] += _one_of(piece["set"], negated=bool(piece["negated"]))
        else:
            parts[-1] += re.escape(piece["escaped"] or piece["other"])
    first, *others = parts
    # Without going back into what an asterisk has taken, so that no name takes long.
    middle = "".join(f"(?>.*?{part})" for part in others[:-1] if part)
    end = f".*{others[-1]}" if others else ""
    return re.compile(f"{first}{middle}{end}", re.DOTALL)


def _one_of(items: str, *, negated: bool) -> str:
    ranges = "".join(
        f"{re.escape(low)}-{re.escape(high or low)}"
        for low, high in _RANGE.findall(items)
        if low <= (high or low)
    )
    if not ranges:
        return "." if negated else r"(?!)"
    return f"[{'^' if negated else ''}{ranges}]"


def read_module_index(host: Host, release: str) -> ModuleIndex:
    """Read what depmod wrote of a kernel's modules, and modprobe.d(5).

    Raises ``InitadvisorError`` where that is not there.
    """
    directories = [f"/usr/lib/modules/{release}", f"/lib/modules/{release}"]
    directory = next((each for each in directories if host.path(each).is_dir()), directories[0])
    texts: Mapping[str, str | None] = {
        name: host.read_text(f"{directory}/modules.{name}")
        for name in ("dep", "alias", "softdep", "weakdep", "builtin.modinfo")
    }
    dep, alias = texts["dep"], texts["alias"]
    if dep is None or alias is None:
        msg = f"cannot read what depmod wrote of the modules of Linux {release} in {directory}"
        raise InitadvisorError(msg, hint=f"are they installed? depmod {release}")
    return ModuleIndex(
        dep,
        alias,
        texts["softdep"] or "",
        texts["weakdep"] or "",
        *_configuration(host),
        builtin=texts["builtin.modinfo"] or "",
    )


def _configuration(host: Host) -> Iterator[str]:
    for directory in _CONFIGURATION:
        for path in sorted(host.path(directory).glob("*.conf")):
            # A backslash only joins lines there; before anything else it is left out.
            yield re.sub(r"\\\n?", "", host.read_text(f"{directory}/{path.name}") or "")
