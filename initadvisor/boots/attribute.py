"""Match what a boot left behind against the images that are known."""

from __future__ import annotations

from enum import Enum, auto

from initadvisor.core.estimates import Certainty
from initadvisor.records.attribution import (
    Attribution,
    AttributionSource,
    ImageEvidence,
    KnownImage,
)

_ALIGNMENT = 4
"""Loaders put one file behind the other at multiples of it, and some fill up the last, too."""

_STUB_ADDS_BYTES = 65_536
"""systemd-stub appends os-release, signatures and the like as small archives. What adds more
(credentials, system extensions) leaves the size without a word on the image."""


class _Says(Enum):
    """A witness' word on one image."""

    YES = auto()
    NO = auto()
    NOTHING = auto()


def attribute(evidence: ImageEvidence, images: tuple[KnownImage, ...]) -> Attribution:
    """Return which of the images a boot used that left these traces.

    ``images`` are those that were on the machine when it booted: one that was written since may fit
    by chance. An image is out where a witness speaks against it, unless its digest was found.
    """
    if evidence.loaded_bytes == 0:
        return _nothing("the loader handed over no initramfs")
    heard = tuple(witness for witness in AttributionSource if _spoke(witness, evidence))
    if not heard:
        return _nothing("nothing tells which image was loaded")
    if _freed_more_than_loaded(evidence):
        return _nothing("the kernel freed more than the loader had handed over")
    found = _narrowed(evidence, images, heard)
    for_them = tuple(w for w in heard if found and _ask(w, evidence, found[0]) is _Says.YES)
    if not for_them:
        return _nothing(f"no known image fits {_listed(heard)}")
    if _contents(found) > 1:
        certainty = Certainty.AMBIGUOUS
        words = f"{_contents(found)} known images fit {_listed(for_them)}"
    else:
        without_entry = tuple(
            witness for witness in heard if witness is not AttributionSource.ENTRY
        )
        entry_decided = _contents(_narrowed(evidence, images, without_entry)) > 1
        certainty = Certainty.LIKELY if entry_decided else _certainty(found[0], for_them)
        words = f"{found[0].path}, by {_listed(for_them)}"
    return Attribution(certainty=certainty, images=found, sources=for_them, reason=words)


def _nothing(words: str) -> Attribution:
    return Attribution(certainty=Certainty.UNKNOWN, reason=words)


def _narrowed(
    evidence: ImageEvidence, images: tuple[KnownImage, ...], heard: tuple[AttributionSource, ...]
) -> tuple[KnownImage, ...]:
    """Return the images that fit, narrowed down by one witness after the other."""
    proven = [
        image for image in images if _ask(AttributionSource.DIGEST, evidence, image) is _Says.YES
    ]
    fitting = proven or [
        i for i in images if all(_ask(w, evidence, i) is not _Says.NO for w in heard)
    ]
    for witness in heard:
        told = [image for image in fitting if _ask(witness, evidence, image) is _Says.YES]
        fitting = told or fitting
    return tuple(fitting)


def _contents(images: tuple[KnownImage, ...]) -> int:
    return len({image.sha256 for image in images})


def _certainty(image: KnownImage, witnesses: tuple[AttributionSource, ...]) -> Certainty:
    """Say how certain the only image that fits is.

    A digest is proof, an exact size of tens of megabytes next to it. A tag proves the entry that
    was booted, and a size then proves that its file was loaded. A size in whole pages, one that
    the stub has added to, or an entry alone may fit by chance.
    """
    sized = {AttributionSource.LOADED_SIZE, AttributionSource.FREED_SIZE} & set(witnesses)
    exact = AttributionSource.LOADED_SIZE in sized and not image.is_uki
    if (
        AttributionSource.DIGEST in witnesses
        or exact
        or (AttributionSource.TAG in witnesses and sized)
    ):
        return Certainty.CERTAIN
    return Certainty.LIKELY


def _spoke(witness: AttributionSource, evidence: ImageEvidence) -> bool:
    match witness:
        case AttributionSource.DIGEST:
            return evidence.loaded_sha256 is not None or evidence.section_sha256 is not None
        case AttributionSource.LOADED_SIZE:
            return evidence.loaded_bytes is not None
        case AttributionSource.TAG:
            return evidence.trial is not None
        case AttributionSource.FREED_SIZE:
            return evidence.freed_kib is not None and evidence.loaded_bytes is None
        case AttributionSource.ENTRY:
            return evidence.entry is not None


def _ask(witness: AttributionSource, evidence: ImageEvidence, image: KnownImage) -> _Says:
    if evidence.from_uki is not None and evidence.from_uki is not image.is_uki:
        return _Says.NO
    match witness:
        case AttributionSource.DIGEST:
            return _digest_says(evidence, image)
        case AttributionSource.LOADED_SIZE:
            loaded = evidence.loaded_bytes or 0
            return _size_says(loaded, loaded, image)
        case AttributionSource.TAG:
            return _yes_or_no(told=image.trial == evidence.trial)
        case AttributionSource.FREED_SIZE:
            freed = (evidence.freed_kib or 0) * 1024
            return _size_says(
                freed - evidence.page_bytes + 1, freed + evidence.page_bytes - 1, image
            )
        case AttributionSource.ENTRY:
            known = bool(image.entries)
            return _yes_or_no(told=evidence.entry in image.entries) if known else _Says.NOTHING


def _digest_says(evidence: ImageEvidence, image: KnownImage) -> _Says:
    """Compare digests where they are of the same bytes.

    The digest of what was loaded is that of a file only where nothing was loaded with it and no
    padding was added.
    """
    if image.is_uki:
        if evidence.section_sha256 is None:
            return _Says.NOTHING
        return _yes_or_no(told=evidence.section_sha256 == image.sha256)
    if evidence.loaded_sha256 == image.sha256:
        return _Says.YES
    as_it_is = evidence.loaded_bytes == image.size_bytes or not image.size_bytes % _ALIGNMENT
    comparable = evidence.loaded_sha256 is not None and not image.beside_bytes and as_it_is
    return _Says.NO if comparable else _Says.NOTHING


def _size_says(least: int, most: int, image: KnownImage) -> _Says:
    """Tell whether between ``least`` and ``most`` bytes can have been loaded with the image."""
    parts = (*image.beside_bytes, image.size_bytes)
    bare = sum(parts)
    padded = sum(-(-part // _ALIGNMENT) * _ALIGNMENT for part in parts)
    if most < bare:
        return _Says.NO
    if image.is_uki:
        return _Says.YES if least <= padded + _STUB_ADDS_BYTES else _Says.NOTHING
    return _yes_or_no(told=least <= padded)


def _freed_more_than_loaded(evidence: ImageEvidence) -> bool:
    """Tell whether two readings contradict each other.

    Less may be freed than was loaded: what lies in the memory reserved for a crash kernel is kept.
    """
    if evidence.freed_kib is None or evidence.loaded_bytes is None:
        return False
    return evidence.freed_kib * 1024 >= evidence.loaded_bytes + 2 * evidence.page_bytes


def _yes_or_no(*, told: bool) -> _Says:
    return _Says.YES if told else _Says.NO


def _listed(witnesses: tuple[AttributionSource, ...]) -> str:
    return " and ".join(witness.description for witness in witnesses)
