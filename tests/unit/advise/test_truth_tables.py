"""Tables come from the package by name, or from a file, which may hold anything."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.advise.truth_tables import read_table, truth_table, truth_table_names
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

TOML = """
name = "my server"
source = "the lab"
populate_ms = 90

[[rows]]
setting = "zstd -19"
size_mb = 24
decompress_ms = 122
log_sd = 0.03

[[rows]]
setting = "lz4 -9"
size_bytes = 39506656
unpack_ms = 128.5
build_cpu_s = 4.23
"""
CSV = """\ufeff# what I measured
setting, size_mb, unpack_ms, build_cpu_s
zstd -19,24,212,

"lz4 -9",39.5,128.5,4.23
"""


def written(directory: Path, text: str | bytes, name: str = "table.toml") -> Path:
    """Return a file with this content."""
    path = directory / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_toml_has_sizes_and_times_in_either_unit(tmp_path: Path) -> None:
    table = truth_table(str(written(tmp_path, TOML)))
    assert (table.name, table.source, table.populate_ms) == ("my server", "the lab", 90)
    first, second = table.rows
    assert (str(first.setting), first.size_mb, first.unpack_ms) == ("zstd -19", 24, 90 + 122)
    assert (first.log_sd, first.build_cpu_s) == (0.03, None)
    assert (second.size_mb, second.unpack_ms, second.build_cpu_s) == (39.506656, 128.5, 4.23)


@pytest.mark.parametrize("name", ["mine.csv", "mine", "mine.CSV"])
def test_csv_has_titles_comments_and_empty_cells(tmp_path: Path, name: str) -> None:
    table = truth_table(str(written(tmp_path, CSV, name)))
    assert (table.name, table.source) == ("mine", f"{name}, as given")
    assert [(str(row.setting), row.size_mb, row.build_cpu_s) for row in table.rows] == [
        ("zstd -19", 24, None),
        ("lz4 -9", 39.5, 4.23),
    ]


def test_toml_is_told_by_its_content_where_the_name_says_nothing(tmp_path: Path) -> None:
    assert read_table(written(tmp_path, TOML, "mine")).name == "my server"
    rows = TOML.partition("populate_ms = 90\n")[2].replace("decompress_ms", "unpack_ms")
    assert read_table(written(tmp_path, rows, "mine.txt")).name == "mine"


PUBLISHED = """\
populate_ms = 10
unpacked_mb = 100
[[rows]]
setting = "cat"
percent_of_cat = 100
unpack_ms = 10
[[rows]]
setting = "zstd"
percent_of_cat = 30
output_mb_s = 500
[[rows]]
setting = "lz4"
size_mb = 45
input_mb_s = 900
[[rows]]
setting = "gzip"
size_mb = 32
percent_of_cat = 25
decompress_ms = 100
output_mb_s = 320
[[rows]]
setting = "xz"
size_mb = 22
percent_of_cat = 22
decompress_ms = 1010
output_mb_s = 100
input_mb_s = 20
"""


def test_published_figures_become_sizes_and_times(tmp_path: Path) -> None:
    """Sizes in percent of what is unpacked, speeds of what comes out or goes in."""
    table = truth_table(str(written(tmp_path, PUBLISHED)))
    figures = {str(row.setting): (row.size_mb, row.unpack_ms) for row in table.rows}
    assert figures == {
        "cat": (100, 10),
        "zstd": (30, 10 + 200),
        "lz4": (45, 10 + 50),
        "gzip": (32, 10 + 100),
        "xz": (22, 10 + 1010),
    }


def test_figures_that_do_not_add_up_are_told(tmp_path: Path) -> None:
    """A compressed size divided by a speed of unpacked bytes is the field's usual mistake."""
    table = truth_table(str(written(tmp_path, PUBLISHED)))
    assert table.doubts == (
        "gzip: 32 MB are 32 % of cat, not 25 %",
        "gzip: output_mb_s makes 312.5 ms, not 100, which is the compressed size divided by the "
        "speed of what comes out",
        "xz: input_mb_s makes 1100 ms, not 1010",
    )


