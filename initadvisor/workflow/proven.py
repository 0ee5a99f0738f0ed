"""Whether a setting has booted well on this machine already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.model.boot_record import RecordSource
from initadvisor.store.store import open_store

if TYPE_CHECKING:
    from initadvisor.host import Host
    from initadvisor.model.boot_record import BootRecord
    from initadvisor.model.setting import Setting

_LATEST = 200
"""So many boots are looked at: what booted well years ago says little."""


def proven_by(host: Host, setting: Setting, *, kernel_release: str | None) -> BootRecord | None:
    """Return the latest boot with an image of this setting, None if there was none.

    Boots are recorded when they are complete, while they run; others do not count, nor do those
    whose image is not certain. ``kernel_release``: only boots of this kernel; None: of any, which
    is enough where a kernel has been asked whether it unpacks the image.
    """
    with open_store(host, readonly=True) as store:
        boots = store.boots(source=RecordSource.UNIT, limit=_LATEST)
    return next(
        (
            boot
            for boot in boots
            if boot.setting == setting
            and (kernel_release is None or _release(boot) == kernel_release)
        ),
        None,
    )


def _release(boot: BootRecord) -> str:
    """Return the kernel's release, without its build."""
    return (boot.boot_class.kernel or "").partition(" ")[0]
