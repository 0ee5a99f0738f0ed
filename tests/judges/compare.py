"""Lint's verdicts held against the kernels' answers."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from initadvisor.core.errors import BadImageError
from initadvisor.image.contents import ImageContents, Verdict
from initadvisor.image.lint import lint
from initadvisor.image.scan import scan
from tests.judges.answers import kept_exhibits, read
from tests.judges.judge import Judge

if TYPE_CHECKING:
    from tests.fixtures.variants import Exhibit, Origin
    from tests.judges.answers import Answer, Recording


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One image before one kernel; ``reason`` is lint's first, empty where it is content."""

    name: str
    judge: Judge
    verdict: Verdict
    reason: str
    answer: Answer
    origin: Origin

    @property
    def is_hole(self) -> bool:
        """Whether lint passes what the kernel refuses."""
        return self.verdict is Verdict.OK and not self.answer.accepted

    @property
    def is_strict(self) -> bool:
        """Whether lint refuses what the kernel accepts."""
        return self.verdict is Verdict.REFUSED and self.answer.accepted


def compare(exhibit: Exhibit, judge: Judge, recording: Recording) -> Case:
    """Judge an image for the kernel that answered; what cannot be read is refused as well."""
    contents = _contents(exhibit.image)
    if isinstance(contents, str):
        verdict, reason = Verdict.REFUSED, contents
    else:
        found = lint(contents, recording.config, recording.release)
        verdict, reason = found.verdict, next(iter(found.reasons), "")
    return Case(
        name=exhibit.name,
        judge=judge,
        verdict=verdict,
        reason=reason,
        answer=recording.answers[exhibit.name],
        origin=exhibit.origin,
    )


@cache
def all_cases() -> tuple[Case, ...]:
    """Return every image that was kept before every kernel that has judged it."""
    return tuple(
        compare(exhibit, judge, recording)
        for judge in Judge
        for recording in [recording_of(judge)]
        for name, exhibit in kept_exhibits().items()
        if name in recording.answers
    )


@cache
def recording_of(judge: Judge) -> Recording:
    """Return what a judge said."""
    return read(judge)


@cache
def _contents(image: bytes) -> ImageContents | str:
    """Return what is in an image, or why it cannot be read."""
    try:
        return scan(io.BytesIO(image))
    except BadImageError as err:
        return str(err)
