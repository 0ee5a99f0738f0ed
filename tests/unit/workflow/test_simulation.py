"""What is simulated is what was asked for, on machines like those that were named."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from initadvisor.host import Host
from initadvisor.model.cost import Outcome
from initadvisor.model.errors import UsageError
from initadvisor.model.estimate import Evidence
from initadvisor.model.image import Lint, Verdict
from initadvisor.model.setting import Setting
from initadvisor.model.simulation import BREAKING, Strain
from initadvisor.model.whatif import Span
from initadvisor.stats.simulation import run_campaign
from initadvisor.workflow import recommend as recommend_module
from initadvisor.workflow import simulate as simulate_module
from initadvisor.workflow import simulation as simulation_module
from initadvisor.workflow.simulate import measured_tables
from initadvisor.workflow.simulate_ground import Likeness, like_tables, like_this_machine
from initadvisor.workflow.simulation import MIXES, Question, simulate
from tests.fakes.runner import FakeRunner
from tests.unit.cli.answers import LZ4, ZSTD, answer, decision, figure, row
from tests.unit.workflow.test_whatif import Silent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from initadvisor.model.recommendation import Recommendation, Row
    from initadvisor.model.simulation import CampaignRun, Simulation
    from initadvisor.stats.simulation import Rules

ASKED = Question(
    machines=10,
    read_mb_s=None,
    shadow_ms=None,
    noise=0.06,
    outliers=0.05,
    evidence=Evidence.LAB,
    mix="half",
    most_boots=2,
    certainty=None,
    tolerance_ms=None,
    tolerance_fraction=None,
    seed=1,
    processes=1,
)
CSV = "setting,size_mb,unpack_ms\nlz4 -9,50,100\nzstd -19,30,300\ncat,120,80\n"


class Progress:
    """Takes note of how many machines were done when."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def simulated(self, done: int, of: int) -> None:
        """Take note."""
        self.seen.append((done, of))


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do the work here, the last job first; that it is spread is tried elsewhere."""

    def spread(
        work: Callable[[object], object], jobs: Sequence[object], *, processes: int
    ) -> Iterator[object]:
        assert processes == 1
        yield from map(work, reversed(jobs))

    monkeypatch.setattr(simulation_module, "spread", spread)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine without a configuration."""
    return Host(root=tmp_path, runner=FakeRunner())


@pytest.fixture
def likeness(tmp_path: Path) -> Likeness:
    """Machines like those of a small table."""
    path = tmp_path / "mine.csv"
    path.write_text(CSV)
    return like_tables([str(path)], None)


def simulated(host: Host, question: Question, likeness: Likeness) -> Simulation:
    return simulate(host, question, likeness, observer=Progress())


def test_the_same_question_has_the_same_answer_and_another_seed_another(
    host: Host, likeness: Likeness
) -> None:
    few = replace(ASKED, machines=4, most_boots=4)
    first, again = (simulated(host, few, likeness) for _ in range(2))
    assert first == again
    other = simulated(host, replace(few, seed=2), likeness)
    assert {run.seed for run in other.runs}.isdisjoint(run.seed for run in first.runs)
    assert [run.campaign for run in other.runs] != [run.campaign for run in first.runs]


def test_machines_come_in_order_and_progress_is_told(host: Host, likeness: Likeness) -> None:
    progress = Progress()
    found = simulate(host, ASKED, likeness, observer=progress)
    assert [run.seed for run in found.runs] == [(1, number) for number in range(10)]
    assert progress.seen == [(done, 10) for done in range(11)]


def test_more_machines_are_the_same_ones_and_others(host: Host, likeness: Likeness) -> None:
    few, many = (simulated(host, replace(ASKED, machines=count), likeness).runs for count in (4, 8))
    assert many[:4] == few


def test_other_conditions_leave_the_machines_what_they_are(host: Host, likeness: Likeness) -> None:
    """So that what differs between two answers is what was asked for, not chance."""
    plain, noisy = (
        simulated(host, replace(ASKED, machines=6, noise=noise, mix="none"), likeness).runs
        for noise in (0.0, 0.12)
    )
    for one, other in zip(plain, noisy, strict=True):
        assert one.conditions == replace(other.conditions, noise_log_sd=0.0)
        assert (one.today, one.campaign.best) == (other.today, other.campaign.best)
        assert one.campaign.tolerance_ms == other.campaign.tolerance_ms


