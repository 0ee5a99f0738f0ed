"""Which image a boot used: what is known of the images, what the boot left behind, the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from initadvisor.core.estimates import Certainty
    from initadvisor.core.settings import Setting


class AttributionSource(StrEnum):
    """What can tell which image was loaded, the most telling first."""

    DIGEST = "digest"
    LOADED_SIZE = "loaded-size"
    TAG = "tag"
    FREED_SIZE = "freed-size"
    ENTRY = "entry"

    @property
    def description(self) -> str:
        """What it is, in words."""
        return _DESCRIPTIONS[self]


_DESCRIPTIONS = {
    AttributionSource.DIGEST: "the digest in the TPM's event log",
    AttributionSource.LOADED_SIZE: "the size that the loader handed over",
    AttributionSource.TAG: "the trial's tag on the command line",
    AttributionSource.FREED_SIZE: "the memory that the kernel freed, in whole pages",
    AttributionSource.ENTRY: "the boot loader's entry",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownImage:
    """An image that a boot may have used, as it was when the machine booted.

    ``size_bytes`` and ``sha256`` are of what is loaded: the file, of a unified kernel image
    (``is_uki``) its .initrd section. ``beside_bytes``: the sizes of the other files that are loaded
    with it (microcode). ``trial``: the trial whose entry loads it. ``entries``: the identifiers of
    the loader's entries that load it. ``setting`` is None where it is not known, and ``candidate``
    tells that it was built to be tried.
    """

    path: str
    size_bytes: int
    sha256: str
    setting: Setting | None = None
    candidate: bool = False
    is_uki: bool = False
    beside_bytes: tuple[int, ...] = ()
    trial: str | None = None
    entries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageEvidence:
    """What a boot left behind of the image that it used; None where it left nothing.

    ``from_uki``: whether the image came out of a unified kernel image. ``loaded_bytes``: the exact
    size of all that was loaded, 0 for nothing at all. ``loaded_sha256``: its digest;
    ``section_sha256``: that of a unified kernel image's .initrd section. ``freed_kib``: what the
    kernel freed, in pages of ``page_bytes``. ``trial`` and ``entry``: the tag on the command line,
    and the loader's entry. ``initrd``: what the command line calls it (``initrd=``), all of them
    where there are several; a name, which tells images apart and proves nothing.
    """

    from_uki: bool | None = None
    loaded_bytes: int | None = None
    loaded_sha256: str | None = None
    section_sha256: str | None = None
    freed_kib: int | None = None
    page_bytes: int = 4096
    trial: str | None = None
    entry: str | None = None
    initrd: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """The verdict.

    ``images``: those that fit - all with the same content where it is certain or likely, several
    contents where it is ambiguous, none where it is unknown. ``sources``: what speaks for them.
    ``reason``: why, in a sentence.
    """

    certainty: Certainty
    images: tuple[KnownImage, ...] = ()
    sources: tuple[AttributionSource, ...] = ()
    reason: str

    @property
    def image(self) -> KnownImage | None:
        """The image, None where there is not exactly one content that fits."""
        contents = {image.sha256 for image in self.images}
        return self.images[0] if len(contents) == 1 else None
