"""The text for forums: the verdict, one table, the machine in four lines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from initadvisor.decide.cost import Outcome
from initadvisor.report.markdown import markdown
from tests.fixtures.answers import row
from tests.fixtures.reports import known_answer, report_of

if TYPE_CHECKING:
    from initadvisor.host import Host


def test_the_verdict_one_table_and_four_lines(host: Host) -> None:
    text = markdown(report_of(host))
    lines = text.splitlines()
    assert lines[0].startswith("**Switch to lz4 -9: boots 61 ms sooner (95 %: 20 to 104 ms")
    table = [line for line in lines if line.startswith("|")]
    assert len({len(line) for line in table}) == 1
    assert [cell.strip() for cell in table[2].strip("|").split("|")] == [
        *("lz4 -9", "55.0 MB", "110 ms", "120 ms", "61 ms", "20 to 104 ms")
    ]
    assert [cell.strip() for cell in table[3].strip("|").split("|")][4:] == ["today", ""]
    assert len(table) == 5
    machine = [line for line in lines if line.startswith("- ")]
    assert len(machine) == 4
    assert machine[0].startswith("- Machine: A Machine: ")
    assert machine[1] == "- Image: initrd.img, 40.0 MB, zstd, by dracut, for Linux 6.1.0-1-amd64"
    assert "the boot loader 500 MB/s (95 %: 50 to 5000)" in machine[2]
    assert machine[3].startswith("- Evidence: predicted; 9 boots recorded, 8 count; initadvisor ")


def test_what_may_not_be_chosen_says_why(host: Host) -> None:
    of = known_answer(Outcome.KEEP)
    unusable = replace(
        row(of.rows[0].setting, size_mb=30, saving=of.rows[0].saving_ms), unusable="no `zstd` | 3"
    )
    report = report_of(host, replace(of, rows=(unusable, of.rows[1])))
    assert r"| no \`zstd\` \| 3 |" in markdown(report)
    assert report.model is None  # one setting is none to compare with


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("<script>alert(1)</script>", r"\<script\>alert(1)\</script\>"),
        ("[x](http://e) `c` *b* _i_ @a #1", r"\[x\](http://e) \`c\` \*b\* \_i\_ \@a \#1"),
        ("x86_64\x1b[31m\u202e", r"x86_64\\x1b\[31m\\u202e"),
    ],
)
def test_names_cannot_be_taken_for_markdown(host: Host, name: str, written: str) -> None:
    of = replace(known_answer(), kernel_release=name)
    assert written in markdown(report_of(host, of))


def test_a_name_of_any_length_is_cut(host: Host) -> None:
    of = replace(known_answer(), kernel_release="k" * 10_000)
    assert len(markdown(report_of(host, of))) < 3_000