ROWS = '[[rows]]\nsetting = "cat"\nsize_mb = 1\nunpack_ms = 2\n[[rows]]\n'


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "it has no rows"),
        ("rows = 3", "it has no rows"),
        ("rows = [1, 2]", "it has no rows"),
        ("= 3", "is no table of candidates"),
        ("a = 3", "'a' is not known"),
        ("a = " + "[" * 9000, "is no table of candidates"),
        ("populate_ms = 0x" + "f" * 9000 + ROWS, "is no table of candidates"),
        (b"\xff", "not UTF-8 at byte 0"),
        (b"#" * 70_000, "longer than 64 KiB"),
        (ROWS, "row 2 has no setting"),
        (ROWS + 'setting = "zst"', "row 2 \\('zst'\\) needs size_mb or size_bytes"),
        (ROWS + 'setting = "lz4"\nsize_mb = 1\nsize_bytes = 1', "not both"),
        (ROWS + 'setting = "lz4"\nsize_mb = 1', "needs unpack_ms or decompress_ms"),
        (ROWS + 'setting = "lz4"\nsize_mb = 1\ndecompress_ms = 1', "needs populate_ms"),
        (TOML.replace("= 90", "= -5").replace("= 122", "= 4"), "populate_ms -5 is not a number"),
        (TOML.replace("= 90", "= true"), "populate_ms True is not a number"),
        (TOML.replace("= 122", "= -4"), "'zstd -19'\\): decompress_ms -4 is not a number"),
        (ROWS + 'setting = "lz4"\nsize_mb = "1"\nunpack_ms = 1', "size_mb '1' is not a number"),
        (ROWS + 'setting = "lz4"\nsize_mb = nan\nunpack_ms = 1', "size_mb nan is not a number"),
        (ROWS + 'setting = "lz4"\nsize_mb = 0x' + "f" * 900, "needs unpack_ms"),
        (ROWS + f'setting = "lz4"\nsize_mb = 0x{"f" * 900}\nunpack_ms = 1', "too many digits"),
        (ROWS + 'setting = "zst"\nsize_mb = 1\nunpack_ms = 1', "start with a known codec"),
        (ROWS + 'setting = "lz4"\npercent_of_cat = 1\nunpack_ms = 1', "needs unpacked_mb"),
        (ROWS + 'setting = "lz4"\nsize_mb = 1\noutput_mb_s = 1', "needs unpacked_mb"),
        (ROWS + 'setting = "lz4"\nsize_mb = 1\ninput_mb_s = 1', "needs populate_ms"),
        ("unpacked_mb = 0\n" + ROWS, "unpacked_mb 0 is not a number of more than 0"),
        (PUBLISHED.replace("= 900", "= 0"), "row 3 .*: input_mb_s 0.0 is not a number of more"),
        (PUBLISHED.replace("_s = 20", '_s = "20"'), "row 5 .*: input_mb_s '20' is not a number"),
        (ROWS + 'setting = "zstd -99"\nsize_mb = 1\nunpack_ms = 1', "no level 99"),
        (ROWS + 'setting = "cat"\nsize_mb = 1\nunpack_ms = 1', "cat stands there twice"),
        (ROWS + 'setting = "\\u001b[2J"\nsize_mb = 1', r"'\\x1b\[2J'"),
    ],
)
def test_a_bad_file_is_one_line_that_says_what_is_wrong(
    tmp_path: Path, text: str | bytes, what: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError, match=what) as caught:
        read_table(path)
    assert caught.value.message.startswith(f"{path} is no table of candidates")
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 500


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("setting,size_mb,unpack_ms\ncat,1\nlz4,1,2", "row 1 \\('cat'\\) needs unpack_ms"),
        ("setting,size_mb,unpack_ms\ncat,1,2,3", "more values than there are titles"),
        ("setting;size_mb\ncat;1,5", "the column 'setting;size_mb' is not known"),
        ("setting,size_mb,size_mb\ncat,1,2", "the column 'size_mb' stands there twice"),
        ("setting,size_mb,unpack_ms\ncat,1,fast", "'unpack_ms': 'fast' is not a number"),
        ("setting,size_mb,unpack_ms\ncat,1,inf\n", "unpack_ms inf is not a number"),
        ('setting,size_mb,unpack_ms\n"cat,1,2', "is no table of candidates"),
        ("setting,speed\ncat,1", "'speed' is not known"),
        ("cat\x00,1", "is no table of candidates"),
    ],
)
def test_bad_csv_is_one_line_that_says_what_is_wrong(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what) as caught:
        read_table(written(tmp_path, text, "table.csv"))
    assert caught.value.message.isprintable()


@given(st.binary(max_size=300), st.sampled_from(["a.toml", "a.csv", "a"]))
def test_whatever_a_file_holds_only_our_own_errors_come_of_it(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, name: str
) -> None:
    path = written(tmp_path_factory.mktemp("table"), content, name)
    with pytest.raises(UsageError):
        read_table(path)


def test_what_is_no_ordinary_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", "/", "."):
        with pytest.raises(InitadvisorError, match="not an ordinary file"):
            truth_table(str(path))


@pytest.mark.parametrize(
    "name", ["", "no-such-table", "/no/such.toml", "a\0b", "\x1b[2J", "x" * 5000]
)
def test_what_is_neither_a_name_nor_a_file_names_the_tables_there_are(name: str) -> None:
    with pytest.raises(UsageError, match="no built-in table and no file") as caught:
        truth_table(name)
    assert caught.value.message.isprintable()
    assert all(known in (caught.value.hint or "") for known in truth_table_names())


@pytest.mark.parametrize("name", truth_table_names())
def test_a_built_in_table_says_who_measured_it(name: str) -> None:
    table = truth_table(name)
    assert table.name == name
    assert len(table.source) > 100
    years = ("2010", "2012", "2013", "2018", "2021", "2026", "no date")
    assert any(year in table.source for year in years)


def test_in_tables_of_our_own_only_no_compression_is_as_fast_as_creating_the_files() -> None:
    own = [t for t in map(truth_table, truth_table_names()) if "benchmarks" in t.source]
    assert len(own) >= 5
    for table in own:
        fastest = min(table.rows, key=lambda row: row.unpack_ms)
        assert fastest.setting.codec is Codec.CAT
        assert fastest.unpack_ms == table.populate_ms
        assert all(row.log_sd > 0 and row.build_cpu_s is not None for row in table.rows)
