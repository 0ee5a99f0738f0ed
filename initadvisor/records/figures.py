"""Boots in figures: each in what is computed with, and groups of those that may be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from initadvisor.core.estimates import Certainty
    from initadvisor.core.settings import Setting
    from initadvisor.records.boot_start import BootMethod
    from initadvisor.records.marks import Waiting
    from initadvisor.records.read_interval import Beside, IntervalSource


@dataclass(frozen=True, slots=True, kw_only=True)
class BootGroupKey:
    """What many boots have in common; see ``BootRecord`` for each.

    ``machine``: None for this one, ``?`` for one that is not known. ``boot_disk``: None where it is
    not known, as of all boots that only a journal tells of. ``kernel_counts`` and
    ``loader_counts``: whether the kernel's part and that of firmware and loader are samples.
    ``image_sha256`` and ``setting`` are of an image that is certain or likely, as ``certainty``
    says; a setting is None, too, where it is not known what made the image. ``initrd``: what the
    command line calls it.
    """

    machine: str | None
    method: BootMethod
    kernel: str | None
    class_key: str
    hardware_key: str
    boot_disk: str | None
    kernel_counts: bool
    loader_counts: bool
    waiting: Waiting
    read_source: IntervalSource | None
    read_beside: tuple[Beside, ...]
    certainty: Certainty
    image_sha256: str | None
    setting: Setting | None
    initrd: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BootFigures:
    """What one boot tells, without the words; None for what it does not."""

    kind: BootGroupKey
    started_at: datetime
    unpack_us: int | None
    begin_to_init_us: int | None
    shadow_us: int | None
    shadow_min_us: int | None
    shadow_max_us: int | None
    rest_us: int | None
    loaded_bytes: int | None
    read_us: int | None
    reboot_gap_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BootGroup:
    """Boots of one machine, class and image.

    ``machine``, ``setting``, ``certainty``, ``image_sha256`` and ``initrd`` as in ``BootGroupKey``;
    of images that are not known the last tells those of different names apart, and there are no
    times, unless it is a single boot: nobody knows that the images were the same. ``boots``: how
    many there are, samples or not; ``latest_at``: when the latest of them started. ``unpack_us``
    and ``read_us``: those of samples, by their size; the latter only from the disk that the latest
    boot of the class was from, as far as disks are known. ``read_source`` says which interval they
    are of, the one that most of these boots have.
    """

    machine: str | None
    kernel: str | None
    class_key: str
    setting: Setting | None
    certainty: Certainty
    boots: int
    latest_at: datetime
    image_sha256: str | None = None
    initrd: str | None = None
    unpack_us: tuple[int, ...] = ()
    read_us: tuple[int, ...] = ()
    read_source: IntervalSource | None = None
