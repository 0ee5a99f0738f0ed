"""The command ``simulate``: its options, and what it prints for people and as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from initadvisor import host as host_package
from initadvisor.cli.progress import Progress
from initadvisor.cli.simulate import _STRAINS, simulate
from initadvisor.cli.simulate_text import print_simulation
from initadvisor.host import Host
from initadvisor.model.cost import Outcome
from initadvisor.model.errors import UsageError
from initadvisor.model.simulation import Scenario, Simulation, Strain
from initadvisor.stats.simulation_figures import figures, setting_uses
from initadvisor.workflow import simulation as simulation_module
from initadvisor.workflow.simulation import MIXES, READ_MB_S, SHADOW_MS
from tests.fakes.runner import FakeRunner
from tests.fixtures.waiting import HANGS_S
from tests.unit.cli.test_progress import Terminal
from tests.unit.stats.made_up import CAT, ZSTD, campaign, machine_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from click.testing import Result

    from initadvisor.model.simulation import CampaignRun

CSV = "setting,size_mb,unpack_ms\nlz4 -9,50,100\nzstd -19,30,300\ncat,120,80\n"
SCRIPT = """
import sys
from initadvisor.cli import root
root(["simulate", "--help"], standalone_mode=False)
print(*sorted(sys.modules), file=sys.stderr)
"""


@pytest.fixture(autouse=True)
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine without a configuration, which the command takes for the real one."""
    machine = Host(root=tmp_path, runner=FakeRunner())
    monkeypatch.setattr(host_package, "Host", lambda: machine)
    return machine


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do the work in this process."""

    def spread(
        work: Callable[[object], object], jobs: Sequence[object], *, processes: int
    ) -> Iterator[object]:
        del processes
        return map(work, jobs)

    monkeypatch.setattr(simulation_module, "spread", spread)


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A table of three settings."""
    path = tmp_path / "mine.csv"
    path.write_text(CSV)
    return str(path)


def call(*arguments: str) -> Result:
    """Call the command; errors are raised, except those of click."""
    return CliRunner().invoke(simulate, arguments, catch_exceptions=False)


def document(*arguments: str) -> dict[str, Any]:
    """Call the command and read its JSON."""
    loaded: dict[str, Any] = json.loads(call("--json", *arguments).stdout)
    assert loaded["schema"] == 1
    return loaded


def test_help_answers_without_what_only_numbers_need() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=HANGS_S
    )
    assert "--this-machine" in done.stdout
    assert {"numpy", "rich", "sqlite3", "multiprocessing"}.isdisjoint(done.stderr.split())


def test_help_names_the_mixes_and_ranges_that_there_are() -> None:
    assert set(_STRAINS) == set(MIXES)
    text = call("--help").stdout
    for span in (READ_MB_S, SHADOW_MS):
        assert f"[default: {span.low:g}..{span.high:g}]" in " ".join(text.split())


@pytest.mark.usefixtures("here")
def test_a_person_reads_what_came_of_it_and_what_was_assumed(table: str) -> None:
    done = call("--table", table, "--machines", "12", "--evidence", "lab", "--most-boots", "4")
    assert done.exit_code == 0
    assert done.stderr == ""
    text = " ".join(done.stdout.split())
    assert text.startswith("On 12 made-up machines (seed 1), ")
    assert "The classic comparison takes 60 boots" in text
    for row in ("all", "none", "curved", "outliers", "all, classic"):
        assert any(line.startswith(f"{row} ") for line in done.stdout.splitlines())
    for setting in ("lz4 -9", "zstd -19", "cat"):
        assert any(line.startswith(setting) for line in done.stdout.splitlines())
    assert "All of this is made up; what was assumed:" in text
    assert "50 % of the machines break the cost model on purpose" in text
    assert "sizes and times to unpack are those of mine, varied" in text
    assert done.stdout.isascii()
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.usefixtures("here")
def test_json_holds_all_of_it_and_its_figures_agree(table: str) -> None:
    found = document("--table", table, "--machines", "14", "--most-boots", "3", "--noise", "12")
    machines, result = found["machines"], found["result"]
    assert len(machines) == result["machines"] == 14
    settled = [one for one in machines if one["outcome"] != "undecided"]
    assert result["settled"]["count"] == len(settled)
    assert result["right"]["count"] == sum(one["right"] for one in settled)
    regrets = [one["regret_ms"] for one in machines]
    assert result["regret_ms"]["mean"] == pytest.approx(sum(regrets) / 14, abs=0.01)
    assert result["fixed"]["right"]["count"] == sum(one["fixed"]["right"] for one in machines)
    assert sum(one["right"]["of"] for one in result["calibration"]) == len(settled)
    assert sum(own["machines"] for own in found["by_strain"].values()) == 14
    for use in found["settings"]:
        booted = [one["boots"].count(use["setting"]) for one in machines]
        assert use["boots"]["mean"] == pytest.approx(sum(booted) / 14, abs=1e-3)
        assert use["booted"]["count"] == sum(map(bool, booted))
        assert use["chosen"]["count"] == sum(one["chosen"] == use["setting"] for one in machines)
    assert all(one["boots"][0] == one["today"] for one in machines)
    assert (found["noise"], found["most_boots"], found["seed"]) == (0.12, 3, 1)
    assert found["read_mb_s"] == {"low": 16.0, "high": 1500.0}
    assert found["assumptions"]


