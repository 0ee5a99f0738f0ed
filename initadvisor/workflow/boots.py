"""What this machine's own boots tell: evidence for the cost model, and in words what it taught."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.model.boot_evidence import BootEvidence, Relation, Shared
from initadvisor.model.certainty import Certainty
from initadvisor.model.errors import InitadvisorError
from initadvisor.store.store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.host import Host
    from initadvisor.model.boot_evidence import Learnt, Lessons
    from initadvisor.model.boot_figures import BootFigures

_DAY_S = 86_400
_MOST = 10_000
"""The latest boots that are used: what is left in doubt after so many is not what boots tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boots:
    """The boots of this machine that tell something; ``warnings``: why there may be more."""

    evidence: tuple[BootEvidence, ...] = ()
    warnings: tuple[str, ...] = ()


def recorded_boots(host: Host, kernel_release: str | None) -> Boots:
    """Return what is recorded of this machine's boots.

    The latest one says of which class the machine is now; boots of that class count in full, if it
    was the kernel that the image is for. A data base that cannot be read is a warning: the advice
    then rests on less.
    """
    try:
        with open_store(host, readonly=True) as store:
            figures = store.boot_figures(limit=_MOST)
    except InitadvisorError as err:
        return Boots(warnings=(f"nothing of the recorded boots is used: {err.message}",))
    if not figures:
        return Boots()
    latest = figures[0]
    today = latest.kind.class_key if _is_of(latest, kernel_release) else None
    evidence = (_evidence(boot, latest, today) for boot in figures)
    return Boots(evidence=tuple(found for found in evidence if found))


def _is_of(boot: BootFigures, kernel_release: str | None) -> bool:
    """Tell whether the boot was of this kernel; ``uname -rv`` begins with the release."""
    kernel = boot.kind.kernel
    return kernel is None or kernel_release in {None, kernel.partition(" ")[0]}


def _evidence(boot: BootFigures, latest: BootFigures, today: str | None) -> BootEvidence | None:
    """Return what a boot tells the model, None for nothing, or for figures no boot can have.

    Which image it unpacked counts only where that is certain.
    """
    kind = boot.kind
    if not kind.kernel_counts:
        return None
    certain = kind.certainty is Certainty.CERTAIN
    with suppress(ValueError):
        return BootEvidence(
            relation=Relation.SAME if kind.class_key == today else Relation.NEAR,
            class_key=kind.class_key,
            age_days=max(0.0, (latest.started_at - boot.started_at).total_seconds() / _DAY_S),
            digest=kind.image_sha256 if certain else None,
            setting=kind.setting if certain else None,
            loaded_mb=boot.loaded_bytes / 1e6 if boot.loaded_bytes else None,
            unpack_us=boot.unpack_us,
            begin_to_init_us=boot.begin_to_init_us,
            waiting=kind.waiting,
            shadow_us=boot.shadow_us,
            rest_us=boot.rest_us,
            read_us=boot.read_us if kind.loader_counts else None,
            read_source=kind.read_source if kind.loader_counts else None,
            read_beside=kind.read_beside if kind.loader_counts else (),
        )
    return None


_WORDS = {
    Shared.LOADER: ("the loader reads", "MB/s"),
    Shared.FIXED: ("what every image pays (L)", "ms"),
    Shared.SHADOW: ("the shadow (B1)", "ms"),
    Shared.REST: ("what follows the unpack (B2)", "ms"),
    Shared.POPULATE: ("creating the files (P)", "ms"),
    Shared.CPU: ("the kernel's decompression, by the prediction", "times"),
    Shared.LAB: ("the bare machine, by the virtual one", "times"),
}


def what_was_learnt(lessons: Lessons) -> Iterator[str]:
    """Say what the boots taught, each with its interval before and after."""
    for learnt in lessons.learnt:
        if learnt.boots:
            yield _said(learnt)
    one_size = any(found.what is Shared.LOADER and found.boots for found in lessons.learnt)
    if one_size and lessons.read_sizes == 1:
        yield (
            "the boots loaded images of one size only, which bounds how fast the loader reads and "
            "does not tell it"
        )


def _said(learnt: Learnt) -> str:
    words, unit = _WORDS[learnt.what]
    before, after = learnt.prior, learnt.posterior
    of = "1 boot" if learnt.boots == 1 else f"{learnt.boots} boots"
    return (
        f"{words}: {_rounded(after.mean)} {unit} ({_rounded(after.low)}..{_rounded(after.high)}), "
        f"from {of} of this machine; without them {_rounded(before.mean)} "
        f"({_rounded(before.low)}..{_rounded(before.high)})"
    )


def _rounded(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
