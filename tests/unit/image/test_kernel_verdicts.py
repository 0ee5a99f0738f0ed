"""Lint against what real kernels said of the same bytes, as it was recorded."""

from __future__ import annotations

import pytest

from initadvisor.image.contents import Verdict
from tests.fixtures.images import archive, gzip_member
from tests.fixtures.variants import Exhibit
from tests.judges.answers import Answer, Recording, digest, kept_exhibits
from tests.judges.arguments import DOUBTED, STRICTER, Argument
from tests.judges.compare import all_cases, compare, recording_of
from tests.judges.judge import Judge
from tests.judges.page import PAGE, page


@pytest.mark.parametrize("judge", Judge)
def test_every_image_was_judged(judge: Judge) -> None:
    answers, kept = recording_of(judge).answers, kept_exhibits()
    names = [exhibit.name for exhibit in judge.shown]
    missing = [name for name in names if name not in answers or name not in kept]
    missing += [
        name
        for name in names
        if name not in missing and answers[name].sha256 != digest(kept[name].handed)
    ]
    assert not missing, f"record anew with `python -m tests.judges record --engine {judge}`"


@pytest.mark.parametrize("judge", Judge)
def test_no_answer_is_about_an_image_that_is_gone(judge: Judge) -> None:
    assert recording_of(judge).answers.keys() <= {exhibit.name for exhibit in judge.shown}


def test_images_have_names_of_their_own() -> None:
    names = [exhibit.name for exhibit in Judge.UML.shown]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("judge", Judge)
def test_lint_passes_nothing_that_a_kernel_refuses(judge: Judge) -> None:
    holes = [case for case in all_cases() if case.judge is judge and case.is_hole]
    assert not holes


def test_every_refusal_of_what_a_kernel_accepts_is_argued() -> None:
    assert {case.name for case in all_cases() if case.is_strict} == _named(STRICTER)


def test_every_doubt_is_argued() -> None:
    doubted = {case.name for case in all_cases() if case.verdict is Verdict.UNKNOWN}
    assert doubted == _named(DOUBTED)


def test_no_image_is_argued_about_twice() -> None:
    names = [name for argument in (*STRICTER, *DOUBTED) for name in argument.names]
    assert len(set(names)) == len(names)


def test_the_page_says_what_was_recorded() -> None:
    assert PAGE.read_text() == page(), "write it anew with `python -m tests.judges page`"


@pytest.mark.parametrize(
    ("behind", "words", "last", "hole", "strict"),
    [
        (b"", "", True, False, False),
        (b"", "decompressor failed", True, True, False),
        (b"", "", False, True, False),
        (b"junk", "", True, False, True),
        (b"junk", "invalid magic", True, False, False),
    ],
)
def test_holes_and_strictness_are_told_apart(
    behind: bytes, words: str, last: bool, hole: bool, strict: bool
) -> None:
    image = gzip_member(archive()) + behind
    answer = Answer(sha256=digest(image), words=words, last=last)
    options = {"CONFIG_BLK_DEV_INITRD": "y", "CONFIG_RD_GZIP": "y"}
    recording = Recording(release="6.1", options=options, answers={"one": answer})
    case = compare(Exhibit(name="one", image=image, handed=image), Judge.UML, recording)
    assert (case.is_hole, case.is_strict) == (hole, strict)


def _named(arguments: tuple[Argument, ...]) -> set[str]:
    return {name for argument in arguments for name in argument.names}
