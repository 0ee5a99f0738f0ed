"""The page that tells how lint compares with real kernels, written from the recordings."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.core.codecs import Codec
from initadvisor.image.contents import Verdict
from tests.fixtures.variants import Origin
from tests.judges.arguments import DOUBTED, STRICTER, Argument
from tests.judges.boots import CRASH
from tests.judges.compare import all_cases, recording_of
from tests.judges.judge import Judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.judges.answers import Answer
    from tests.judges.compare import Case

PAGE = Path(__file__).parents[2] / "docs" / "lint-against-the-kernel.md"

_HEAD = """\
# Lint against the kernel

`initadvisor inspect` says of an image whether a kernel would unpack it. Here that is held against
real kernels: each was booted with every image and told to run the archive's last file as its first
process, so that the kernel itself says whether it got that far, and why not.

No image that a kernel refused passes lint. Where lint is stricter, that is listed below with its
reason. This page is written by `python -m tests.judges page` from the answers recorded in
`tests/fixtures/kernel_verdicts/`, and a test holds the two together. What the kernels have not
judged yet, `python -m tests.judges record` shows them.
"""
_STRICTER = """
## Refused by lint, accepted by a kernel

"Accepted" means that the kernel did not complain and found the last file, not that the files are
what they were.
"""
_DOUBTED = """
## Not decided by lint

Its verdict is "unknown" although everything about the kernel is known.
"""
_CRASHES = """
## Images that crash a kernel

Decompressors that read beyond the end of an image find what chance has put there. Where that is the
end of the memory, the thread that unpacks dies, and unless the kernel was told to panic then, the
boot hangs. Lint refuses all of these.

"""
_SILENT = """
## Damaged, and nobody notices

Images that were cut off or had bits flipped; how many of them user-mode Linux unpacked to the last
file; and how many lint passes: what no checksum covers, and checksums that kernels do not compute
and lint only notes. That an image passes is no proof that it is the one that was made; a digest is.
"""


def write_page() -> None:
    """Write the page anew."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page())


def page() -> str:
    """Return what should be on the page."""
    cases = all_cases()
    return "".join(
        (
            _HEAD,
            _judges(cases),
            _STRICTER,
            *(
                _argued(argument, [case for case in cases if case.is_strict])
                for argument in STRICTER
            ),
            _DOUBTED,
            *(
                _argued(argument, [case for case in cases if case.verdict is Verdict.UNKNOWN])
                for argument in DOUBTED
            ),
            _CRASHES,
            _crashes(cases),
            _SILENT,
            _silent(cases),
        )
    )


def _judges(cases: Sequence[Case]) -> str:
    rows = ["", "| kernel | run by | images | accepted | refused | of these without a word |"]
    rows.append("|---|---|---:|---:|---:|---:|")
    for judge in Judge:
        answers = [case.answer for case in cases if case.judge is judge]
        refused = [answer for answer in answers if not answer.accepted]
        silent = sum(not answer.words for answer in refused)
        counts = (len(answers), len(answers) - len(refused), len(refused), silent)
        names = (recording_of(judge).release, judge.description)
        rows.append(f"| {' | '.join(map(str, (*names, *counts)))} |")
    return "\n".join(rows) + "\n"


def _argued(argument: Argument, cases: Sequence[Case]) -> str:
    rows = [f"\n### {argument.title}\n", f"{textwrap.fill(argument.because, 100)}\n"]
    for name in argument.names:
        of_name = [case for case in cases if case.name == name]
        kernels = ", ".join(f"{case.judge}: {_said(case.answer)}" for case in of_name)
        reason = next((case.reason for case in of_name), "")
        rows.append(f"- `{name}` ({kernels}); lint: {reason}")
    return "\n".join(rows) + "\n"


def _said(answer: Answer) -> str:
    if answer.words:
        return f'"{answer.words}"'
    return "accepted" if answer.last else "stops without a word"


def _crashes(cases: Sequence[Case]) -> str:
    crashed: dict[str, list[Judge]] = {}
    for case in cases:
        if case.answer.words.startswith(CRASH):
            crashed.setdefault(case.name, []).append(case.judge)
    return "".join(f"- `{name}` ({', '.join(judges)})\n" for name, judges in crashed.items())


def _silent(cases: Sequence[Case]) -> str:
    rows = ["", "| codec | damaged images | accepted by the kernel | passed by lint |"]
    rows.append("|---|---:|---:|---:|")
    damaged = [case for case in cases if case.origin is Origin.DAMAGE and case.judge is Judge.UML]
    for codec in Codec:
        of_codec = [case for case in damaged if case.name.startswith(f"{codec} ")]
        accepted = sum(case.answer.accepted for case in of_codec)
        passed = sum(case.verdict is Verdict.OK for case in of_codec)
        rows.append(f"| {codec} | {len(of_codec)} | {accepted} | {passed} |")
    return "\n".join(rows) + "\n"
