"""What an image costs with less in it, as its generator makes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from initadvisor.advise.contents import ContentVariantCosts, VariantCost
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.image.difference import difference
from initadvisor.lab.verify import ReadImage, building_place, read_built

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from initadvisor.advise.contents import ContentsPricing
    from initadvisor.generators import ContentVariant, Generator, InstalledImage
    from initadvisor.host import Host
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
    skipped: list[tuple[str, str]] = []
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
                if cost.saving_ms.middle > 0:
                    found.append(cost)
                else:
                    skipped.append((variant.name, f"{variant.line} makes the image no smaller"))
    return ContentVariantCosts(
        today_bytes=today.size_bytes,
        variants=tuple(sorted(found, key=lambda one: -one.saving_ms.middle)),
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
    differs = difference(today.listing, built.listing, ignored=noted)
    return VariantCost(
        variant=variant,
        size_bytes=built.size_bytes,
        saving_ms=pricing.cost(
            sum(u.stored_bytes for u in before) - sum(u.stored_bytes for u in after),
            sum(u.unpacked_bytes for u in before) - sum(u.unpacked_bytes for u in after),
            sum(u.decompressed_bytes for u in before) - sum(u.decompressed_bytes for u in after),
        ),
        removed=differs.removed,
        added=differs.added,
    )


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
