"""The answer in words says what was decided, how sure that is, and never more."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from initadvisor.advise.recommendation import Assumption, Plan, PlannedBoots, Rival
from initadvisor.cli.explain_text import advice
from initadvisor.cli.recommend import as_document
from initadvisor.cli.recommend_text import print_recommendation, verdict
from initadvisor.core.config import Objective
from initadvisor.core.settings import Setting
from initadvisor.decide.boot_evidence import Parameter
from initadvisor.decide.cost import BestRange, DecidingFact, Factor, Outcome
from initadvisor.decide.next_boot import Purpose
from initadvisor.image.contents import Lint, Verdict
from initadvisor.target.kernel_room import KernelRoom
from tests.fixtures.answers import (
    LOADER_DECIDES,
    LZ4,
    ZSTD,
    answer,
    contrast,
    decision,
    figure,
    row,
)

if TYPE_CHECKING:
    from initadvisor.advise.recommendation import Recommendation
    from initadvisor.core.estimates import Estimate
    from initadvisor.decide.cost import Decision

GAIN = figure(61.4, 20.2, 103.9)


WIDER = figure(-49, -120, 23)


def first(of: Recommendation) -> str:
    line, *_ = verdict(of)
    return line


def screen(of: Recommendation, capsys: pytest.CaptureFixture[str], **options: bool) -> list[str]:
    """Return the lines of the screen; none is wider than 80 columns or ends in blanks."""
    print_recommendation(of, evidence=options.get("evidence", False))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line != line.rstrip()] == []
    assert "100 %" not in "".join(lines)
    return lines


@pytest.mark.parametrize(
    ("chosen", "objective", "expected"),
    [
        (
            decision(Outcome.SWITCH, saving=GAIN),
            Objective.BOOT,
            ["Switch to lz4 -9: boots 61 ms sooner (95 %: 20 to 104 ms sooner)."],
        ),
        (
            decision(Outcome.SWITCH, saving=figure(40, -30, 90)),
            Objective.BOOT,
            [
                "Switch to lz4 -9: boots 40 ms sooner (95 %: 30 ms later to 90 ms sooner).",
            ],
        ),
        (
            decision(Outcome.SWITCH, saving=GAIN),
            Objective.BALANCED,
            [
                "Switch to lz4 -9: boots, their share of the build included, 61 ms sooner (95 %: "
                "20 to 104 ms sooner)."
            ],
        ),
        (
            decision(Outcome.KEEP, saving=figure(1, 0, 2)),
            Objective.BOOT,
            ["Keep zstd: no other setting saves more than 5 ms, the least that matters."],
        ),
        (
            decision(Outcome.EVEN, saving=figure(1, -9, 9)),
            Objective.BOOT,
            ["Keep zstd: there is no difference worth having, about 2 ms to the best."],
        ),
        (
            decision(Outcome.UNDECIDED, saving=figure(-5, -31, 9)),
            Objective.BOOT,
            ["Keep zstd for now: no other setting is expected to save time, but one may."],
        ),
        (
            decision(Outcome.UNDECIDED, saving=replace(figure(40, -142, 455), median=-27.0)),
            Objective.BOOT,
            [
                "Keep zstd for now: no other setting is certain to be better.",
                "lz4 -9 probably costs 27 ms, but may save 455 ms; on average it saves 40 ms.",
            ],
        ),
        (
            decision(Outcome.UNDECIDED, saving=GAIN),
            Objective.BOOT,
            [
                "Keep zstd for now: no other setting is certain to be better.",
                "Best guess: lz4 -9, boots 61 ms sooner (95 %: 20 to 104 ms sooner).",
            ],
        ),
    ],
)
def test_the_verdict_is_one_sentence_and_says_no_more_than_is_known(
    chosen: Decision, objective: Objective, expected: list[str]
) -> None:
    made = answer(chosen, objective=objective)
    keeps = chosen.outcome in {Outcome.KEEP, Outcome.EVEN}
    rank = ["No other is better."] if chosen.outcome is Outcome.SWITCH else []
    if rank and chosen.saving_ms.middle < 50:
        rank = ["That is little.", *rank]
    room = [] if keeps else ["The image takes 10 MB less room on /boot."]
    assert list(verdict(made)) == [
        *(expected + rank),
        *(room if min(chosen.leader_saving_ms.mean, chosen.leader_saving_ms.middle) > 0 else []),
    ]
    if rank:
        better = replace(made, decision=replace(chosen, best=False))
        assert any("Another setting may be better still." in line for line in verdict(better))


def test_a_switch_for_less_than_matters_as_a_rule_says_what_it_saves_on_average() -> None:
    saving = replace(figure(22.4, 2, 90), median=3.9)
    assert [*verdict(answer(decision(Outcome.SWITCH, saving=saving)))][:3] == [
        "Switch to lz4 -9: boots 4 ms sooner (95 %: 2 to 90 ms sooner).",
        "That is little.",
        "On average it saves 22 ms, which decides.",
    ]


def test_few_kernels_that_fit_are_said_and_many_are_not() -> None:
    room = KernelRoom(
        mount_point="/boot",
        release="6.1.0",
        free_bytes=200_000_000,
        images_bytes=40_000_000,
        others_bytes=10_000_000,
    )
    made = replace(answer(decision(Outcome.SWITCH, saving=GAIN)), room=room)
    made = replace(made, rows=(replace(made.rows[0], more_kernels=1), made.rows[1]))
    assert "/boot then has room for 1 more kernel, now for 4." in list(verdict(made))
    as_many = replace(made, rows=(replace(made.rows[0], more_kernels=4), made.rows[1]))
    assert not any("/boot then" in line for line in verdict(as_many))
    roomy = replace(room, free_bytes=10**10)
    many = replace(made, rows=(replace(made.rows[0], more_kernels=150), made.rows[1]), room=roomy)
    assert not any("/boot then" in line for line in verdict(many))


def test_what_is_first_in_the_table_and_not_advised_is_told_why() -> None:
    cat = Setting.parse("cat")
    ahead = row(cat, size_mb=60, saving=replace(figure(-23, -900, 300), median=90.0))
    cases = {
        decision(Outcome.UNDECIDED, saving=GAIN): (
            "cat probably saves 90 ms, but may cost 900 ms; on average it costs 23 ms."
        ),
        decision(Outcome.SWITCH, saving=GAIN): "No other is better by more than 5 ms.",
        replace(decision(Outcome.SWITCH, saving=GAIN), best=False): (
            "cat may save more, but is less certain to."
        ),
    }
    for chosen, expected in cases.items():
        made = answer(chosen)
        assert expected not in list(verdict(made))
        assert expected in list(verdict(replace(made, rows=(ahead, *made.rows))))
    no_gain = decision(Outcome.UNDECIDED, saving=replace(figure(-23, -900, 300), median=15.0))
    assert list(verdict(answer(no_gain))) == [
        "Keep zstd for now: no other setting is certain to be better.",
        "lz4 -9 probably saves 15 ms, but may cost 900 ms; on average it costs 23 ms.",
    ]
    todays_first = answer(decision(Outcome.UNDECIDED, saving=figure(-5, -31, 9)))
    assert len(list(verdict(replace(todays_first, rows=todays_first.rows[::-1])))) == 1
    even = decision(Outcome.UNDECIDED, saving=replace(figure(-0.2, -90, 30), median=15.0))
    assert list(verdict(answer(even)))[-1].endswith("on average it saves nothing.")


def test_by_size_the_smallest_comes_first_and_time_decides_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    undecided = answer(decision(Outcome.UNDECIDED, saving=GAIN), objective=Objective.SIZE)
    smallest = row(Setting.parse("xz"), size_mb=20, saving=figure(-900, -1200, -700))
    lines = screen(replace(undecided, rows=(smallest, *undecided.rows)), capsys)
    assert lines[0] == "Keep zstd for now: no other image is certain to be smaller."
    sizes = [float(line.split(" MB")[0].split()[-1]) for line in lines if " MB " in line]
    assert sizes == sorted(sizes)
    assert sizes[0] == 20


@pytest.mark.parametrize(
    ("size_mb", "objective", "said", "cells"),
    [
        (34.54, Objective.SIZE, "5.5 MB smaller", ["34.5 MB", "40.0 MB"]),
        (31.45, Objective.BOOT, "9 MB less room", ["31 MB", "40 MB"]),
        (9.96, Objective.BOOT, "30 MB less room", ["10.0 MB", "40 MB"]),
        (9.64, Objective.BOOT, "30.4 MB less room", ["9.6 MB", "40 MB"]),
    ],
)
def test_what_sizes_differ_by_is_what_the_sizes_of_the_table_do(
    size_mb: float,
    objective: Objective,
    said: str,
    cells: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = answer(decision(Outcome.SWITCH, saving=GAIN), objective=objective)
    todays = replace(made.rows[1], size_bytes=40_040_000)
    rows = (replace(made.rows[0], size_bytes=int(size_mb * 1e6)), todays)
    lines = screen(replace(made, rows=rows), capsys)
    assert any(said in line for line in lines)
    assert all(any(f"{cell}  " in line for line in lines) for cell in cells)


def test_by_size_the_saved_room_and_the_price_are_said() -> None:
    prices = {
        figure(-474, -814, -231): "but boots 474 ms later (95 %: 231 to 814 ms later)",
        figure(-1043, -1290, -800): "but boots 1.0 s later (95 %: 800 ms to 1.3 s later)",
        figure(20, -10, 40): "boots 20 ms sooner (95 %: 10 ms later to 40 ms sooner)",
    }
    for saving, price in prices.items():
        smaller = answer(decision(Outcome.SWITCH, saving=saving), objective=Objective.SIZE)
        assert list(verdict(smaller)) == [
            f"Switch to lz4 -9: the image is 10.0 MB smaller, {price}."
        ]


@pytest.mark.parametrize(
    ("outcome", "objective", "of_one", "of_two"),
    [
        (
            Outcome.KEEP,
            Objective.BOOT,
            "lz4 -9 does not save more than 5 ms, the least that matters.",
            "none of the 2 asked for saves more than 5 ms, the least that matters.",
        ),
        (
            Outcome.KEEP,
            Objective.SIZE,
            "lz4 -9 is not smaller by enough to matter.",
            "none of the 2 asked for is smaller by enough to matter.",
        ),
        (
            Outcome.UNDECIDED,
            Objective.BOOT,
            "lz4 -9 is not certain to be better.",
            "none of the 2 asked for is certain to be better.",
        ),
    ],
)
def test_where_only_some_were_asked_for_nothing_is_said_of_others(
    outcome: Outcome, objective: Objective, of_one: str, of_two: str
) -> None:
    made = replace(answer(decision(outcome, saving=GAIN), objective=objective), only_asked=True)
    more = row(Setting.parse("cat"), size_mb=60, saving=figure(-23, -900, 300))
    for asked, said in ((made, of_one), (replace(made, rows=(*made.rows, more)), of_two)):
        assert first(asked).endswith(f": {said}")
    [_, best, *_] = verdict(
        replace(made, decision=decision(Outcome.SWITCH, saving=GAIN), objective=Objective.BOOT)
    )
    assert best == "No other of those asked for is better."


def test_what_cannot_be_used_here_is_not_said_to_save_too_little() -> None:
    refused = Lint(verdict=Verdict.REFUSED, reasons=("CONFIG_RD_LZ4 is not set",))
    cat = row(Setting.parse("cat"), size_mb=60, saving=figure(-23, -900, 300))
    for objective in (Objective.SIZE, Objective.BOOT):
        made = answer(decision(Outcome.KEEP, saving=GAIN), lint=refused, objective=objective)
        assert first(made) == "Keep zstd: no other setting can be used here."
        asked = replace(made, only_asked=True)
        assert first(asked) == "Keep zstd: lz4 -9 cannot be used here, the kernel refuses it."
        two = replace(asked, rows=(*made.rows, replace(cat, fits=False)))
        assert first(two) == "Keep zstd: none of the 2 asked for can be used here."
    asked = replace(answer(decision(Outcome.KEEP, saving=GAIN), lint=refused), only_asked=True)
    xz = row(Setting.parse("xz"), size_mb=20, saving=figure(-900, -1200, -700))
    assert first(replace(asked, rows=(*asked.rows, cat))).startswith("Keep zstd: cat does not save")
    assert first(replace(asked, rows=(*asked.rows, cat, xz))).startswith(
        "Keep zstd: none of the 2 asked for that can be used here saves more than "
    )


def test_what_a_user_may_know_is_said_to_decide(capsys: pytest.CaptureFixture[str]) -> None:
    undecided = answer(
        decision(Outcome.UNDECIDED, saving=GAIN), deciding=LOADER_DECIDES, sampled=True
    )
    lines = screen(undecided, capsys)
    said = "It depends on the loader speed: zstd below 150 MB/s, cat above 1200 MB/s."
    assert said in lines
    assert lines[-1].startswith("Next: initadvisor recommend --build")
    others = screen(replace(undecided, installed=False), capsys)
    assert others[-1] == (
        "Next: this command with --read-speed MB/S, if you know the loader speed there"
    )
    built = replace(undecided, installed=False, unbuilt=())
    assert screen(built, capsys)[-1].startswith("Next: this command with --read-speed MB/S")
    for nothing in (
        replace(LOADER_DECIDES, settled=0.0),
        replace(LOADER_DECIDES, ranges=LOADER_DECIDES.ranges[:1]),
    ):
        last = screen(replace(built, deciding=nothing), capsys)[-1]
        assert last == "Next: ask on the machine that boots this image; its boots tell more"
        here = screen(replace(undecided, unbuilt=(), deciding=nothing), capsys)
        assert not any(line.startswith("Next") for line in here)
    not_alone = replace(undecided, deciding=replace(LOADER_DECIDES, settled=0.0))
    assert said.replace("depends", "depends most") in screen(not_alone, capsys)
    of_kernel = replace(LOADER_DECIDES, factor=Factor.CPU)
    throughout = replace(LOADER_DECIDES, ranges=LOADER_DECIDES.ranges[:1])
    for fact in (of_kernel, throughout):
        lines = screen(replace(undecided, deciding=fact), capsys)
        assert not any(line.startswith("It depends") for line in lines)


def test_no_compression_is_said_in_words() -> None:
    cat = Setting.parse("cat")
    chosen = replace(decision(Outcome.SWITCH, saving=GAIN), setting=cat)
    more = row(cat, size_mb=116, saving=GAIN)
    made = answer(chosen)
    assert first(replace(made, rows=(more, *made.rows))).startswith(
        "Switch to cat (no compression): boots 61 ms sooner"
    )


def test_a_warning_is_cut_between_words(capsys: pytest.CaptureFixture[str]) -> None:
    made = replace(answer(decision(Outcome.KEEP, saving=GAIN)), warnings=("something, " * 12,))
    [line] = [line for line in screen(made, capsys) if line.startswith("Warning")]
    assert line == f"Warning: {'something, ' * 4}something... (--explain)"


def test_what_hinges_on_a_build_is_said_to() -> None:
    open_answer = answer(decision(Outcome.UNDECIDED, saving=GAIN))
    assert as_document(open_answer)["recommendation"]["hinges_on_build"] is False
    hinging = replace(open_answer, hinges_on_build=True)
    assert as_document(hinging)["recommendation"]["hinges_on_build"] is True
    assert list(verdict(hinging)) == [
        "Keep zstd for now: the best depends on what building today's image takes.",
        "Nothing tells what that is; the table counts nothing for it.",
    ]


def test_what_a_build_may_take_is_told_beside_what_the_table_counts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = answer(decision(Outcome.UNDECIDED, saving=GAIN), objective=Objective.BALANCED)
    today = replace(made.rows[1], build_cpu_s=None)
    level = replace(row(Setting.parse("zstd -1"), size_mb=45, saving=GAIN), build_cpu_s=1.4)
    hinging = replace(made, rows=(made.rows[0], level, today), hinges_on_build=True)
    lines = screen(hinging, capsys)
    assert lines[1].startswith("That is 100 ms to ")
    assert lines[1].endswith("; 1.5 s is counted.")
    assert [line for line in lines if line.startswith("zstd  ") and "~1549 ms" in line]
    assert lines[-1] == (
        "Next: initadvisor recommend --objective boot   leaves out what builds take"
    )


def test_the_first_line_is_the_verdict_and_the_last_what_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = screen(answer(decision(Outcome.SWITCH, saving=GAIN)), capsys)
    assert lines[0].startswith("Switch to lz4 -9")
    assert lines[-1] == (
        "Next: sudo initadvisor apply 'lz4 -9' --confirm   switches, after a trial boot"
    )


def test_another_machine_s_image_is_not_to_be_applied_here(
    capsys: pytest.CaptureFixture[str],
) -> None:
    others = replace(answer(decision(Outcome.SWITCH, saving=GAIN)), installed=False)
    lines = screen(others, capsys)
    assert not any("initadvisor apply" in line for line in lines)
    assert lines[-1].startswith("Next: ask on the machine that boots this image")
    assert not any(line.startswith("Next") for line in screen(replace(others, sample=True), capsys))


def test_what_to_do_next_is_asked_of_the_same_image_and_of_what_was_given(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = answer(decision(Outcome.UNDECIDED, saving=GAIN), sampled=True)
    for other in (replace(made, installed=False), replace(made, given=("overlap 0 ms",))):
        [line] = [line for line in screen(other, capsys) if line.startswith("Next")]
        assert line == "Next: this command with --build   builds lz4 -9, which may be best"


@pytest.mark.parametrize(("saving", "tells"), [(GAIN, "most"), (figure(9, -5, 20), "more")])
def test_a_boot_is_not_praised_where_there_is_little_to_gain(
    saving: Estimate, tells: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Plan(
        purpose=Purpose.TODAY,
        boots=(PlannedBoots(setting=ZSTD, boots=1),),
        chance=0.0,
        enough=True,
        contrast=contrast(),
        loader_seen=True,
        unbuilt=(),
    )
    lines = screen(replace(answer(decision(Outcome.UNDECIDED, saving=saving)), plan=plan), capsys)
    assert lines[-1] == f"Next: sudo initadvisor measure   records this boot, which tells {tells}"
    assert any("That is little." in line for line in lines) == (tells == "more")


def test_rows_are_what_is_saved_as_number_bar_and_interval(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = answer(decision(Outcome.SWITCH, saving=figure(61, -1, 92)))
    slower = row(Setting.parse("zstd -19"), size_mb=22, saving=WIDER)
    lines = screen(replace(found, rows=(*found.rows, slower)), capsys)
    assert lines[3:7] == [
        "           size    read  unpack        sooner than today, ms",
        "lz4 -9    30 MB  100 ms  200 ms    +61                 ┼──────●────    -1 .. +92",
        "zstd      40 MB  100 ms  200 ms  today",
        "zstd -19  22 MB  100 ms  200 ms    -49  ─────────●─────┼───          -120 .. +23",
    ]


def test_what_cannot_be_used_does_not_press_the_bars_of_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    refused = Lint(verdict=Verdict.REFUSED, reasons=("CONFIG_RD_XZ is not set",))
    slow = row(Setting.parse("xz"), size_mb=20, saving=figure(-1700, -2500, -1100), lint=refused)
    made = answer(decision(Outcome.SWITCH, saving=GAIN))
    lines = screen(replace(made, rows=(*made.rows, slow)), capsys, evidence=True)
    lz4 = next(line for line in lines if line.startswith("lz4 -9 "))
    assert lz4.count("─") > 5


def test_the_bar_of_what_does_not_matter_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = decision(Outcome.KEEP, saving=figure(0.4, 0, 1))
    lines = screen(answer(chosen), capsys)
    assert lines[3] == f"lz4 -9  30 MB  100 ms  200 ms      0  ┼─●────{' ' * 25}0 .. +1"


def test_why_unpacking_sooner_saves_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    said = "Unpacking within 300 ms costs nothing: the kernel is busy that long."
    made = answer(decision(Outcome.KEEP, saving=figure(0, 0, 1)))
    assert said in screen(replace(made, overlap_ms=figure(400, 300, 500)), capsys)
    for overlap in (None, figure(400, 250, 500)):  # today's takes up to 260 ms
        others = screen(replace(made, overlap_ms=overlap), capsys)
        assert not any(line.startswith("Unpacking within") for line in others)
    assert "Assumed: overlap (how long unpacking costs nothing; --explain)." in screen(made, capsys)


def test_where_only_ascii_can_be_shown_bars_are_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    print_recommendation(answer(decision(Outcome.SWITCH, saving=GAIN)), evidence=False)
    out.flush()
    assert isinstance(out.buffer, io.BytesIO)
    assert b"|" in out.buffer.getvalue()
    assert b"---o---" in out.buffer.getvalue()


def test_the_share_of_a_build_is_a_column_where_it_counts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = answer(decision(Outcome.SWITCH, saving=GAIN), objective=Objective.BALANCED)
    lines = screen(made, capsys)
    [titles] = [line for line in lines if "unpack " in line]
    assert titles.split()[:4] == ["size", "read", "unpack", "build"]
    [lz4] = [line for line in lines if line.startswith("lz4")]
    assert "  179 ms  " in lz4  # 2.5 s, divided by 14 boots


def test_an_interval_is_not_broken_in_two(capsys: pytest.CaptureFixture[str]) -> None:
    of = decision(Outcome.UNDECIDED, saving=figure(126, -111, 359))
    lines = screen(answer(of, objective=Objective.BALANCED), capsys)
    guess = "Best guess: lz4 -9, boots, their share of the build included, 126 ms sooner"
    assert lines[lines.index(guess) + 1].startswith("(95 %: 111 ms later to 359 ms sooner).")


def test_it_fits_a_screen_whatever_there_is_to_say(capsys: pytest.CaptureFixture[str]) -> None:
    """Thirty settings, of which some may be better, and warnings without end."""
    made = answer(decision(Outcome.UNDECIDED, saving=GAIN), sampled=True, deciding=LOADER_DECIDES)
    many = [
        row(Setting.parse(f"zstd -{level}"), size_mb=30, saving=figure(20 - level, -300, 200))
        for level in range(1, 20)
    ]
    full = replace(
        made,
        sample=True,
        rows=(*made.rows, *many),
        unbuilt=(LZ4,),
        warnings=("what is wrong here takes many words to be told, " * 5,) * 4,
        context=("something else",),
        assumptions=(Assumption(about=Parameter.LOADER, text="a guess"),),
    )
    lines = screen(full, capsys)
    assert len(lines) <= 20
    assert lines[0].startswith("SAMPLE")
    assert "(15 more settings: --all)" in lines
    assert "Sampled: size. Predicted: unpacking." in lines
    assert "Assumed: loader speed (--explain)." in lines
    assert [
        line for line in lines if line.startswith("Warning: ") and line.endswith("... (--explain)")
    ][1:]
    left_out = "See --explain for 2 more warnings and what may matter more than the compression."
    assert left_out in lines
    assert lines[-1] == ("Next: initadvisor recommend --build   builds lz4 -9, which may be best")


_NAMES = (
    *("cat", "xz --check=crc32 --lzma2=dict=1MiB", "bzip2", "gzip", "lzop", "lzma"),
    *(f"zstd -{level}" for level in range(1, 20)),
)
_SAVINGS = st.integers(-5000, 5000).flatmap(
    lambda middle: st.builds(
        lambda below, above: figure(middle, middle - below, middle + above),
        st.integers(0, 9000),
        st.integers(0, 9000),
    )
)
_WARNINGS = (
    "other programs used 90 % of the processors: times are less certain",
    "past boots are not used: sudo initadvisor recommend uses them, too",
    "a configuration of many words says what nobody expects, " * 6,
)


@st.composite
def _answers(draw: st.DrawFn) -> Recommendation:
    """Return an answer with anything there may be to say."""
    made = answer(
        decision(draw(st.sampled_from(Outcome)), saving=draw(_SAVINGS)),
        objective=draw(st.sampled_from(Objective)),
        sample=draw(st.booleans()),
        sampled=draw(st.booleans()),
        deciding=draw(st.sampled_from([None, LOADER_DECIDES])),
    )
    rows = st.tuples(st.sampled_from(_NAMES), _SAVINGS)
    more = draw(st.lists(rows, max_size=len(_NAMES), unique_by=lambda one: one[0]))
    refused = Lint(verdict=Verdict.REFUSED, reasons=("CONFIG_RD_LZ4 is not set",))
    others = [
        row(
            Setting.parse(name),
            size_mb=draw(st.sampled_from([0.3, 9.4, 190.0])),
            saving=saving,
            lint=draw(st.sampled_from([None, refused])),
        )
        for name, saving in more
    ]
    plan = Plan(
        purpose=draw(st.sampled_from(Purpose)),
        boots=(PlannedBoots(setting=LZ4, boots=40),),
        chance=0.9,
        enough=draw(st.booleans()),
        contrast=contrast(),
        loader_seen=draw(st.booleans()),
        unbuilt=(),
    )
    return replace(
        made,
        rows=(*made.rows, *others),
        plan=draw(st.sampled_from([None, plan])),
        rival=draw(
            st.sampled_from([None, Rival(setting=LZ4, probability=0.2, contrast=contrast())])
        ),
        hinges_on_build=draw(st.booleans()),
        given=draw(st.sampled_from([(), ("read speed 180 MB/s", "overlap 300 ms")])),
        assumptions=tuple(
            Assumption(about=about, text="a guess", boots=draw(st.integers(0, 2)))
            for about in Parameter
        ),
        warnings=tuple(draw(st.lists(st.sampled_from(_WARNINGS), max_size=9))),
        context=draw(st.sampled_from([(), ("MODULES=most",)])),
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(made=_answers())
def test_any_answer_fits_a_screen(made: Recommendation, capsys: pytest.CaptureFixture[str]) -> None:
    lines = screen(made, capsys)
    assert len(lines) <= 20
    first_line, second = lines[made.sample : made.sample + 2]
    assert first_line.startswith(("Switch to ", "Keep "))
    # It is one line, or the interval follows on one of its own.
    assert first_line.endswith(".") or second.startswith("(95 %: ")


def test_everything_is_shown_with_all_the_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(decision(Outcome.SWITCH, saving=GAIN))
    sure_to_be_slow = row(Setting.parse("xz"), size_mb=20, saving=figure(-900, -1200, -700))
    made = replace(
        found, rows=(*found.rows, sure_to_be_slow), warnings=("first", "second", "third")
    )
    lines = screen(made, capsys)
    assert "(1 slower setting: --all)" in lines
    assert not any("third" in line for line in lines)
    lines = screen(made, capsys, evidence=True)
    assert [line.split()[0] for line in lines if line.startswith(("lz4", "zstd ", "xz"))] == [
        *("lz4", "zstd", "xz"),
        *("lz4", "zstd", "xz"),
    ]
    assert "  - third" in lines
    assert "The probability that lz4 -9 loses enough to matter is 3 %" in "".join(lines)


def test_what_boots_and_the_user_told_is_not_called_assumed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = replace(
        answer(decision(Outcome.KEEP, saving=GAIN)),
        given=("overlap 300 ms",),
        assumptions=(
            Assumption(about=Parameter.LOADER, text="boots told it", boots=2),
            Assumption(about=Parameter.SHADOW, text="the user told it", certain=True),
        ),
    )
    speed = ("read speed 40 MB/s (/etc/initadvisor.toml)",)
    for made, line in (
        (told, "Given: overlap 300 ms (config set keeps that). Learnt from boots: loader speed."),
        (replace(told, installed=False), "Given: overlap 300 ms. Learnt from boots: loader speed."),
        (replace(told, given=speed), f"Given: {speed[0]}."),
    ):
        said = screen(made, capsys)
        assert said[said.index("Built: size. Predicted: unpacking.") + 1] == line
        assert not any("Assumed" in line for line in said)


def test_what_cannot_be_applied_has_the_reason_beside_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    refused = Lint(verdict=Verdict.REFUSED, reasons=("CONFIG_RD_LZ4 is not set",))
    made = answer(decision(Outcome.KEEP, saving=GAIN), lint=refused)
    made = replace(made, rows=made.rows[::-1])
    lines = screen(made, capsys)
    [lz4] = [line for line in lines if line.startswith("lz4")]
    assert lz4.endswith("the kernel refuses it")
    assert "  - lz4 -9: CONFIG_RD_LZ4 is not set" in screen(made, capsys, evidence=True)


def test_the_share_of_a_whole_boot_is_said_with_the_evidence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = answer(decision(Outcome.SWITCH, saving=GAIN), whole_boot_ms=15_200)
    lines = screen(made, capsys, evidence=True)
    assert any("0.4 % of a whole boot of 15.2 s" in line for line in lines)


def test_undecided_says_what_would_decide() -> None:
    undecided = answer(
        decision(Outcome.UNDECIDED, saving=figure(40, -30, 90)), deciding=LOADER_DECIDES
    )
    sure, advised = advice(undecided)
    assert sure == (
        "The probability that lz4 -9 saves enough to matter is 60 %. A switch is advised where the "
        "average saving matters, and the probability of a loss that matters is below 5 % "
        "(evidence: predicted)."
    )
    assert "how fast the boot loader reads" in advised
    assert (
        "below 150 MB/s zstd is best, from there to 1200 MB/s lz4 -9, above 1200 MB/s cat"
        in advised
    )
    assert "--read-speed" in advised


def test_a_fact_that_changes_nothing_is_not_said_to_decide() -> None:
    fact = DecidingFact(
        factor=Factor.CPU, settled=0.0, ranges=(BestRange(low=0.5, high=2, setting=ZSTD),)
    )
    _, said = advice(answer(decision(Outcome.UNDECIDED, saving=GAIN), deciding=fact))
    assert "zstd is the best choice throughout its range" in said
    assert said.endswith("Where KVM works, --lab measures it.")


def test_where_no_single_fact_decides_that_is_said() -> None:
    fact = replace(LOADER_DECIDES, settled=0.0)
    _, said = advice(answer(decision(Outcome.UNDECIDED, saving=GAIN), deciding=fact))
    assert said.startswith("No single fact would decide it")


def test_where_a_build_could_change_the_answer_that_is_said_with_its_price() -> None:
    _, said = advice(answer(decision(Outcome.SWITCH, saving=GAIN), sampled=True))
    assert said == (
        "The sizes of what is not built, and what building takes, are estimated from a sample. "
        "Building lz4 -9 could still change the answer (about 2 s of processor time); --build does "
        "that and builds nothing else."
    )


def test_of_several_builds_all_are_named_and_their_times_added() -> None:
    made = answer(decision(Outcome.UNDECIDED, saving=GAIN), sampled=True, deciding=LOADER_DECIDES)
    _, named, decides = advice(replace(made, unbuilt=(LZ4, ZSTD)))
    assert "Building lz4 -9, zstd could still change the answer (about 5 s" in named
    assert decides.startswith("What would decide it (60 % likely) is to know how fast")


def test_the_json_has_the_doubt_of_a_size_and_what_to_build() -> None:
    document = as_document(answer(decision(Outcome.SWITCH, saving=GAIN), sampled=True))
    sampled, built = document["candidates"]
    assert document["unbuilt"] == ["lz4 -9"]
    assert sampled["size_source"] == "sampled"
    low, high = sampled["size_interval_bytes"]
    assert low < sampled["size_bytes"] < high
    assert (low, high) == pytest.approx((30e6 * 0.9806, 30e6 * 1.0198), rel=1e-3)
    assert built["size_source"] == "built"
    assert built["size_interval_bytes"] == [built["size_bytes"]] * 2
    for interval in (sampled["size_interval_bytes"], built["size_interval_bytes"]):
        assert [type(end) for end in interval] == [int, int]
    everything_built = as_document(answer(decision(Outcome.SWITCH, saving=GAIN)))
    assert everything_built["unbuilt"] == []


def test_the_json_can_be_written_and_holds_every_row() -> None:
    document = json.loads(
        json.dumps(
            as_document(answer(decision(Outcome.UNDECIDED, saving=GAIN), deciding=LOADER_DECIDES))
        )
    )
    assert [row["setting"] for row in document["candidates"]] == ["lz4 -9", "zstd"]
    assert document["recommendation"]["action"] == "keep"
    assert document["recommendation"]["outcome"] == "undecided"
    deciding = document["recommendation"]["deciding"]
    assert [stretch["setting"] for stretch in deciding["ranges"]] == ["zstd", "lz4 -9", "cat"]
    assert document["candidates"][0]["lint"] == "ok"


def test_what_is_rounded_to_nothing_has_no_sign() -> None:
    text = json.dumps(as_document(answer(decision(Outcome.KEEP, saving=figure(-0.0, -1e-9, 0.0)))))
    assert "-0.0" not in text
