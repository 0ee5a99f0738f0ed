"""Under which conditions settings are compared, which of them, and what is said of both."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.advise import recommend as recommend_module
from initadvisor.advise.recommendation import Assumption
from initadvisor.advise.whatif import DISKS, Question, of_machine, what_if
from initadvisor.core.config import Config, Objective
from initadvisor.core.errors import UsageError
from initadvisor.core.settings import Setting
from initadvisor.decide.boot_evidence import Parameter
from initadvisor.decide.cost import Factor, Outcome
from initadvisor.decide.upgrades import PaceSource, UpgradePace
from initadvisor.decide.whatif_values import Span
from initadvisor.host import Host
from initadvisor.host.configuration import load_config
from initadvisor.image.contents import Lint, Verdict
from initadvisor.lab.observing import Unseen
from tests.fakes.runner import FakeRunner
from tests.fixtures.answers import LZ4, ZSTD, answer, decision, figure

if TYPE_CHECKING:
    from initadvisor.advise.recommend import Request
    from initadvisor.advise.recommendation import Recommendation, Row
    from initadvisor.decide.whatif_values import WhatIf

FIXED = Span(low=20, high=2000)
CSV = "setting,size_mb,unpack_ms,build_cpu_s\nlz4 -9,50,100,1\nzstd -19,30,300,70\ncat,120,80,\n"


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine without a configuration."""
    return Host(root=tmp_path, runner=FakeRunner())


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A table of three settings."""
    path = tmp_path / "mine.csv"
    path.write_text(CSV)
    return str(path)


def asked(host: Host, question: Question) -> WhatIf:
    """Ask it, with nobody looking."""
    return what_if(host, question, observer=Unseen())


def recommendation(*rows: Row) -> Recommendation:
    """Return what recommend knows of lz4 -9 and zstd, today's, and of other rows."""
    known_answer = answer(decision(Outcome.KEEP, saving=figure(0, 0, 0)))
    return replace(known_answer, rows=(*known_answer.rows, *rows))


def of(setting: str, **changed: object) -> Row:
    """Return a row of another setting."""
    first = recommendation().rows[0]
    return replace(first, setting=Setting.parse(setting), **changed)  # type: ignore[arg-type]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of which recommend knows two settings."""
    monkeypatch.setattr(recommend_module, "recommend", lambda *_, **__: recommendation())


def test_a_table_without_options_is_compared_on_three_disks_that_are_called_assumed(
    host: Host, table: str
) -> None:
    found = asked(host, Question(table=table))
    assert [column.title for column in found.columns] == ["NVMe", "SATA SSD", "SD card"]
    assert [column.conditions.read_mb_s for column in found.columns] == [1500, 500, 20]
    best = [next(s for s in column.ranks if s.best) for column in found.columns]
    assert [str(one.setting) for one in best] == ["lz4 -9", "lz4 -9", "zstd -19"]
    assert best[2].cost_ms.mean == pytest.approx(30 / 20 * 1000 + 300)
    for place in DISKS:
        assert any(
            line.startswith(f"{place.name}: ") and "assumed, not measured" in line
            for line in found.assumptions
        )
    assert not found.lines
    assert not found.maps


def test_what_is_given_holds_and_is_said_to_be_given(host: Host, table: str) -> None:
    question = Question(table=table, read_speed_mb_s=100, cpu_scale=2, overlap_ms=50)
    found = asked(host, question)
    (column,) = found.columns
    conditions = column.conditions
    assert (conditions.read_mb_s, conditions.cpu_scale, conditions.shadow_ms) == (100, 2, 50)
    assert column.ranks[0].cost_ms.mean == pytest.approx(50 / 100 * 1000 + 2 * 100)
    said = "\n".join(found.assumptions)
    assert "100 MB/s (as given)" in said
    assert "2 times as long, as given" in said
    assert "50 ms, as given" in said


