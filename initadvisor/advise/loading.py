"""What loading modules takes that are stored compressed or not: by boots, it is never predicted.

Boots of two images are compared that differ in nothing else, as the records of ``apply`` tell: how
long each was in its initramfs, from /init to systemd on the root file system.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Final

from initadvisor.bootloaders.detect import detect_boot_loader
from initadvisor.bootloaders.passphrases import passphrase_prompt
from initadvisor.bootloaders.safety import open_devices
from initadvisor.boots.loaded_files import loaded_part
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.estimates import Estimate, Evidence
from initadvisor.decide.regression import median_saving
from initadvisor.generators import VariantName
from initadvisor.host.files import open_regular, sha256_of
from initadvisor.store.store import open_store
from initadvisor.transaction.log import read_records
from initadvisor.transaction.transaction import FileRole, Transaction, TransactionState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from initadvisor.host import Host
    from initadvisor.store.store import Store
    from initadvisor.transaction.transaction import Content

    _Times: TypeAlias = dict[VariantName, list[float]]

_OTHER: Final = {
    VariantName.MODULES_COMPRESSED: VariantName.MODULES_DECOMPRESSED,
    VariantName.MODULES_DECOMPRESSED: VariantName.MODULES_COMPRESSED,
}
"""The variants that change nothing but how modules and firmware are stored."""

_MOST = 10_000
_FAR = 1.5
"""A boot that takes so many times as long as the others, or they as it, was disturbed."""

_LEAST = 3
"""Of fewer nobody knows which is far from the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadingTime:
    """What boots with modules stored as the ``variant`` has them take less in the initramfs.

    ``boots`` of them are compared with ``others``, which have modules stored the other way.
    ``saved_ms`` is None where that is not measured; ``missing`` says why, and ``boots_tell``
    whether boots would. ``disturbed``: how many were far from those alike and are left out.
    """

    variant: VariantName
    boots: int = 0
    others: int = 0
    saved_ms: Estimate | None = None
    missing: str = ""
    boots_tell: bool = True
    disturbed: int = 0

    @property
    def words(self) -> str:
        """What was measured, or what is missing for that."""
        if (saved := self.saved_ms) is None:
            return f"what loading takes then is not measured: {self.missing}"
        more = saved.middle < 0
        bounds = (-saved.high, -saved.low) if more else (saved.low, saved.high)
        low, high = (f"{ms:.0f}" for ms in bounds)
        left_out = f"; {self.disturbed} disturbed, left out" if self.disturbed else ""
        return (
            f"loading took {abs(saved.middle):.0f} ms {'more' if more else 'less'} (95 %: "
            f"{low}..{high}), by {_boots(self.boots)} and {_boots(self.others)} without{left_out}"
        )


def loading_time(host: Host, variant: VariantName) -> LoadingTime | None:
    """Compare boots with modules stored as a variant has them with those stored the other way.

    None of a variant that changes what is in the image. Boots of one class are compared, of the
    hardware that the latest was of. The first recorded boot of a kernel does not count: it may be
    the first after an upgrade. Nor does one that is no sample, or far from those alike. Where a
    passphrase may be asked for, nothing is compared.
    """
    if variant not in _OTHER:
        return None
    try:
        return _loading_time(host, variant)
    except InitadvisorError as err:
        return LoadingTime(variant=variant, missing=err.message, boots_tell=False)


def _loading_time(host: Host, variant: VariantName) -> LoadingTime:
    ways = _ways(host, [r for r in read_records(host) if isinstance(r, Transaction)])
    if variant not in ways.values():
        return LoadingTime(variant=variant, missing=f"no boot {_with(variant)} is recorded")
    if asked := _asks(host):
        missing = f"boots do not tell, since {asked}"
        return LoadingTime(variant=variant, missing=missing, boots_tell=False)
    with open_store(host, readonly=True) as store:
        found = _in_initramfs(store, ways)
    return _compared(variant, found)


def applied_loading(host: Host, transactions: Sequence[Transaction]) -> str | None:
    """Say what the latest change of how modules are stored has made of loading them.

    None where there was none, or where it was undone and nothing was measured.
    """
    changes = [t for t in transactions if t.setting and t.setting.variant in _OTHER]
    if not changes or (setting := changes[-1].setting) is None:
        return None
    found = loading_time(host, VariantName(setting.variant))
    if found is None or (not found.saved_ms and changes[-1].state is TransactionState.UNDONE):
        return None
    return f"{found.variant.description}: {found.words}"


def _boots(count: int) -> str:
    return "1 boot" if count == 1 else f"{count} boots"


def _with(variant: VariantName) -> str:
    return f"with {variant.description}"


