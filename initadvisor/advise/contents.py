"""What the files of an image cost each boot of this machine, by what they are for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import mul
from typing import TYPE_CHECKING

import numpy as np

from initadvisor.decide.costs import populate_times, summary
from initadvisor.image.contents import FileKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from initadvisor.advise.decision_input import DecisionResult
    from initadvisor.advise.kernel_cost import KernelCost
    from initadvisor.advise.loading import LoadingTime
    from initadvisor.core.estimates import Estimate
    from initadvisor.generators import ContentVariant, VariantName
    from initadvisor.image.contents import ImageContents, KindUse
    from initadvisor.image.difference import ImageDifference
    from initadvisor.image.modules import ImageModule
    from initadvisor.target.pluggable import Pluggable


@dataclass(frozen=True, slots=True, kw_only=True)
class KindCost:
    """What a kind of file takes, and what reading and unpacking it costs a boot."""

    use: KindUse
    boot_ms: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedKind:
    """What the modules or firmware of one purpose take and cost that no boot used."""

    kind: FileKind
    files: int
    size_bytes: int
    stored_bytes: int
    boot_ms: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedCost:
    """What of the image's modules and firmware no boot used; see ``unused_cost``.

    ``boots``: how many boots of the image's kernel release that rests on, since ``since``; with
    none nothing is called unused. ``files``, the largest first, are modules and firmware.
    ``kept``: how many modules were not used either, and stay because no boot tells that they never
    will be. ``warnings``: what is not known.
    """

    boots: int
    since: datetime | None = None
    boot_ms: Estimate
    kinds: tuple[UnusedKind, ...] = ()
    files: tuple[ImageModule, ...] = ()
    kept: Mapping[Pluggable, int]
    warnings: tuple[str, ...] = ()

    @property
    def modules(self) -> int:
        """How many modules are among the files."""
        return sum(file.release is not None for file in self.files)

    @property
    def stored_bytes(self) -> int:
        """What the files take in the image."""
        return sum(kind.stored_bytes for kind in self.kinds)


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantCost:
    """An image with less in it, built: ``saving_ms`` is what each boot reads and unpacks less.

    ``differs``: in what, from the image that is made without the variant. ``loading``: of one that
    stores modules otherwise, what loading them takes then; where that is measured, it is part of
    the saving.
    """

    variant: ContentVariant
    size_bytes: int
    saving_ms: Estimate
    differs: ImageDifference
    loading: LoadingTime | None = None

    @property
    def advised(self) -> bool:
        """Whether it is advice: where loading takes another time, what is saved has to be sure."""
        if self.loading is None:
            return self.saving_ms.middle > 0
        return self.loading.saved_ms is not None and self.saving_ms.low > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentVariantCosts:
    """Variants of an image, the one that saves most first and those not advised last; the rest.

    ``today_bytes``: the image as it is made without any. ``skipped``: names with reasons, of what
    could not be built or saves nothing. ``fallback``: a fallback image of the same kernel.
    ``rebuild`` is the command that makes the images anew.
    """

    today_bytes: int
    variants: tuple[VariantCost, ...]
    skipped: tuple[tuple[VariantName, str], ...]
    fallback: Path | None
    rebuild: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedVariant:
    """About what an image with less in it would be: nothing was built."""

    variant: ContentVariant
    size_bytes: int
    saving_ms: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentsCost:
    """What an image costs: ``boot_ms`` to read and to unpack it, and its kinds' parts of that.

    The dearest kind is first. The middles of the kinds add up to that of the whole.
    ``repeated_ms``: what of it are files that are there more than once. ``kernel``: what its kernel
    costs beside that, None where there is none to be read. ``unused``: what no boot used, None
    where that was not asked. ``variants``: what it costs with less in it, None where that was not
    asked. ``estimates``: about that, what saves most first. ``warnings``: what makes the times less
    certain.
    """

    image: Path
    contents: ImageContents
    boot_ms: Estimate
    kinds: tuple[KindCost, ...]
    repeated_ms: Estimate
    kernel: KernelCost | None = None
    unused: UnusedCost | None = None
    variants: ContentVariantCosts | None = None
    estimates: tuple[EstimatedVariant, ...] | None = None
    warnings: tuple[str, ...] = ()

    @property
    def image_bytes(self) -> int:
        """The length of the image, with what is in front of it and behind it."""
        return sum(cost.use.stored_bytes for cost in self.kinds)


class ContentsPricing:
    """Shares out what today's image costs, as it is weighed, among what is in it.

    Reading goes by the bytes in the image, creating files (P of the cost model) by what is
    unpacked, decompression by what of that comes out of compressed segments.
    """

    def __init__(self, contents: ImageContents, result: DecisionResult) -> None:
        costs = result.posterior_costs
        read, unpack = costs.draws.read_ms[:, 0], costs.draws.unpack_ms[:, 0]
        # Boots tell of P and D together.
        populate = np.minimum(populate_times(costs.posterior.parameters, result.facts), unpack)
        self._source = str(result.evidence[0])
        self._parts = (read, populate, unpack - populate)
        read_ms, populate_ms, unpack_ms = (
            summary(draws, self._source).middle for draws in (read, populate, unpack)
        )
        self._middles = (read_ms, populate_ms, unpack_ms - populate_ms)
        uses = contents.kinds
        self.wholes = (
            sum(use.stored_bytes for use in uses),
            sum(use.unpacked_bytes for use in uses),
            sum(use.decompressed_bytes for use in uses),
        )

    def cost(
        self, stored_bytes: float, unpacked_bytes: float, decompressed_bytes: float
    ) -> Estimate:
        """Return what so much of the image costs a boot."""
        sizes = (stored_bytes, unpacked_bytes, decompressed_bytes)
        shares = [
            size / whole if whole else 0.0 for size, whole in zip(sizes, self.wholes, strict=True)
        ]
        if not self.wholes[-1]:  # what is left of decompressing nothing is of creating files
            shares[-1] = shares[1]
        draws = sum(map(mul, shares, self._parts), np.zeros_like(self._parts[0]))
        found = summary(draws, self._source)
        middle = sum(map(mul, shares, self._middles))
        return replace(
            found, median=middle, low=min(found.low, middle), high=max(found.high, middle)
        )


class FilesPricing:
    """Prices modules and firmware: those of a kind are taken to be compressed alike."""

    def __init__(self, contents: ImageContents, pricing: ContentsPricing) -> None:
        self._pricing = pricing
        self._parts = {
            use.kind: _part(
                use.size_bytes - use.compressed_bytes, use.stored_bytes - use.compressed_bytes
            )
            for use in contents.kinds
        }

    def sizes(self, files: Sequence[ImageModule]) -> tuple[float, int, int]:
        """Return what files take stored, unpacked, and of that out of compression."""
        stored = (
            one.size_bytes * self._parts[one.kind] if one.stored_bytes is None else one.stored_bytes
            for one in files
        )
        return (
            sum(stored),
            sum(one.size_bytes for one in files),
            sum(one.size_bytes for one in files if one.compressed),
        )

    def cost(self, files: Sequence[ImageModule]) -> Estimate:
        """Return what they cost a boot."""
        return self._pricing.cost(*self.sizes(files))


def _part(size_bytes: int, stored_bytes: int) -> float:
    """Return which part of their length files take that were not compressed before."""
    return min(1.0, max(0.0, stored_bytes / size_bytes)) if size_bytes > 0 else 1.0


def contents_cost(
    image: Path,
    contents: ImageContents,
    pricing: ContentsPricing,
    *,
    kernel: KernelCost | None = None,
    unused: UnusedCost | None = None,
    variants: ContentVariantCosts | None = None,
    estimates: tuple[EstimatedVariant, ...] | None = None,
    warnings: Sequence[str] = (),
) -> ContentsCost:
    """Return what an image costs by kind of file, with what else is known of it."""
    kinds = (
        KindCost(
            use=use,
            boot_ms=pricing.cost(use.stored_bytes, use.unpacked_bytes, use.decompressed_bytes),
        )
        for use in contents.kinds
    )
    again = contents.repeated
    return ContentsCost(
        image=image,
        contents=contents,
        boot_ms=pricing.cost(*pricing.wholes),
        kinds=tuple(sorted(kinds, key=lambda kind: -kind.boot_ms.middle)),
        repeated_ms=pricing.cost(again.stored_bytes, again.size_bytes, again.decompressed_bytes),
        kernel=kernel,
        unused=unused,
        variants=variants,
        estimates=estimates,
        warnings=tuple(warnings),
    )


_EXCESS = 1 / 3
_NOT_TO_READ_DISKS = frozenset(
    {
        FileKind.GRAPHICS,
        FileKind.GRAPHICS_FIRMWARE,
        FileKind.NETWORK,
        FileKind.NETWORK_FIRMWARE,
        FileKind.SOUND,
        FileKind.HWDB,
        FileKind.SPLASH,
    }
)


def largest_excess(cost: ContentsCost, saving_ms: float) -> str | None:
    """Say which kind of file costs more than a setting saves, with a third of the image or more.

    None where there is none, and of what disks are read with: it is large in a small image, too.
    Whether this machine uses it, nothing here tells.
    """
    first = next((kind for kind in cost.kinds if kind.use.kind in _NOT_TO_READ_DISKS), None)
    if (
        first is None
        or first.use.stored_bytes < _EXCESS * cost.image_bytes
        or first.boot_ms.middle <= saving_ms
    ):
        return None
    kind = str(first.use.kind)
    return (
        f"{kind[0].upper()}{kind[1:]}: {first.use.stored_bytes / 1e6:.0f} of "
        f"{cost.image_bytes / 1e6:.0f} MB, {first.boot_ms.middle:.0f} ms to read and unpack "
        "(initadvisor contents)"
    )
