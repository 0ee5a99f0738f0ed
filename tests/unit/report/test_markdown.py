"""The text for forums: the verdict, one table, the machine in four lines; nothing private."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.decide.cost import Outcome
from initadvisor.report.markdown import markdown
from tests.fixtures.answers import row
from tests.fixtures.boots import boot_record
from tests.fixtures.hosts import Machine
from tests.fixtures.reports import known_answer, report_of, with_text
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from initadvisor.host import Host


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine with names, IDs and serial numbers."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    for path, text in PRIVATE_FILES.items():
        write(tmp_path, path, text)
    return Machine(root=tmp_path)


PRIVATE_FILES = {
    "/etc/hostname": "wintermute\n",
    "/etc/machine-id": "0123456789abcdef0123456789abcdef\n",
    "/etc/passwd": (
        "root:x:0:0:root:/root:/bin/sh\nno fields\n"
        "molly:x:1000:1000:Molly Millions,,,:/srv/people/mirrorshades:/bin/sh\n"
    ),
    "/sys/class/dmi/id/product_serial": "PF3XYZAB\n",
    "/sys/class/dmi/id/product_uuid": "4c4c4544-0042-3510-8052-b4c04f4e4b32\n",
    "/sys/block/sda/device/serial": "S4EWNX0R123456\n",
    "/proc/cpuinfo": "model name\t: A Processor of wintermute\n",
}
PRIVATE = (
    *("wintermute", "molly", "Molly Millions", "mirrorshades", "PF3XYZAB", "S4EWNX0R123456"),
    *("0123456789abcdef0123456789abcdef", "4c4c4544-0042-3510-8052-b4c04f4e4b32"),
    *("4C4C4544-0042-3510-8052-B4C04F4E4B32", "52:54:00:12:34:56"),
)
PLACES = ("/home/finn/initrd", "/media/finn/stick", "/run/user/1729/x")
COMMAND_LINE = "root=UUID=4c4c4544-0042-3510-8052-b4c04f4e4b32 panopticon=1 quiet"


def test_nothing_private_is_in_a_report(host: Host) -> None:
    """Planted in every text of the answer and of the records, and in the machine's files."""
    planted = " ".join([*PRIVATE, *PLACES])
    of = with_text(known_answer(), planted)
    of = replace(of, image=Path("/home/finn/0123456789abcdef0123456789abcdef/initrd-molly"))
    seen = with_text(boot_record(3), planted)
    secret = replace(
        seen,
        boot_id="e" * 32,
        machine="d" * 32,
        start=with_text(seen.start, COMMAND_LINE),
        shadow=with_text(seen.shadow, COMMAND_LINE),
        evidence=with_text(seen.evidence, COMMAND_LINE),
        attribution=with_text(seen.attribution, COMMAND_LINE),
        timestamps=replace(seen.timestamps, command_line=None),  # as in every record
        notes=(COMMAND_LINE,),
    )
    report = report_of(host, of, records=(secret,))
    assert [boot.day for boot in report.boots] == [secret.started_at.date().isoformat()]
    for text in (repr(report), markdown(report)):
        assert "A Processor" in text
        assert "a test" in text or "recorded" in text
        found = [one for one in (*PRIVATE, "e" * 32, "d" * 32, "c" * 64) if one in text]
        assert (found, "finn" in text, "1729" in text, "panopticon" in text) == ([], *[False] * 3)


def test_the_verdict_one_table_and_four_lines(host: Host) -> None:
    text = markdown(report_of(host))
    lines = text.splitlines()
    assert lines[0].startswith("**Switch to lz4 -9: boots about 61 ms sooner (95 %: 20 to 104 ms")
    table = [line for line in lines if line.startswith("|")]
    assert len({len(line) for line in table}) == 1
    assert [cell.strip() for cell in table[2].strip("|").split("|")] == [
        *("lz4 -9", "30.0 MB", "100 ms", "200 ms", "61 ms", "20 ms to 104 ms")
    ]
    assert [cell.strip() for cell in table[3].strip("|").split("|")][4:] == ["today", ""]
    assert len(table) == 4
    machine = [line for line in lines if line.startswith("- ")]
    assert len(machine) == 4
    assert machine[0].startswith("- Machine: A Machine: ")
    assert machine[1] == "- Image: initrd.img, 40.0 MB, zstd, by dracut, for Linux 6.1.0-1-amd64"
    assert "the boot loader 500 MB/s (95 %: 50 to 5000)" in machine[2]
    assert machine[3].startswith("- Evidence: predicted; 9 boots recorded, 9 count; initadvisor ")


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