def _ways(host: Host, transactions: Iterable[Transaction]) -> Mapping[str, VariantName]:
    """Return how modules are stored in images that hold the same otherwise, by their SHA-256.

    That of what is loaded of them. They are those of the latest change of that, and what changes of
    it and of the compression alone have made of them, or them of.
    """
    pairs: list[tuple[str, str, bool]] = []
    ways: dict[str, VariantName] = {}
    for transaction in transactions:
        change = transaction.setting
        is_of_ways = change is not None and change.variant in _OTHER
        if change is None or change.with_updates or not (is_of_ways or not change.variant):
            continue
        images = [*_loaded(host, transaction)]
        pairs += [(before, after, is_of_ways) for before, after in images]
        if is_of_ways:
            ways = {after: VariantName(change.variant) for _, after in images}
    known = 0
    while known != len(ways):
        known = len(ways)
        for before, after, changes in pairs:
            for one, other in ((before, after), (after, before)):
                if one in ways:
                    ways.setdefault(other, _OTHER[ways[one]] if changes else ways[one])
    return ways


def _loaded(host: Host, transaction: Transaction) -> Iterator[tuple[str, str]]:
    """Yield the digests of what is loaded of each image, before and after.

    Of a unified kernel image that is told as long as both are there: replaced and kept, and new.
    """
    for file in transaction.files:
        if file.role is not FileRole.IMAGE or not file.before or not file.after:
            continue
        before, after = file.before.content, file.after
        if not file.path.endswith(".efi"):
            yield before.sha256, after.sha256
        elif file.backup:
            found = _initrd_sha256(host, file.backup, before)
            made = _initrd_sha256(host, file.path, after)
            if found and made:
                yield found, made


def _initrd_sha256(host: Host, path: str, content: Content) -> str | None:
    """Return the digest of a unified kernel image's initramfs, if the file is what it was."""
    try:
        with open_regular(host.path(path)) as file:
            if sha256_of(file) != content.sha256:
                return None
            part = loaded_part(file, is_uki=True)
            return sha256_of(file, offset=part.offset, size_bytes=part.size_bytes)
    except (InitadvisorError, OSError):
        return None


def _asks(host: Host) -> str | None:
    """Say why somebody may have to type in the initramfs, None where nobody has to."""
    if not open_devices(host):
        return None
    try:
        return passphrase_prompt(host, detect_boot_loader(host))
    except InitadvisorError as err:
        return f"it is not known whether a passphrase is asked for: {err.message}"


def _in_initramfs(store: Store, ways: Mapping[str, VariantName]) -> Iterable[_Times]:
    """Return how long boots were in the initramfs, in ms, by way, for each class; the latest first.

    A class has one kernel, command line, firmware and power supply.
    """
    figures = store.boot_figures(limit=_MOST)
    latest = next((boot for boot in figures if boot.kind.kernel_counts), None)
    first = {boot.kind.kernel: boot.started_at for boot in figures}  # the earliest come last
    found: dict[str, _Times] = {}
    for boot in store.boots_of_images([*ways]):
        if (
            latest
            and boot.image
            and boot.initramfs_us
            and boot.kernel_counts
            and boot.hardware_key == latest.kind.hardware_key
            and boot.started_at != first.get(boot.boot_class.kernel)
        ):
            times = found.setdefault(boot.class_key, {name: [] for name in _OTHER})
            times[ways[boot.image.sha256]].append(boot.initramfs_us / 1000)
    return found.values()


def _compared(variant: VariantName, classes: Iterable[_Times]) -> LoadingTime:
    """Return what the latest class tells that tells something."""
    found = LoadingTime(variant=variant, missing=f"no boot {_with(variant)} counts yet")
    for times in classes:
        with_it, otherwise = (_undisturbed(times[name]) for name in (variant, _OTHER[variant]))
        saved = median_saving(otherwise, with_it)
        disturbed = sum(map(len, times.values())) - len(with_it) - len(otherwise)
        boots, others = len(with_it), len(otherwise)
        if saved:
            middle, low, high = saved
            return LoadingTime(
                variant=variant,
                boots=boots,
                others=others,
                saved_ms=Estimate(mean=middle, low=low, high=high, source=str(Evidence.BOOTS)),
                disturbed=disturbed,
            )
        if boots > found.boots:
            what = "one more boot is needed"
            missing = what if others else f"no boot {_with(_OTHER[variant])} counts yet"
            found = replace(found, boots=boots, others=others, missing=missing)
    return found


def _undisturbed(times_ms: Sequence[float]) -> Sequence[float]:
    if len(times_ms) < _LEAST:
        return times_ms
    middle = median(times_ms)
    return [ms for ms in times_ms if 1 / _FAR < ms / middle < _FAR]
