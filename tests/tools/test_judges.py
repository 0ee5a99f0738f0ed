"""Real kernels still say what was recorded, and lint is right about images made just now."""

from __future__ import annotations

import io
import os
import random

import pytest

from initadvisor.image.contents import Verdict
from initadvisor.image.lint import lint
from initadvisor.image.scan import scan
from tests.fixtures.images import archive
from tests.fixtures.small_images import program_archive
from tests.fixtures.variants.tools import Fed, ToolRun
from tests.judges import answers
from tests.judges.boots import PARAMETERS, ask, ask_unified
from tests.judges.judge import Judge
from tests.judges.kernels import kernel_of
from tests.judges.tool_images import output_of
from tests.judges.unified import unified_kernel

pytestmark = pytest.mark.tools

_SEED = int(os.environ.get("INITADVISOR_SEED", "1"))
"""Says which of the recorded answers are asked for again: others with another one."""
_ASKED_AGAIN = {Judge.UML: 14, Judge.TCG: 2, Judge.TCG_LATER: 1}


@pytest.mark.parametrize(
    ("judge", "number"),
    [
        pytest.param(judge, number, id=f"{judge}-{number}-INITADVISOR_SEED={_SEED}")
        for judge, count in _ASKED_AGAIN.items()
        for number in range(count)
    ],
)
def test_a_kernel_says_what_was_recorded(judge: Judge, number: int) -> None:
    chosen = random.Random(_SEED).sample(judge.shown, _ASKED_AGAIN[judge])[number]
    recorded = answers.read(judge).answers[chosen.name]
    heard = ask(kernel_of(judge), chosen.handed)
    assert (heard.words, heard.last) == (recorded.words, recorded.last), (
        f"{chosen.name}: if {heard.release} is right, record anew with `python -m tests.judges"
        f" record --engine {judge} --again --only {chosen.name!r}`"
    )


@pytest.mark.parametrize(
    "command",
    [
        "gzip -9",
        "bzip2 -9",
        "lzma -9",
        "xz --check=crc32 -9e",
        "lzop -9",
        "lz4 -l -12",
        "zstd --ultra -22",
        "zstd -T0 -19 --long=27",
    ],
)
def test_a_large_image_made_now_is_unpacked_and_passes(command: str) -> None:
    content = program_archive(6 << 20) + archive({"last": b"x"})
    image = output_of(ToolRun(command=command, fed=Fed.PIPE), content)
    heard = ask(kernel_of(Judge.UML), image)
    assert (heard.words, heard.last) == ("", True)
    found = lint(scan(io.BytesIO(image)), answers.read(Judge.UML).config, heard.release)
    assert found.verdict is Verdict.OK, found


@pytest.mark.parametrize(
    ("behind", "accepted", "verdict"),
    [(b"", True, Verdict.OK), (b"junk", False, Verdict.REFUSED)],
)
def test_a_unified_kernel_image_boots_where_it_passes(
    behind: bytes, accepted: bool, verdict: Verdict
) -> None:
    initrd = output_of(ToolRun(command="zstd -19"), archive({"d/text": b"text", "last": b"x"}))
    image = unified_kernel(initrd + behind, f"console=ttyS0 {PARAMETERS}")
    heard = ask_unified(image)
    assert (heard.last and not heard.words) == accepted, heard
    found = lint(scan(io.BytesIO(image)), answers.read(Judge.TCG).config, heard.release)
    assert found.verdict is verdict, found
