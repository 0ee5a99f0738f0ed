"""Boots of a text: recorded once each, kept apart, and nothing made up."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from initadvisor import host as host_package
from initadvisor.cli.measure import measure
from initadvisor.core.errors import InitadvisorError
from initadvisor.measure import text_boots
from initadvisor.measure.text_boots import read_text_log
from initadvisor.records.boot import RecordSource, RejectionReason
from initadvisor.records.marks import Waiting

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from tests.fixtures.booted import Booted

LOG = """\
[    0.000000] Linux version {release} (a@b) (cc) #1 SMP
[    0.300000] Trying to unpack rootfs image as initramfs...
[    0.350000] NET: Registered PF_INET6 protocol family
[    0.500000] Freeing initrd memory: 42152K
[    0.503000] Segment Routing with IPv6
[    0.550000] rtc_cmos 00:02: setting system clock to 2023-02-22T14:03:41 UTC (1677074621)
[    0.600000] Run /init as init process
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A serial console's log of two boots."""
    path = tmp_path / "console.txt"
    text = LOG.format(release="6.1.0") + LOG.format(release="6.12.1")
    path.write_text("".join(f"[1.006743 0.000093] {line}\n" for line in text.splitlines()))
    return path


def document(machine: Booted, monkeypatch: pytest.MonkeyPatch, *files: Path) -> dict[str, Any]:
    """Call the command with files, and read its JSON."""
    monkeypatch.setattr(host_package, "Host", machine.host)
    arguments = ["--json", *(word for file in files for word in ("--file", str(file)))]
    loaded: dict[str, Any] = json.loads(
        CliRunner().invoke(measure, arguments, catch_exceptions=False).stdout
    )
    return loaded


def test_each_boot_of_a_text_is_recorded_once(
    machine: Booted, monkeypatch: pytest.MonkeyPatch, log: Path
) -> None:
    first = document(machine, monkeypatch, log)
    assert len(first["new"]) == 2
    assert [boot["source"] for boot in first["boots"]] == ["import", "import"]
    assert [boot["timestamps"]["release"] for boot in first["boots"]] == ["6.1.0", "6.12.1"]
    second = document(machine, monkeypatch, log)
    assert (second["new"], second["known"]) == ([], 2)


def test_a_text_s_boots_are_told_as_far_as_it_tells_them(log: Path) -> None:
    found = read_text_log(log)
    assert found is not None
    record = found.records[0]
    assert record.source is RecordSource.IMPORT
    assert record.machine is None
    assert record.unpack_us == 200_000
    assert record.shadow.waiting is Waiting.WAITED
    assert record.rejections == ()
    assert record.started_at.isoformat() == "2023-02-22T14:03:40.450000+00:00"
    assert record.notes == ()


def test_a_log_without_the_time_of_day_has_the_file_s_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "dmesg"
    lines = LOG.format(release="6.1.0").splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "rtc_cmos" not in line))
    found = read_text_log(path)
    assert found is not None
    (record,) = found.records
    assert record.started_at.timestamp() == pytest.approx(path.stat().st_mtime, abs=0.001)
    assert record.notes == (
        "the log does not tell when the machine was booted: the time is that of the file",
    )


def test_a_boot_with_an_oops_is_no_sample(tmp_path: Path) -> None:
    path = tmp_path / "dmesg"
    oops = "[    0.510000] Oops: 0002 [#1] PREEMPT SMP NOPTI\n"
    text = LOG.format(release="6.1.0")
    path.write_text(text.replace("[    0.550000]", f"{oops}[    0.550000]"))
    found = read_text_log(path)
    assert found is not None
    assert found.records[0].rejections == (RejectionReason.OOPSED,)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 100_000,
        b"x" * 1_000_000,
        b"\xff\xfe\n" * 10_000,
        b"[" * 50_000,
        b"LPKSHHRH",
        b"[    0.000000] Linux version 6.1.0\n",
        b"notes on Trying to unpack rootfs image as initramfs...\n",
    ],
)
def test_what_tells_of_no_boot_is_refused_in_a_line(
    machine: Booted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "garbage"
    path.write_bytes(content)
    assert read_text_log(path) is None
    with pytest.raises(InitadvisorError, match="garbage"):
        document(machine, monkeypatch, path)


def test_every_beginning_of_a_log_is_read_without_an_error(log: Path) -> None:
    whole = log.read_bytes()
    for length in range(0, len(whole), 7):
        log.write_bytes(whole[:length])
        found = read_text_log(log)
        assert found is None or len(found.records) <= 2


def test_of_a_huge_file_the_beginning_is_read(
    log: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(text_boots, "_MOST_BYTES", 500)
    found = read_text_log(log)
    assert found is not None
    assert len(found.records) == 1
    assert "only the first" in found.warnings[0]
    many = tmp_path / "many"
    many.write_text("".join(LOG.format(release=f"6.1.{n}") for n in range(5)))
    monkeypatch.setattr(text_boots, "_MOST_BYTES", 1 << 20)
    monkeypatch.setattr(text_boots, "_MOST_BOOTS", 3)
    found = read_text_log(many)
    assert found is not None
    assert len(found.records) == 3
    assert found.warnings == (f"{many}: only the first 3 boots were read",)
