"""The answer in words says what was decided, how sure that is, and never more."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from initadvisor.cli.recommend import as_document
from initadvisor.cli.recommend_text import advice, print_recommendation, verdict
from initadvisor.core.config import Objective
from initadvisor.decide.cost import BestRange, DecidingFact, Factor, Outcome
from initadvisor.image.contents import Lint, Verdict
from tests.fixtures.answers import LOADER_DECIDES, LZ4, ZSTD, answer, decision, figure

GAIN = figure(61.4, 20.2, 103.9)


def test_a_switch_names_saving_interval_certainty_and_evidence() -> None:
    said = verdict(answer(decision(Outcome.SWITCH, saving=GAIN)))
    assert said == (
        "Switch to lz4 -9: it saves 61 (20..104) ms per boot (97 % sure, evidence: bench)."
    )


def test_a_switch_names_the_command_that_switches_this_machine() -> None:
    switch = answer(decision(Outcome.SWITCH, saving=figure(60, 20, 100)))
    told = "Next: sudo initadvisor apply 'lz4 -9' --confirm switches, after one trial boot."
    assert next(advice(switch)) == told
    others = (replace(switch, installed=False), answer(decision(Outcome.KEEP, saving=GAIN)))
    assert not any("apply" in said for other in others for said in advice(other))


def test_the_share_of_a_whole_boot_is_said_where_it_is_known() -> None:
    said = verdict(answer(decision(Outcome.SWITCH, saving=GAIN), whole_boot_ms=15_200))
    assert "0.4% of a whole boot of 15.2 s" in said


def test_a_keep_says_that_nothing_matters_enough() -> None:
    said = verdict(answer(decision(Outcome.KEEP, saving=figure(1, 0, 2))))
    assert said.startswith("Keep zstd: no other setting saves enough to matter (97 % sure")


def test_undecided_keeps_names_the_likeliest_gain_and_what_would_decide() -> None:
    undecided = answer(
        decision(Outcome.UNDECIDED, saving=figure(40, -30, 90)), deciding=LOADER_DECIDES
    )
    said = verdict(undecided)
    assert said.startswith("Undecided, so keep zstd: the largest expected gain is that of lz4 -9,")
    assert "only 60 % sure and 95 % is needed" in said
    [advised] = advice(undecided)
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
    [said] = advice(answer(decision(Outcome.UNDECIDED, saving=GAIN), deciding=fact))
    assert "zstd is the best choice throughout its range" in said
    assert said.endswith("Where KVM works, --lab measures it.")


def test_where_no_single_fact_decides_that_is_said() -> None:
    fact = replace(LOADER_DECIDES, settled=0.0)
    [said] = advice(answer(decision(Outcome.UNDECIDED, saving=GAIN), deciding=fact))
    assert said.startswith("No single fact would decide it")


def test_a_gain_is_not_named_where_none_is_expected() -> None:
    said = verdict(answer(decision(Outcome.UNDECIDED, saving=figure(-5, -31, 9))))
    assert "no other setting is expected to save anything" in said


def test_the_share_of_a_build_is_named_where_it_counts() -> None:
    said = verdict(answer(decision(Outcome.SWITCH, saving=GAIN), objective=Objective.BALANCED))
    assert "per boot, its share of the build included" in said


def test_by_size_the_saved_room_and_the_price_are_said() -> None:
    said = verdict(
        answer(decision(Outcome.SWITCH, saving=figure(-50, -90, -10)), objective=Objective.SIZE)
    )
    assert "the image is 10.0 MB smaller" in said
    assert "each boot costs 50 ms" in said


def test_certainty_is_never_claimed(capsys: pytest.CaptureFixture[str]) -> None:
    print_recommendation(answer(decision(Outcome.SWITCH, saving=GAIN)))
    assert "100 %" not in capsys.readouterr().out


def test_the_table_has_every_setting_and_fits_80_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_recommendation(answer(decision(Outcome.SWITCH, saving=GAIN)))
    out = capsys.readouterr().out
    assert max(len(line) for line in out.splitlines()) <= 80
    rows = [line.split() for line in out.splitlines() if line.startswith(("lz4 -9", "zstd "))]
    assert rows == [
        ["lz4", "-9", "30.0", "25", "100", "200", "900", "300..12k", "61", "20..104", "2", "60",
         "yes"],
        ["zstd", "40.0", "33", "100", "200", "900", "300..12k", "today", "2", "60", "yes"],
    ]  # fmt: skip


def test_a_sample_is_labelled_first(capsys: pytest.CaptureFixture[str]) -> None:
    print_recommendation(answer(decision(Outcome.KEEP, saving=GAIN), sample=True))
    assert capsys.readouterr().out.startswith("SAMPLE")


def test_what_the_kernel_refuses_is_listed_with_the_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    refused = Lint(verdict=Verdict.REFUSED, reasons=("CONFIG_RD_LZ4 is not set",))
    print_recommendation(answer(decision(Outcome.KEEP, saving=GAIN), lint=refused))
    out = capsys.readouterr().out
    assert "The kernel would refuse" in out
    assert "lz4 -9: CONFIG_RD_LZ4 is not set" in out


def test_what_is_estimated_is_marked_and_still_fits_80_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_recommendation(answer(decision(Outcome.SWITCH, saving=GAIN), sampled=True))
    out = capsys.readouterr().out
    assert max(len(line) for line in out.splitlines()) <= 80
    rows = [line.split() for line in out.splitlines() if line.startswith(("lz4 -9", "zstd "))]
    assert rows == [
        ["lz4", "-9", "~30.0", "25", "100", "200", "900", "300..12k", "61", "20..104", "2", "60",
         "yes"],
        ["zstd", "40.0", "33", "100", "200", "900", "300..12k", "today", "2", "60", "yes"],
    ]  # fmt: skip


def test_where_a_build_could_change_the_answer_that_is_said_with_its_price() -> None:
    _, said = advice(answer(decision(Outcome.SWITCH, saving=GAIN), sampled=True))
    assert said == (
        "Sizes with a ~, and what building takes, are estimated from a sample of the content. "
        "Building lz4 -9 could still change the answer (about 2 s of processor time); --build does "
        "that and builds nothing else."
    )


def test_where_everything_that_matters_was_built_nothing_is_said_of_builds() -> None:
    assert list(advice(answer(decision(Outcome.KEEP, saving=GAIN)))) == []


def test_of_several_builds_all_are_named_and_their_times_added() -> None:
    made = answer(decision(Outcome.UNDECIDED, saving=GAIN), sampled=True, deciding=LOADER_DECIDES)
    named, decides = advice(replace(made, unbuilt=(LZ4, ZSTD)))
    assert "Building lz4 -9, zstd could still change the answer (about 5 s" in named
    assert decides.startswith("To know one fact would decide it (60 % likely), how fast")


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


def test_no_line_ends_in_blanks_where_it_is_piped(capsys: pytest.CaptureFixture[str]) -> None:
    print_recommendation(answer(decision(Outcome.SWITCH, saving=GAIN)))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 5
    assert [line for line in lines if line != line.rstrip()] == []


def test_what_hinges_on_a_build_is_said_to() -> None:
    open_answer = answer(decision(Outcome.UNDECIDED, saving=GAIN))
    assert as_document(open_answer)["recommendation"]["hinges_on_build"] is False
    hinging = replace(open_answer, hinges_on_build=True)
    assert as_document(hinging)["recommendation"]["hinges_on_build"] is True
    said = verdict(hinging)
    assert "depends on what building today's image takes" in said
    assert "sure" not in said
