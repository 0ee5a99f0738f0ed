"""A report holds nothing that is private, whatever names and sentences hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor import __version__
from initadvisor.records.boot import RecordSource
from initadvisor.report.collect import MOST_BOOTS
from initadvisor.report.markdown import markdown
from initadvisor.report.page import page
from initadvisor.report.privacy import Privacy
from tests.fakes.runner import FakeRunner
from tests.fixtures.boots import boot_record
from tests.fixtures.reports import known_answer, report_of, with_text
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from initadvisor.host import Host

PRIVATE = (
    *("wintermute", "molly", "Molly Millions", "mirrorshades", "PF3XYZAB", "S4EWNX0R123456"),
    *("0123456789abcdef0123456789abcdef", "4c4c4544-0042-3510-8052-b4c04f4e4b32"),
    *("4C4C4544-0042-3510-8052-B4C04F4E4B32", "52:54:00:12:34:56", "0AB1-3510"),
)
PLACES = (
    "/dev/disk/by-uuid/0AB1-3510",
    "systemd-fsck@dev-disk-by-id-ata-finn-0AB1-3510.service",
    "/home/finn/initrd",
    "/media/finn/stick",
    "/run/user/1729/x",
)
COMMAND_LINE = "root=UUID=4c4c4544-0042-3510-8052-b4c04f4e4b32 panopticon=1 quiet"


def test_nothing_private_is_in_a_report(host: Host) -> None:
    """Planted in every text of the answer and of the records, and in the machine's files."""
    planted = " ".join([*PRIVATE[:-1], *PLACES])
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
    for text in (repr(report), markdown(report), page(report)):
        assert "A Processor" in text
        assert "a test" in text or "recorded" in text
        found = [one for one in (*PRIVATE, "e" * 32, "d" * 32, "c" * 64) if one in text]
        assert (found, "finn" in text, "1729" in text, "panopticon" in text) == ([], *[False] * 3)


def test_the_versions_that_figures_depend_on_are_told(host: Host) -> None:
    runner = FakeRunner(programs=("lz4", "zstd"))
    runner.answer("lz4 --version", "*** LZ4 command line interface 64-bits v1.9.4, by Yann Collet")
    runner.answer("zstd --version", "zstd?")
    write(host.root, "/usr/lib/dracut/dracut-version.sh", "DRACUT_VERSION=059-4\n")
    told = report_of(replace(host, runner=runner)).versions
    assert told == (
        f"initadvisor {__version__}",
        "dracut 059-4",
        "lz4 1.9.4",
        "zstd of unknown version",
    )


def test_the_latest_boots_of_this_machine_are_shown(host: Host) -> None:
    own = tuple(boot_record(number) for number in range(1, MOST_BOOTS + 3))
    others = boot_record(MOST_BOOTS + 9, source=RecordSource.IMPORT)
    report = report_of(host, records=(*own, others))
    assert report.recorded_boots == MOST_BOOTS + 2
    assert len(report.boots) == MOST_BOOTS
    assert report.boots[0].day == own[-1].started_at.date().isoformat()


def test_names_that_many_have_hide_none_of_our_own_words(host: Host) -> None:
    write(host.root, "/etc/hostname", "guest\n")
    write(host.root, "/etc/passwd", "user:x:1000:1000:Linux User,,,:/home/user:/bin/sh\n")
    privacy = Privacy(host)
    said = "user space of Linux, guest-laptop"
    assert privacy.masked(said) == said
    assert privacy.masked("/home/user/x of Linux User") == "/home/[hidden]/x of [hidden]"
