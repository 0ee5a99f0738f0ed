"""What this machine's own boots tell: evidence for the cost model, how its kernel unpacks."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.advise.recommendation import Assumption
from initadvisor.boots.loader_times import manager_times
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.estimates import Certainty, three_digits
from initadvisor.decide.boot_evidence import BootEvidence, Parameter, Relation
from initadvisor.decide.repeats import middles
from initadvisor.decide.upgrades import counted_pace
from initadvisor.image.kernel import ASYNCHRONOUS_SINCE, kernel_version
from initadvisor.records.boot_class import asked_to_wait
from initadvisor.store.store import open_store
from initadvisor.vm.kernel import NAMED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from initadvisor.decide.boot_evidence import ParameterUpdate, PosteriorSummary
    from initadvisor.decide.upgrades import UpgradePace
    from initadvisor.host import Host
    from initadvisor.records.boot_start import BootMethod
    from initadvisor.records.figures import BootFigures, BootGroupKey


_DAY_S = 86_400
_MOST = 10_000
"""The latest boots that are used: what is left in doubt after so many is not what boots tell."""

_FAR = 1.5
"""A boot that takes so many times as long as the others, or they as it, was disturbed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boots:
    """The boots of this machine that tell something.

    ``warnings``: why there may be more, and which of them are far from the others.
    ``pace``: of its kernel upgrades, counted from all that are recorded, None where they are few.
    """

    evidence: tuple[BootEvidence, ...] = ()
    pace: UpgradePace | None = None
    warnings: tuple[str, ...] = ()


def recorded_boots(host: Host, kernel_release: str | None) -> Boots:
    """Return what is recorded of this machine's boots.

    The latest one says what the machine is now: boots of its class count in full, if it was the
    kernel that the image is for, and boots of another board or processor not at all. A data base
    that cannot be read is a warning: the advice then rests on less.
    """
    try:
        with open_store(host, readonly=True) as store:
            figures, damaged = store.boot_figures(limit=_MOST), store.damaged()
    except InitadvisorError as err:
        return Boots(warnings=(f"nothing of the recorded boots is used: {err.message}",))
    warnings = _left_out(damaged)
    pace = counted_pace((boot.started_at, _release(boot)) for boot in figures)
    latest = next((boot for boot in figures if boot.kind.kernel_counts), None)
    if latest is None:
        return Boots(pace=pace, warnings=warnings)
    now = _Now(
        at=latest.started_at,
        class_key=latest.kind.class_key if _is_of(latest, kernel_release) else None,
        hardware_key=latest.kind.hardware_key,
        method=next((b.kind.method for b in figures if b.kind.loader_counts and b.read_us), None),
        boot_disk=next((disk for boot in figures if (disk := boot.kind.boot_disk)), None),
    )
    evidence = tuple(found for boot in figures if (found := _evidence(boot, now)))
    return Boots(evidence=evidence, pace=pace, warnings=(*warnings, *_outlying(evidence)))


def _left_out(damaged: Sequence[str]) -> tuple[str, ...]:
    if not damaged:
        return ()
    what = f"{len(damaged)} damaged record{'s' * (len(damaged) > 1)} of what was measured"
    return (f"{what} left out: see `initadvisor doctor`",)


