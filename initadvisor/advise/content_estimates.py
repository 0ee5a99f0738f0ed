"""About what an image would be with less in it: nothing is built for that.

Modules go that the generator would not take, firmware for which only they ask, and their part of
depmod's indices. What else it takes by which modules there are (programs) is left out of account.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.advise.contents import EstimatedVariant, FilesPricing
from initadvisor.advise.unused import firmware_of
from initadvisor.boots.module_use import module_use
from initadvisor.core.errors import UnsafeError
from initadvisor.generators import KeptModules
from initadvisor.host.storage.root_devices import names_for_root
from initadvisor.image.contents import FileKind
from initadvisor.target.module_index import read_module_index

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from initadvisor.advise.contents import ContentsPricing
    from initadvisor.generators import Generator, Leaving
    from initadvisor.host import Host
    from initadvisor.image.contents import ImageContents
    from initadvisor.image.modules import ImageModule
    from initadvisor.target.module_index import ModuleIndex
    from initadvisor.target.source import Source


def estimated_variants(
    host: Host,
    generator: Generator,
    source: Source,
    release: str | None,
    pricing: ContentsPricing,
    *,
    unused: Sequence[str],
) -> tuple[EstimatedVariant, ...]:
    """Estimate the variants of an image that this machine makes, what saves most first.

    ``source`` has been read with its modules. Raises ``UnsafeError`` for an image that is not made
    on this machine, and ``InitadvisorError`` where it is not known what this kernel's modules are,
    or what the generator is told.
    """
    if source.installed is None:
        msg = f"{source.path} is not made on this machine"
        raise UnsafeError(msg)
    if not release:
        return ()
    index = read_module_index(host, release)
    prices = FilesPricing(source.contents, pricing)
    modules = {one.names[0]: one for one in source.modules if one.release == release}
    image_bytes, _, _ = pricing.wholes
    found: list[EstimatedVariant] = []
    for variant in generator.content_variants(host, source.installed, unused):
        if variant.leaving is None:
            continue
        going = _going(host, index, modules.keys(), variant.leaving)
        firmware = firmware_of(host, release, source.modules, frozenset(going), index)
        files = prices.sizes([*(modules[name] for name in sorted(going)), *firmware])
        kinds = _sizes(source.contents, variant.leaving.kinds)
        part = len(going) / len(modules) if modules else 0.0
        indices = _indices(source.contents, prices, modules.values())
        stored, unpacked, decompressed = (
            one + other + part * index_bytes
            for one, other, index_bytes in zip(files, kinds, indices, strict=True)
        )
        if stored > 0:
            found.append(
                EstimatedVariant(
                    variant=variant,
                    size_bytes=round(image_bytes - stored),
                    saving_ms=pricing.cost(stored, unpacked, decompressed),
                )
            )
    return tuple(sorted(found, key=lambda one: -one.saving_ms.middle))


def _sizes(contents: ImageContents, kinds: AbstractSet[FileKind]) -> tuple[int, int, int]:
    """Return what files of these kinds take stored, unpacked, and of that out of compression."""
    uses = [use for use in contents.kinds if use.kind in kinds]
    return (
        sum(use.stored_bytes for use in uses),
        sum(use.unpacked_bytes for use in uses),
        sum(use.decompressed_bytes for use in uses),
    )


def _indices(
    contents: ImageContents, prices: FilesPricing, modules: Iterable[ImageModule]
) -> tuple[float, ...]:
    """Return the same of what is with the modules and is none: what depmod writes."""
    others = prices.sizes([one for one in modules if one.kind is FileKind.MODULES])
    all_of_it = _sizes(contents, {FileKind.MODULES})
    return tuple(max(0.0, whole - one) for whole, one in zip(all_of_it, others, strict=True))


def _going(
    host: Host, index: ModuleIndex, names: AbstractSet[str], leaving: Leaving
) -> AbstractSet[str]:
    """Return which of the modules in an image go."""
    stay = set(names)
    if leaving.kept:
        wanted = index.with_needed(_wanted(host, leaving.kept))
        besides = _among(index, names, leaving.besides)
        stay &= wanted | index.with_needed(besides)
    named = _among(index, stay, leaving.gone)
    with_them = index.with_needed(named) & stay
    others = index.with_needed(stay - with_them)
    return names - stay | named | with_them - others


def _wanted(host: Host, kept: KeptModules) -> Iterable[str]:
    if kept is KeptModules.ROOT:
        return names_for_root(host)
    use = module_use(host)
    return (*use.loaded.split(), *use.devices) if use else ()


def _among(index: ModuleIndex, names: AbstractSet[str], places: AbstractSet[str]) -> set[str]:
    """Return which modules have one of these names, or are below one of these directories."""
    return {
        name
        for name in names
        if name in places
        or any(f"{index.directories.get(name, '')}/".startswith(f"{place}/") for place in places)
    }
