"""Lint's verdicts held against the kernels' answers."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.image.lint import lint
from initadvisor.image.scan import scan
from initadvisor.model.errors import BadImageError
from initadvisor.model.image import Verdict

if TYPE_CHECKING:
    from tests.fixtures.variants import Exhibit
    from tests.judges.answers import Answer, Recording
    from tests.judges.judge import Judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One image before one kernel; ``reason`` is lint's first, empty where it is content."""

    name: str
    judge: Judge
    verdict: Verdict
    reason: str
    answer: Answer

    @property
    def is_hole(self) -> bool:
        """Whether lint passes what the kernel refuses."""
        return self.verdict is Verdict.OK and not self.answer.accepted

    @property
    def is_strict(self) -> bool:
        """Whether lint refuses what the kernel accepts."""
        return self.verdict is Verdict.REFUSED and self.answer.accepted


def case(exhibit: Exhibit, judge: Judge, recording: Recording) -> Case:
    """Judge an image for the kernel that answered; what cannot be read is refused as well."""
    try:
        found = lint(scan(io.BytesIO(exhibit.image)), recording.config, recording.release)
    except BadImageError as err:
        verdict, reason = Verdict.REFUSED, str(err)
    else:
        verdict, reason = found.verdict, next(iter(found.reasons), "")
    return Case(
        name=exhibit.name,
        judge=judge,
        verdict=verdict,
        reason=reason,
        answer=recording.answers[exhibit.name],
    )
