"""Which image a boot used: what it left behind, matched against the images that are known."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING

from initadvisor.core.estimates import Certainty
from initadvisor.firmware.event_log import BadLogError, InitrdDigests, initrd_digests
from initadvisor.records.attribution import (
    Attribution,
    AttributionSource,
    ImageEvidence,
    KnownImage,
)
from initadvisor.records.boot_class import parameters
from initadvisor.records.boot_start import TRIAL_TAG, BootMethod, Unreadable

if TYPE_CHECKING:
    from initadvisor.host import Host
    from initadvisor.records.boot_start import BootStart


_ALIGNMENT = 4
"""Loaders put one file behind the other at multiples of it, and some fill up the last, too."""

_LONGEST_NAME = 255

_STUB_ADDS_BYTES = 65_536
"""systemd-stub appends os-release, signatures and the like as small archives. What adds more
(credentials, system extensions) leaves the size without a word on the image."""


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
    for_them = tuple(w for w in heard if found and _ask(w, evidence, found[0]))
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
    proven = [image for image in images if _ask(AttributionSource.DIGEST, evidence, image)]
    fitting = proven or [i for i in images if all(_ask(w, evidence, i) is not False for w in heard)]
    for witness in heard:
        told = [image for image in fitting if _ask(witness, evidence, image)]
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


def _ask(witness: AttributionSource, evidence: ImageEvidence, image: KnownImage) -> bool | None:
    """Return whether a witness speaks for the image or against it, None where it says nothing."""
    if evidence.from_uki is not None and evidence.from_uki is not image.is_uki:
        return False
    match witness:
        case AttributionSource.DIGEST:
            return _digest_says(evidence, image)
        case AttributionSource.LOADED_SIZE:
            loaded = evidence.loaded_bytes or 0
            return _size_says(loaded, loaded, image)
        case AttributionSource.TAG:
            return image.trial == evidence.trial
        case AttributionSource.FREED_SIZE:
            freed = (evidence.freed_kib or 0) * 1024
            return _size_says(
                freed - evidence.page_bytes + 1, freed + evidence.page_bytes - 1, image
            )
        case AttributionSource.ENTRY:
            return evidence.entry in image.entries if image.entries else None


def _digest_says(evidence: ImageEvidence, image: KnownImage) -> bool | None:
    """Compare digests where they are of the same bytes.

    The digest of what was loaded is that of a file only where nothing was loaded with it and no
    padding was added.
    """
    if image.is_uki:
        section = evidence.section_sha256
        return None if section is None else section == image.sha256
    if evidence.loaded_sha256 == image.sha256:
        return True
    as_it_is = evidence.loaded_bytes == image.size_bytes or not image.size_bytes % _ALIGNMENT
    comparable = evidence.loaded_sha256 is not None and not image.beside_bytes and as_it_is
    return False if comparable else None


def _size_says(least: int, most: int, image: KnownImage) -> bool | None:
    """Tell whether between ``least`` and ``most`` bytes can have been loaded with the image."""
    parts = (*image.beside_bytes, image.size_bytes)
    bare = sum(parts)
    padded = sum(-(-part // _ALIGNMENT) * _ALIGNMENT for part in parts)
    if most < bare:
        return False
    if image.is_uki:
        return True if least <= padded + _STUB_ADDS_BYTES else None
    return least <= padded


def _freed_more_than_loaded(evidence: ImageEvidence) -> bool:
    """Tell whether two readings contradict each other.

    Less may be freed than was loaded: what lies in the memory reserved for a crash kernel is kept.
    """
    if evidence.freed_kib is None or evidence.loaded_bytes is None:
        return False
    return evidence.freed_kib * 1024 >= evidence.loaded_bytes + 2 * evidence.page_bytes


def _listed(witnesses: tuple[AttributionSource, ...]) -> str:
    return " and ".join(witness.description for witness in witnesses)


_BOOT_PARAMS = "/sys/kernel/boot_params/data"
_BOOT_PARAMS_BYTES = 4096
_RAMDISK_SIZE_AT = 0x21C
_RAMDISK_SIZE_HIGH_AT = 0xC4
_EVENT_LOG = "/sys/kernel/security/tpm0/binary_bios_measurements"
_EVENT_LOG_LIMIT_BYTES = 4 << 20
_U32 = struct.Struct("<I")


def image_evidence(
    host: Host, start: BootStart, *, freed_kib: int | None, page_bytes: int
) -> tuple[ImageEvidence, tuple[Unreadable, ...]]:
    """Gather what tells which image the running system was booted with.

    ``freed_kib`` is what the kernel says it freed. After a kexec the event log and the entry are
    those of the boot before it, and its command line may be a copy; the boot parameters are new.
    """
    unreadable: list[Unreadable] = []
    loaded = loaded_bytes(host, unreadable)
    evidence = ImageEvidence(loaded_bytes=loaded, freed_kib=freed_kib, page_bytes=page_bytes)
    if start.method is not BootMethod.KEXEC:
        digests = event_log_digests(host, unreadable)
        words = host.read_text("/proc/cmdline") or ""
        trials = parameters(words, TRIAL_TAG)
        evidence = replace(
            evidence,
            from_uki=None if start.method is BootMethod.UNKNOWN else start.method.is_uki,
            loaded_sha256=digests.loaded,
            section_sha256=digests.section,
            trial=trials[-1] if trials else None,
            entry=start.entry,
            initrd=named_initrd(words),
        )
    return evidence, tuple(unreadable)


def named_initrd(command_line: str) -> str | None:
    """Return what a command line calls the image, for the kernel's EFI stub or out of habit."""
    return " ".join(parameters(command_line, "initrd"))[:_LONGEST_NAME] or None


