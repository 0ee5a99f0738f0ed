"""The command ``measure``: what it says of boots, and that it costs a boot as good as nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from initadvisor import host as host_package
from initadvisor.cli.measure import measure, print_measured
from initadvisor.core.errors import InitadvisorError
from initadvisor.measure import measure as workflow
from initadvisor.measure.measure import Measured
from initadvisor.records.boot import from_exported
from tests.fixtures.booted import IMAGE_BYTES, Booted
from tests.fixtures.boots import boot_record, full_record
from tests.fixtures.journals import Boot, write_journal
from tests.fixtures.waiting import HANGS_S

if TYPE_CHECKING:
    from click.testing import Result

HEAVY = [
    *("numpy", "rich", "pyudev", "psutil", "zstandard", "lz4", "lzo", "xml", "email", "asyncio"),
    *("initadvisor.image.scan", "initadvisor.decide.repeats", "initadvisor.records.lab"),
]
SCRIPT = """
import sys
from pathlib import Path
from initadvisor import host
machine = host.Host(root=Path(sys.argv[1]))
host.Host = lambda: machine
from initadvisor.cli import root
root(["measure"], standalone_mode=False)
print(*sorted(sys.modules), file=sys.stderr)
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Booted:
    """A machine which the command takes for the real one."""
    machine = Booted(root=tmp_path / "machine")
    machine.systemd_boot()
    machine.initramfs_tools()
    machine.image()
    machine.loaded(IMAGE_BYTES)
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    monkeypatch.setattr(host_package, "Host", machine.host)
    monkeypatch.setattr(workflow, "announce", lambda _record: None)
    return machine


def call(*arguments: str) -> Result:
    """Call the command; errors are raised."""
    return CliRunner().invoke(measure, arguments, catch_exceptions=False)


def document(*arguments: str) -> dict[str, Any]:
    """Call the command and read its JSON."""
    loaded: dict[str, Any] = json.loads(call("--json", *arguments).stdout)
    assert loaded["schema"] == 3
    return loaded


def test_a_boot_is_told_in_words(machine: Booted, tmp_path: Path) -> None:
    said = " ".join(call().stdout.split())
    assert "started by systemd-boot, with kernel and image in files of their own" in said
    assert "the image was read within 900.0 ms (LoaderTimeExecUSec - LoaderTimeInitUSec)" in said
    assert "the kernel unpacked the image in 200.0 ms" in said
    assert "/init ran 300.0 ms after that began" in said
    assert "the kernel waited for it, after 50.0 ms of other work (NET: Registered" in said
    assert f"image: {machine.root}/boot/initrd.img-" in said
    assert "setting: zstd -19" in said
    state = tmp_path / "state/initadvisor.sqlite"
    assert said.endswith(f"1 boot recorded, 0 boots had been before, in {state}")
    assert "0 boots recorded, 1 boot had been before" in call().stdout


def test_a_dry_run_says_what_it_would_do(machine: Booted, tmp_path: Path) -> None:
    del machine
    assert "1 boot would be recorded" in call("--dry-run").stdout
    assert not (tmp_path / "state").exists()


def test_the_json_is_the_record(machine: Booted) -> None:
    told = document()
    [boot] = told["boots"]
    assert from_exported(boot).boot_id == machine.boot.boot_id == told["new"][0]
    assert (told["recorded"], told["known"], told["warnings"]) == (True, 0, [])
    assert boot["figures"]["unpack_us"] == 200_000
    assert boot["figures"]["setting"] == "zstd -19"
    again = document("--dry-run")
    assert (again["recorded"], again["new"]) == (False, [])


def test_earlier_boots_are_told_in_a_table(machine: Booted) -> None:
    machine.earlier = [Boot(number=1).ordinary(), Boot(number=2).kernel(0, "Linux version 6.1")]
    said = call("--backfill").stdout
    assert "no-begin: the message that unpacking begins is missing" in said
    assert said.splitlines()[-1].startswith("3 boots recorded, 0 boots had been before")
    assert len([line for line in said.splitlines() if line.lstrip().startswith("20")]) == 3
    assert max(map(len, said.splitlines()[:-1])) <= 80


@pytest.mark.parametrize("option", ["--directory", "--file"])
def test_a_journal_that_is_named_is_read(machine: Booted, tmp_path: Path, option: str) -> None:
    del machine
    path = write_journal(tmp_path / "there/a.journal", [Boot(number=4).ordinary()])
    told = document(option, str(path if option == "--file" else path.parent))
    assert told["new"] == [Boot(number=4).boot_id]


def test_a_file_that_is_no_journal_is_told_once_beside_one_that_is(
    machine: Booted, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    del machine
    good = write_journal(tmp_path / "a.journal", [Boot(number=4).ordinary()])
    bad = tmp_path / "b.journal"
    bad.write_bytes(b"no journal\n" * 10_000)
    done = call("--file", str(good), "--file", str(bad))
    said = " ".join((done.output + caplog.text).split())
    assert said.count("b.journal was left out: neither a journal nor a kernel log that") == 1
    assert "1 boot recorded" in said
    with pytest.raises(InitadvisorError, match=r"b\.journal: neither a journal nor a"):
        call("--file", str(bad))


def test_only_one_kind_of_journal_is_read_at_once(tmp_path: Path) -> None:
    arguments = ["--backfill", "--directory", str(tmp_path)]
    assert CliRunner().invoke(measure, arguments).exit_code == 2


def test_what_a_boot_says_cannot_command_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    evil = "\x1b]0;owned\x07\n\u202e"
    record = full_record()
    shown = replace(
        record,
        notes=(evil,),
        shadow=replace(record.shadow, waiter=evil),
        attribution=replace(record.attribution, reason=evil),
    )
    for records in ((shown,), (shown, boot_record(2))):
        measured = Measured(
            records=records, new=frozenset(), known=0, warnings=(evil,), path=Path("/x")
        )
        print_measured(measured, dry_run=False)
    said = capsys.readouterr().out
    assert all(char.isprintable() for char in said.replace("\n", ""))


def test_measuring_loads_nothing_that_takes_long(machine: Booted, tmp_path: Path) -> None:
    machine.host()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(machine.root)],
        env={
            **os.environ,
            "STATE_DIRECTORY": str(tmp_path / "state"),
            "CACHE_DIRECTORY": str(tmp_path / "cache"),
        },
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANGS_S,
    )
    assert "unpacked the image in 200.0 ms" in done.stdout
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "initadvisor.boots.record" in loaded
    assert loaded.isdisjoint(HEAVY)