def test_by_default_every_other_machine_breaks_the_model(host: Host, likeness: Likeness) -> None:
    found = simulated(host, ASKED, likeness)
    strains = [run.conditions.strain for run in found.runs]
    assert strains[::2] == [Strain.NONE] * 5
    assert strains[1::2] == list(BREAKING)
    by_strain = dict(found.by_strain)
    assert set(by_strain) == set(Strain)
    assert by_strain[Strain.NONE].machines == 5
    assert sum(own.machines for own in by_strain.values()) == 10
    assert any("50 % of the machines break" in said for said in found.assumptions)


@pytest.mark.parametrize("mix", MIXES)
def test_every_mix_is_of_what_it_says(host: Host, likeness: Likeness, mix: str) -> None:
    found = simulated(host, replace(ASKED, mix=mix, most_boots=1), likeness)
    strains = {run.conditions.strain for run in found.runs}
    expected = {"half": set(Strain), "all": set(BREAKING)}.get(mix) or {Strain(mix)}
    assert strains == expected
    assert bool(found.by_strain) == (len(expected) > 1)
    text = " ".join(found.assumptions)
    for strain in BREAKING:
        assert (f"{strain}: " in text) == (strain in expected)


def test_conditions_are_those_asked_for(host: Host, likeness: Likeness) -> None:
    question = replace(ASKED, read_mb_s=Span(low=20, high=30), shadow_ms=0.0, outliers=0.2)
    found = simulated(host, question, likeness)
    assert all(20 <= run.conditions.read_mb_s <= 30 for run in found.runs)
    assert {run.conditions.shadow_ms for run in found.runs} == {0.0}
    assert {run.conditions.outliers for run in found.runs} == {0.2}
    assert {run.conditions.lab for run in found.runs} == {True}
    assert {run.conditions.unpack_log_sd for run in found.runs} == {0.05}
    assert "the shadow (B1) is 0 ms" in found.assumptions
    assert any("drawn from 20 to 30 MB/s" in said for said in found.assumptions)


def test_what_does_not_matter_is_what_the_configuration_says_or_the_user(
    host: Host, likeness: Likeness
) -> None:
    host.path("/etc").mkdir()
    host.path("/etc/initadvisor.toml").write_text(
        "[recommend]\ncertainty = 0.8\ntolerance_ms = 50.0\ntolerance_fraction = 0.0\n"
    )
    found = simulated(host, ASKED, likeness)
    assert (found.certainty, found.tolerance_ms, found.tolerance_fraction) == (0.8, 50.0, 0.0)
    assert {run.campaign.tolerance_ms for run in found.runs} == {50.0}
    own = simulated(host, replace(ASKED, certainty=0.9, tolerance_ms=7.0), likeness)
    assert (own.certainty, own.tolerance_ms, own.tolerance_fraction) == (0.9, 7.0, 0.0)


def test_what_may_be_booted_is_what_the_configuration_says(
    host: Host, likeness: Likeness, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float] = []

    def noted(*arguments: object, rules: Rules, **named: object) -> CampaignRun:
        limits.append(rules.limits.excess_ms)
        return run_campaign(*arguments, rules=rules, **named)  # type: ignore[arg-type] # as they are

    monkeypatch.setattr(simulate_module, "run_campaign", noted)
    one = replace(ASKED, machines=1)
    free = simulated(host, one, likeness)
    host.path("/etc").mkdir()
    host.path("/etc/initadvisor.toml").write_text("[recommend]\nmax_excess_s = 0.5\n")
    strict = simulated(host, one, likeness)
    assert limits == [3000, 500]
    assert any("expected to cost 3 s more" in said for said in free.assumptions)
    assert any("expected to cost 0.5 s more" in said for said in strict.assumptions)


def test_no_campaign_takes_more_boots_than_it_may(host: Host, likeness: Likeness) -> None:
    found = simulated(host, ASKED, likeness)
    assert max(run.campaign.boots for run in found.runs) == 2
    undecided = [run for run in found.runs if run.campaign.outcome is Outcome.UNDECIDED]
    assert found.figures.settled.count == 10 - len(undecided)
    assert undecided


