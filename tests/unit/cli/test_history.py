"""The command ``history``: what it shows, in words and as JSON, of whatever was measured."""

from __future__ import annotations

import csv
import json
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from initadvisor import host as host_package
from initadvisor.boots.machine_name import machine_name
from initadvisor.cli.history import history
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.estimates import Certainty
from initadvisor.core.settings import Setting
from initadvisor.host import Host
from initadvisor.records.boot import RecordSource, RejectionReason, from_exported
from initadvisor.records.lab import BootKind, Engine, LabKernel, RunEnd
from initadvisor.store.store import open_store
from tests.fakes.runner import FakeRunner
from tests.fixtures.boots import LZ4, OTHER_MACHINE, boot_record
from tests.fixtures.journals import MACHINE_ID
from tests.fixtures.lab_runs import CAT, KERNEL, fill, lost, run, sample, verification

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine which the command takes for the real one."""
    machine = Host(root=tmp_path, runner=FakeRunner())
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setattr(host_package, "Host", lambda: machine)
    return machine


TIMES_US = (*range(214_000, 219_000, 1000), 219_000, 230_000, 240_000, 250_000)


def call(*arguments: str) -> Result:
    """Call the command; errors are raised."""
    return CliRunner().invoke(history, arguments, catch_exceptions=False)


def document(*arguments: str) -> dict[str, Any]:
    """Call the command and read its JSON."""
    loaded: dict[str, Any] = json.loads(call("--json", *arguments).stdout)
    assert loaded["schema"] == 3
    return loaded


def measured(host: Host) -> None:
    """Record a run with everything in it."""
    with open_store(host) as store:
        number = store.begin_lab_run(run())
        for round_number, time_us in enumerate(TIMES_US, 1):
            store.add_sample(number, sample(time_us, number=round_number))
        store.add_sample(number, sample(97_000, image=CAT))
        store.add_sample(number, sample(250_000, kind=BootKind.INIT))
        store.add_lost(number, lost("the VM said nothing for 60 s", image=CAT))
        store.add_lost(number, lost("the VM said nothing for 60 s", image=CAT))
        store.end_lab_run(number, RunEnd.SETTLED, ("the machine runs on battery",))
        store.add_verification(verification())
        store.add_verification(verification(image=CAT, words="junk within compressed archive"))


def test_where_nothing_was_measured_that_is_said_and_nothing_is_made(host: Host) -> None:
    assert call().stdout == "Nothing was measured yet.\n"
    assert document() == {
        "schema": 3,
        "store": str(host.state_dir() / "initadvisor.sqlite"),
        "damaged": [],
        "lab_runs": [],
        "verifications": [],
        "boots": [],
    }
    assert not host.state_dir().exists()


def test_a_run_is_shown_with_median_interval_and_what_was_lost(host: Host) -> None:
    measured(host)
    said = call().stdout
    words = " ".join(said.split())
    assert "Linux 6.12.1-amd64, kvm (7.2), A Processor @ 2.10GHz; the ranking was settled" in words
    [today] = [line.split() for line in said.splitlines() if line.startswith("zstd -19 (today)")]
    assert today[3:5] == ["40.0", "218.0"]
    low, high = map(float, today[5].split(".."))
    assert low < 218 < high
    assert today[6:] == ["9"]
    [other] = [line.split() for line in said.splitlines() if line.startswith("cat ")]
    assert other == ["cat", "40.0", "97.0", "1", "2"]  # of one time there is no interval
    assert "95 %: where the median of as many others would be" in words
    assert "2 % (assumed) from one occasion to another" in words
    assert "no interval: too few boots" in words
    assert "zstd -19: /init would run 251 ms after unpacking began" in words
    assert "cat: 2 boots lost: the VM said nothing for 60 s" in words
    assert "the machine runs on battery" in words
    assert "image aaaaaaaaaaaa: unpacked (Linux 6.12.1-amd64, tcg)" in words
    assert "image bbbbbbbbbbbb: refused: junk within compressed archive" in words
    assert words.endswith(f"Kept in {host.state_dir() / 'initadvisor.sqlite'}")


def test_text_that_is_no_path_fits_80_columns(host: Host) -> None:
    measured(host)
    lines = call().stdout.splitlines()
    assert max(len(line) for line in lines if not line.startswith("Kept in")) <= 80


def test_the_json_has_every_sample(host: Host) -> None:
    measured(host)
    shown = document()
    [recorded] = shown["lab_runs"]
    assert recorded["started_at"] == "2026-03-01T12:00:00+00:00"
    assert (recorded["end"], recorded["engine"]) == ("settled", "kvm")
    assert recorded["kernel"] == {
        "path": KERNEL.path,
        "sha256": KERNEL.sha256,
        "release": KERNEL.release,
    }
    zstd, cat = recorded["settings"]
    assert (zstd["setting"], zstd["today"], cat["today"]) == ("zstd -19", True, False)
    assert zstd["unpack_ms"]["median"] == 218
    assert zstd["unpack_ms"]["low"] < 218 < zstd["unpack_ms"]["high"]
    assert zstd["unpack_ms"]["count"] == 9
    assert (cat["unpack_ms"]["median"], cat["unpack_ms"]["count"]) == (97, 1)
    assert (cat["unpack_ms"]["low"], cat["unpack_ms"]["high"]) == (None, None)
    assert zstd["init_ms"] == 251
    assert [s["unpack_us"] for s in zstd["samples"]] == [*TIMES_US, 250_000]
    assert zstd["samples"][9]["waiter"] == "populate_rootfs"
    assert cat["init_ms"] is None
    assert [boot["reason"] for boot in cat["lost"]] == ["the VM said nothing for 60 s"] * 2
    assert recorded["warnings"] == ["the machine runs on battery"]
    refused, unpacked = shown["verifications"]
    assert (refused["unpacked"], unpacked["unpacked"]) == ("refused", "yes")
    assert refused["reason"] == "junk within compressed archive"


def test_only_the_latest_are_shown_where_that_is_asked(host: Host) -> None:
    with open_store(host) as store:
        for time_us in range(1000, 13_000, 1000):
            fill(store, time_us)
            store.add_verification(verification())
    assert [r["number"] for r in document("--limit", "2")["lab_runs"]] == [12, 11]
    assert len(document("--limit", "2")["verifications"]) == 2
    assert len(document()["lab_runs"]) == 10
    assert CliRunner().invoke(history, ["--limit", "0"]).exit_code == 2


def test_a_run_that_was_killed_says_so(host: Host) -> None:
    with open_store(host) as store:
        fill(store)
    assert "its end was not recorded" in call().stdout
    [recorded] = document()["lab_runs"]
    assert recorded["end"] is None
    assert recorded["settings"][0]["unpack_ms"] is None


def test_an_emulated_processor_s_times_are_called_that(host: Host) -> None:
    with open_store(host) as store:
        store.add_sample(store.begin_lab_run(run(engine=Engine.TCG)), sample(6_000_000))
    assert "its processor was emulated" in " ".join(call().stdout.split())


def test_what_the_data_says_cannot_command_the_terminal(host: Host) -> None:
    evil = "\x1b]0;owned\x07\n\u202e" + os.fsdecode(b"\xff")
    [first, _] = run().subjects
    whole = replace(
        run(cpu_model=evil, kernel=LabKernel(path=evil, sha256=evil, release=evil)),
        engine_version=evil,
        subjects=(replace(first, path=evil, setting=Setting(Codec.ZSTD, ("-\x1bc\u202e",))),),
    )
    with open_store(host) as store:
        number = store.begin_lab_run(whole)
        store.add_lost(number, lost(evil))
        store.end_lab_run(number, RunEnd.FAILED, (evil,))
        store.add_verification(replace(verification(words=evil), image_sha256=evil))
    for output in (call().stdout, call("--json").stdout):
        assert all(char.isprintable() for char in output.replace("\n", ""))
    assert call().stdout.count("owned") >= 5
    [recorded] = document()["lab_runs"]
    assert recorded["settings"][0]["path"] == evil


def with_boots(host: Host) -> None:
    """Record boots of several kinds."""
    records = [
        *(boot_record(n, unpack_us=200_000 + 1000 * n) for n in range(5)),
        boot_record(5, setting=LZ4, unpack_us=90_000),
        boot_record(6, rejections=(RejectionReason.MENU,)),
        boot_record(7, certainty=Certainty.LIKELY),
        boot_record(8, kernel="6.13.0 #1"),
        boot_record(9, source=RecordSource.IMPORT, machine=OTHER_MACHINE),
    ]
    with open_store(host) as store:
        store.add_boots(records)


def test_boots_are_shown_and_summed_up_per_setting(host: Host) -> None:
    with_boots(host)
    said = call().stdout
    rows = [line.split() for line in said.splitlines()]
    assert (
        sum(line.startswith(("2026", "*2026")) for line in map(str.strip, said.splitlines())) == 10
    )
    [zstd] = [row for row in rows if row[:3] == ["zstd", "-19", "6"]]
    assert zstd[3] == "201.5"
    assert zstd[4:] == ["6", "900.0", "5"]  # the menu's boot is none of the loader's
    assert "no interval: too few boots" in said
    assert "This machine, Linux 6.12.1-amd64 #1 SMP, class" in said
    assert "This machine, Linux 6.13.0 #1, class" in said
    assert f"Machine {OTHER_MACHINE[:8]}, Linux" in said
    assert "menu: the loader's menu was shown" in " ".join(said.split())
    assert "zstd -19 ?" in said
    assert "boots of other machines are marked with *" in said
    assert "read: LoaderTimeExecUSec - LoaderTimeInitUSec" in said
    lines = said.splitlines()
    assert max(len(line) for line in lines if not line.startswith("Kept in")) <= 80


def test_an_interval_is_shown_where_boots_tell_how_far_they_scatter(host: Host) -> None:
    records = [boot_record(n, unpack_us=200_000 + 1000 * n) for n in range(9)]
    with open_store(host) as store:
        store.add_boots([*records, boot_record(9, setting=LZ4, unpack_us=90_000)])
    rows = [line.split() for line in call().stdout.splitlines()]
    [zstd] = [row for row in rows if row[:3] == ["zstd", "-19", "9"]]
    low, high = map(float, zstd[4].split(".."))
    assert low < 204 < high
    [lz4] = [row for row in rows if row[:3] == ["lz4", "-9", "1"]]
    assert lz4[3:] == ["90.0", "1", "900.0", "1"]


def test_only_what_is_since_a_moment_is_shown(host: Host) -> None:
    measured(host)
    with_boots(host)
    told = document("--since", "2026-03-07T12:00+00:00")
    assert [b["boot_id"] for b in told["boots"]] == [
        boot_record(number).boot_id for number in (9, 8, 7, 6)
    ]
    assert (told["lab_runs"], told["verifications"]) == ([], [])
    assert len(document("--since", "2026-02-01")["lab_runs"]) == 1
    assert call("--since", "0d").stdout == "Nothing was measured since.\n"
    assert len(document("--since", "5000w", "--limit", "3")["boots"]) == 3


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_the_first_day_of_all_and_the_last_are_days(
    host: Host, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        with_boots(host)
        assert len(document("--since", "0001-01-01")["boots"]) == 10
        assert call("--since", "9999-12-31T23:59").stdout == "Nothing was measured since.\n"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "since", ["yesterday", "2026-13-01", "90", "99999999d", "", "\u0663d", "\u0662026-01-31"]
)
def test_a_moment_that_is_none_is_a_wrong_command_line(since: str) -> None:
    assert CliRunner().invoke(history, ["--since", since]).exit_code == 2


def test_all_boots_are_exported_and_may_be_imported_elsewhere(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_boots(host)
    exports = {form: tmp_path / form for form in ("--json", "--csv")}
    for form, path in exports.items():
        path.write_text(call(form).stdout)
    rows = list(csv.DictReader(exports["--csv"].read_text().splitlines()))
    assert len(rows) == 10
    assert rows[0]["machine"] == OTHER_MACHINE
    assert (rows[4]["setting"], rows[4]["unpack_us"]) == ("lz4 -9", "90000")
    assert rows[3]["rejections"] == "menu"
    for form, path in exports.items():
        monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / f"state of {form}"))
        said = call("--import", str(path)).stdout
        assert said.startswith("10 of 10 boots are new; kept in ")
        assert call("--import", str(path)).stdout.startswith("0 of 10 boots are new")
        boots = document()["boots"]
        assert len(boots) == 10
        assert {boot["source"] for boot in boots} == {"import"}


@pytest.mark.parametrize("form", ["--json", "--csv"])
def test_a_machine_s_id_is_in_no_export(host: Host, form: str) -> None:
    name = machine_name(MACHINE_ID)
    ordinary = boot_record(1, machine=name)
    [image] = ordinary.attribution.images
    entry, path = f"{MACHINE_ID}-6.1.conf", f"/efi/{MACHINE_ID.upper()}/6.1/initrd"
    record = replace(
        ordinary,
        start=replace(ordinary.start, entry=entry, clues=(path,)),
        evidence=replace(ordinary.evidence, entry=entry),
        attribution=replace(
            ordinary.attribution,
            images=(replace(image, path=path, entries=(entry,)),),
            reason=path,
        ),
    )
    with open_store(host) as store:
        store.add_boots([record])
    exported = call(form).stdout
    assert MACHINE_ID not in exported.lower()
    assert exported.count(f"{name}-6.1.conf") == 3
    assert f"/efi/{name}/6.1/initrd" in exported
    with open_store(host, readonly=True) as store:
        assert store.boots() == (record,)


def test_forms_exclude_each_other(tmp_path: Path) -> None:
    file = ["--import", str(tmp_path)]
    for arguments in (
        ["--json", "--csv"],
        *(["--json", *file], ["--since", "1d", *file], ["--limit", "1", *file]),
    ):
        assert CliRunner().invoke(history, arguments).exit_code == 2


def test_what_a_boot_says_cannot_command_the_terminal(host: Host) -> None:
    evil = "\x1b]0;owned\x07\n\u202e\x7f\x9b"
    ordinary = boot_record(1, source=RecordSource.IMPORT, machine=OTHER_MACHINE, kernel=evil)
    record = replace(
        ordinary,
        notes=(evil,),
        start=replace(ordinary.start, loader=evil, clues=(evil,)),
        attribution=replace(ordinary.attribution, reason=evil),
    )
    with open_store(host) as store:
        store.add_boots([record])
    for form in ((), ("--json",), ("--csv",)):
        said = call(*form).stdout
        assert "owned" in said
        assert all(char.isprintable() for char in said.replace("\r\n", "").replace("\n", ""))
    [boot] = document()["boots"]
    assert from_exported(boot) == record
    [row] = csv.DictReader(call("--csv").stdout.splitlines())
    assert from_exported(json.loads(row["record"])) == record


def test_a_damaged_data_base_is_one_line(host: Host) -> None:
    host.state_dir().mkdir()
    (host.state_dir() / "initadvisor.sqlite").write_bytes(b"garbage" * 100)
    with pytest.raises(InitadvisorError, match="it is no data base") as caught:
        call()
    assert caught.value.hint
