"""The command ``whatif``: its options, and what it prints for people and as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from initadvisor import host as host_package
from initadvisor.advise.truth_tables import truth_table, truth_table_names
from initadvisor.cli.whatif import as_document, whatif
from initadvisor.core.codecs import Codec
from initadvisor.core.config import Objective
from initadvisor.core.errors import UsageError
from initadvisor.core.estimates import Estimate
from initadvisor.core.settings import Setting
from initadvisor.decide.cost import BestRange, Factor
from initadvisor.decide.whatif_values import Rule, SettingFigures, Span, WhatIf, WhatIfLine
from initadvisor.host import Host
from tests.fakes.runner import FakeRunner
from tests.fixtures.waiting import HANGS_S

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

CSV = "setting,size_mb,unpack_ms,log_sd\nlz4 -9,50,100,0.1\nzstd -19,30,300,\nxz,29.5,298,\n"
SCRIPT = """
import sys
from initadvisor.cli import root
root(["whatif", "--help"], standalone_mode=False)
print(*sorted(sys.modules), file=sys.stderr)
"""


@pytest.fixture(autouse=True)
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine without a configuration, which the command takes for the real one."""
    machine = Host(root=tmp_path, runner=FakeRunner())
    monkeypatch.setattr(host_package, "Host", lambda: machine)
    return machine


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A table of three settings."""
    path = tmp_path / "mine.csv"
    path.write_text(CSV)
    return str(path)


def call(*arguments: str) -> Result:
    """Call the command; errors are raised, except those of click."""
    return CliRunner().invoke(whatif, arguments, catch_exceptions=False)


def document(*arguments: str) -> dict[str, Any]:
    """Call the command and read its JSON."""
    loaded: dict[str, Any] = json.loads(call("--json", *arguments).stdout)
    assert loaded["schema"] == 3
    return loaded


def line_of(text: str, start: str) -> list[str]:
    """Return the words of the line that starts so."""
    (found,) = [line for line in text.splitlines() if line.strip().startswith(start)]
    return found.split()


def test_help_answers_without_what_only_numbers_need() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=HANGS_S
    )
    assert "--read-speed" in done.stdout
    assert {"numpy", "rich", "sqlite3", "zstandard"}.isdisjoint(done.stderr.split())


def test_three_disks_side_by_side_with_the_best_and_the_as_good_marked(table: str) -> None:
    shown = call("--table", table).stdout
    assert "NVMe  " in shown
    assert "mine: mine.csv, as given" in shown
    assert line_of(shown, "lz4 -9")[2:6] == ["50.0", "100", "82..122", "133*"]
    # 1.5 s of reading and 300 ms; xz reads 25 ms less.
    assert line_of(shown, "zstd -19")[-1] == "1800="
    assert line_of(shown, "xz")[-1] == "1773*"
    assert "assumed, not measured" in shown
    assert shown.isascii()


def test_what_costs_are_made_of_is_said(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("setting,size_mb,unpack_ms,build_cpu_s\nlz4,50,100,1\nzstd,40,200,2\n")
    said = " ".join(call("--table", str(path), "--objective", "balanced").stdout.split())
    assert "reading, then the longer of overlap and unpacking, and the build's share. *" in said
    assert "2 % of what the best takes to read and unpack" in said


def test_where_sizes_decide_the_smallest_is_the_first(table: str) -> None:
    lines = call("--table", table, "--objective", "size").stdout.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("setting")) + 1
    assert [line.split("  ")[0] for line in lines[first : first + 3]] == [
        "xz",
        "zstd -19",
        "lz4 -9",
    ]


def test_a_difference_within_the_tolerance_is_shown_as_equal(table: str) -> None:
    shown = call("--table", table, "--read-speed", "50").stdout
    assert line_of(shown, "zstd -19")[-1] == "900="
    assert line_of(shown, "xz")[-1] == "888*"
    assert line_of(shown, "lz4 -9")[5] == "1100"


def test_a_range_shows_where_the_best_changes(table: str) -> None:
    shown = call("--table", table, "--read-speed", "20..2000").stdout
    assert "read speed from 20 to 2000 MB/s" in shown
    # xz: 20.5 MB less than lz4 -9, 198 ms longer.
    assert ["20", "104", "xz"] in [line.split() for line in shown.splitlines()]
    assert ["104", "2000", "lz4", "-9"] in [line.split() for line in shown.splitlines()]
    assert line_of(shown, "lz4 -9")[-1].endswith("..2000")
    assert "No setting is as good as the best from end to end." in shown


def test_a_setting_that_is_good_enough_everywhere_is_named(table: str) -> None:
    shown = call("--table", table, "--read-speed", "20..30").stdout
    assert "As good as the best from end to end: zstd -19, xz." in shown


def test_two_ranges_show_a_map(table: str) -> None:
    shown = call("--table", table, "--read-speed", "20..2000", "--cpu-scale", "0.1..10").stdout
    assert "read speed across (MB/s), time the processor takes down (x)" in shown
    first, last = line_of(shown, "0.1 "), line_of(shown, "10 ")
    assert first[1:3] == ["xz=", "xz="]
    assert last[-2:] == ["lz4", "-9"]
    assert "= others are as good" in shown


def test_json_has_figures_with_bounds_where_they_are_known(table: str) -> None:
    found = document("--table", table, "--read-speed", "20..2000")
    assert (found["table"], found["objective"]) == ("mine", "boot")
    assert found["tolerance"] == {"ms": 5.0, "fraction": 0.02}
    lz4, zstd, _ = found["settings"]
    assert lz4["unpack_ms"]["low"] < 100 < lz4["unpack_ms"]["high"]
    assert (zstd["unpack_ms"]["low"], zstd["size_mb"]["high"]) == (None, None)
    (line,) = found["ranges"]
    assert (line["varies"], line["unit"], line["medium"]) == ("loader", "MB/s", None)
    assert [stretch["setting"] for stretch in line["best"]] == ["xz", "lz4 -9"]
    assert line["best"][0]["high"] == pytest.approx(20.5 / 0.198)
    assert line["as_good"]["xz"][0]["low"] == 20
    assert len(line["columns"]) == 5


def test_json_has_no_sign_on_what_is_nothing() -> None:
    nothing = Estimate(mean=-1e-9, low=-2e-9, high=-0.0, source="a test")
    setting = Setting(Codec.ZSTD)
    part = Span(low=-0.0, high=1)
    line = WhatIfLine(
        medium="",
        factor=Factor.SHADOW,
        span=part,
        ranges=(BestRange(low=-0.0, high=1, setting=setting),),
        suitable={setting: (part,)},
        columns=(),
    )
    answer = WhatIf(
        name="mine",
        source="a test",
        objective=Objective.BOOT,
        rule=Rule(tolerance_ms=5, tolerance_fraction=0.02),
        choices=(
            SettingFigures(setting=setting, size_mb=nothing, unpack_ms=nothing, extra_ms=-0.0),
        ),
        lines=(line,),
    )
    assert "-0.0" not in json.dumps(as_document(answer))


def test_json_of_a_map_has_the_exact_stretches(table: str) -> None:
    (one,) = document("--table", table, "--read-speed", "20..2000", "--overlap", "0..500")["maps"]
    assert one["across"]["varies"] == "loader"
    assert one["rows"][0]["value"] == 0
    assert one["rows"][0]["ranges"][0]["high"] == pytest.approx(20.5 / 0.198)
    assert one["rows"][-1]["ranges"] == [{"low": 20, "high": 2000, "setting": "xz"}]


def test_the_list_names_every_built_in_table_and_who_measured_it() -> None:
    shown = call("--list").stdout
    for name in truth_table_names():
        assert f"{name}: " in shown
    assert "Balint Reczey" in shown
    listed = document("--list")["tables"]
    assert [one["name"] for one in listed] == list(truth_table_names())
    for one in listed:
        assert len(one["settings"]) == len(truth_table(one["name"]).rows)


@pytest.mark.parametrize(
    ("table", "speeds", "winner"),
    [
        ("at91-nand-2012", ("0.39", "0.42"), "gzip"),
        ("panda-mmc-2012", ("1.5", "1.52"), "lzop"),
        ("at91-nand-2012", ("0.46", "1.5"), "lzop"),
    ],
)
def test_the_model_explains_why_two_boards_of_one_mail_disagree(
    table: str, speeds: tuple[str, str], winner: str
) -> None:
    """As its author measured on each; and a faster disk turns the slower board's answer round."""
    for speed in speeds:
        (column,) = document("--table", table, "--read-speed", speed)["columns"]
        assert [one["setting"] for one in column["settings"] if one["best"]] == [winner]