def test_the_overlap_that_is_configured_is_this_machine_s(
    host: Host, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def as_recommend_has_it(host: Host, request: Request, **_: object) -> Recommendation:
        overlap_ms = load_config(host).overlap_ms if request.overlap_ms is None else 0.0
        assert overlap_ms is not None
        return replace(recommendation(), overlap_ms=figure(*[overlap_ms] * 3))

    monkeypatch.setattr(recommend_module, "recommend", as_recommend_has_it)
    host.path("/etc").mkdir()
    host.path("/etc/initadvisor.toml").write_text("[machine]\noverlap_ms = 70\n")
    for question, overlap_ms, places in (
        (Question(), 70, 4),
        (Question(overlap_ms=5), 5, 1),
        (Question(table=table), 0, 3),
    ):
        columns = asked(host, question).columns
        assert [column.conditions.shadow_ms for column in columns] == [overlap_ms] * places
    said = asked(host, Question()).assumptions
    assert "the overlap is a test; --overlap names another" in said  # its figures are of that


def test_a_range_of_speeds_is_one_line_with_its_crossing(host: Host, table: str) -> None:
    found = asked(host, Question(table=table, read_speed_mb_s=FIXED))
    (line,) = found.lines
    assert (line.medium, line.factor) == ("", Factor.LOADER)
    assert [str(stretch.setting) for stretch in line.ranges] == ["zstd -19", "lz4 -9"]
    assert line.ranges[0].high == pytest.approx(100)  # 20 MB less, 200 ms longer
    assert [column.conditions.read_mb_s for column in line.columns] == [20, 63.2, 200, 632, 2000]
    assert "as given" not in "\n".join(found.assumptions)


def test_another_range_is_followed_on_each_disk(host: Host, table: str) -> None:
    found = asked(host, Question(table=table, overlap_ms=Span(low=0, high=500)))
    assert [line.medium for line in found.lines] == ["NVMe", "SATA SSD", "SD card"]
    assert [column.conditions.shadow_ms for column in found.lines[0].columns] == [
        *(0, 125, 250, 375, 500)
    ]
    found = asked(host, Question(table=table, cpu_scale=Span(low=0.5, high=2), overlap_ms=10))
    assert {column.conditions.shadow_ms for column in found.lines[2].columns} == {10}


def test_two_ranges_are_a_map_whose_rows_agree_with_their_stretches(host: Host, table: str) -> None:
    found = asked(
        host,
        Question(table=table, cpu_scale=Span(low=0.5, high=4), read_speed_mb_s=FIXED),
    )
    (one,) = found.maps
    for row in one.rows:  # in a table, where nothing is today's, the best stands first
        assert [settings[0] for settings in row.as_good] == list(row.best)
    assert (one.across, one.down, one.medium) == (Factor.LOADER, Factor.CPU, "")
    assert (one.values[0], one.values[-1]) == (20, 2000)
    assert (one.rows[0].value, one.rows[-1].value) == (0.5, 4)
    for row in one.rows:
        for value, best in zip(one.values, row.best, strict=True):
            assert best in [s.setting for s in row.ranges if s.low <= value <= s.high]
    # The slower the processor, the earlier reading more is worth it.
    assert one.rows[0].ranges[0].high > one.rows[-1].ranges[0].high


def test_a_map_names_todays_setting_where_it_is_as_good(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = recommendation()
    alike = tuple(replace(row, size_bytes=40_000_000 + n) for n, row in enumerate(made.rows))
    monkeypatch.setattr(recommend_module, "recommend", lambda *_, **__: replace(made, rows=alike))
    (one,) = asked(host, Question(read_speed_mb_s=FIXED, cpu_scale=Span(low=1, high=2))).maps
    for row in one.rows:
        assert {settings[0] for settings in row.as_good} == {made.baseline}
        assert {frozenset(settings) for settings in row.as_good} == {frozenset({ZSTD, LZ4})}
        assert set(row.best) == {LZ4}


def test_a_map_without_speeds_is_drawn_for_each_disk(host: Host, table: str) -> None:
    span = Span(low=1, high=100)
    found = asked(host, Question(table=table, overlap_ms=span, cpu_scale=span))
    assert [one.medium for one in found.maps] == ["NVMe", "SATA SSD", "SD card"]
    assert {(one.across, one.down) for one in found.maps} == {(Factor.SHADOW, Factor.CPU)}


def test_three_ranges_are_refused_before_anything_is_read(host: Host) -> None:
    question = Question(
        image=Path("/no/such/image"), read_speed_mb_s=FIXED, cpu_scale=FIXED, overlap_ms=FIXED
    )
    with pytest.raises(UsageError, match="at the same time"):
        asked(host, question)


def test_a_build_counts_where_the_objective_says_so(host: Host, table: str) -> None:
    found = asked(host, Question(table=table, objective=Objective.BALANCED))
    boots = 14
    assert f"{boots} boots per kernel upgrade, assumed" in found.assumptions
    assert [choice.extra_ms for choice in found.choices] == [1000 / boots, 70_000 / boots]
    assert [str(gap.setting) for gap in found.left_out] == ["cat"]
    # The processor that unpacks builds, too.
    slower = asked(host, Question(table=table, objective=Objective.BALANCED, cpu_scale=3))
    costs = [answer.columns[0].ranks[1].cost_ms.mean for answer in (found, slower)]
    assert costs[1] - costs[0] == pytest.approx(2 * (300 + 70_000 / boots))


def test_builds_that_nobody_knows_cannot_be_weighed(host: Host) -> None:
    question = Question(table="arm-board-2013", objective=Objective.BALANCED)
    with pytest.raises(UsageError, match="what building it takes is not known"):
        asked(host, question)


def test_by_size_the_smallest_is_the_best_whatever_it_costs(host: Host, table: str) -> None:
    found = asked(host, Question(table=table, objective=Objective.SIZE, read_speed_mb_s=1e6))
    assert [s.best for s in found.columns[0].ranks] == [False, True, False]


def test_the_configured_tolerance_counts(host: Host, table: str) -> None:
    path = host.path("/etc/initadvisor.toml")
    path.parent.mkdir()
    path.write_text("[recommend]\ntolerance_ms = 190\n")
    found = asked(host, Question(table=table, read_speed_mb_s=1e6))
    assert [s.as_good for s in found.columns[0].ranks] == [True, False, True]


@pytest.mark.usefixtures("machine")
def test_this_machine_s_loader_stands_beside_the_classic_disks(host: Host) -> None:
    found = asked(host, Question())
    assert [column.title for column in found.columns] == [
        *("this machine", "NVMe", "SATA SSD", "SD card")
    ]
    # Known as 50 to 5000 MB/s: the middle of a figure that is known up to a factor.
    assert found.columns[0].conditions.read_mb_s == pytest.approx(500)
    here, nvme = (column.ranks[0].cost_ms for column in found.columns[:2])
    assert here.high - here.low > nvme.high - nvme.low
    assert any("recommend weighs all of that" in line for line in found.assumptions)


@pytest.mark.usefixtures("machine")
def test_with_another_processor_it_is_this_machine_s_disk_that_is_read(host: Host) -> None:
    found = asked(host, Question(cpu_scale=2))
    assert [column.title for column in found.columns] == ["this machine"]
    found = asked(host, Question(cpu_scale=Span(low=1, high=2)))
    assert [line.medium for line in found.lines] == ["this machine"]
    found = asked(host, Question(read_speed_mb_s=77))
    assert [column.title for column in found.columns] == ["77 MB/s"]
    assert not any("recommend weighs all of that" in line for line in found.assumptions)


def test_what_may_not_be_chosen_is_left_out_with_the_reason() -> None:
    refused = of("bzip2", lint=Lint(verdict=Verdict.REFUSED, reasons=("bzip2 not configured",)))
    unusable = of("cat", unusable="it would fall back to gzip", notes=("it would fall back",))
    too_large = of("lzop", fits=False)
    subject = of_machine(recommendation(refused, unusable, too_large), Config(), Objective.BOOT)
    assert [choice.setting for choice in subject.choices] == [LZ4, ZSTD]
    assert {str(gap.setting): gap.reason for gap in subject.left_out} == {
        "bzip2": "its kernel would refuse it: bzip2 not configured",
        "cat": "it would fall back to gzip",
        "lzop": "the boot partition has no room for it",
    }
    assert not any(remark.startswith("cat") for remark in subject.remarks)


def test_an_image_nobody_built_costs_something_between_the_levels_of_its_codec() -> None:
    today = recommendation().rows[1]
    near, far = of("zstd -3", build_cpu_s=7.0), of("zstd -19", build_cpu_s=90.0)
    rows = (
        replace(today, build_cpu_s=None),
        replace(near, size_bytes=today.size_bytes + 1),
        replace(far, size_bytes=today.size_bytes // 2),
    )
    subject = of_machine(
        replace(recommendation(), rows=rows), Config(boots_per_upgrade=7), Objective.BALANCED
    )
    # By what levels differ elsewhere: 0.3 s for zstd -1, 0.5 for -3, 58 for -19 and 72 for -22.
    middle_s = sqrt((90 * 0.3 / 58) * (7 * 72 / 0.5))
    assert [choice.extra_ms for choice in subject.choices] == pytest.approx(
        [middle_s * 1000 / 7, 1000, 90_000 / 7]
    )
    assert any("what building today's image takes is not known" in said for said in subject.remarks)


def test_a_build_is_spread_over_the_boots_that_were_counted_and_that_is_said() -> None:
    pace = UpgradePace(boots=5, source=PaceSource.COUNTED, recorded_boots=40, upgrades=7)
    of_pace = Assumption(about=None, text=pace.words)
    about_unpacking = Assumption(about=Parameter.CPU, text="another")
    counted = replace(recommendation(), pace=pace, assumptions=(of_pace, about_unpacking))
    subject = of_machine(counted, Config(), Objective.BALANCED)
    assert [choice.extra_ms for choice in subject.choices] == [2500 / 5] * 2
    assert subject.remarks[:2] == ("another", pace.words)
    for_boots = of_machine(counted, Config(), Objective.BOOT)
    assert [choice.extra_ms for choice in for_boots.choices] == [0, 0]
    assert pace.words not in for_boots.remarks


def test_what_is_asked_replaces_what_was_assumed_of_reading_and_waiting() -> None:
    assumptions = tuple(Assumption(about=what, text=str(what)) for what in Parameter)
    subject = of_machine(
        replace(recommendation(), assumptions=assumptions, warnings=("w",)),
        Config(),
        Objective.BOOT,
    )
    assert subject.remarks == ("populate", "cpu", "lab", "w")


def test_sizes_from_a_sample_have_an_interval_and_a_mark() -> None:
    row = of("zstd -9", size_bytes=30_000_000, size_log_sd=0.01)
    subject = of_machine(recommendation(row), Config(), Objective.BOOT)
    size = subject.choices[-1].size_mb
    assert [size.low, size.mean, size.high] == pytest.approx([29.42, 30, 30.59], rel=1e-3)
    assert subject.choices[0].size_mb.low == subject.choices[0].size_mb.high
