"""One key of the configuration's text is changed; whatever else it holds stays."""

from __future__ import annotations

import pytest

from initadvisor.core.config_text import parse_value, with_value
from initadvisor.core.errors import UsageError

TEXT = """\
# mine
[machine]   # measured with a watch
read_speed_mb_s = 500   # the loader # really
[ candidates ]
settings = ["zstd", "#1"]  # two

[daemon]
policy = 'advise'
"""


@pytest.mark.parametrize(
    ("change", "old", "new"),
    [
        (("machine", "read_speed_mb_s", 20.5), "= 500   #", "= 20.5   #"),
        (("candidates", "settings", ["lz4 -9"]), '= ["zstd", "#1"]  #', '= ["lz4 -9"]  #'),
        (("daemon", "policy", "apply"), "'advise'", '"apply"'),
        (("machine", "overlap_ms", 0), "# really\n", "# really\noverlap_ms = 0\n"),
        (("candidates", "jobs", 2), "# two\n", "# two\njobs = 2\n"),
        (
            ("recommend", "objective", "size"),
            "ise'\n",
            'ise\'\n\n[recommend]\nobjective = "size"\n',
        ),
        (("daemon", "policy", None), "policy = 'advise'\n", ""),
        (("recommend", "objective", None), "", ""),
    ],
)
def test_one_line_changes(change: tuple[str, str, object], old: str, new: str) -> None:
    assert with_value(TEXT, *change) == TEXT.replace(old, new)


@pytest.mark.parametrize("text", ["", "\n", "# a comment", "[machine]", "[machine]\r\n"])
def test_a_file_without_the_key_gets_it(text: str) -> None:
    changed = with_value(text, "machine", "overlap_ms", 300)
    assert changed.startswith(text.strip())
    assert changed.count("[machine]") == 1
    assert "\noverlap_ms = 300" in changed


@pytest.mark.parametrize(
    "text",
    [
        "machine.overlap_ms = 3\n",
        "machine = {overlap_ms = 3}\n",
        "machine = 3\n",
        '["machine"]\noverlap_ms = 3\n',
        "[machine]\n'overlap_ms' = 3\n",
        "[machine]\noverlap_ms = [\n3]\n",
        '[daemon]\npolicy = """\n[machine]\noverlap_ms = 3\n"""\n',
    ],
)
def test_what_is_written_otherwise_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"cannot change overlap_ms: .* below \[machine\]"):
        with_value(text, "machine", "overlap_ms", 300)


def test_a_value_is_read_as_toml_or_as_a_word() -> None:
    values = ("5", "0.5", '["zstd"]', "'a b'", "size", "zstd -19", '1\n[daemon]\npolicy = "apply"')
    assert [parse_value(text) for text in values] == [
        *(5, 0.5, ["zstd"], "a b", "size", "zstd -19", values[-1])
    ]
