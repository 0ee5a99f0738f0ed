"""What an image costs with less in it, as its generator makes it.

What was built is kept as JSON: ``apply`` changes an image's content to nothing else than that.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from math import hypot
from typing import TYPE_CHECKING, Final

from initadvisor import __version__
from initadvisor.advise.contents import ContentVariantCosts, VariantCost
from initadvisor.advise.loading import loading_time
from initadvisor.core import estimates
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.core.estimates import Estimate
from initadvisor.core.serialisation import ReadLimits
from initadvisor.host.cached import keep, read_cached
from initadvisor.image import difference as image_difference
from initadvisor.lab.verify import ReadImage, building_place, differs, read_built

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from initadvisor.advise.contents import ContentsPricing
    from initadvisor.generators import ContentVariant, Generator, InstalledImage, VariantName
    from initadvisor.host import Host
    from initadvisor.image.difference import ImageDifference
    from initadvisor.target.source import ReadObserver, Source


_REBUILD: Final = {
    "dracut": "sudo dracut --force --regenerate-all",
    "initramfs-tools": "sudo update-initramfs -u -k all",
    "mkinitcpio": "sudo mkinitcpio -P",
}
"""What has a generator build the images of all kernels anew."""


def content_variant_costs(
    host: Host,
    generator: Generator,
    source: Source,
    pricing: ContentsPricing,
    *,
    unused: Sequence[str],
    observer: ReadObserver,
) -> ContentVariantCosts:
    """Have the generator build each variant of today's image, privately, and price it.

    Today's image is built, too: an installed one may be older than what it is made of. Nothing
    installed is touched, nothing is booted, and what was built is removed.

    Raises ``UnsafeError`` for an image that is not made on this machine, ``NeedsRootError`` where
    only root may build, and ``InitadvisorError`` when today's cannot be built.
    """
    installed = source.installed
    if installed is None:
        msg = f"cannot build {source.path} with less in it: it is not made on this machine"
        raise UnsafeError(msg, hint="leave IMAGE out, or name one that it makes here")
    wanted = generator.content_variants(host, installed, unused)
    found: list[VariantCost] = []
    skipped: list[tuple[VariantName, str]] = []
    with building_place(host) as place:

        def built(variant: ContentVariant | None) -> ReadImage:
            what = variant.name if variant else "as it is"
            done = len(found) + len(skipped) + (variant is not None)
            observer.doing(f"building it {what}", done=done, of=len(wanted) + 1)
            texts = {variant.path: variant.text} if variant else {}
            generator.build(host, installed, place / "image", texts)
            return read_built(generator, place / "image")

        today = built(None)
        for variant in wanted:
            try:
                cost = _cost(host, generator, variant, today, built(variant), pricing)
            except InitadvisorError as err:
                skipped.append((variant.name, err.message))
            else:
                if cost.advised or cost.loading:
                    found.append(cost)
                    _keep(host, installed, cost, unused)
                else:
                    skipped.append((variant.name, f"{variant.line} saves nothing"))
    return ContentVariantCosts(
        today_bytes=today.size_bytes,
        variants=tuple(sorted(found, key=lambda one: (not one.advised, -one.saving_ms.middle))),
        skipped=tuple(skipped),
        fallback=_fallback(host, generator, installed),
        rebuild=_REBUILD[generator.NAME],
    )


def _cost(
    host: Host,
    generator: Generator,
    variant: ContentVariant,
    today: ReadImage,
    built: ReadImage,
    pricing: ContentsPricing,
) -> VariantCost:
    before, after = today.contents.kinds, built.contents.kinds
    noted = generator.noted_inside(host, {variant.path: variant.text})
    loading = loading_time(host, variant.name)
    saving_ms = pricing.cost(
        sum(u.stored_bytes for u in before) - sum(u.stored_bytes for u in after),
        sum(u.unpacked_bytes for u in before) - sum(u.unpacked_bytes for u in after),
        sum(u.decompressed_bytes for u in before) - sum(u.decompressed_bytes for u in after),
    )
    return VariantCost(
        variant=variant,
        size_bytes=built.size_bytes,
        saving_ms=_sum(saving_ms, loading.saved_ms) if loading and loading.saved_ms else saving_ms,
        differs=differs(today, built, noted),
        loading=loading,
    )


def _sum(first: Estimate, other: Estimate) -> Estimate:
    """Return both together; one tells nothing of the other. The source is that of the first."""
    middle = first.middle + other.middle
    return Estimate(
        mean=first.mean + other.mean,
        low=middle - hypot(first.middle - first.low, other.middle - other.low),
        high=middle + hypot(first.high - first.middle, other.high - other.middle),
        source=first.source,
        median=middle,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltVariant:
    """What an earlier run has built of a variant of an image; ``version`` is of this program.

    ``path`` and ``line`` as in ``ContentVariant``; ``unused`` are the modules that no boot had used
    then. The others as in ``VariantCost``.
    """

    version: str
    path: str
    line: str
    unused: tuple[str, ...]
    size_bytes: int
    saving_ms: Estimate
    differs: ImageDifference


_MAY_COST = ReadLimits(least=-86_400_000)
"""What stores modules otherwise may take longer to read and to unpack."""


def built_variant(host: Host, image: InstalledImage, name: VariantName) -> BuiltVariant | None:
    """Return what was last built of a variant of an image, if that is known."""
    names = (estimates, image_difference)
    found = read_cached(_file(host, image, name), BuiltVariant, names=names, limits=_MAY_COST)
    return found if found and found.version == __version__ else None


def _keep(host: Host, image: InstalledImage, cost: VariantCost, unused: Sequence[str]) -> None:
    kept = BuiltVariant(
        version=__version__,
        path=str(cost.variant.path),
        line=cost.variant.line,
        unused=tuple(unused),
        size_bytes=cost.size_bytes,
        saving_ms=cost.saving_ms,
        differs=cost.differs,
    )
    keep(_file(host, image, cost.variant.name), kept, what="what a variant of an image is")


def _file(host: Host, image: InstalledImage, name: VariantName) -> Path:
    made_of = f"{image.path}\n{image.kernel_release}\n{name}"
    digest = hashlib.sha256(made_of.encode(errors="surrogateescape")).hexdigest()
    return host.cache_dir() / "variants" / f"{digest[:32]}.json"


def _fallback(host: Host, generator: Generator, image: InstalledImage) -> Path | None:
    """Return the fallback image of the image's kernel."""
    return next(
        (
            other.path
            for other in generator.images(host)
            if other.fallback and other.kernel_release == image.kernel_release
        ),
        None,
    )