def made_up(*campaigns: CampaignRun) -> Simulation:
    """Return an answer of campaigns that ended so."""
    runs = tuple(machine_run(one) for one in campaigns)
    return Simulation(
        seed=3,
        tables=("small",),
        scenario=Scenario(
            read_mb_s=100.0,
            shadow_ms=0.0,
            noise_log_sd=0.06,
            outliers=0.05,
            strains=(Strain.NONE,),
            unpack_log_sd=0.3,
            lab=False,
        ),
        certainty=0.95,
        tolerance_ms=5.0,
        tolerance_fraction=0.02,
        most_boots=40,
        runs=runs,
        figures=figures(runs, certainty=0.95),
        by_strain=(),
        settings=setting_uses(runs),
        assumptions=("all of it",),
    )


def test_where_campaigns_do_not_end_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    never = campaign(40, outcome=Outcome.UNDECIDED, right=False)
    print_simulation(made_up(*[never] * 9))
    text = " ".join(capsys.readouterr().out.split())
    assert "less than half of the campaigns are settled within 40 boots" in text
    assert "none was settled" in text
    print_simulation(made_up(*[campaign(3)] * 7, never, never))
    text = " ".join(capsys.readouterr().out.split())
    assert "half of the campaigns are settled after 3 boots" in text
    assert "but not 90 % within 40" in text
    assert "99.0 %: 7 of 7, 100 65..100 %" in text


def test_settings_that_hardly_come_up_are_named_together(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rare = campaign(2, booted=(ZSTD, CAT))
    print_simulation(made_up(*[campaign(1)] * 99, rare))
    shown = capsys.readouterr().out
    assert "Less than 2 % each: cat." in shown
    assert not any(line.startswith("cat") for line in shown.splitlines())


def test_it_takes_as_many_processes_as_asked_for_and_says_the_same(table: str) -> None:
    """Really spread, over processes of their own."""
    arguments = ("--json", "--table", table, "--machines", "4", "--most-boots", "3")
    one, two = (call(*arguments, "--jobs", jobs) for jobs in ("1", "2"))
    assert one.exit_code == two.exit_code == 0
    assert one.stdout == two.stdout
    assert one.stderr == two.stderr == ""


def test_progress_is_a_bar_on_terminals_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Progress() as progress:
        progress.simulated(1, 4)
    assert capsys.readouterr() == ("", "")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with Progress() as progress:
        progress.simulated(0, 4)
        progress.simulated(2, 4)
    assert f"[{'#' * 15}{'.' * 15}] 2 of 4 machines" in terminal.getvalue()
    assert terminal.getvalue().endswith("\x1b[2K")


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--machines", "0"), "not in the range"),
        (("--machines", "\u0663"), "is not a whole number"),
        (("--tolerance-ms", "-1"), "not in the range"),
        (("--noise", "nan"), "'nan' is not a number"),
        (("--noise", "inf"), "'inf' is not a number"),
        (("--noise", "51"), "not in the range"),
        (("--noise", "-1"), "not in the range"),
        (("--outliers", "abc"), "'abc' is not a number"),
        (("--certainty", "1"), "not in the range"),
        (("--certainty", "0.4"), "not in the range"),
        (("--tolerance-fraction", "1"), "not in the range"),
        (("--tolerance-ms", "1e999"), "not in the range"),
        (("--read-speed", "0"), "is not from"),
        (("--shadow", "20..2"), "does not lead from"),
        (("--strain", "some"), "is not one of"),
        (("--evidence", "boots"), "is not one of"),
        (("--most-boots", "0"), "not in the range"),
        (("--seed", "-1"), "not in the range"),
        (("--jobs", "0"), "not in the range"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(arguments: tuple[str, ...], what: str) -> None:
    done = call(*arguments)
    assert done.exit_code == 2
    assert what in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--table", "arch-cloud", "--this-machine"),
        ("--table", "arch-cloud", "--image", "x"),
        ("--table", "no-such-table"),
        ("--today", "snappy"),
        ("--today", "zstd -22"),
    ],
)
def test_what_is_not_there_is_a_usage_error(arguments: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        call(*arguments)