def _outlying(evidence: Sequence[BootEvidence]) -> Iterator[str]:
    """Say of which images some boots took far more or less time than the others."""
    unpack_ms, read_ms = defaultdict(list), defaultdict(list)
    for boot in evidence:
        if boot.relation is Relation.SAME and boot.digest:
            if boot.unpack_us:
                unpack_ms[boot.digest].append(boot.unpack_us / 1000)
            if boot.read_us:
                way = f"{boot.digest} {boot.read_source} {boot.read_beside}"
                read_ms[way].append(boot.read_us / 1000)
    settings = {boot.digest: boot.setting for boot in evidence if boot.digest}
    for what, times_ms in (("unpack", unpack_ms), ("load", read_ms)):
        for key, found in middles(times_ms).items():
            far_ms = [ms for ms in found.outliers if not 1 / _FAR < ms / found.median < _FAR]
            if far_ms:
                each = ", ".join(f"{ms:.0f}" for ms in far_ms)
                yield (
                    f"{len(far_ms)} of {found.count} boots of {settings[key.split()[0]]} took "
                    f"{each} ms to {what} it, the others about {found.median:.0f}: what is so far "
                    "from the others hardly counts"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Now:
    """What the machine is now, by its latest boots.

    ``class_key``: None where the image is for another kernel. ``method``: how the latest boot was
    started whose reading counts.
    """

    at: datetime
    class_key: str | None
    hardware_key: str
    method: BootMethod | None
    boot_disk: str | None

    def reads_like(self, kind: BootGroupKey) -> bool:
        """Tell whether such boots read by today's loader, and not from what is another disk.

        A disk that is not known may be today's: what describes itself to nobody, such as an array,
        mostly does so from the first boot to the last.
        """
        return (
            kind.loader_counts
            and kind.method is self.method
            and (kind.boot_disk is None or kind.boot_disk == self.boot_disk)
        )


def _is_of(boot: BootFigures, kernel_release: str | None) -> bool:
    """Tell whether the boot was of this kernel."""
    release = _release(boot)
    return release is None or kernel_release in {None, release}


def _release(boot: BootFigures) -> str | None:
    """Return the kernel's release, with which ``uname -rv`` begins, None where it is not known."""
    kernel = boot.kind.kernel
    return kernel.partition(" ")[0] if kernel else None


def _evidence(boot: BootFigures, now: _Now) -> BootEvidence | None:
    """Return what a boot tells the model, None for nothing, or for figures no boot can have.

    Which image it unpacked counts only where that is certain.
    """
    kind = boot.kind
    if not kind.kernel_counts or kind.hardware_key != now.hardware_key:
        return None
    certain = kind.certainty is Certainty.CERTAIN
    alike = now.reads_like(kind)
    with suppress(ValueError):
        return BootEvidence(
            relation=Relation.SAME if kind.class_key == now.class_key else Relation.NEAR,
            class_key=kind.class_key,
            age_days=max(0.0, (now.at - boot.started_at).total_seconds() / _DAY_S),
            digest=kind.image_sha256 if certain else None,
            setting=kind.setting if certain else None,
            loaded_mb=boot.loaded_bytes / 1e6 if boot.loaded_bytes else None,
            unpack_us=boot.unpack_us,
            begin_to_init_us=boot.begin_to_init_us,
            waiting=kind.waiting,
            shadow_us=boot.shadow_us,
            rest_us=boot.rest_us,
            read_us=boot.read_us if alike else None,
            read_source=kind.read_source if alike else None,
            read_beside=kind.read_beside if alike else (),
        )
    return None


SHARED_WORDS = {
    Parameter.LOADER: ("the loader reads", "MB/s"),
    Parameter.FIXED: ("what every image pays", "ms"),
    Parameter.SHADOW: ("the overlap", "ms"),
    Parameter.REST: ("what follows the unpack", "ms"),
    Parameter.POPULATE: ("creating the files", "ms"),
    Parameter.CPU: ("the kernel's decompression, by the prediction", "times"),
    Parameter.LAB: ("the bare machine, by the virtual one", "times"),
}
"""Each quantity in words, and the unit of its values."""


def what_was_learnt(summary: PosteriorSummary) -> Iterator[Assumption]:
    """Say what the boots taught, each with its interval before and after, and whence the former."""
    for update in summary.updates:
        if update.boots:
            yield Assumption(about=update.what, text=_said(update), boots=update.boots)
    if Parameter.LOADER in summary.informed and summary.read_sizes == 1:
        yield Assumption(
            about=Parameter.LOADER,
            text="the boots loaded images of one size only, which bounds how fast the loader reads "
            "and does not tell it",
        )


def _said(update: ParameterUpdate) -> str:
    words, unit = SHARED_WORDS[update.what]
    before, after = update.prior, update.posterior
    of = "1 boot" if update.boots == 1 else f"{update.boots} boots"
    mean, low, high = map(three_digits, (after.middle, after.low, after.high))
    return (
        f"{words}: {mean} {unit} ({low}..{high}), "
        f"from {of} of this machine; without them {three_digits(before.middle)} "
        f"({three_digits(before.low)}..{three_digits(before.high)}){_whence(update)}"
    )


def _whence(update: ParameterUpdate) -> str:
    """Name the source of the prior, unless what the prediction rests on is said anyway."""
    return "" if update.what is Parameter.CPU else f", {update.prior.source or 'assumed'}"


_MB = 1_000_000
_USUAL_KERNEL_MB = 12.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BootContext:
    """How the kernel of an image boots on this machine.

    ``asynchronous``: unpacking runs beside other work, so that part of it can be hidden; None where
    the kernel is unknown. ``one_processor``: there it takes turns with that work, and nothing is
    hidden. ``whole_boot_ms``: this machine's latest boot, firmware and loader
    included, None where systemd does not tell. ``kernel_mb``: the kernel file, in 10^6 bytes.
    """

    asynchronous: bool | None
    whole_boot_ms: float | None
    kernel_mb: float
    kernel_mb_source: str
    one_processor: bool = False


_PROCESSORS = "/sys/devices/system/cpu/present"


def boot_context(host: Host, kernel_release: str | None) -> BootContext:
    """Gather what this machine tells about booting the kernel ``kernel_release``."""
    kernel_mb, source = _kernel_size(host, kernel_release)
    return BootContext(
        asynchronous=_asynchronous(host, kernel_release),
        whole_boot_ms=_whole_boot_ms(host),
        kernel_mb=kernel_mb,
        kernel_mb_source=source,
        one_processor=(host.read_text(_PROCESSORS) or "").strip() == "0",
    )


def _asynchronous(host: Host, release: str | None) -> bool | None:
    """Tell whether unpacking is asynchronous: since Linux 5.13, unless ``initramfs_async=0``.

    The command line is that of the running kernel and counts for that kernel only.
    """
    version = kernel_version(release or "")
    if version is None:
        return None
    if version < ASYNCHRONOUS_SINCE:
        return False
    if release != host.kernel_release():
        return True
    return not asked_to_wait(host.read_text("/proc/cmdline") or "")


def _whole_boot_ms(host: Host) -> float | None:
    """Return firmware, loader, kernel and user space together, as systemd's manager knows them.

    FirmwareTimestampMonotonic is the time spent before the kernel's clock started, and
    FinishTimestampMonotonic when the boot was complete (org.freedesktop.systemd1(5)).
    """
    times = manager_times(host)
    if times.finish_us is None:
        return None
    return (max(times.firmware_us or 0, times.loader_us or 0) + times.finish_us) / 1000


def _kernel_size(host: Host, release: str | None) -> tuple[float, str]:
    if release:
        for place in (name.format(release=release) for name in NAMED):
            try:
                return host.path(place).stat().st_size / _MB, place
            except OSError:
                continue
    return _USUAL_KERNEL_MB, f"a usual kernel of {_USUAL_KERNEL_MB:g} MB is assumed"
