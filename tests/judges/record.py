"""Recording answers: one after the other, each kept as it comes, so that it can be interrupted."""

from __future__ import annotations

import dataclasses
import fnmatch
import sys
from typing import TYPE_CHECKING

from tests.judges import answers
from tests.judges.boots import ask
from tests.judges.kernels import kernel_of

if TYPE_CHECKING:
    from tests.judges.judge import Judge


def record(judge: Judge, *, only: str = "*", again: bool = False) -> None:
    """Show a judge every image it has not judged yet; ``again``: also those that it has.

    Answers to what is no longer shown are dropped, and all of them when the kernel is another one.
    """
    kernel = kernel_of(judge)
    shown = {exhibit.name: exhibit for exhibit in judge.shown}
    chosen = {name: shown[name] for name in fnmatch.filter(shown, only)}
    answers.keep_exhibits(chosen.values())
    release = ask(kernel, shown["cat"].handed).release
    kept = answers.read(judge)
    recorded = {
        name: answer
        for name, answer in kept.answers.items()
        if kept.release == release
        and name in shown
        and (name not in chosen or answer.sha256 == answers.digest(chosen[name].handed))
    }
    recording = answers.Recording(release=release, options=kernel.options, answers=recorded)
    answers.write(judge, recording)
    missing = [name for name in chosen if again or name not in recorded]
    known = {} if again else {answer.sha256: answer for answer in recorded.values()}
    for number, name in enumerate(missing, 1):
        sha256 = answers.digest(shown[name].handed)
        if sha256 not in known:
            heard = ask(kernel, shown[name].handed)
            known[sha256] = answers.Answer(sha256=sha256, words=heard.words, last=heard.last)
        recorded[name] = known[sha256]
        answers.write(judge, dataclasses.replace(recording, answers=recorded))
        said = known[sha256].words or ("accepted" if known[sha256].last else "silently cut short")
        sys.stderr.write(f"{judge} {number}/{len(missing)} {name}: {said}\n")
