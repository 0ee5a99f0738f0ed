"""Which modules and firmware of an image no recorded boot used, and what they cost.

A module is used where a boot had it loaded, or a device asked for it, or one of these needs it.
``target/pluggable.py`` has which modules are kept all the same.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from initadvisor.advise.contents import FilesPricing, UnusedCost, UnusedKind
from initadvisor.boots.module_use import module_use
from initadvisor.core.errors import InitadvisorError, side_fact
from initadvisor.store.store import open_store
from initadvisor.target.module_index import module_of_path, read_module_index
from initadvisor.target.pluggable import Pluggable, why_kept

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from initadvisor.advise.contents import ContentsPricing
    from initadvisor.host import Host
    from initadvisor.image.contents import FileKind, ImageContents
    from initadvisor.image.modules import ImageModule
    from initadvisor.target.module_index import ModuleIndex
    from initadvisor.target.source import Source


_MOST_BOOTS = 1000
_MODINFO_S = 60.0
_MODINFO_NAMES = 200
_THUNDERBOLT = "thunderbolt"


def unused_cost(
    host: Host, source: Source, release: str | None, pricing: ContentsPricing
) -> UnusedCost:
    """Price what no recorded boot of this kernel release used; nothing where none is recorded.

    Boots of other releases, and what is loaded and there now, keep a module, too, but do not count:
    another release may have its drivers in other modules. ``source`` has been read with its
    modules. Raises ``InitadvisorError`` where it is not known what this kernel's modules are.
    """
    boots = _Boots.recorded(host, release)
    if not release or not boots.count:
        return UnusedCost(boots=0, boot_ms=pricing.cost(0, 0, 0), kept={})
    index = read_module_index(host, release)
    files = {one.names[0]: one for one in source.modules if one.release == release}
    judged = _judge(index, frozenset(files), index.with_needed(boots.names))
    unused = [files[name] for name in sorted(judged.unused)]
    gaps: list[str] = []
    firmware = side_fact(
        lambda: tuple(firmware_of(host, release, source.modules, judged.unused, index)),
        "which firmware is used",
        gaps,
    )
    return _priced(
        [*unused, *(firmware or ())], source.contents, pricing, boots, judged.kept, tuple(gaps)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Boots:
    """What boots tell: how many, since when, and the names of modules and kinds of devices."""

    count: int
    since: datetime | None
    names: frozenset[str]

    @classmethod
    def recorded(cls, host: Host, release: str | None) -> _Boots:
        names: set[str] = set()
        moments: list[datetime] = []
        with open_store(host, readonly=True) as store:
            for boot in store.boot_modules(limit=_MOST_BOOTS):
                if use := boot.modules:
                    names.update(use.loaded.split(), use.devices)
                    kernel = (boot.boot_class.kernel or "").partition(" ")[0]
                    if use.complete and release and kernel == release:
                        moments.append(boot.started_at)
        if now := module_use(host):
            names.update(now.loaded.split(), now.devices)
        return cls(count=len(moments), since=min(moments, default=None), names=frozenset(names))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """Names of modules that are not used, and how many others are not and are kept, by reason."""

    unused: frozenset[str]
    kept: Mapping[Pluggable, int]


def _judge(index: ModuleIndex, names: frozenset[str], used: set[str]) -> _Judged:
    """Judge the modules of an image by what is used."""
    reasons: dict[str, Pluggable] = {}
    bound: set[str] = set()
    helpers: set[str] = set()
    for name in sorted(names - used):
        buses = index.buses.get(name, set())
        why = why_kept(name, index.directories.get(name), buses, thunderbolt=_THUNDERBOLT in used)
        if why:
            reasons[name] = why
        else:
            (bound if buses else helpers).add(name)
    # What has no aliases is there for others, or is loaded by its name, which nobody can know.
    unknown = helpers - index.with_needed(bound)
    reasons |= dict.fromkeys(unknown, Pluggable.OTHER)
    needed = (bound | helpers) & index.with_needed(reasons) - reasons.keys()
    reasons |= dict.fromkeys(needed, Pluggable.NEEDED)
    counts = sorted(Counter(reasons.values()).items(), key=lambda kept: (-kept[1], kept[0]))
    return _Judged(unused=names - used - reasons.keys(), kept=dict(counts))


def firmware_of(
    host: Host,
    release: str,
    files: Sequence[ImageModule],
    names: frozenset[str],
    index: ModuleIndex,
) -> Iterator[ImageModule]:
    """Yield firmware for which only these modules ask; what none asks for is not among it.

    Raises ``InitadvisorError`` where modinfo does not know each module of the image.
    """
    firmware = [one for one in files if one.release is None]
    if not firmware or not names:
        return
    asking: dict[str, set[str]] = defaultdict(set)
    for wanted in index.builtin_firmware:
        asking[wanted].add("")
    for module, wanted in _wanted_firmware(host, release, files):
        asking[wanted].add(module)
    wild = [wanted for wanted in asking if re.search(r"[*?[]", wanted)]
    for file in firmware:
        asked = set[str]().union(
            *(asking.get(name, ()) for name in file.names),
            *(asking[each] for each in wild if any(fnmatchcase(n, each) for n in file.names)),
        )
        if asked and asked <= names:
            yield file


def _wanted_firmware(
    host: Host, release: str, files: Sequence[ImageModule]
) -> Iterator[tuple[str, str]]:
    """Yield each module of the image with each firmware it asks for."""
    names = sorted({one.names[0] for one in files if one.release is not None})
    unknown = set(names)
    for start in range(0, len(names), _MODINFO_NAMES):
        some = names[start : start + _MODINFO_NAMES]
        argv = ("modinfo", "--basedir", str(host.root), "-k", release, *some)
        done = host.runner.run(argv, timeout_s=_MODINFO_S, check=False)
        module = ""
        for line in done.stdout.decode(errors="replace").splitlines():
            match _FIELD.split(line, maxsplit=1):
                case ["filename", path]:
                    module = module_of_path(path)
                    unknown.discard(module)
                case ["firmware", wanted]:
                    yield module, wanted
                case _:
                    pass
    if unknown:
        msg = f"modinfo does not know {min(unknown)}"
        raise InitadvisorError(msg)


_FIELD = re.compile(r":\s+")


def _priced(
    unused: Sequence[ImageModule],
    contents: ImageContents,
    pricing: ContentsPricing,
    boots: _Boots,
    kept: Mapping[Pluggable, int],
    warnings: tuple[str, ...],
) -> UnusedCost:
    prices = FilesPricing(contents, pricing)
    of_kind: dict[FileKind, list[ImageModule]] = defaultdict(list)
    for one in unused:
        of_kind[one.kind].append(one)
    kinds = [
        UnusedKind(
            kind=kind,
            files=len(files),
            size_bytes=sum(one.size_bytes for one in files),
            stored_bytes=round(prices.sizes(files)[0]),
            boot_ms=prices.cost(files),
        )
        for kind, files in of_kind.items()
    ]
    return UnusedCost(
        boots=boots.count,
        since=boots.since,
        boot_ms=prices.cost(unused),
        kinds=tuple(sorted(kinds, key=lambda kind: -kind.boot_ms.middle)),
        files=tuple(sorted(unused, key=lambda one: (-one.size_bytes, one.path))),
        kept=kept,
        warnings=warnings,
    )