def test_what_does_not_add_up_is_told(tmp_path: Path) -> None:
    path = tmp_path / "published.csv"
    path.write_text("setting,size_mb,unpack_ms,input_mb_s\ncat,9,0,\nlz4,5,10,100\n")
    said = document("--table", str(path))
    assert "it does not add up: lz4: input_mb_s makes 50 ms, not 10" in said["assumptions"]


@pytest.mark.parametrize("name", truth_table_names())
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--read-speed", "5..5000"),
        ("--overlap", "0..3000"),
        ("--cpu-scale", "0.1..10", "--read-speed", "1"),
    ],
)
def test_every_built_in_table_can_be_asked(name: str, options: tuple[str, ...]) -> None:
    done = call("--table", name, *options)
    assert done.exit_code == 0
    assert "*" in done.stdout


@pytest.mark.parametrize("name", truth_table_names())
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--objective", "size"),
        ("--read-speed", "20..2000"),
        ("--overlap", "0..500"),
        ("--read-speed", "20..2000", "--overlap", "0..500"),
    ],
)
def test_whatever_is_asked_is_answered_in_80_columns(name: str, options: tuple[str, ...]) -> None:
    lines = call("--table", name, *options).stdout.splitlines()
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--read-speed", "fast"), "neither a number nor a range"),
        (("--read-speed", "20.."), "neither a number nor a range"),
        (("--read-speed", "..20"), "neither a number nor a range"),
        (("--read-speed", "1..2..3"), "neither a number nor a range"),
        (("--read-speed", "nan"), "neither a number nor a range"),
        (("--read-speed", "\u0663"), "neither a number nor a range"),
        (("--read-speed", "0"), "is not from 0.01 to 1e"),
        (("--read-speed", "1e999"), "is not from 0.01 to 1e"),
        (("--read-speed", "20..1e7"), "is not from 0.01 to 1e"),
        (("--cpu-scale", "0..2"), "is not from 0.001 to 1000"),
        (("--overlap", "-5"), "is not from 0 to 1e"),
        (("--overlap", "20..20"), "does not lead from a number up to a larger one"),
        (("--overlap", "20..2"), "does not lead from a number up to a larger one"),
        (("--objective", "fun"), "is not one of"),
    ],
)
def test_what_is_no_number_and_no_range_is_a_usage_error(
    arguments: tuple[str, ...], what: str
) -> None:
    done = call("--table", "arch-cloud", *arguments)
    assert done.exit_code == 2
    assert what in done.stderr


