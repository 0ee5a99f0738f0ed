"""The study of synthetic machines is about the machines that were asked for."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.simulate import MIXES, Question, by_violation, like_tables, main, simulate
from benchmarks.synthetic import (
    BREAKING,
    LAB_LOG_SD,
    MachineRun,
    ModelViolation,
    Rules,
    Scenario,
    TableSet,
    measured_tables,
)
from initadvisor.core.errors import UsageError
from initadvisor.core.settings import Setting
from initadvisor.decide.cost import Outcome
from initadvisor.decide.decision import Thresholds
from initadvisor.decide.next_boot import BootLimits
from initadvisor.decide.whatif_values import Span
from tests.fixtures.synthetic_machines import TABLE

if TYPE_CHECKING:
    from pathlib import Path

ASKED = Question(
    source=TableSet(tables=(TABLE,)),
    scenario=Scenario(
        read_mb_s=Span(low=16.0, high=1500.0),
        shadow_ms=Span(low=5.0, high=800.0),
        noise_log_sd=0.06,
        outliers=0.05,
        violations=MIXES["half"],
        unpack_log_sd=LAB_LOG_SD,
        lab=True,
    ),
    rules=Rules(thresholds=Thresholds(), limits=BootLimits(), most_boots=2),
    seed=1,
)
CSV = "setting,size_mb,unpack_ms\nlz4 -9,50,100\nzstd -19,30,300\ncat,120,80\n"


def runs(machines: int, question: Question = ASKED) -> list[MachineRun]:
    """Return the campaigns on so many machines, run in this process."""
    return list(simulate(question, machines, processes=1))


def test_the_same_question_has_the_same_answer_and_another_seed_another() -> None:
    first, again, other = runs(4), runs(4), runs(4, replace(ASKED, seed=2))
    assert first == again
    assert {run.seed for run in other}.isdisjoint(run.seed for run in first)
    assert [run.campaign for run in other] != [run.campaign for run in first]


def test_more_machines_are_the_same_ones_and_others() -> None:
    assert runs(8)[:4] == runs(4)


def test_other_conditions_leave_the_machines_what_they_are() -> None:
    """So that what differs between two answers is what was asked for, not chance."""
    plain, noisy = (
        runs(6, replace(ASKED, scenario=replace(ASKED.scenario, noise_log_sd=noise)))
        for noise in (0.0, 0.12)
    )
    for one, other in zip(plain, noisy, strict=True):
        assert one.conditions == replace(other.conditions, noise_log_sd=0.0)
        assert (one.today, one.campaign.best) == (other.today, other.campaign.best)
        assert one.campaign.tolerance_ms == other.campaign.tolerance_ms


def test_by_default_every_other_machine_breaks_the_model() -> None:
    found = runs(10)
    violations = [run.conditions.violation for run in found]
    assert violations[::2] == [ModelViolation.NONE] * 5
    assert violations[1::2] == list(BREAKING)
    parts = by_violation(found, 0.95)
    assert list(parts) == ["all", *ModelViolation]
    assert parts["none"].machines == 5
    assert parts["all"].machines == sum(parts[one].machines for one in ModelViolation) == 10


@pytest.mark.parametrize("mix", MIXES)
def test_every_mix_is_of_what_it_says(mix: str) -> None:
    scenario = replace(ASKED.scenario, violations=MIXES[mix])
    rules = replace(ASKED.rules, most_boots=1)
    found = runs(10, replace(ASKED, scenario=scenario, rules=rules))
    violations = {run.conditions.violation for run in found}
    expected = {"half": set(ModelViolation), "all": set(BREAKING)}.get(mix) or {ModelViolation(mix)}
    assert violations == expected
    assert (len(by_violation(found, 0.95)) > 1) == (len(expected) > 1)


def test_no_campaign_takes_more_boots_than_it_may() -> None:
    found = runs(10)
    assert max(run.campaign.boots for run in found) == 2
    undecided = [run for run in found if run.campaign.outcome is Outcome.UNDECIDED]
    assert by_violation(found, 0.95)["all"].settled.count == 10 - len(undecided)
    assert undecided


def test_the_built_in_tables_are_those_that_are_worth_a_campaign() -> None:
    names = {table.name for table in like_tables([], None).tables}
    assert names == {table.name for table in measured_tables()}
    assert "arch-cloud" in names
    assert not {"ubuntu-laptop-2018", "debian-programs-2021"} & names  # other people's
    assert like_tables(["ubuntu-laptop-2018"], None).tables[0].name == "ubuntu-laptop-2018"


def test_tables_that_lack_today_s_setting_are_left_out() -> None:
    lzop = Setting.parse("lzop -3")
    kept = like_tables([], lzop).tables
    assert 0 < len(kept) < len(measured_tables())
    assert all(any(row.setting == lzop for row in table.rows) for table in kept)
    with pytest.raises(UsageError, match="no table has the setting zstd -22"):
        like_tables([], Setting.parse("zstd -22"))


def document(path: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> dict[str, Any]:
    """Run the program and return the JSON it wrote."""
    table, answer = path / "mine.csv", path / "answer.json"
    table.write_text(CSV)
    options = ["--table", str(table), "--evidence", "lab", "--json", str(answer), *arguments]
    monkeypatch.setattr(sys, "argv", ["simulate", *options])
    main()
    loaded: dict[str, Any] = json.loads(answer.read_text())
    return loaded


def test_the_program_says_the_same_on_any_number_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("--machines", "4", "--most-boots", "3", "--shadow", "0", "--read-speed", "20..30")
    one, two = (document(tmp_path, monkeypatch, *asked, "--processes", n) for n in ("1", "2"))
    assert one == two
    machines, result = one["machines"], one["figures"]["all"]
    settled = [run for run in machines if run["campaign"]["outcome"] != Outcome.UNDECIDED]
    assert result["settled"]["count"] == len(settled)
    assert result["right"]["count"] == sum(run["campaign"]["right"] for run in settled)
    assert all(run["campaign"]["booted"][0] == run["today"] for run in machines)
    assert {run["conditions"]["shadow_ms"] for run in machines} == {0.0}
    assert all(20 <= run["conditions"]["read_mb_s"] <= 30 for run in machines)
    first, second = (part.splitlines() for part in _halves(capsys.readouterr().out))
    assert first == second
    for row in ("all", "none", "curved", "lz4 -9", "zstd -19"):
        assert any(line.startswith(f"{row} ") for line in first)


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]