def test_the_built_in_tables_are_those_that_are_worth_a_campaign() -> None:
    names = {table.name for table in like_tables([], None).ground.tables}
    assert names == {table.name for table in measured_tables()}
    assert "arch-cloud" in names
    assert "ubuntu-laptop-2018" not in names  # of two settings
    assert like_tables(["ubuntu-laptop-2018"], None).ground.tables[0].name == "ubuntu-laptop-2018"


def test_a_table_named_twice_counts_once() -> None:
    assert len(like_tables(["arch-cloud", "arch-cloud"], None).ground.tables) == 1


def test_tables_that_lack_today_s_setting_are_left_out_and_named() -> None:
    lzop = Setting.parse("lzop -3")
    found = like_tables([], lzop)
    assert all(any(row.setting == lzop for row in table.rows) for table in found.ground.tables)
    assert any("dracut-bookworm-full" in said for said in found.said if "left out" in said)
    with pytest.raises(UsageError, match="no table has the setting zstd -22") as caught:
        like_tables([], Setting.parse("zstd -22"))
    assert "zstd -19" in str(caught.value.hint)


def recommending(monkeypatch: pytest.MonkeyPatch, *rows: Row) -> Recommendation:
    """Have ``recommend`` answer with these rows beside today's zstd."""
    found = answer(decision(Outcome.UNDECIDED, saving=figure(10, -50, 80)))
    if rows:
        found = replace(found, rows=(*rows, found.rows[-1]))
    monkeypatch.setattr(recommend_module, "recommend", lambda *_args, **_named: found)
    return found


def this_machine(host: Host, today: Setting | None = None) -> Likeness:
    return like_this_machine(
        host,
        None,
        today,
        observer=Silent(),  # type: ignore[arg-type] # takes any call
    )


def test_this_machine_has_its_own_images_and_loader(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    cat = replace(
        row(Setting.parse("cat"), size_mb=120, saving=figure(0, 0, 0)),
        unpack_ms=figure(90, 80, 100),
    )
    lz4 = row(LZ4, size_mb=30, saving=figure(0, 0, 0))
    told = recommending(monkeypatch, lz4, cat)
    found = this_machine(host)
    assert (found.ground.today, found.ground.like_table) == (ZSTD, True)
    speed = told.storage.loader_mb_s
    assert found.read_mb_s == Span(low=speed.low, high=speed.high)
    (table,) = found.ground.tables
    assert table.populate_ms == 90  # what the plain image takes
    assert {str(row.setting): (row.size_mb, row.unpack_ms) for row in table.rows} == {
        "lz4 -9": (30.0, 200.0),
        "cat": (120.0, 90.0),
        "zstd": (40.0, 200.0),
    }
    simulation = simulated(host, replace(ASKED, machines=4), found)
    assert {run.today for run in simulation.runs} == {ZSTD}
    assert all(speed.low <= run.conditions.read_mb_s <= speed.high for run in simulation.runs)
    assert any("what is known of this machine's" in said for said in simulation.assumptions)
    assert any("/boot/initrd.img" in said for said in simulation.assumptions)


def test_a_speed_that_is_given_goes_before_this_machine_s(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    recommending(monkeypatch)
    found = simulated(host, replace(ASKED, machines=2, read_mb_s=77.0), this_machine(host))
    assert {run.conditions.read_mb_s for run in found.runs} == {77.0}
    assert "the loader's speed is 77 MB/s" in found.assumptions


def test_another_setting_may_be_today_s_if_it_can_be_compared(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    recommending(monkeypatch)
    assert this_machine(host, LZ4).ground.today == LZ4
    with pytest.raises(UsageError, match="xz: it is not among those"):
        this_machine(host, Setting.parse("xz"))


def test_what_may_not_be_used_here_is_in_no_machine(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = replace(
        row(Setting.parse("xz"), size_mb=20, saving=figure(0, 0, 0)),
        lint=Lint(verdict=Verdict.REFUSED, reasons=("no decompressor",)),
    )
    recommending(monkeypatch, refused, row(LZ4, size_mb=30, saving=figure(0, 0, 0)))
    (table,) = this_machine(host).ground.tables
    assert {str(row.setting) for row in table.rows} == {"lz4 -9", "zstd"}