def test_one_table_is_compared_at_a_time(table: str) -> None:
    done = call("--table", table, "--table", "arch-cloud")
    assert done.exit_code == 2
    assert "one table is compared at a time, not 2" in done.stderr
    assert call("--table", table, "--table", table).stdout == call("--table", table).stdout


def test_a_range_is_read_with_decimals_and_exponents(table: str) -> None:
    found = document("--table", table, "--read-speed", "0.5..2e3")
    assert (found["ranges"][0]["low"], found["ranges"][0]["high"]) == (0.5, 2000)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--table", "arch-cloud", "--image", "x"),
        ("--list", "--table", "arch-cloud"),
        ("--list", "--overlap", "0"),
        ("--table", "no-such-table"),
        (
            "--table",
            "arch-cloud",
            "--read-speed",
            "1..2",
            "--overlap",
            "1..2",
            "--cpu-scale",
            "1..2",
        ),
    ],
)
def test_what_cannot_be_meant_together_is_a_usage_error(arguments: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        call(*arguments)


def test_what_a_table_says_cannot_command_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "evil.toml"
    path.write_text(
        'source = "\\u001b]0;x\\u0007"\n'
        + "[[rows]]\nsetting = 'cat'\nsize_mb = 1\nunpack_ms = 2\n"
    )
    with pytest.raises(UsageError, match="cannot be shown"):
        call("--table", str(path))