def loaded_bytes(host: Host, unreadable: list[Unreadable]) -> int | None:
    """Return the exact size of the initramfs that the loader handed over, None but on x86.

    It stands in the boot parameters (Documentation/arch/x86/zero-page.rst): ``hdr.ramdisk_size``
    and its upper half, ``ext_ramdisk_size``.
    """
    data = _read(host, _BOOT_PARAMS, _BOOT_PARAMS_BYTES, unreadable)
    if data is None:
        return None
    if len(data) < _BOOT_PARAMS_BYTES:
        reason = f"has {len(data)} bytes instead of {_BOOT_PARAMS_BYTES}"
        unreadable.append(Unreadable(source=_BOOT_PARAMS, reason=reason))
        return None
    (low,) = _U32.unpack_from(data, _RAMDISK_SIZE_AT)
    (high,) = _U32.unpack_from(data, _RAMDISK_SIZE_HIGH_AT)
    return int(high << 32 | low)


def event_log_digests(host: Host, unreadable: list[Unreadable]) -> InitrdDigests:
    """Return what the TPM's event log says of the initramfs; only root may read it."""
    log = _read(host, _EVENT_LOG, _EVENT_LOG_LIMIT_BYTES + 1, unreadable)
    if log is None:
        return InitrdDigests()
    try:
        if len(log) > _EVENT_LOG_LIMIT_BYTES:
            msg = f"is longer than {_EVENT_LOG_LIMIT_BYTES} bytes"
            raise BadLogError(msg)
        return initrd_digests(log)
    except BadLogError as err:
        unreadable.append(Unreadable(source=_EVENT_LOG, reason=str(err)))
        return InitrdDigests()


def _read(host: Host, path: str, most_bytes: int, unreadable: list[Unreadable]) -> bytes | None:
    try:
        with host.path(path).open("rb") as file:
            return file.read(most_bytes)
    except FileNotFoundError:
        return None
    except OSError as err:
        unreadable.append(Unreadable(source=path, reason=f"cannot be read: {err.strerror}"))
        return None
