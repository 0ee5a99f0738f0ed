"""What of an image the running system still shows: its loaded size, its digest, its trial."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING

from initadvisor.firmware.event_log import BadLogError, InitrdDigests, initrd_digests
from initadvisor.records.attribution import ImageEvidence
from initadvisor.records.boot_class import parameters
from initadvisor.records.boot_start import TRIAL_TAG, BootMethod, Unreadable

if TYPE_CHECKING:
    from initadvisor.host import Host
    from initadvisor.records.boot_start import BootStart


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
        trials = parameters(host.read_text("/proc/cmdline") or "", TRIAL_TAG)
        evidence = replace(
            evidence,
            from_uki=None if start.method is BootMethod.UNKNOWN else start.method.is_uki,
            loaded_sha256=digests.loaded,
            section_sha256=digests.section,
            trial=trials[-1] if trials else None,
            entry=start.entry,
        )
    return evidence, tuple(unreadable)


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
