"""What became of the images of a lab run."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from initadvisor.decide.repeats import middles
from initadvisor.records.lab import BootKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from initadvisor.decide.repeats import Middle
    from initadvisor.records.lab import LabSample, LabSubject, LostBoot, RecordedRun


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectResult:
    """One image of a run: its samples, the boots that gave none, and what follows.

    ``unpack_ms``: None where no boot was for that. ``init_ms``: the median time from the beginning
    of unpacking until /init would run.
    """

    subject: LabSubject
    unpack_ms: Middle | None
    init_ms: float | None
    samples: tuple[LabSample, ...]
    lost: tuple[LostBoot, ...]


def results(recorded: RecordedRun) -> tuple[SubjectResult, ...]:
    """Return what a run tells of each of its images, in the order in which it had them."""
    unpack = middles(times_ms(recorded.samples, BootKind.UNPACK))
    init = times_ms(recorded.samples, BootKind.INIT)
    return tuple(
        SubjectResult(
            subject=subject,
            unpack_ms=unpack.get(subject.sha256),
            init_ms=median(init[subject.sha256]) if subject.sha256 in init else None,
            samples=tuple(s for s in recorded.samples if s.image_sha256 == subject.sha256),
            lost=tuple(boot for boot in recorded.lost if boot.image_sha256 == subject.sha256),
        )
        for subject in recorded.run.subjects
    )


def times_ms(samples: Iterable[LabSample], kind: BootKind) -> dict[str, list[float]]:
    """Return the times of one kind of boots, in ms, by the digest of the image."""
    times: defaultdict[str, list[float]] = defaultdict(list)
    for sample in samples:
        time_us = sample.unpack_us if kind is BootKind.UNPACK else sample.init_us
        if sample.kind is kind and time_us is not None and time_us > 0:
            times[sample.image_sha256].append(time_us / 1000)
    return dict(times)
