"""Where ``report`` writes: a whole file, or none; nothing but an ordinary one is replaced."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from initadvisor.advise import recommend
from initadvisor.cli import root
from initadvisor.core.errors import InitadvisorError, UsageError
from tests.fixtures.reports import known_answer

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the answer be there at once, and the working directory be the test's own."""
    monkeypatch.setattr(recommend, "recommend", lambda *_a, **_k: known_answer())
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def report(*arguments: str) -> str:
    """Return what the command prints."""
    done = CliRunner().invoke(root, ["report", "--image", "any", *arguments])
    if done.exception:
        raise done.exception
    return done.stdout


def test_a_page_is_written_beside_the_user_s_files(tmp_path: Path) -> None:
    page = tmp_path / "initadvisor-report.html"
    page.write_text("an earlier one, which is longer" * 10_000)
    said = report()
    assert said == f"initadvisor-report.html: {page.stat().st_size / 1000:.0f} kB\n"
    assert page.read_text().startswith("<!doctype html>")
    assert page.read_text().endswith("</html>")
    assert [one.name for one in tmp_path.glob("*.html")] == [page.name]


def test_markdown_is_printed_and_either_goes_where_it_is_told() -> None:
    assert report("--markdown").startswith("**Switch to lz4 -9")
    assert report("-o", "-").startswith("<!doctype html>")
    assert report("--markdown", "--output", "x.md") == "x.md: 1 kB\n"


@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
def test_what_is_no_ordinary_file_is_left_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    if kind == "link":
        path.symlink_to("elsewhere")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(UsageError, match="no ordinary file"):
        report("-o", kind)
    assert not (tmp_path / "elsewhere").exists()


def test_a_directory_that_is_not_there_is_named_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recommend, "recommend", None)
    with pytest.raises(InitadvisorError, match=r"cannot write none/x\.html: No such file"):
        report("-o", "none/x.html")


WRONG = """\
name = "a table of molly's"
unpacked_mb = 66
populate_ms = 0

[[rows]]
setting = "cat"
percent_of_cat = 100
unpack_ms = 0

[[rows]]
setting = "lz4"
size_mb = 31
percent_of_cat = 47
output_mb_s = 3100
decompress_ms = 10
"""


def test_a_table_of_one_s_own_is_in_the_page_with_what_does_not_add_up(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(WRONG)
    (tmp_path / "other.csv").write_text("setting,size_mb,unpack_ms\nlz4,31,30\nzstd,21,80\n")
    page = report("-o", "-", "--table", "own.toml", "--table", "other.csv", "--table", "arch-cloud")
    names = re.findall(r'<option value="[0-9]+">(.*?)</option>', page)
    assert names[:4] == ["a table of molly&#39;s", "other", "arch-cloud", "ubuntu-laptop-2018"]
    assert (
        "It does not add up: lz4: output_mb_s makes 21.29 ms, not 10, which is the compressed size "
        "divided by the speed of what comes out" in page
    )
    assert "zstd up to 200 MB/s" in page


def test_a_table_that_is_none_is_refused_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recommend, "recommend", None)
    with pytest.raises(UsageError, match="no file is called"):
        report("--table", "none.csv")
