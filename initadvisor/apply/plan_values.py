"""What applying a setting would change, need and gain, before anything is done."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from initadvisor.core.codecs import Codec
    from initadvisor.core.estimates import Estimate
    from initadvisor.core.settings import Setting
    from initadvisor.generators import ConfiguredSetting, InstalledImage, VariantName
    from initadvisor.image.contents import Lint
    from initadvisor.image.difference import ImageDifference
    from initadvisor.rewrite.files import FileEdit
    from initadvisor.transaction.transaction import FileIdentity


class ApplyStep(StrEnum):
    """What an obstacle stands in the way of."""

    BUILD = "build"
    VERIFYING = "verifying"
    """Having a kernel unpack the new image in a virtual machine."""
    PROVING_BOOT = "proving-boot"
    """Booting the new image once before it becomes the default."""
    PREVIOUS_ENTRY = "previous-entry"
    """Keeping the previous image bootable from an entry of its own."""
    UNLOCKING = "unlocking"
    """Unlocking the disk without a passphrase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """One reason why a step would be refused, and in ``remedy`` what the user can do about it."""

    step: ApplyStep
    reason: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedImage:
    """An image that the configuration is for.

    ``rebuilt``: applying makes it anew; otherwise (another kernel's, a fallback image that there is
    no room for, or that is made otherwise) it stays until somebody else does. ``may_stay``: so it
    does where building shows that a rebuild has other files than it. ``after``: what its generator
    would make it with, fall-backs included. ``size_bytes`` is its size on the disk today,
    ``expected_bytes`` about what it would be, None where nothing is known of that. ``image.copies``
    hold the same as the image, and are replaced as one with it; ``unlike`` are only named as copies
    of it, and stay.
    """

    image: InstalledImage
    rebuilt: bool
    may_stay: bool = False
    after: ConfiguredSetting
    size_bytes: int
    expected_bytes: int | None
    unlike: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSpace:
    """What is needed on one file system and what ordinary users have left on it, in bytes.

    ``purpose`` says what it is needed for.
    """

    mount_point: str
    needed_bytes: int
    free_bytes: int
    purpose: str

    @property
    def enough(self) -> bool:
        """Whether it fits."""
        return self.needed_bytes <= self.free_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedVariant:
    """Less content for the default image: ``expected`` is in what it may differ, and no more.

    ``loses``: what stops working.
    """

    name: VariantName
    line: str
    loses: str
    expected: ImageDifference


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyPlan:
    """The whole plan; without ``edits`` there is nothing to do.

    ``saving_ms``: what is expected per boot, None where that is not known. ``why``: where the
    setting comes from, in words. With ``variant`` that is what changes, and ``setting`` is today's.
    """

    generator: str
    setting: Setting
    today: ConfiguredSetting
    why: str
    variant: PlannedVariant | None = None
    edits: tuple[FileEdit, ...] = ()
    images: tuple[PlannedImage, ...] = ()
    space: tuple[PartitionSpace, ...] = ()
    saving_ms: Estimate | None = None
    blockers: tuple[Blocker, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def change(self) -> str:
        """What is to be so, in a word: the variant's name, or the setting."""
        return str(self.variant.name if self.variant else self.setting)

    @property
    def rebuilt(self) -> tuple[PlannedImage, ...]:
        """The images that applying makes anew."""
        return tuple(planned for planned in self.images if planned.rebuilt)


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuiltImage:
    """An image that was built, read again and found to be right.

    ``staged`` is the file. ``replaces``: what was installed when building began, as the image and
    as its copies.
    """

    image: InstalledImage
    staged: Path
    size_bytes: int
    sha256: str
    replaces: Mapping[Path, FileIdentity | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedImage(RebuiltImage):
    """One that holds what today's configuration gives, but for what the plan changes.

    ``updates``: what a rebuild with today's setting has otherwise than the installed image, because
    something was updated since; None where that cannot be read, and ``unreadable`` says why.
    ``missing``: the files that it has not, with a variant.
    """

    codec: Codec
    lint: Lint
    updates: ImageDifference | None
    unreadable: str = ""
    missing: tuple[str, ...] = ()

    @property
    def objection(self) -> str:
        """Why installing it would bring more than another compression; empty where nothing does."""
        if self.updates is None:
            return f"it cannot be compared with a rebuild: {self.unreadable}"
        if count := self.updates.count:
            return f"a rebuild has {count} other file{'' if count == 1 else 's'}"
        return ""
